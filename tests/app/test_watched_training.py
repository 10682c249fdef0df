"""A watched training: the map that forms, whose clusters keep their places from one epoch to the next; curves of two
towers; sliders, marks of what changed, and branches."""

import json
from itertools import pairwise
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest
import streamlit as st
from opened_page import opened
from streamlit.testing.v1 import AppTest

from contrastive_core import runs
from contrastive_core.base.memory import npz_bytes
from contrastive_core.base.progress import Progress
from contrastive_core.engine import queue
from contrastive_core.runs import changes as live_changes
from contrastive_core.runs import checkpoints
from contrastive_core.runs.run import NOW, Run
from contrastive_core.runs.run_metrics import MetricsReader
from contrastive_core.runs.train_config import TrainConfig
from contrastive_core.spaces.space import pca
from contrastive_core.train import loop
from contrastive_core.train.setup import prepare
from contrastive_lab import forming_map, setting_names
from contrastive_lab.components.scatter import ScatterData
from contrastive_lab.loss_lab import batch
from contrastive_lab.train import curves, watch

# --- the map ---


TURN = np.array([[0.6, -0.8, 0.0], [0.8, 0.6, 0.0], [0.0, 0.0, 1.0]])


def moved(run: Run, maps: list[np.ndarray]) -> float:
    """How far points go from each map to the next, as a share of the first one's spread."""
    steps = [np.linalg.norm(after - before, axis=1).mean() for before, after in pairwise(maps)]
    return float(np.mean(steps) / np.std(maps[0]))


def recorded(*epochs: tuple[int, np.ndarray]) -> Run:
    """A run with snapshots: epoch, rows z."""
    run = runs.create("mine", {"method": "simclr", "dataset": "digits"})
    for epoch, z in epochs:
        run.save_snapshot(epoch, index=np.arange(len(z)), h=z, z=z, labels=np.zeros(len(z), np.int64))
    return run


def test_a_turned_copy_stays_where_it_was() -> None:
    z = np.random.default_rng(0).normal(size=(60, 3)) * [3.0, 2.0, 0.01]
    first, *later = forming_map.forming(recorded((1, z), (2, z @ TURN * [1, -1, 1]), (3, 2 * z))).maps
    for xy in later:
        np.testing.assert_allclose(xy, first, atol=0.02)


def test_maps_of_a_real_training_are_aligned_and_the_same_after_a_restart() -> None:
    run = runs.load("simclr-digits")
    epochs = run.snapshots()
    aligned = forming_map.forming(run).maps
    raw = [pca(run.snapshot(epoch)["z"]) for epoch in epochs]
    np.testing.assert_array_equal(aligned[0], raw[0])
    sized = [xy * np.std(raw[0]) / np.std(xy) for xy in raw]
    assert moved(run, aligned) < 0.9 * moved(run, sized)
    st.cache_resource.clear()
    for xy, again in zip(aligned, forming_map.forming(run).maps, strict=True):
        np.testing.assert_array_equal(xy, again)


def test_a_damaged_epoch_is_left_out() -> None:
    z = np.random.default_rng(1).normal(size=(20, 4))
    run = recorded((1, z), (2, z), (3, -z))
    run.snapshot_path(2).write_bytes(b"no")
    found = forming_map.forming(run)
    assert found.epochs == [1, 3]
    first, last = found.maps
    np.testing.assert_allclose(first, last, atol=0.01)


def test_the_map_of_a_step_since_is_the_last_while_the_run_trains() -> None:
    """Aligned to the epoch before; before there is one to the last look."""
    rng, about = np.random.default_rng(2), {"index": np.arange(30), "labels": np.zeros(30, np.int64)}
    run = runs.create("mine", {"method": "simclr", "dataset": "digits"})
    z = (rng.normal(size=(30, 3)) * [3.0, 2.0, 0.01]).astype(np.float16)
    assert forming_map.forming(run, is_running=True).maps == []
    look(run, 3, z, about)
    first = forming_map.forming(run, is_running=True)
    look(run, 5, z @ TURN.astype(np.float16), about)
    second = forming_map.forming(run, is_running=True)
    assert (first.step, second.step, second.epochs) == (3, 5, [])
    np.testing.assert_allclose(second.maps[-1], first.maps[-1], atol=0.02)
    run.save_snapshot(1, h=z, z=z, **about)
    assert forming_map.forming(run, is_running=True).step == 0
    look(run, 9, z @ TURN.astype(np.float16), about)
    found = forming_map.forming(run, is_running=True)
    assert (found.step, found.epochs, len(found.maps)) == (9, [1], 2)
    np.testing.assert_allclose(found.maps[1], found.maps[0], atol=0.02)
    assert len(forming_map.forming(run).maps) == 1
    for data in (b"no", npz_bytes(step=np.array(9), z=z, labels=z, index=z)):
        run.write(NOW, data)
        assert len(forming_map.forming(run, is_running=True).maps) == 1


def look(run: Run, step: int, z: np.ndarray, about: dict[str, np.ndarray]) -> None:
    run.write(NOW, npz_bytes(step=np.array(step), z=z, **about))


def test_the_strip_has_every_epoch_and_the_newest_map_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[ScatterData] = []
    monkeypatch.setattr(forming_map, "draw_scatter", lambda data, **_look: drawn.append(data))
    app = opened("train", monkeypatch, watch="simclr-digits")
    assert not app.exception
    found = forming_map.forming(runs.load("simclr-digits"))
    data = drawn[-1]
    assert data.frame_names == [f"epoch {epoch}" for epoch in found.epochs]
    assert data.frames is not None
    np.testing.assert_array_equal(data.frames[-1], data.xy)
    np.testing.assert_array_equal(data.frames[0], found.maps[0])


def test_beside_a_shipped_run_stand_its_settings_curves_scores_and_one_next_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = opened("train", monkeypatch, watch="simclr-digits")
    assert not app.exception
    assert "SimCLR · NT\\-Xent · τ 0\\.2 · digits · 40 epochs · seed 0" in [one.value for one in app.caption]
    drawn = [one.proto.body for one in app.get("html")]
    (curves,) = (one for one in drawn if 'class="sparkline"' in one)
    assert [name in curves for name in ("Loss", "kNN on the training sample", "clip-path")] == [True] * 3
    (scores,) = (one for one in drawn if 'class="scores"' in one)
    assert [name in scores for name in ("kNN accuracy", "Linear probe", "raw pixels")] == [True] * 3
    assert [b.label for b in app.button if b.proto.type == "primary"] == ["Explore it"]
    app.segmented_control(key="train-view").set_value("curves").run()
    charts = [one.proto.id for one in app.get("plotly_chart")]
    assert [any(f"{key}-simclr-digits" in one for one in charts) for key in ("loss", "knn")] == [True, True]
    switched: list[str] = []
    monkeypatch.setattr(st, "switch_page", switched.append)
    app.button(key="open-loss").click().run()
    assert (switched, app.session_state["run"]) == (["pages/loss_lab.py"], "simclr-digits")


def test_a_curve_has_no_dip_of_a_smaller_last_batch() -> None:
    run = runs.create("mine", CONFIG)
    lines = [{"epoch": 0, "step": step, "loss": 4.0, "n_valid": 256, "images_per_s": 1.0} for step in range(1, 12)]
    lines.append({**lines[-1], "step": 12, "loss": 3.0, "n_valid": 58})
    run.append_metrics([*lines, {"epoch": 1, "step": 12, "loss": 4.0}])
    assert {line["loss"] for line in curves.thinned(MetricsReader(run.path / "metrics.jsonl").update())} == {4.0}


# --- curves of two towers ---


def test_train_shows_recall_and_gap_and_the_learned_temperature(clip_run: Run, monkeypatch) -> None:
    app = opened("train", monkeypatch, watch=clip_run.name, view="curves")
    assert not app.exception
    keys = [chart.proto.id for chart in app.get("plotly_chart")]
    for part in ("recall", "gap", "temperature", "knn"):
        assert any(f"{part}-{clip_run.name}" in key for key in keys), keys


def test_without_classes_train_shows_recall_in_the_place_of_knn(clip_run: Run, monkeypatch) -> None:
    clip_run.path.joinpath("run.json").write_text(json.dumps({**clip_run.manifest, "classes": []}))
    for path in clip_run.path.glob("snapshots/*.npz"):
        with np.load(path) as kept:
            arrays = dict(kept)
        arrays["labels"][:] = -1
        np.savez(path, **arrays)
    metrics = clip_run.path / "metrics.jsonl"
    metrics.write_text(metrics.read_text().replace("knn_train_sample", "other"))
    drawn: list[ScatterData] = []
    monkeypatch.setattr(forming_map, "draw_scatter", lambda data, **_look: drawn.append(data))
    app = opened("train", monkeypatch, watch=clip_run.name)
    assert not app.exception
    assert drawn[0].color is None
    (figures,) = (one.proto.body for one in app.get("html") if 'class="sparkline"' in one.proto.body)
    assert [title in figures for title in ("Loss", "Recall@1, image → caption", "kNN")] == [True, True, False]
    app.segmented_control(key="train-view").set_value("curves").run()
    assert not any("knn-" in chart.proto.id for chart in app.get("plotly_chart"))


# --- changes while it trains ---


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
    assert [a.text for a in figure.layout.annotations] == ["c<br>d", "b", "a"]  # no text upon another
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
    setup = prepare(TrainConfig("simclr", **small))  # 6 steps in an epoch
    schedule: list[live_changes.Planned] = [{"step": 8, "name": "loss.temperature", "to": 0.05}]
    run = runs.create("mine", setup.config.to_dict(), schedule=schedule)
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
    drawn: list[Any] = []
    monkeypatch.setattr(batch, "draw_loss_view", lambda view, *_more: drawn.append(view.first.knob.value))
    for rows in ("epoch:1", "epoch:2"):
        assert not opened("loss_lab", monkeypatch, run="mine", rows=rows).exception
    assert drawn == [0.2, 0.05]


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
