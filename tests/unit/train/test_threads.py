"""Threads beside a training: batches are read one ahead by one that changes nothing and outlives nothing; what was true
at the save is what stands in the file; a clip run is resumed as in one go."""

import concurrent.futures
import dataclasses
import errno
import inspect
import os
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import torch
from clip_runs import captioned_folder, trained_clip

from contrastive_core import runs
from contrastive_core.__main__ import main
from contrastive_core.base.errors import CannotGoOn
from contrastive_core.data import datasets
from contrastive_core.data.batch_loader import BatchLoader
from contrastive_core.ops.collectives import World
from contrastive_core.runs import checkpoints
from contrastive_core.runs.train_config import TrainConfig
from contrastive_core.train import loop
from contrastive_core.train.setup import TrainSetup, prepare
from contrastive_core.train.state import StateWriter

# --- batches ---


PATIENCE = 60.0  # seconds for what happens at once
SHORT = TrainConfig("sup_con", "digits", epochs=2, device="cpu", threads=1, batch_size=256)
INDICES = [np.arange(i, i + 8) for i in range(0, 40, 8)]


class Images:
    """An array of images that tells of each reading: its rows, and the thread's name."""

    def __init__(self, images: np.ndarray, on_read: Callable[[np.ndarray, str], None]) -> None:
        self.images, self.on_read = images, on_read
        self.shape, self.size, self.dtype = images.shape, images.size, images.dtype

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        self.on_read(rows, threading.current_thread().name)
        return self.images[rows]


def loader_of(on_read: Callable[[np.ndarray, str], None]) -> BatchLoader:
    digits = datasets.load("digits")
    told = dataclasses.replace(digits, images=Images(digits.images, on_read))
    return BatchLoader(told, "shuffled", 8, 0, torch.device("cpu"), World(0, 1, 0, 1))


def readers() -> list[str]:
    """Threads that read ahead now."""
    return [t.name for t in threading.enumerate() if t.name.startswith("next-batch")]


def test_the_next_batch_is_read_while_this_one_is_used() -> None:
    second_is_read, names = threading.Event(), []

    def on_read(rows: np.ndarray, name: str) -> None:
        names.append(name)
        if rows[0] == INDICES[1][0]:
            second_is_read.set()

    with closing(loader_of(on_read).batches(INDICES)) as batches:
        assert next(batches).index.tolist() == INDICES[0].tolist()
        assert second_is_read.wait(PATIENCE)  # nobody has asked for it yet
        assert len(names) == 2  # one ahead, not more
        assert len(readers()) == 1
    assert names[1].startswith("next-batch")
    assert readers() == []  # although batches were left


def test_it_reads_what_is_read_without_it() -> None:
    loader = loader_of(lambda rows, name: None)
    for ahead, index in zip(loader.batches(INDICES), INDICES, strict=True):
        batch = loader.batch(index)
        for name in ("images", "labels", "index"):
            assert torch.equal(getattr(ahead, name), getattr(batch, name)), name
        assert ahead.share == batch.share
    assert readers() == []
    assert list(loader.batches([])) == []


def training(on_read: Callable[[np.ndarray, str], None]) -> TrainSetup:
    setup = prepare(SHORT)
    images = Images(setup.dataset.images, on_read)
    told = dataclasses.replace(setup.dataset, images=images)
    return dataclasses.replace(setup, loader=dataclasses.replace(setup.loader, dataset=told))


def test_a_training_ends_with_the_threads_error_and_leaves_no_thread() -> None:
    read = []

    def on_read(rows: np.ndarray, name: str) -> None:
        read.append(name)
        if len(read) == 3:
            raise OSError("the disk is gone")

    setup = training(on_read)
    run = runs.create("gone", setup.config.to_dict())
    with pytest.raises(CannotGoOn, match="the disk is gone"):
        loop.train(setup, run)
    assert run.status()["reason"] == "the disk is gone"
    assert [x["step"] for x in run.metrics()] == [1, 2]  # the batches before it were trained on
    assert readers() == []


# --- states ---


TWO_STEPS = TrainConfig(
    epochs=2, device="cpu", threads=1, batch_size=700, sample=50, save_seconds=0.0, encoder_knobs={"width": 0.25}
)


def bits(tensors: dict[str, torch.Tensor]) -> dict[str, bytes]:
    """Each tensor's bytes: a log Z that no batch has set is NaN, which equals nothing."""
    return {k: v.numpy().tobytes() for k, v in tensors.items()}


@pytest.mark.parametrize("method", ["inst_disc", "moco_v2"])
def test_later_steps_do_not_change_a_state_that_is_being_written(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    setup = prepare(dataclasses.replace(TWO_STEPS, method=method))
    run, at_the_save, steps = runs.create("slow", setup.config.to_dict()), [], []
    start, save_state, after_step = StateWriter.start, checkpoints.save_state, setup.method.after_step
    later = threading.Event()

    def kept(writer: StateWriter, write) -> None:
        at_the_save.append(bits(inspect.getclosurevars(inspect.unwrap(write)).nonlocals["copies"]))
        start(writer, write)

    def slow(*args) -> None:
        assert later.wait(60)
        save_state(*args)

    def counted(pairs) -> None:
        after_step(pairs)
        steps.append(len(at_the_save))
        if steps.count(1) == 2:  # both steps after the first save
            later.set()

    monkeypatch.setattr(StateWriter, "start", kept)
    monkeypatch.setattr(checkpoints, "save_state", slow)
    monkeypatch.setattr(setup.method, "after_step", counted)
    assert loop.train(setup, run) == "done"
    assert steps == [0, 0, 1, 1]
    for manifest, wanted in zip(checkpoints.state_manifests(run), at_the_save, strict=True):
        found = bits(checkpoints.load(checkpoints.read_state(manifest)[0]))
        assert found.keys() == wanted.keys()
        assert [k for k in found if found[k] != wanted[k]] == []
    memory = {"inst_disc": "method.bank.rows", "moco_v2": "method.queue.rows"}[method]
    assert at_the_save[0][memory] != at_the_save[1][memory]


def test_a_failed_write_ends_the_run_at_the_next_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def patient(writer: StateWriter) -> None:
        concurrent.futures.wait([writer._last] if writer._last else [])
        check(writer)

    check = StateWriter.check
    monkeypatch.setattr(checkpoints, "save_state", full)
    monkeypatch.setattr(StateWriter, "check", patient)
    setup = prepare(TWO_STEPS)
    run = runs.create("full", setup.config.to_dict())
    with pytest.raises(CannotGoOn, match="the disk is full"):
        loop.train(setup, run)
    assert run.status()["status"] == "failed"
    assert run.metrics()[-1]["step"] == 3


def test_a_run_that_fails_waits_for_its_last_write(monkeypatch: pytest.MonkeyPatch) -> None:
    setup = prepare(TWO_STEPS)
    run, ended = runs.create("nan", setup.config.to_dict()), threading.Event()
    leave, save_state = StateWriter.__exit__, checkpoints.save_state

    def leaving(writer: StateWriter, *error) -> None:
        ended.set()
        leave(writer, *error)

    def slow(*args) -> None:
        assert ended.wait(60)
        save_state(*args)

    def poison(lines: list[dict]) -> None:
        if lines[-1]["step"] == 3:
            with torch.no_grad():
                next(setup.method.parameters()).fill_(torch.nan)

    monkeypatch.setattr(StateWriter, "__exit__", leaving)
    monkeypatch.setattr(checkpoints, "save_state", slow)
    with pytest.raises(CannotGoOn, match="the last good state is kept"):
        loop.train(setup, run, on_lines=poison)
    assert checkpoints.load_state(run)[1]["place"]["step"] == 2
    assert run.weights.exists()


def test_changed_captions_are_one_sentence_and_the_old_file_goes_on_bit_equal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = captioned_folder(tmp_path / "data", 4, 2)
    whole = trained_clip(folder, "whole")
    stops = iter([False] * 2 + [True] * 9)
    monkeypatch.setattr(loop, "should_stop", lambda *_: next(stops, False))
    part = trained_clip(folder, "part")
    assert part.status()["status"] == "stopped"
    monkeypatch.undo()
    monkeypatch.setenv("CONTRASTIVE_LAB_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CONTRASTIVE_LAB_RUNS", str(tmp_path / "runs"))
    captions = folder / "captions.csv"
    before = captions.read_text()
    swapped = before.replace("red/0", "x").replace("blue/0", "red/0").replace("x", "blue/0")  # the same words
    for edited in (before.replace("square", "rectangle"), swapped):
        captions.write_text(edited)
        assert main(["train", "--run", "part", "--resume"]) != 0
        said = capsys.readouterr().err
        assert "its captions differ from those it was trained on" in said
        assert "size mismatch" not in said
    captions.write_text(before)
    assert main(["train", "--run", "part", "--resume"]) == 0
    one, two = checkpoints.load_weights(whole), checkpoints.load_weights(part)
    assert all(torch.equal(one[name], two[name]) for name in one)
