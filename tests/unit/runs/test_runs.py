"""Run folders: names, listing, snapshots, the bin; states with their hashes; jobs."""

import os
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
import torch
from cases import cases
from patience import wait

from contrastive_core import runs
from contrastive_core.base import json_files
from contrastive_core.base.errors import BadName, Gone, Locked, NoSuchRun
from contrastive_core.base.storage import data_home, runs_home
from contrastive_core.engine import client, process, queue, run_folders, training
from contrastive_core.runs import checkpoints
from contrastive_core.runs.run import Run

CONFIG = {"method": "simclr", "dataset": "digits", "seed": 0}


@cases("name", ["../x", "a/b", "", ".x", "x" * 65, "a b", "a\n", "-x"])
def test_a_name_with_a_path_is_refused(name: str) -> None:
    with pytest.raises(BadName, match="a run's name has"):
        runs.load(name)
    if name:
        with pytest.raises(BadName):
            runs.create(name, CONFIG)


def test_create_load_list() -> None:
    one = runs.create(None, CONFIG, "abc")
    two = runs.create(None, CONFIG)
    assert (one.name, two.name) == ("simclr-digits-s0", "simclr-digits-s0-2")
    chosen = ["loss.temperature=0.02", "lr=0.1", "loss.anchors=all"]
    assert runs.stem_of("simclr", "folder:/a/pets", 3, chosen) == "simclr-pets-temperature0.02-anchorsall-s3"
    found = runs.load(one.name)
    assert found.manifest["data_fingerprint"] == "abc"
    assert found.manifest["versions"]["torch"] == torch.__version__.split("+")[0]
    assert {one.name, two.name} <= {r.name for r in runs.list_runs()}
    with pytest.raises(FileExistsError, match="choose another name"):
        runs.create(one.name, CONFIG)
    with pytest.raises(NoSuchRun, match="known: "):
        runs.load("nothing")


def test_a_run_whose_process_died_says_so() -> None:
    run = runs.create("dead", CONFIG)
    run.set_status("running", epoch=3)
    assert run.status()["status"] == "failed"
    assert "Resume" in run.status()["reason"]
    with run.lock():
        assert run.status()["status"] == "running"
        with pytest.raises(Locked), run.lock():
            pass


def test_a_last_word_between_two_looks_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    run = runs.create("ending", CONFIG)
    run.set_status("running", epoch=3)

    def ends(self: Run) -> bool:  # between the look at its status and the look at its lock
        run.set_status("done")
        return False

    monkeypatch.setattr(Run, "is_alive", ends)
    assert run.status()["status"] == "done"


def test_metrics_are_cut_back_to_a_state() -> None:
    run = runs.create("cut", CONFIG)
    run.append_metrics([{"step": s, "epoch": 0, "images_per_s": 1} for s in (1, 2, 3, 4)])
    run.cut_metrics(2)
    assert [x["step"] for x in run.metrics()] == [1, 2]


def test_rename_delete_undo() -> None:
    runs.create("first", CONFIG)
    with pytest.raises(ValueError, match="running"):  # its maker, this process, is about to begin
        run_folders.rename("first", "second")
    runs.load("first").set_status("done")
    assert run_folders.rename("first", "second").name == "second"
    binned = run_folders.delete("second")
    assert "second" not in {r.name for r in runs.list_runs()}
    restored = run_folders.restore(binned)
    assert (restored.name, client.damage_of(restored)) == ("second", [])
    with pytest.raises(BadName):
        run_folders.rename("second", "../up")


def test_a_run_that_begins_or_waits_is_not_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the moment its process is started; it takes the run's lock seconds later only."""
    monkeypatch.setattr(queue, "go_on", lambda: None)
    runs.create("mine", CONFIG).set_status("stopped")
    queue.resume("mine")
    for move in (lambda: run_folders.delete("mine"), lambda: run_folders.rename("mine", "other")):
        with pytest.raises(ValueError, match="is queued"):
            move()
    queue.remove("mine")
    with monkeypatch.context() as patch:
        patch.setattr(process, "pid_of", lambda name: os.getpid() if name == "mine" else None)
        patch.setattr(training, "PATIENCE", 0.2)
        for move in (lambda: run_folders.delete("mine"), lambda: run_folders.rename("mine", "other")):
            with pytest.raises(ValueError, match="running"):
                move()
    assert run_folders.restore(run_folders.delete("mine")).status()["status"] == "stopped"
    with pytest.raises(FileNotFoundError, match="mine is no longer in the bin"):
        run_folders.restore(runs_home() / ".bin" / "mine-0123")


@pytest.mark.parametrize("name", ["CON", "nul.txt", "com1", "Lpt9.b.c", "ends."])
def test_a_new_run_s_name_is_a_folder_s_on_every_system(name: str) -> None:
    for make in (lambda: runs.create(name, CONFIG), lambda: queue.enqueue(name, [])):
        with pytest.raises(BadName, match="Windows"):
            make()
    old = runs.create("old", CONFIG)
    with pytest.raises(BadName):
        run_folders.rename("old", name)
    old.path.rename(runs_home() / name)  # one of before can be used
    assert runs.load(name).manifest["id"] == old.manifest["id"]


@pytest.mark.parametrize("name", ["worker", "queue-runner", "CONSOLE", "com10", "null"])
def test_no_name_of_a_run_is_that_of_a_log_of_the_app(name: str) -> None:
    runs.create(name, CONFIG)
    assert name not in (queue.RUNNER, Path(client.LOG).stem)
    for own in (queue.RUNNER, Path(client.LOG).stem):
        with pytest.raises(BadName):
            runs.checked_name(own)


def test_a_process_that_cannot_be_seen_is_not_asked_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """It holds the lock of a shared folder, in another container or on another machine."""
    run = runs.create("far", CONFIG)
    with run.lock():
        shutil.rmtree(data_home() / "locks")  # that one has its own
        assert run.is_alive()
        monkeypatch.setattr(os, "kill", lambda pid, number: pytest.fail("a signal was sent"))
        with pytest.raises(ValueError, match="on another computer"):
            training.stop("far")
    assert not run.is_alive()


@pytest.mark.parametrize("how", ["moved", "deleted", "another in its place"])
def test_what_writes_into_a_run_that_is_gone_says_so_and_makes_no_folder(how: str) -> None:
    run = runs.create("here", CONFIG)
    z = np.zeros((2, 3), np.float32)
    with run.lock():
        if how == "deleted":
            shutil.rmtree(run.path)
        else:
            run.path.rename(run.path.with_name("there"))
        if how == "another in its place":
            runs.create("here", CONFIG)
        before = sorted(runs_home().rglob("*"))
        for write in (
            lambda: run.set_status("running"),
            lambda: run.append_metrics([{"step": 1}]),
            lambda: run.save_snapshot(1, index=np.arange(2), h=z, z=z, labels=np.arange(2)),
            lambda: run.set_meta(title="x"),
            lambda: checkpoints.save_state(run, {"x": torch.zeros(2)}, {}),
            lambda: checkpoints.save_weights(run, {"x": torch.zeros(2)}),
        ):
            with pytest.raises(Gone, match="the folder of here was renamed, moved or deleted"):
                write()
        assert sorted(runs_home().rglob("*")) == before
    assert sorted(runs_home().rglob("*")) == before


def test_what_was_deleted_lies_in_the_bin_until_it_is_emptied() -> None:
    for name in ("one", "two-3"):
        runs.create(name, CONFIG).set_status("done")
        run_folders.delete(name)
    assert [p.name.rsplit("-", 1)[0] for p in run_folders.binned()] == ["two-3", "one"]
    runs.create("one", CONFIG)
    with pytest.raises(FileExistsError, match="rename it first"):
        run_folders.restore(run_folders.binned()[1])
    assert run_folders.restore(run_folders.binned()[0]).name == "two-3"
    run_folders.empty_bin()
    assert run_folders.binned() == []


def test_a_log_goes_with_its_run() -> None:
    run = runs.create("old", CONFIG)
    run.set_status("done")
    process.folder().mkdir(parents=True)
    (process.folder() / "old.log").write_text("epoch 1")
    run_folders.rename("old", "new")
    assert process.log_of("new") == "epoch 1"
    assert training.failure("new") is None
    binned = run_folders.delete("new")
    assert process.log_of(run_folders.restore(binned).name) == "epoch 1"


def test_a_run_is_made_whole_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(json_files, "write_json", full)
        with pytest.raises(OSError, match="No space"):
            runs.create("late", CONFIG)
    assert list(runs_home().iterdir()) == []
    assert runs.create("late", CONFIG).status()["status"] == "queued"  # its maker lives


def test_of_many_processes_one_makes_the_run() -> None:
    made = []
    for _ in range(8):
        pid = os.fork()
        if pid == 0:  # pragma: no cover
            try:
                runs.create("wanted", CONFIG)
            except FileExistsError:
                os._exit(1)
            os._exit(0)
        made.append(pid)
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in made]
    assert codes.count(0) == 1
    assert codes.count(1) == 7
    assert [p.name for p in runs_home().iterdir()] == ["wanted"]
    assert runs.load("wanted").status()["status"] == "failed"  # its maker died before it began


def test_odd_folders_hide_no_run() -> None:
    good = runs.create("good", CONFIG).path
    for name in ("a b", "-x", "x" * 70, "new\nline", "half\udce9", "ünder"):
        shutil.copytree(good, runs_home() / name)
    (runs_home() / "dead").symlink_to(runs_home() / "nowhere")
    (runs_home() / "loop").symlink_to(runs_home() / "loop")
    (runs_home() / "file").write_text("x")
    (runs_home() / "empty").mkdir()
    for name in ("folder", "pipe", "link"):
        (runs_home() / name).mkdir()
    (runs_home() / "folder" / "run.json").mkdir()
    os.mkfifo(runs_home() / "pipe" / "run.json")
    (runs_home() / "link" / "run.json").symlink_to("/dev/zero")
    assert {r.name for r in runs.list_runs() if not r.shipped} == {"good"}
    reasons = runs.damaged()
    assert set(reasons) == {"a b", "-x", "x" * 70, "new\\nline", "half\\udce9", "\\xfcnder", "folder", "pipe", "link"}
    assert all("not a file" in reasons[name] for name in ("folder", "pipe", "link"))
    assert "a run's name has up to 64 letters" in reasons["a b"]
    for name in ("dead", "loop", "file", "empty"):
        with pytest.raises(FileExistsError, match="there is a run"):
            runs.create(name, CONFIG)
        with pytest.raises(NoSuchRun):
            runs.load(name)


def test_a_failed_start_is_told_until_it_is_dismissed() -> None:
    queue.enqueue("bad", ["--set", "speed=1"], at_once=True)
    with pytest.raises(FileExistsError):  # its process is about to say why
        queue.enqueue("bad", [], at_once=True)
    wait(lambda: training.failure("bad"))
    assert "unknown setting 'speed'" in (training.failure("bad") or "")
    training.job_of("bad").forget()


def test_stopped_before_it_began() -> None:
    queue.enqueue("early", ["--dataset", "digits"], at_once=True)
    pid = process.pid_of("early")

    def listens() -> bool:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        caught = next(x.split()[1] for x in lines if x.startswith("SigCgt"))
        return bool(int(caught, 16) & 1 << (signal.SIGTERM - 1))

    wait(listens)
    training.stop("early")
    wait(lambda: training.failure("early"))
    assert training.failure("early") == "It was stopped."
    assert not (runs_home() / "early").exists()
