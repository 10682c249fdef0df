"""The queue: one run at a time on each device; killed anywhere, nothing is lost or doubled. Imports, and trainings that
wait for one."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from patience import wait

from contrastive_core import runs
from contrastive_core.base import json_files
from contrastive_core.base.errors import BadName, BadSetting, NoSuchRun
from contrastive_core.base.lock import lock_holder, process_start
from contrastive_core.base.progress import ProgressFile
from contrastive_core.base.storage import ROOT
from contrastive_core.engine import process, queue, training


@contextmanager
def sleeping_tasks(patch: pytest.MonkeyPatch, names: list[str] | None = None) -> Iterator[Callable[[], None]]:
    """Inside, a task is a process that sleeps; `names` gets its name. The function that is given ends all of them."""
    children: list[subprocess.Popen[bytes]] = []

    def spawn(name: str, arguments: list[str], **about: Any) -> None:
        if names is not None:
            names.append(name)
        if name == queue.RUNNER:
            return
        child = subprocess.Popen(["sleep", "60"], start_new_session=True)
        children.append(child)
        process._children[child.pid] = child
        about |= {"pid": child.pid, "started": process_start(child.pid), "time": time.time()}
        process.folder().mkdir(parents=True, exist_ok=True)
        json_files.write_json(process.folder() / f"{name}.json", {**about, "command": arguments})

    def end() -> None:
        for child in children:
            child.kill()
            child.wait()

    patch.setattr(process, "spawn", spawn)
    try:
        yield end
    finally:
        end()


@pytest.fixture
def spawned(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names of the trainings that begin: processes that sleep; the queue's runner is not started."""
    names: list[str] = []
    with sleeping_tasks(monkeypatch, names):
        yield names


def killed(path: Path, missing_ok: bool = False, unlink: Any = Path.unlink) -> None:
    """In place of `Path.unlink`: a kill at the queue's own files; the system lets go of locks by itself."""
    if path.stem.isdigit():
        raise KeyboardInterrupt
    unlink(path, missing_ok)


def end(name: str) -> None:
    """The process of a run ends; the run is done."""
    pid = process.pid_of(name)
    assert pid
    process._children[pid].kill()
    process._children[pid].wait()
    run = runs.create(name, {"device": "auto"})
    run.set_status("done")


def test_one_at_a_time_on_each_device_in_their_order(spawned: list[str]) -> None:
    for name, device in (("a", "cpu"), ("b", "cpu"), ("c", "cuda:1"), ("d", "cpu")):
        queue.enqueue(name, ["--device", device])
    assert [n for n in spawned if n != queue.RUNNER] == ["a", "c"]
    assert [job.name for job in queue.queue()] == ["b", "d"]
    assert queue.RUNNER in spawned  # somebody will start the rest
    end("a")
    assert queue.start_due() == ["b"]
    queue.remove("d")
    assert [queue.device_of(words) for words in (["--device", "cuda"], ["--device=cuda:2"])] == ["cuda:0", "cuda:2"]
    end("b")
    assert queue.start_due() == []
    assert queue.queue() == []


def test_a_name_is_given_once(spawned: list[str]) -> None:
    queue.enqueue("a", [])
    queue.enqueue("b", [])
    for name in ("a", "b"):
        with pytest.raises(FileExistsError, match="choose another name"):
            queue.enqueue(name, [])
        with pytest.raises((ValueError, FileExistsError)):
            queue.resume(name)
    with pytest.raises(BadName):
        queue.enqueue("../a", [])


def test_twenty_pages_that_start_at_once_start_one(spawned: list[str]) -> None:
    def press(number: int) -> str:
        try:
            queue.enqueue("same", [])
        except FileExistsError:
            return "refused"
        return "taken"

    with ThreadPoolExecutor(20) as pool:
        said = list(pool.map(press, range(20)))
    assert said.count("taken") == 1
    assert spawned.count("same") == 1


def test_killed_between_start_and_removal_it_is_not_started_twice(
    spawned: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.enqueue("first", [])
    queue.enqueue("second", [])
    end("first")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", killed)
        with pytest.raises(KeyboardInterrupt):
            queue.start_due()
    assert [job.name for job in queue.queue()] == ["second"]  # still there, and at work
    queue.go_on()
    assert spawned.count("second") == 1
    assert queue.queue() == []


def test_a_damaged_file_is_named_and_hides_no_other(spawned: list[str]) -> None:
    for name in ("a", "b", "c"):
        queue.enqueue(name, [])
    path = sorted((process.folder() / "queue").glob("*.json"))[0]
    text = path.read_text()
    for damaged in (text[:-20], "null", "[]", '{"name": "b"}', text.replace('"b"', '"../b"')):
        path.write_text(damaged)
        assert [job.name for job in queue.queue()] == ["c"]
        assert len(queue.broken()) == 1
    path.write_text(text)
    assert [job.name for job in queue.queue()] == ["b", "c"]


def test_a_group_stops_at_its_budget_and_goes_on_when_asked_again(spawned: list[str]) -> None:
    cells = [(f"cell-{i}", ["--device", "cpu"]) for i in range(3)]
    assert queue.enqueue_group("sweep", cells, hours=1e-5) == ["cell-0", "cell-1", "cell-2"]
    assert spawned[0] == "cell-0"
    time.sleep(0.1)
    end("cell-0")
    queue.go_on()
    assert "cell-1" not in spawned
    assert "1e-05 h is used up" in queue.queue()[0].blocked_reason()
    assert queue.enqueue_group("sweep", cells, hours=1.0) == ["cell-1", "cell-2"]
    assert "cell-1" in spawned
    queue.enqueue("other", ["--device", "cuda:3"])  # another group is not held up
    assert spawned[-1] == "other" or spawned[-2] == "other"


def test_a_kill_while_a_group_is_asked_for_again_loses_no_cell(
    spawned: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = [(f"cell-{i}", ["--device", "cpu"]) for i in range(4)]
    queue.enqueue_group("sweep", cells)

    def added(*_: object) -> None:
        raise KeyboardInterrupt

    for thing, name, kill in ((Path, "unlink", killed), (queue, "add", added)):
        with monkeypatch.context() as patch:
            patch.setattr(thing, name, kill)
            with pytest.raises(KeyboardInterrupt):
                queue.enqueue_group("sweep", cells)
        assert {job.name for job in queue.queue()} == {"cell-1", "cell-2", "cell-3"}
    for number in range(4):
        end(f"cell-{number}")
        queue.go_on()
    assert [n for n in spawned if n != queue.RUNNER] == [name for name, _ in cells]
    assert queue.queue() == []


def test_the_runner_outlives_its_parent_and_a_killed_one_is_replaced(tmp_path: Path) -> None:
    """Real processes: three short trainings wait; whoever watches is killed twice on the way."""
    script = "import sys; from contrastive_core.engine import queue\nfor n in 'abc': queue.enqueue(n, sys.argv[1:])\n"
    arguments = ["--method", "sup_con", "--epochs", "1", "--set", "threads=1", "--set", "sample=100"]
    subprocess.run([sys.executable, "-c", script, *arguments], cwd=ROOT, check=True)
    lock = process.folder() / "queue" / "runner.lock"
    for _ in range(2):
        wait(lambda: lock_holder(lock))
        os.kill(lock_holder(lock) or os.getpid(), signal.SIGKILL)
        wait(lambda: not process.pid_of(queue.RUNNER))
        queue.go_on()  # as any page does
    alive: list[int] = []

    def all_done() -> bool:
        alive.append(len(training.working()))
        assert not [r.status() for r in runs.list_runs() if r.status()["status"] == "failed"]
        return {r.name: r.status()["status"] for r in runs.list_runs() if not r.shipped} == dict.fromkeys("abc", "done")

    wait(all_done, 300)
    assert max(alive) == 1  # never two at once
    assert queue.queue() == []
    wait(lambda: not lock_holder(lock), 10)


def test_a_name_is_taken_while_its_run_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    with sleeping_tasks(monkeypatch) as end_all:
        training.start_import("w", ["w.pt"])
        job = training.import_of("w")
        assert job is not None
        assert job.arguments == ("import", "w.pt", "--run", "w")
        assert training.process_names("import") == ["w"]
        assert queue.free_name("w") == "w-2"
        for name in ("w", "simclr-digits"):
            with pytest.raises(FileExistsError, match="choose another name"):
                training.start_import(name, ["w.pt"])
        end_all()
        assert training.process_names("import") == []
        assert training.import_of("other") is None


def test_a_training_waits_for_the_run_it_starts_from(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[tuple[str, float | None]] = []
    monkeypatch.setattr(training, "POLL_SECONDS", 0.0)
    with sleeping_tasks(monkeypatch) as end_all:
        training.start_import("w", ["w.pt"])
        ProgressFile(process.progress_path("w"))("decoding", 0.5)

        def over(*told: Any) -> None:
            heard.append(told)
            end_all()

        (process.folder() / "w.log").write_text("error: w.pt cannot be opened\n")
        with pytest.raises(BadSetting, match=r"the run to start from, w, was not imported: w\.pt cannot be"):
            training.wait_for_import("w", over)
        assert heard == [("w: decoding", 0.5)]
        runs.create("w", {"method": "simclr"})
        training.wait_for_import("w", over)
        with pytest.raises(NoSuchRun):
            training.wait_for_import("nobody", over)
