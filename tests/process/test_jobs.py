"""Jobs in the worker and in processes of their own: started once, followed, stopped, and why they failed."""

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest
from patience import wait

from contrastive_core import runs
from contrastive_core.base.progress import Progress
from contrastive_core.base.storage import ROOT, runs_home
from contrastive_core.engine import client, jobs, process, queue, training
from contrastive_core.engine.jobs import Job
from contrastive_core.samples.sample_table import request_of
from contrastive_core.spaces.space import Space
from contrastive_lab import activity

SLEEPS = "import time; time.sleep(600)"
GETPID = "os:getpid"
SHORT = ["--dataset", "digits", "--epochs", "2", "--set", "threads=1", "--set", "sample=100"]


def runs_this(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Tasks run another command than the library's, which takes seconds to begin."""
    monkeypatch.setattr(process, "COMMAND", [sys.executable, "-c", code])


# --- a process of its own ----------------------------------------------------------------------------


def test_ten_starts_at_once_start_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs_this(monkeypatch, SLEEPS)
    started: list[int] = []
    spawn = subprocess.Popen

    def counted(*args: Any, **kwargs: Any) -> Any:
        child = spawn(*args, **kwargs)
        started.append(child.pid)
        return child

    monkeypatch.setattr(subprocess, "Popen", counted)
    one = Job("work", tmp_path / "result", ("work",))
    with ThreadPoolExecutor(10) as pool:
        list(pool.map(lambda _: one.start(), range(10)))
    assert len(started) == 1
    assert one.is_running()
    assert one.progress() == Progress("starting", None)
    one.stop()
    wait(lambda: not one.is_running())
    assert one.failure() == "It was stopped."


def test_a_process_is_followed_to_its_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The child writes its progress where it is told to, and its result last."""
    go, result = tmp_path / "go", tmp_path / "result"
    code = f"""
import sys, time, pathlib
from contrastive_core.base.progress import ProgressFile
ProgressFile(pathlib.Path(sys.argv[sys.argv.index('--progress') + 1]))('half way', 0.5)
while not pathlib.Path({str(go)!r}).exists(): time.sleep(0.02)
pathlib.Path({str(result)!r}).write_text('made')
"""
    runs_this(monkeypatch, code)
    one = Job("work", result, ("work",))
    one.start()
    wait(lambda: one.progress() == Progress("half way", 0.5))
    assert one.failure() is None
    assert not result.exists()
    go.touch()
    wait(lambda: not one.is_running())
    assert one.progress() is one.failure() is None
    assert result.exists()


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("print('error: no such thing'); raise SystemExit(2)", "no such thing"),
        ("raise MemoryError('too large')", "The computation failed: MemoryError: too large"),
        ("pass", "The process was ended by another program or ran out of memory."),
    ],
)
def test_why_there_is_no_result(code: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where one of an earlier time lies there still."""
    (tmp_path / "result").write_text("old")
    one = Job("work", tmp_path / "result", ("work",))
    assert one.failure() is None
    runs_this(monkeypatch, code)
    one.start()
    wait(lambda: not one.is_running())
    assert one.failure() == reason
    one.forget()
    assert one.failure() is None


def test_a_training_that_goes_on_is_starting_until_its_first_word(monkeypatch: pytest.MonkeyPatch) -> None:
    run = runs.create("resumed", {"method": "simclr", "device": "cpu"})
    run.set_status("stopped", epoch=2, epochs=5)
    assert training.status_of(run)["status"] == "stopped"
    runs_this(monkeypatch, SLEEPS)
    queue.resume("resumed")
    assert training.status_of(run)["status"] == "starting"
    assert training.starting() == ["resumed"]
    assert queue.progress_of("resumed") == Progress("starting", None)
    training.stop("resumed")
    wait(lambda: process.pid_of("resumed") is None)
    assert training.status_of(run)["status"] == "stopped"
    assert training.failure("resumed") == "It was stopped."  # before it had begun


def test_a_run_that_was_made_is_starting_until_its_first_step() -> None:
    """Its model is built in between: a page that looks then goes on looking."""
    run = runs.create("made", {"method": "simclr", "device": "cpu"})  # by this living process
    assert training.status_of(run)["status"] == "starting"
    with run.lock():
        assert queue.progress_of("made") == Progress("starting", None)
        run.set_status("running", epoch=0, epochs=4)
        assert queue.progress_of("made") == Progress("epoch 1 of 4", 0.0)
        run.set_status("done", epoch=4, epochs=4)
    assert queue.progress_of("made") is None


def test_a_name_that_failed_is_not_given_again(monkeypatch: pytest.MonkeyPatch) -> None:
    for reason in ("first reason", "second reason"):
        runs_this(monkeypatch, f"print('error: {reason}'); raise SystemExit(2)")
        queue.enqueue("taken", [], at_once=True)  # asked for by that very name
        wait(lambda reason=reason: training.failure("taken") == reason)
        assert (queue.free_name("taken"), queue.free_name("other")) == ("taken-2", "other")


@pytest.mark.parametrize("closed", ["the pipe behind it", "before it started"])
def test_a_closed_standard_output_ends_no_training(closed: str) -> None:
    """Its reader went away, or it never had one."""
    command = [*process.COMMAND, "train", "--run", "quiet", *SHORT]
    if closed == "before it started":
        assert subprocess.run(["sh", "-c", f"{shlex.join(command)} <&- >&- 2>&-"], cwd=ROOT).returncode == 0
    else:
        child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert child.stdout is not None
        child.stdout.close()
        assert child.wait(300) == 0
    assert runs.load("quiet").status()["status"] == "done"
    assert runs.damaged() == {}


def test_a_folder_of_runs_that_is_deleted_while_one_trains_is_named_as_the_reason() -> None:
    queue.enqueue("gone", [*SHORT[:2], "--epochs", "500", *SHORT[4:]])
    wait(lambda: (runs_home() / "gone" / "metrics.jsonl").exists(), 120)
    shutil.rmtree(runs_home(), ignore_errors=True)
    wait(lambda: not process.pid_of("gone"), 120)
    shutil.rmtree(runs_home(), ignore_errors=True)
    why = training.failure("gone") or ""
    assert "the folder of gone was renamed, moved or deleted" in why
    assert [failed.why for failed in activity.activity().failed] == [why]


def test_only_trainings_and_imports_have_keys_of_runs() -> None:
    """A run may be named like a job; no run's name begins with `_`."""
    from contrastive_lab.report import button
    from contrastive_lab.train import adviser

    run = runs.load("simclr-digits")
    others = [
        jobs.evaluation(run),
        jobs.embedding(run, "test"),
        jobs.samples(request_of(run.name, "test", "nt_xent")),
        jobs.analysis("views", {}),
        jobs.decoding({"dataset": "digits"}, "test"),
        button.job_of([run.name], "test", "h"),
        adviser.job_of("first"),
    ]
    assert all(job.key.startswith("_") and Path(job.key).name == job.key for job in others)
    with pytest.raises(ValueError, match="_evaluate"):
        runs.new_name(jobs.evaluation(run).key)
    assert training.job_of("mine").key == "mine"


def test_what_takes_minutes_is_a_process_of_its_own() -> None:
    large = runs.create("large", {"method": "simclr"}, n_train=60_000)
    large.weights.write_bytes(b"weights")
    for run, is_long in ((large, True), (runs.load("simclr-digits"), False)):
        values = {"spaces": [Space.of_run(run).values] * 2, "names": ["a", "b"]}
        for job in (jobs.evaluation(run), jobs.embedding(run, "test"), jobs.analysis("comparison", values)):
            assert job.is_long is is_long, job.key
            assert job.arguments[:2] == ("analyze", job.kind)
    decoding = jobs.decoding({"dataset": "cifar10", "root": "/nowhere"}, "test")
    decoding.start()
    wait(lambda: not decoding.is_running())
    assert "cifar10" in (decoding.failure() or "")


# --- the worker ----------------------------------------------------------------------------------------


def slow(key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    """A question that the worker computes until it is stopped."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    monkeypatch.setattr(jobs, "ANSWER", "process.endless_answer:compute")
    client.end_worker()  # the next one has the path
    return Job(key, tmp_path / key, kind="endless", values={"out": str(tmp_path / key)})


def test_the_worker_is_another_process_the_same_each_time_with_the_homes_of_its_client(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pid = client.call(GETPID)
    assert pid not in (os.getpid(), None)
    for name in ("one", "two"):
        monkeypatch.setenv("CONTRASTIVE_LAB_RUNS", str(tmp_path / name))
        assert client.call("contrastive_core.base.storage:runs_home") == runs_home() == tmp_path / name
    with pytest.raises(ValueError, match="no-such-run"):
        client.call("contrastive_core.runs:load", "no-such-run")
    assert client.call(GETPID) == pid
    with pytest.raises(ValueError, match="ended by another program"):
        client.call("os:_exit", 1)
    assert client.call(GETPID) != pid


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
    wait(lambda: (same.progress() or Progress("")).stage == "computing")
    assert [asked.label for asked in jobs.asked_of_worker() if asked.job == question] == ["The map"]
    client.call(GETPID)  # a short call need not wait for it
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
    wait(lambda: (question.progress() or Progress("")).stage == "computing")
    os.kill(client.call(GETPID), signal.SIGKILL)
    wait(lambda: not question.is_running())
    assert "ran out of memory" in (question.failure() or "")
    question.start()
    assert question.is_running()
    assert question.failure() is None
    question.stop()
