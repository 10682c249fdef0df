"""What was true at the save is what stands in the file; a clip run is resumed as in one go."""

import concurrent.futures
import dataclasses
import errno
import inspect
import os
import threading
from pathlib import Path

import pytest
import torch
from clip_runs import captioned_folder, trained_clip

from contrastive_core import runs
from contrastive_core.__main__ import main
from contrastive_core.base.errors import CannotGoOn
from contrastive_core.runs import checkpoints
from contrastive_core.runs.train_config import TrainConfig
from contrastive_core.train import loop
from contrastive_core.train.setup import prepare
from contrastive_core.train.state import StateWriter

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
