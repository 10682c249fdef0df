"""What a sweep's cells show, from what is recorded of each test image."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from contrastive_core.cli.main import main
from contrastive_core.engine import sweep_runner
from contrastive_core.records import runs
from contrastive_core.records.evaluation import Evaluation, write_evaluation
from contrastive_core.records.score import Score
from contrastive_core.sweeps.plots import verdict
from contrastive_core.sweeps.spec import load, read

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
    scores = {"h": {"knn": score}}
    write_evaluation(run, Evaluation(name, "test", run.weights_hash(), scores, 0, N))


def test_a_sweep_says_what_its_test_images_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s.toml").write_text(TEXT.format(axis="loss.temperature", values="[0.1, 0.2, 0.5]"))
    found = load(tmp_path / "s.toml")
    for cell, wrong in zip(found.cells(), (80, 40, 42, 82, 41, 40, 79, 41, 42), strict=True):
        scored(cell.run, wrong)
    rows = sweep_runner.status(found)
    said, rests_on = verdict(found, rows, "knn test")
    assert said.endswith(
        "0.2 scored highest, but not significantly higher than 0.5. It is significantly better than 0.1."
    )
    assert rests_on == "95 % intervals over images and seeds, from 3 seeds or more of each, corrected for 3 pairs."
    monkeypatch.setattr(sweep_runner, "unscored", lambda sweep: [])
    assert main(["sweep", str(tmp_path / "s.toml"), "--score"]) == 0
    assert f"kNN on test: {said}\n{rests_on}" in capsys.readouterr().out
    assert verdict(found, rows[:3], "knn test")[0] == "No winner yet."  # one seed each
    assert verdict(found, rows[:1], "knn test") == ("", "")


def test_cells_of_other_images_are_not_compared() -> None:
    found = read(TEXT.format(axis="dataset", values='["digits", "shapes"]'), "s.toml")
    for cell, wrong in zip(found.cells(), (80, 40) * 3, strict=True):
        scored(cell.run, wrong)
    assert verdict(found, sweep_runner.status(found), "knn test") == ("", "")
