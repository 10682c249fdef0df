"""The map that forms on Train: clusters keep their places from one epoch to the next."""

from itertools import pairwise

import numpy as np
import pytest
import streamlit as st
from opened_page import opened

from contrastive_core import runs
from contrastive_core.base.memory import npz_bytes
from contrastive_core.runs.run import NOW, Run
from contrastive_core.spaces.space import pca
from contrastive_lab import forming_map
from contrastive_lab.components.scatter import ScatterData

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
    assert "SimCLR · NT\\-Xent · digits · 40 epochs · seed 0" in [one.value for one in app.caption]
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
