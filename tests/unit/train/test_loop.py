"""The loop: it learns, records, stops, goes on bit-equal, and fails with a sentence."""

import contextlib
import dataclasses
import errno
import os
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from trainings import SHORT, assert_bit_equal, start, stop_at

from contrastive_core import runs
from contrastive_core.base.errors import BadSetting, CannotGoOn, Locked
from contrastive_core.base.memory import read_npz
from contrastive_core.engine import run_folders
from contrastive_core.runs.run import NOW, Run
from contrastive_core.train import loop, monitor, state
from contrastive_core.train.setup import prepare


def test_a_run_records_what_happened() -> None:
    p, run, status = start(SHORT, "short")
    assert status == "done"
    assert run.status()["status"] == "done"
    assert run.status()["epoch"] == 2
    lines = run.metrics()
    steps = [x for x in lines if "images_per_s" in x]
    epochs = [x for x in lines if "images_per_s" not in x]
    assert [x["step"] for x in steps] == list(range(1, 2 * len(p.loader.epoch(0)) + 1))
    for name in ("loss", "lr", "grad_norm", "memory_mb", "n_valid", "epoch"):
        assert name in steps[0], name
    for name in ("knn_train_sample", "alignment", "uniformity", "rankme", "pos", "neg", "loss", "seconds"):
        assert name in epochs[-1], name
    assert [x["epoch"] for x in epochs] == [1, 2]
    assert epochs[-1]["loss"] < steps[0]["loss"]
    assert epochs[-1]["knn_train_sample"] > 0.8
    assert len(run.snapshots()) == 2


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"optimizer": "lars", "layer_decay": 0.7},
        {"method": "moco_v2", "method_knobs": {"queue": 64, "momentum_cosine": True}},
    ],
)
def test_it_goes_on_bit_equal_after_a_stop(settings: dict) -> None:
    """Stopped in the middle of an epoch and at the end of one, twice; same as in one go."""
    config = dataclasses.replace(SHORT, epochs=3, **settings)
    _, whole, _ = start(config, "whole")
    _, parts, status = start(config, "parts", on_lines=stop_at(3))
    assert status == "stopped"
    assert parts.status()["status"] == "stopped"
    assert "resume it to continue" in parts.status()["reason"]
    for last in (6, 99):
        torch.manual_seed(9)  # what a new process would have is replaced by what was saved
        status = loop.train(prepare(config), parts, resume=True, on_lines=stop_at(last))
    assert status == "done"
    assert_bit_equal(whole, parts)

    def figures(run: Run) -> list[dict]:
        clock = ("images_per_s", "memory_mb", "seconds")
        return [{k: v for k, v in x.items() if k not in clock} for x in run.metrics()]

    assert figures(whole) == figures(parts)


def test_an_optimizers_state_keeps_the_strides_of_its_weights() -> None:
    """CUDA's fused optimizers refuse other strides: no channels-last training could be resumed there."""
    _, run, _ = start(SHORT, "strides", on_lines=stop_at(2))
    p = prepare(SHORT)
    state.resume(p, run, state.new_totals(p.device))
    kept = [(w, x) for w, own in p.optimizer.state.items() for x in own.values() if x.shape == w.shape]
    assert any(w.ndim == 4 and not w.is_contiguous() for w, _ in kept)
    assert [w.shape for w, x in kept if x.stride() != w.stride()] == []


@pytest.mark.parametrize(
    ("epochs", "monitor_every", "snapshot_every", "scored", "kept"),
    [(3, 2, None, [2, 3], [2, 3]), (3, 2, 1, [2, 3], [1, 2, 3]), (2, 2, 0, [2], [2])],
)
def test_scores_and_snapshots_have_schedules_of_their_own(
    epochs: int, monitor_every: int | None, snapshot_every: int | None, scored: list[int], kept: list[int]
) -> None:
    config = dataclasses.replace(SHORT, epochs=epochs, monitor_every=monitor_every, snapshot_every=snapshot_every)
    _, run, _ = start(config, "scheduled")
    lines = [x for x in run.metrics() if "seconds" in x]
    assert [x["epoch"] for x in lines] == list(range(1, epochs + 1))
    for name in ("knn_train_sample", "alignment", "z_rank"):
        assert [x["epoch"] for x in lines if name in x] == scored
    assert run.snapshots() == kept


@pytest.mark.parametrize(("epochs", "every"), [(1, 1), (100, 1), (101, 2), (250, 3)])
def test_a_long_run_is_scored_at_most_a_hundred_times(epochs: int, every: int) -> None:
    config = prepare(dataclasses.replace(SHORT, epochs=epochs)).config
    assert (config.monitor_every, config.snapshot_every) == (every, every)


def test_looks_between_epochs_are_written_and_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """With BatchNorm, an encoder that follows, and random states."""
    config = dataclasses.replace(SHORT, method="byol", loss=None)
    usual = start(config, "usual")[1]
    monkeypatch.setattr(monitor, "PACE", 0.0)
    monkeypatch.setattr(monitor, "PAUSE", 0.0)
    monkeypatch.setattr(loop, "FLUSH_SECONDS", 0.0)
    p, seen = prepare(config), dict[int, np.ndarray]()
    run = runs.create("looked-at", p.config.to_dict())
    path = run.path / NOW
    run.write(NOW, b"left by a kill")

    def on_lines(lines: list[dict]) -> None:
        if path.exists():
            now = read_npz(path)
            assert len(now["index"]) == len(now["labels"]) == len(now["z"]) == 200
            seen[int(now["step"])] = now["z"]
            assert run.snapshots() == [1][: (int(now["step"]) - 1) // 6]  # gone once an epoch has its own

    assert loop.train(p, run, on_lines=on_lines) == "done"
    assert list(seen) == list(range(3, 13))
    assert not np.array_equal(seen[7], seen[8])
    assert not path.exists()
    assert_bit_equal(run, usual)
    assert run_folders.damage(run) == []


def test_nobody_sees_an_end_without_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever looks just before the lock is let go, and just after, sees the same word."""
    seen = []

    @contextlib.contextmanager
    def watched(run: Run):
        with lock(run):
            yield
            seen.append(run.status()["status"])
        seen.append(run.status()["status"])

    lock = Run.lock
    monkeypatch.setattr(Run, "lock", watched)
    start(SHORT, "seen")
    assert seen == ["done", "done"]


def test_a_run_at_work_is_left_alone_by_a_second_process() -> None:
    p, run, _ = start(dataclasses.replace(SHORT, epochs=1), "twice")
    run.set_status("running", epoch=1)
    before = (run.path / "status.json").read_bytes()
    with run.lock(), pytest.raises(Locked, match="already working"):
        loop.train(p, run, resume=True)
    assert (run.path / "status.json").read_bytes() == before


def test_a_collapse_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "COLLAPSED", 100.0)  # every embedding counts as collapsed
    with pytest.raises(CannotGoOn, match="collapsed: for 2 epochs"):
        start(dataclasses.replace(SHORT, epochs=4, collapse_patience=2), "collapsed")
    assert runs.load("collapsed").status()["status"] == "failed"


def test_a_full_disk_names_the_file_and_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is full for a state, and not for the few bytes of a status."""
    replace = os.replace

    def full(source: str, target: Path) -> None:
        if Path(target).parent.name == "state":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        replace(source, target)

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(CannotGoOn, match="disk is full"):
        start(SHORT, "full")
    said = r"the disk is full \(/\S+/full/state/\S+\); free some space and resume"
    assert re.fullmatch(said, runs.load("full").status()["reason"])


def test_too_little_memory_names_the_batch_that_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    p = prepare(SHORT)
    real = p.method.pairs

    def small_memory(batch, generator):
        if len(batch.images) > 100:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return real(batch, generator)

    monkeypatch.setattr(p.method, "pairs", small_memory)
    with pytest.raises(CannotGoOn, match="a batch of 64 fits: --set batch_size=64"):
        loop.train(p, runs.create("big", p.config.to_dict()))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"method": "byoll"}, "unknown method 'byoll'; known: .*simclr"),
        ({"dataset": "letters"}, "digits"),
        ({"loss": "l2"}, "unknown loss"),
        ({"optimizer": "lion"}, "known: sgd, adamw"),
        ({"schedule": "linear"}, "known: constant"),
        ({"batch_size": 5000}, "between 2 and the 1437 training images"),
        ({"batch_size": 1}, "between 2 and"),
        ({"encoder": "vgg"}, "small"),
        ({"recipe": {"zoom": 1}}, "no setting 'zoom'"),
        ({"recipe": {"crop": 2}}, "crop must be at most 1"),
        ({"method_knobs": {"speed": 1}}, "no setting 'speed'"),
        ({"loss_knobs": {"temperature": -1}, "loss": "nt_xent"}, "temperature must be at least"),
        ({"exclude": "/nowhere.txt"}, "cannot read /nowhere.txt"),
    ],
)
def test_bad_input_is_refused_before_training(changes: dict, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        prepare(dataclasses.replace(SHORT, **changes))


def test_excluded_and_relabeled_samples(tmp_path: Path) -> None:
    whole = prepare(SHORT).dataset
    gone, moved = list(whole.ids[:3]), list(whole.ids[5:7])
    (tmp_path / "out.txt").write_text("\n".join(gone))
    lines = [f"{moved[0]},{whole.classes[4]}", f"{moved[1]},-1"]
    (tmp_path / "new.csv").write_text("id,label\n" + "\n".join(lines) + "\n")
    made = dataclasses.replace(SHORT, exclude=str(tmp_path / "out.txt"), relabel=str(tmp_path / "new.csv"))
    part = prepare(made).dataset
    assert len(part.labels) == len(whole.labels) - 3
    assert not set(gone) & set(part.ids)
    assert part.labels[list(part.ids).index(moved[0])] == 4
    assert part.labels[list(part.ids).index(moved[1])] == -1
    assert np.array_equal(part.labels[4:], whole.labels[7:])
    (tmp_path / "out.txt").write_text("no/such/id")
    with pytest.raises(BadSetting, match="ids there look like"):
        prepare(made)
    (tmp_path / "out.txt").write_text("")
    (tmp_path / "new.csv").write_text(f"id,label\n{moved[0]},whale\n")
    with pytest.raises(BadSetting, match="whale"):
        prepare(made)
    (tmp_path / "new.csv").write_text("sample,class\n")
    with pytest.raises(BadSetting, match="needs a column 'id'"):
        prepare(made)


def test_a_frozen_encoder_trains_its_head_only() -> None:
    p, _, _ = start(dataclasses.replace(SHORT, epochs=1, freeze=True), "frozen")
    fresh = prepare(dataclasses.replace(SHORT, epochs=1))
    before = dict(fresh.method.encoder.named_parameters())
    assert all(torch.equal(v, before[k]) for k, v in p.method.encoder.named_parameters())


def test_a_compiled_encoder_trains(monkeypatch: pytest.MonkeyPatch) -> None:
    config = dataclasses.replace(SHORT, epochs=1, compile=True, method="moco_v2")
    with monkeypatch.context() as nowhere:
        nowhere.setenv("PATH", "")
        with pytest.raises(BadSetting, match=r"C\+\+ compiler"):
            prepare(config)
    whole = torch.compile  # a backend that makes no C++: the seconds of the other are not ours
    monkeypatch.setattr(torch, "compile", lambda f, **_: whole(f, backend="eager"))
    monkeypatch.setattr("contrastive_core.train.settings.shutil.which", lambda name: name)
    p, run, status = start(config, "compiled")
    assert status == "done"
    fresh = prepare(dataclasses.replace(config, compile=False))
    fresh.method.load_state_dict(p.method.state_dict())  # of the same names: runs mix
    x = torch.rand(4, *p.dataset.images.shape[1:])
    for part in ("encoder", "key_encoder"):
        assert getattr(p.method, part)._compiled_call_impl is not None
        compiled, eager = (getattr(m, part).eval()(x) for m in (p.method, fresh.method))
        assert torch.allclose(compiled, eager, atol=1e-4)
    assert np.isfinite(run.metrics()[-1]["loss"])
