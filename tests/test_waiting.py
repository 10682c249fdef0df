"""The queue: one run at a time on each device; killed anywhere, nothing is lost or doubled."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from contrastive_core import jobs, runs, store, waiting

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def spawned(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Trainings are processes that sleep; `queue-runner` is not started."""
    names: list[str] = []
    children: list[subprocess.Popen[bytes]] = []

    def spawn(name: str, arguments: list[str], **about: Any) -> None:
        names.append(name)
        if name == waiting.RUNNER:
            return
        child = subprocess.Popen(["sleep", "60"], start_new_session=True)
        children.append(child)
        jobs._children[child.pid] = child
        start = store.process_start(child.pid)
        record = {"pid": child.pid, "started": start, "time": time.time(), "command": []}
        store.write_json(jobs.folder() / f"{name}.json", {**record, **about})

    monkeypatch.setattr(jobs, "spawn", spawn)
    yield names
    for child in children:
        child.kill()


def end(name: str) -> None:
    """The process of a run ends; the run is done."""
    pid = jobs.pid_of(name)
    assert pid
    jobs._children[pid].kill()
    jobs._children[pid].wait()
    run = runs.create(name, {"device": "auto"})
    run.set_status("done")


def wait(what: Callable[[], Any], seconds: float = 60) -> None:
    last = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < last, "took too long"
        time.sleep(0.05)


def test_one_at_a_time_on_each_device_in_their_order(spawned: list[str]) -> None:
    for name, device in (("a", "cpu"), ("b", "cpu"), ("c", "cuda:1"), ("d", "cpu")):
        waiting.enqueue(name, ["--device", device])
    assert [n for n in spawned if n != waiting.RUNNER] == ["a", "c"]
    assert [job.name for job in waiting.queue()] == ["b", "d"]
    assert waiting.RUNNER in spawned  # somebody will start the rest
    end("a")
    assert waiting.start_due() == ["b"]
    waiting.remove("d")
    end("b")
    assert waiting.start_due() == []
    assert waiting.queue() == []


def test_devices_are_told_without_torch() -> None:
    assert waiting.device_of(["--device", "cuda"]) == "cuda:0"
    assert waiting.device_of(["--device=cuda:2"]) == "cuda:2"
    assert waiting.device_of([]) in ("cpu", "cuda:0")


def test_a_name_is_given_once(spawned: list[str]) -> None:
    waiting.enqueue("a", [])
    waiting.enqueue("b", [])
    for name in ("a", "b"):
        with pytest.raises(FileExistsError, match="choose another name"):
            waiting.enqueue(name, [])
        with pytest.raises((ValueError, FileExistsError)):
            waiting.resume(name)
    with pytest.raises(runs.BadName):
        waiting.enqueue("../a", [])


def test_twenty_pages_that_start_at_once_start_one(spawned: list[str]) -> None:
    def press(number: int) -> str:
        try:
            waiting.enqueue("same", [])
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
    waiting.enqueue("first", [])
    waiting.enqueue("second", [])
    end("first")

    unlink = Path.unlink

    def killed(path: Path, missing_ok: bool = False) -> None:
        if path.stem.isdigit():  # the queue's own file; the system lets go of locks by itself
            raise KeyboardInterrupt
        unlink(path, missing_ok)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", killed)
        with pytest.raises(KeyboardInterrupt):
            waiting.start_due()
    assert [job.name for job in waiting.queue()] == ["second"]  # still there, and at work
    waiting.go_on()
    assert spawned.count("second") == 1
    assert waiting.queue() == []


def test_a_damaged_file_is_named_and_hides_no_other(spawned: list[str]) -> None:
    for name in ("a", "b", "c"):
        waiting.enqueue(name, [])
    path = sorted((jobs.folder() / "queue").glob("*.json"))[0]
    text = path.read_text()
    path.write_text(text.replace('"b"', '"x"'))  # a flipped bit that JSON does not show
    assert [job.name for job in waiting.queue()] == ["c"]
    assert path.name in waiting.broken()[0]


def test_a_group_stops_at_its_budget_and_goes_on_when_asked_again(spawned: list[str]) -> None:
    cells = [(f"cell-{i}", ["--device", "cpu"]) for i in range(3)]
    assert waiting.enqueue_group("sweep", cells, hours=1e-5) == ["cell-0", "cell-1", "cell-2"]
    assert spawned[0] == "cell-0"
    time.sleep(0.1)
    end("cell-0")
    waiting.go_on()
    assert "cell-1" not in spawned
    assert "1e-05 h is used up" in waiting.queue()[0].held()
    assert waiting.enqueue_group("sweep", cells, hours=1.0) == ["cell-1", "cell-2"]
    assert "cell-1" in spawned
    waiting.enqueue("other", ["--device", "cuda:3"])  # another group is not held up
    assert spawned[-1] == "other" or spawned[-2] == "other"


def test_a_kill_while_a_group_is_asked_for_again_loses_no_cell(
    spawned: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = [(f"cell-{i}", ["--device", "cpu"]) for i in range(4)]
    waiting.enqueue_group("sweep", cells)

    unlink = Path.unlink

    def removed(path: Path, missing_ok: bool = False) -> None:
        if path.stem.isdigit():  # the queue's own file; the system lets go of locks by itself
            raise KeyboardInterrupt
        unlink(path, missing_ok)

    def added(*_: object) -> None:
        raise KeyboardInterrupt

    for thing, name, killed in ((Path, "unlink", removed), (waiting, "add", added)):
        with monkeypatch.context() as patch:
            patch.setattr(thing, name, killed)
            with pytest.raises(KeyboardInterrupt):
                waiting.enqueue_group("sweep", cells)
        assert {job.name for job in waiting.queue()} == {"cell-1", "cell-2", "cell-3"}
    for number in range(4):
        end(f"cell-{number}")
        waiting.go_on()
    assert [n for n in spawned if n != waiting.RUNNER] == [name for name, _ in cells]
    assert waiting.queue() == []


def test_the_runner_outlives_its_parent_and_a_killed_one_is_replaced(tmp_path: Path) -> None:
    """Real processes: three short trainings wait; whoever watches is killed twice on the way."""
    script = (
        "import sys; from contrastive_core import waiting\n"
        "for n in 'abc': waiting.enqueue(n, sys.argv[1:])\n"
    )
    arguments = [
        "--method",
        "sup_con",
        "--epochs",
        "1",
        "--set",
        "threads=1",
        "--set",
        "sample=100",
    ]
    subprocess.run([sys.executable, "-c", script, *arguments], cwd=ROOT, check=True)
    lock = jobs.folder() / "queue" / "runner.lock"
    for _ in range(2):
        wait(lambda: store.lock_holder(lock))
        os.kill(store.lock_holder(lock) or os.getpid(), signal.SIGKILL)
        wait(lambda: not jobs.pid_of(waiting.RUNNER))
        waiting.go_on()  # as any page does
    alive: list[int] = []

    def all_done() -> bool:
        alive.append(len(jobs.working()))
        assert not [r.status() for r in runs.list_runs() if r.status()["status"] == "failed"]
        return {
            r.name: r.status()["status"] for r in runs.list_runs() if not r.shipped
        } == dict.fromkeys("abc", "done")

    wait(all_done, 120)
    assert max(alive) == 1  # never two at once
    assert waiting.queue() == []
    assert jobs.failures() == {}
    wait(lambda: not store.lock_holder(lock), 10)
