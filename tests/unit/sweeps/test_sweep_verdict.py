"""What a sweep's cells show, from what is recorded of each test image."""

from pathlib import Path

import numpy as np
import pytest
from kept_scores import keep_scores

from contrastive_core import runs
from contrastive_core.base.paths import BUNDLE
from contrastive_core.base.score import Score
from contrastive_core.cli.main import main
from contrastive_core.sweeps import sweep_file
from contrastive_core.sweeps.sweep_file import load, read
from contrastive_core.sweeps.sweep_results import verdict, with_shipped

TEXT = """
name = "s"
form = "line"
seeds = [0, 1, 2]
[[axes]]
name = "{axis}"
key = "{axis}"
values = {values}
"""
N = 400


def scored(name: str, wrong: int) -> None:
    """A run that is done, with its kNN on test; its first images are wrong."""
    run = runs.create(name, {"method": "simclr", "epochs": 1})
    run.append_metrics([{"epoch": 1, "step": 9, "loss": 1.0, "knn_train_sample": 0.5}])
    labels = np.array([0, 1, 1, -1])
    run.save_snapshot(1, index=np.arange(4), h=np.eye(4), z=np.eye(4), labels=labels)
    run.weights.parent.mkdir(parents=True, exist_ok=True)
    run.weights.write_bytes(name.encode())
    run.set_status("done")
    right = (np.arange(N) >= wrong).astype(float)
    score = Score("kNN", value=float(right.mean()), unit="share", extras={"n": N})
    score.arrays["per_sample"] = right
    keep_scores(run, {"h": {"knn": score}}, n_test=N)


def test_a_sweep_says_what_its_test_images_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s.toml").write_text(TEXT.format(axis="loss.temperature", values="[0.1, 0.2, 0.5]"))
    found = load(tmp_path / "s.toml")
    for cell, wrong in zip(found.cells(), (80, 40, 42, 82, 41, 40, 79, 41, 42), strict=True):
        scored(cell.run, wrong)
    rows = sweep_file.status(found)
    said, rests_on = verdict(found, rows, "knn test")
    assert said.startswith(
        "No significant difference between loss.temperature 0.2 and loss.temperature 0.5: 0.2 points"
    )
    assert said.endswith(". loss.temperature 0.2 is significantly better than loss.temperature 0.1.")
    assert rests_on == ""
    monkeypatch.setattr(sweep_file, "unscored", lambda sweep: [])
    assert main(["sweep", str(tmp_path / "s.toml"), "--score"]) == 0
    assert f"kNN on test: {said}" in capsys.readouterr().out
    assert verdict(found, rows[:3], "knn test")[0] == "No winner yet."  # one seed each
    assert verdict(found, rows[:1], "knn test") == ("", "")


def test_cells_of_other_images_are_not_compared() -> None:
    found = read(TEXT.format(axis="dataset", values='["digits", "shapes"]'), "s.toml")
    for cell, wrong in zip(found.cells(), (80, 40) * 3, strict=True):
        scored(cell.run, wrong)
    assert verdict(found, sweep_file.status(found), "knn test") == ("", "")


def test_scores_that_come_with_the_app_stand_until_a_cell_is_trained() -> None:
    path = BUNDLE / "sweeps" / "temperature.toml"
    found = load(path)
    first = next(cell.run for cell in found.cells() if cell.at["τ"] == "0.2")
    scored(first, 300)
    rows = with_shipped(found, sweep_file.status(found))
    by_state = {state: [row for row in rows if row["status"] == state] for state in ("done", "waiting")}
    assert (len(by_state["done"]), len(by_state["waiting"])) == (24, 0)
    (own,) = [row for row in by_state["done"] if "shipped" not in row]
    assert (own["run"], own["knn test"]) == (first, 0.25)
    shown = verdict(found, [row for row in rows if "shipped" in row and row["τ"] != "0.2"], "knn test")[0]
    assert shown.endswith("τ 0.1 is significantly better than τ 0.5, τ 1.0 and τ 2.0.")
    other = read(path.read_text().replace("epochs = 24", "epochs = 7"), "temperature.toml")
    assert not any("shipped" in row for row in with_shipped(other, sweep_file.status(other)))
