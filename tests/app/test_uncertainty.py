"""Intervals on the pages: bands while training, the whole range, and what was chosen to compare."""

import numpy as np
import pytest
from opened_page import opened
from visits import copy_of

from contrastive_core import runs
from contrastive_core.base.storage import ROOT, runs_home
from contrastive_core.compare.evaluation import read_evaluation
from contrastive_core.sweeps.sweep_file import load, read
from contrastive_lab.runs.sweeps import toml_of
from contrastive_lab.train.curves import shares, since


def test_from_where_on_no_difference_is_shown() -> None:
    scored = [(1, 0.2), (2, 0.5), (3, 0.52), (4, 0.51)]
    ends = shares(scored, 500)
    assert ends[0] == pytest.approx((16.73, 23.73), abs=5e-3)  # Wilson
    said = since([1, 2, 3, 4], ends, 500)
    assert "interval over 500 images" in said
    assert "Accuracy has not changed significantly since epoch 2" in said
    assert "does not overlap that of the epoch before" in since([1, 2], ends[:2], 500)
    assert shares(scored, 0) == []


def test_train_says_of_how_many_images_its_band_is(monkeypatch: pytest.MonkeyPatch) -> None:
    run = runs.create("mine", {"method": "simclr", "dataset": "digits", "epochs": 2})
    run.append_metrics(
        [
            {"epoch": 1, "step": 1, "loss": 2.0, "images_per_s": 9.0},
            {"epoch": 1, "step": 1, "loss": 2.0, "knn_train_sample": 0.5},
            {"epoch": 2, "step": 2, "loss": 1.0, "knn_train_sample": 0.7},
        ]
    )
    labels = np.r_[np.zeros(30, np.int64), np.ones(10, np.int64), -np.ones(5, np.int64)]
    rows = np.eye(45, 4)
    run.save_snapshot(2, index=np.arange(45), h=rows, z=rows, labels=labels)
    run.set_status("done")
    app = opened("train", monkeypatch, watch="mine", view="curves")
    assert not app.exception
    assert any("interval over 40 images" in c.value for c in app.caption)


def test_compare_names_what_cannot_be_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    runs.create("bare", {"method": "simclr", "dataset": "digits"}).set_status("stopped")
    app = opened("compare", monkeypatch, runs="simclr-digits,bare,sup_con-digits")
    assert not app.exception
    assert ["bare" in w.value for w in app.warning][:1] == [True]
    assert app.multiselect(key="compare-runs").value == ["simclr-digits", "sup_con-digits"]


def test_a_sweep_draws_its_figure_with_its_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    found = load(ROOT / "sweeps" / "negatives.toml")
    for cell in found.trained()[:3]:
        run = runs.create(cell.run, {"method": "simclr", "epochs": 1})
        run.append_metrics([{"epoch": 1, "step": 9, "loss": 1.0, "knn_train_sample": 0.5}])
        run.set_status("done")
    app = opened("runs", monkeypatch, view="sweeps", sweep="negatives")
    assert not app.exception
    assert any("No winner yet" in m.value for m in app.markdown)
    assert any("at least three seeds" in c.value for c in app.caption)
    (toggle,) = [t for t in app.toggle if t.label == "Zoom to the figures"]
    for on in (True, False, True):
        (toggle,) = [t for t in app.toggle if t.label == "Zoom to the figures"]
        toggle.set_value(on).run()
        assert not app.exception
    opens = next(b for b in app.button if b.label.startswith("Compare 3"))
    opens.click().run()
    assert not app.exception
    assert app.title[0].value == "Compare"
    (said,) = [w.value for w in app.warning if "weights are missing" in w.value]
    assert found.trained()[0].run in said.replace("\\", "")


def test_a_new_sweep_names_temperature_as_pages_do() -> None:
    text = toml_of("mine", {"method": "simclr"}, [("loss.temperature", "0.1, 0.5")], "0", 1.0, "line")
    found = read(text, "mine.toml")
    assert [axis.name for axis in found.axes] == ["τ"]
    assert found.cells()[0].settings["loss.temperature"] == 0.1


def test_the_plot_by_setting_is_of_the_chosen_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, temperature in (("low", 0.02), ("usual", 0.2), ("high", 2.0), ("other", 2.0)):
        copy_of("simclr-digits", runs_home() / name, temperature)
    scores = read_evaluation(runs.load("simclr-digits"))
    monkeypatch.setattr("contrastive_lab.cache.scores", lambda run: scores)
    view = {"view": "Plot by setting", "setting": "simclr with nt_xent on digits: temperature"}
    app = opened("compare", monkeypatch, runs="low,usual,high", **view)
    assert not app.exception
    assert list(app.dataframe[-1].value["run"]) == ["low", "usual", "high"]
    monkeypatch.setattr("contrastive_lab.cache.scores", lambda run: None)  # they are scored, not refused
    app.run()
    assert not app.exception
    assert not any("Curves need runs" in i.value for i in app.info)
    assert any(name in p.proto.text for p in app.get("progress") for name in ("low", "usual", "high"))


def test_without_runs_to_draw_the_plot_is_the_sweep_that_comes_with_the_app(monkeypatch: pytest.MonkeyPatch) -> None:
    app = opened("compare", monkeypatch, runs="simclr-digits,sup_con-digits", view="Plot by setting")
    assert not app.exception
    assert any("Curves need runs" in i.value for i in app.info)
    assert any("τ 0\\.2 is significantly better than τ 0\\.5" in m.value for m in app.markdown)
