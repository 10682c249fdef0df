"""Sliders of a training that runs, marks of what changed, and where pages say it."""

import numpy as np
import plotly.graph_objects as go
import pytest
from opened_page import opened
from streamlit.testing.v1 import AppTest

from contrastive_core import runs
from contrastive_core.base.progress import Progress
from contrastive_core.engine import queue
from contrastive_core.runs import changes as live_changes
from contrastive_core.runs import checkpoints
from contrastive_core.runs.run import Run
from contrastive_core.runs.train_config import TrainConfig
from contrastive_core.train import loop
from contrastive_core.train.setup import prepare
from contrastive_lab import forming_map, setting_names
from contrastive_lab.components.scatter import ScatterData
from contrastive_lab.train import watch

CONFIG = {"method": "simclr", "dataset": "digits", "epochs": 3, "loss": "nt_xent", "lr": 0.003, "seed": 0}
CONFIG |= {"loss_knobs": {"temperature": 0.2}}
EPOCHS = [{"epoch": 1, "step": 10, "loss": 1.0}, {"epoch": 2, "step": 20, "loss": 0.5}]


def changed(run: Run, step: int, old: float, new: float) -> None:
    name = "loss.temperature"
    run.append_changes([{"id": f"{step} {new}", "step": step, "name": name, "from": old, "to": new}])


def temperature(app: AppTest):
    assert not app.exception
    (slider,) = (s for s in app.select_slider if s.label == "τ")
    return slider


def test_a_slider_asks_for_a_change_and_follows_those_of_other_tabs(monkeypatch: pytest.MonkeyPatch) -> None:
    run = runs.create("mine", CONFIG)
    with run.lock():
        run.set_status("running", epoch=1)
        app = opened("train", monkeypatch, watch="mine")
        assert [s.label for s in app.select_slider] == ["learning rate", "τ"]
        temperature(app).set_value(0.1).run()
        assert [(one["name"], one["to"]) for one in run.requests()] == [("loss.temperature", 0.1)]
        assert temperature(app).value == 0.1
        mine = temperature(app).key
        run.append_changes([{**run.requests()[0], "step": 3, "from": 0.2}])
        app.run()
        assert temperature(app).key == mine  # the same slider, which keeps the focus
        live_changes.request(run, watch.live_of(run), {"loss.temperature": 0.37})  # another tab, between two stops
        app.run()
        assert temperature(app).value == 0.37
        assert temperature(app).key != mine
        run.set_status("done", epoch=2)
    temperature(app).set_value(0.5).run()  # the page has not seen yet that it has ended
    assert len(run.requests()) == 2
    assert "mine is not running (done), so nothing was changed" in [e.value.replace("\\", "") for e in app.error]
    assert "The run ended before this change was applied: τ 0.37" in [i.value.replace("\\", "") for i in app.info]
    assert not [s for s in app.select_slider if s.label == "τ"]


def test_a_slider_that_is_only_drawn_asks_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A browser sends the value of a new slider, too."""
    run = runs.create("mine", CONFIG)
    run.set_status("queued")
    at = {"key": [2, 0.2], "key-2": 0.2}
    monkeypatch.setattr(watch.st, "session_state", at)
    watch._send(run, "loss.temperature", "key")
    assert run.requests() == []
    at["key-2"] = 0.1
    watch._send(run, "loss.temperature", "key")
    watch._send(run, "loss.temperature", "key")
    assert [one["to"] for one in run.requests()] == [0.1]


def test_a_change_is_marked_on_curves_and_named_on_the_strip(monkeypatch: pytest.MonkeyPatch) -> None:
    run = runs.create("mine", CONFIG)
    changed(run, 11, 0.2, 0.05)
    marks = setting_names.marks_of(run.changes(), EPOCHS)
    assert marks == {"step": [(11, "τ 0.2 → 0.05")], "epoch": [(1.0, "τ 0.2 → 0.05")]}
    assert setting_names.marks_of(run.changes(), EPOCHS[:1])["epoch"][0][0] == 1.0
    figure = go.Figure()
    setting_names.draw_marks(figure, marks["step"])
    assert [(s.x0, s.x1) for s in figure.layout.shapes] == [(11, 11)]
    assert figure.layout.annotations[0].text == "τ 0.2 → 0.05"
    figure = go.Figure()
    setting_names.draw_marks(figure, [(1, "a"), (80, "b"), (99, "c"), (100, "d")])
    assert [a.text for a in figure.layout.annotations] == ["d", "b", "a"]  # no text upon another
    assert len(figure.layout.shapes) == 4
    changed(run, 12, 0.05, 0.1)
    rows = np.random.default_rng(0).normal(size=(20, 4))
    for epoch in (1, 2):
        run.save_snapshot(epoch, index=np.arange(20), h=rows, z=rows, labels=np.zeros(20, np.int64))
    drawn: list[ScatterData] = []
    monkeypatch.setattr(forming_map, "draw_scatter", lambda data, **_: drawn.append(data))
    forming_map.draw(run, changed=setting_names.changes_by_epoch(run.changes(), EPOCHS))
    assert drawn[0].frame_names == ["epoch 1", "epoch 2 · τ 0.2 → 0.1"]


def two_runs() -> None:
    from contrastive_core import runs
    from contrastive_lab.runs import detail

    detail.difference([runs.load("one"), runs.load("two")])


def test_runs_says_what_changed_and_what_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two"):
        run = runs.create(name, CONFIG)
        run.set_status("done")
    changed(run, 11, 0.2, 0.05)
    app = opened("runs", monkeypatch, data="digits", search="two")
    assert not app.exception
    assert [h.value for h in app.header][:1] == ["two"]
    assert "Changed while it trained: τ 0.2 → 0.05 at step 11" in [c.value.replace("\\", "") for c in app.caption]
    app = AppTest.from_function(two_runs, default_timeout=60).run()
    assert not app.exception
    assert "**changes while it trained**: – → τ 0.2 → 0.05 at step 11" in app.markdown[0].value.replace("\\", "")


def test_a_run_leads_to_its_own_batch_at_a_kept_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    small = {
        "epochs": 3,
        "batch_size": 256,
        "sample": 100,
        "save_seconds": 0.0,
        "encoder_knobs": {"width": 0.25},
        "device": "cpu",
    }
    setup = prepare(TrainConfig("simclr", **small))
    run = runs.create("mine", setup.config.to_dict())
    assert loop.train(setup, run) == "done"
    app = opened("runs", monkeypatch, data="digits", search="mine")
    (picker,) = (s for s in app.selectbox if s.label == "See its loss with")
    assert [title for title in picker.options if "head" in title] == [
        "After the head (z), epoch 1",
        "After the head (z), epoch 2",
    ]
    picker.set_value("epoch:1").run()
    (link,) = (e.proto for e in app.get("page_link") if e.proto.label == "Loss Lab")
    assert link.query_string == "run=mine&rows=epoch%3A1"


def test_branches_are_started_from_runs_and_compared_when_they_end(monkeypatch: pytest.MonkeyPatch) -> None:
    run = runs.create("mine", CONFIG)
    for epoch in (1, 2):
        checkpoints.save_state(run, {}, {"place": {"epoch": epoch, "batch": 0, "step": 10 * epoch}})
    run.set_status("done")
    started: list[str] = []
    monkeypatch.setattr(queue, "resume", started.append)
    app = opened("runs", monkeypatch, data="digits", search="mine")
    (field,) = (f for f in app.text_area if f.label == "Other values, one branch per line")
    (button,) = (b for b in app.button if b.label == "Start the branches")
    (picker,) = (s for s in app.selectbox if s.label == "From")
    assert picker.options == ["the newest state", "epoch 2", "epoch 1"]
    picker.set_value(1)
    field.input("loss.temperature=0.05\nlr=999")
    button.click().run()
    assert ["lr must be at most 100" in e.value for e in app.error] == [True]
    assert started == []
    field.input("loss.temperature=0.05\nloss.temperature=0.4, lr=0.001")
    with monkeypatch.context() as waiting:
        waiting.setattr(queue, "progress_of", lambda name: Progress("waiting"))
        button.click().run()
    assert not app.exception
    assert started == ["mine-temperature0.05", "mine-temperature0.4-lr0.001"]
    assert runs.load(started[1]).manifest["branch"] == {"run": "mine", "step": 10, "epoch": 1}
    told = "Started: mine-temperature0.05, mine-temperature0.4-lr0.001. Choose one at the top to follow it."
    assert told in [i.value.replace("\\", "") for i in app.info]
    runs.load(started[0]).set_status("done")
    with monkeypatch.context() as waiting:  # the other branch still runs, and the page has been loaded again
        waiting.setattr(queue, "progress_of", lambda name: Progress("waiting") if name == started[1] else None)
        app = opened("train", monkeypatch, watch=started[0])
        assert app.title[0].value == "Train"
    runs.load(started[1]).set_status("done")
    app.run()
    assert not app.exception
    assert app.title[0].value == "Compare"
    said = " ".join(one.value for one in (*app.error, *app.warning, *app.info)).replace("\\", "")
    assert f"missing: {', '.join(['mine', *started])}." in said  # asked for all three, which have no weights here
    assert opened("train", monkeypatch, watch=started[0]).title[0].value == "Train"  # they had ended before
