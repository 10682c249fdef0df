"""Jobs that the worker makes: shared, followed, stopped, and why they failed."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
from patience import wait

from contrastive_core.base.storage import ROOT, runs_home
from contrastive_core.engine import client, jobs, worker
from contrastive_core.engine.jobs import Job
from contrastive_core.spaces import results

GETPID = "os:getpid"


def slow(key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    """A question that the worker computes until it is stopped."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    monkeypatch.setattr(jobs, "ANSWER", "process.endless_answer:compute")
    client.end_worker()  # the next one has the path
    return Job(key, tmp_path / key, kind="endless", values={"out": str(tmp_path / key)})


def test_it_is_another_process_the_same_each_time() -> None:
    first = client.call(GETPID)
    assert first not in (os.getpid(), None)
    assert client.call(GETPID) == first == client.worker_pid()


def test_the_homes_are_those_of_the_client(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("one", "two"):
        monkeypatch.setenv("CONTRASTIVE_LAB_RUNS", str(tmp_path / name))
        assert client.call("contrastive_core.base.storage:runs_home") == runs_home() == tmp_path / name


def test_an_error_there_is_raised_here() -> None:
    with pytest.raises(ValueError, match="no-such-run"):
        client.call("contrastive_core.runs:load", "no-such-run")


def test_a_killed_worker_says_so_and_is_replaced() -> None:
    before = client.call(GETPID)
    with pytest.raises(ValueError, match="ended by another program"):
        client.call("os:_exit", 1)
    assert client.call(GETPID) != before


@pytest.mark.parametrize("end", ["_exit(1)", "kill(os.getpid(), 9)"])
def test_it_ends_with_the_process_that_started_it(end: str) -> None:
    code = "import os\nfrom contrastive_core.engine import client\nprint(client.call('os:getpid'), flush=True)\n"
    code += f"os.{end}"
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        with contextlib.suppress(psutil.NoSuchProcess):
            psutil.Process(pid).wait(timeout=60)


def test_a_question_is_shared_followed_and_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    question = slow("first", tmp_path, monkeypatch)
    question.start("The map")
    same = Job("first", tmp_path / "first", kind="endless")
    same.start("The map")  # of another tab
    wait(lambda: same.progress() is not None and same.progress().stage == "computing")  # type: ignore[union-attr]
    assert [asked.label for asked in jobs.asked_of_worker() if asked.job == question] == ["The map"]
    assert client.call(GETPID) == client.worker_pid()  # a short call need not wait for it
    same.stop()
    assert not question.is_running()
    assert question.failure() == "It was stopped."
    wait((tmp_path / "first").exists)  # the worker has stopped too
    question.forget()
    assert question.failure() is None


def test_a_question_of_a_killed_worker_fails_and_can_be_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = slow("second", tmp_path, monkeypatch)
    question.start()
    wait(lambda: question.progress() is not None and question.progress().stage == "computing")  # type: ignore[union-attr]
    os.kill(client.worker_pid() or 0, signal.SIGKILL)
    wait(lambda: not question.is_running())
    assert "ran out of memory" in (question.failure() or "")
    question.start()
    assert question.is_running()
    assert question.failure() is None
    question.stop()


def test_an_answer_is_kept_and_a_refusal_says_why() -> None:
    values = {"method": "simclr", "dataset": "digits", "set": []}
    question = jobs.analysis("views", values)
    question.start()
    wait(lambda: not question.is_running())
    assert question.failure() is None
    assert question.has_result()
    assert results.read("views", values) is not None
    wrong = Job("wrong", runs_home() / "none", kind="views", values={**values, "set": ["color=1"]})
    wrong.start()
    wait(lambda: not wrong.is_running())
    assert "unknown setting" in (wrong.failure() or "")


def test_it_imports_ahead_only_while_nobody_waits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    imported: list[str] = []
    busy = worker.Worker((tmp_path / "replies").open("wb"), at_work={1})
    monkeypatch.setattr(worker, "_import", imported.append)
    thread = threading.Thread(target=worker._warm, args=(busy,), daemon=True)
    thread.start()
    time.sleep(3 * worker.STEP)
    assert imported == []
    busy.at_work.clear()
    thread.join(10)
    assert imported == list(worker.WARM)
