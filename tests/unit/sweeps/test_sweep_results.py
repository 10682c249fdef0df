"""Sweeps in the papers' forms, from all cells, from some, and from none; and what their cells show."""

from pathlib import Path

import numpy as np
import pytest
from cases import cases
from kept_scores import keep_scores

from contrastive_core import runs
from contrastive_core.base.score import Score
from contrastive_core.base.storage import BUNDLE, ROOT
from contrastive_core.cli.main import main
from contrastive_core.sweeps import sweep_file, sweep_results
from contrastive_core.sweeps.sweep_file import Sweep, load, read
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


READY = sorted((ROOT / "sweeps").glob("*.toml"))
FORMS = {  # figures of each ready-made sweep
    "augmentations": 1,
    "heads": 1,
    "moco_v2": 0,
    "momentum": 0,
    "negatives": 3,
    "temperature": 2,
}


def train(found: Sweep, count: int, value: float = 0.5) -> None:
    """The first cells get a run that is done; each a little better than the one before."""
    for i, cell in enumerate(found.trained()[:count]):
        run = runs.create(cell.run, {"method": "simclr", "epochs": 1})
        line = {"epoch": 1, "step": 9, "loss": 1.0, "seconds": 10.0 + i, "knn_train_sample": value + i / 1000}
        run.append_metrics([{**line, "uniformity": -2.0 - i, "memory_mb": 100 + i}])
        run.set_status("done")


@cases("path", READY)
def test_the_ready_made_are_drawn_from_some_of_their_cells(path: Path) -> None:
    found = sweep_file.load(path)
    assert found.name == path.stem
    rows = sweep_file.status(found)
    assert sweep_results.draw(found, rows) == []  # nothing is done yet
    assert len(sweep_results.table(found, rows)) == len({tuple(cell.at.items()) for cell in found.cells()})  # any seed
    train(found, 3)
    rows = sweep_file.status(found)
    drawn = sweep_results.draw(found, rows)
    assert len(drawn) == FORMS[path.stem]
    if path.stem == "moco_v2":  # what is on or off is a tick, as in the paper
        table = sweep_results.table(found, rows)
        assert [[row[k] for k in ("MLP", "aug+", "cosine")] for row in (table[0], table[-1])] == [[""] * 3, ["✓"] * 3]
    assert all(figure.to_json() for figure in drawn)
    shown = sweep_results.table(found, rows)
    done = [row for row in rows if row["status"] == "done"]  # at least 3: some share a run
    assert sum(bool(row["kNN on the training sample, %"]) for row in shown) == len(done) >= 3
    assert sweep_file.estimate(found) == pytest.approx((11 + 4) * (len(found.trained()) - 3))


def small(form: str, draw: str = "", seeds: str = "[0]") -> Sweep:
    text = f"""
    name = "s"
    form = "{form}"
    seeds = {seeds}
    [draw]
    {draw}
    [[axes]]
    key = "method.head"
    values = ["none", "linear"]
    [[axes]]
    key = "method.dim"
    values = [16, 64, 128]
    """
    return sweep_file.read(text, "s.toml")


def test_a_matrix_has_means_of_whole_rows_only() -> None:
    found = small("matrix")
    train(found, 5)
    (figure,) = sweep_results.draw(found, sweep_file.status(found))
    heat = figure.data[0]
    assert list(heat.x) == ["16", "64", "128", "row mean"]
    assert list(heat.y) == ["none", "linear"]
    assert heat.z[0] == pytest.approx((50.0, 50.1, 50.2, 50.1))
    assert list(heat.z[1]) == [pytest.approx(50.3), pytest.approx(50.4), None, None]


def test_curves_have_a_series_each_and_a_log_axis_where_it_is_wide() -> None:
    found = small("line", 'measures = ["accuracy", "seconds"]')
    train(found, 6)
    accuracy, seconds = sweep_results.draw(found, sweep_file.status(found))
    assert [trace.name for trace in accuracy.data] == ["none", "linear"]
    assert list(accuracy.data[1].x) == [16.0, 64.0, 128.0]
    assert list(seconds.data[0].y) == [10.0, 11.0, 12.0]
    assert accuracy.layout.xaxis.type == "log"
    first, second, *others = sweep_file.status(found)
    _, seconds = sweep_results.draw(found, [first, {**second, "seconds": None}, *others])
    assert list(seconds.data[0].x) == [16.0, 64.0, 128.0]
    assert list(seconds.data[0].y) == [10.0, None, 12.0]  # a gap where a finished cell lacks the measure


def test_seeds_become_a_mean_and_a_deviation() -> None:
    found = small("table", seeds="[0, 1]")
    train(found, 7)
    first, second = sweep_results.table(found, sweep_file.status(found))[:2]
    assert first["kNN on the training sample, %"] == "50.3 ± 0.4"
    assert first["seeds done"] == 2
    assert second["kNN on the training sample, %"] == "50.1"


def test_every_seed_is_a_dot_and_the_interval_says_what_it_is_of() -> None:
    found = sweep_file.read(
        'name = "s"\nform = "line"\nseeds = [0, 1, 2]\n[[axes]]\nname = "τ"\n'
        'key = "loss.temperature"\nvalues = [0.1, 0.5]',
        "s.toml",
    )
    train(found, 5)  # of the second value one seed is missing
    rows = sweep_file.status(found)
    (figure,) = sweep_results.draw(found, rows, colors=["#010203"])
    means, dots = figure.data
    assert list(means.y) == pytest.approx([50.2, 50.2])
    assert len(dots.y) == 5
    assert dots.marker.color == means.line.color == "#010203"
    low, high = 50.2 - 0.2 * 4.302653 / 3**0.5, 50.2 + 0.2 * 4.302653 / 3**0.5  # Student's t
    assert means.error_y.array[0] == pytest.approx(high - 50.2, abs=1e-5)
    assert means.error_y.arrayminus[0] == pytest.approx(50.2 - low, abs=1e-5)
    assert means.error_y.array[1] is None  # two seeds are two dots
    said = sweep_results.intervals_of(found, rows, "accuracy")
    assert "95 % intervals of the mean over 3 seeds" in said
    assert "at least three seeds" in said
    assert tuple(figure.layout.yaxis.range) == (0, 100)
    (zoomed,) = sweep_results.draw(found, rows, zoom=True)
    assert zoomed.layout.yaxis.range is None
