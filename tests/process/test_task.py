"""One task for all that runs in a child process: started once, followed, stopped, and why not."""

import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from patience import wait

from contrastive_core import runs
from contrastive_core.base.progress import Progress
from contrastive_core.base.storage import ROOT, runs_home
from contrastive_core.engine import activity, jobs, process, queue, training
from contrastive_core.engine.jobs import Job
from contrastive_core.samples.sample_table import request_of
from contrastive_core.spaces.space import Space

SLEEPS = [sys.executable, "-c", "import time; time.sleep(600)"]


def runs_this(monkeypatch: pytest.MonkeyPatch, *command: str) -> None:
    """Tasks run another command than the library's, which takes seconds to begin."""
    monkeypatch.setattr(process, "command_line", lambda arguments: [*command, *arguments])


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


def task(tmp_path: Path) -> Job:
    return Job("work", tmp_path / "result", ("work",))


def test_two_starts_at_once_start_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs_this(monkeypatch, *SLEEPS)
    started: list[int] = []
    spawn = subprocess.Popen

    def counted(*args: Any, **kwargs: Any) -> Any:
        child = spawn(*args, **kwargs)
        started.append(child.pid)
        return child

    monkeypatch.setattr(subprocess, "Popen", counted)
    one = task(tmp_path)
    with ThreadPoolExecutor(10) as pool:
        list(pool.map(lambda _: one.start(), range(10)))
    assert len(started) == 1
    assert one.is_running()
    assert one.progress() == Progress("starting", None)
    one.stop()
    wait(lambda: not one.is_running())
    assert one.failure() == "It was stopped."


def test_a_task_is_followed_to_its_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The child writes its progress where it is told to, and its result last."""
    go = tmp_path / "go"
    runs_this(
        monkeypatch,
        *python(
            "import sys, time, pathlib\n"
            "from contrastive_core.base.progress import ProgressFile\n"
            "at = sys.argv.index('--progress')\n"
            "ProgressFile(pathlib.Path(sys.argv[at + 1]))('half way', 0.5)\n"
            f"while not pathlib.Path({str(go)!r}).exists(): time.sleep(0.02)\n"
            f"pathlib.Path({str(tmp_path / 'result')!r}).write_text('made')\n"
        ),
    )
    one = task(tmp_path)
    one.start()
    wait(lambda: one.progress() == Progress("half way", 0.5))
    assert one.failure() is None
    assert not one.has_result()
    go.touch()
    wait(lambda: not one.is_running())
    assert one.progress() is None
    assert one.has_result()
    assert one.failure() is None


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
    one = task(tmp_path)
    assert one.failure() is None
    runs_this(monkeypatch, *python(code))
    one.start()
    wait(lambda: not one.is_running())
    assert one.failure() == reason
    one.forget()
    assert one.failure() is None


def test_a_training_that_goes_on_is_starting_until_its_first_word(monkeypatch: pytest.MonkeyPatch) -> None:
    run = runs.create("resumed", {"method": "simclr", "device": "cpu"})
    run.set_status("stopped", epoch=2, epochs=5)
    assert training.status_of(run)["status"] == "stopped"
    runs_this(monkeypatch, *SLEEPS)
    queue.resume("resumed")
    assert training.status_of(run)["status"] == "starting"
    assert training.starting() == ["resumed"]
    assert queue.progress_of("resumed") == Progress("starting", None)
    training.stop("resumed")
    wait(lambda: process.pid_of("resumed") is None)
    assert training.status_of(run)["status"] == "stopped"
    assert training.failures() == {"resumed": "It was stopped."}  # before it had begun


def test_a_run_that_was_made_is_starting_until_its_first_step() -> None:
    """Its model is built in between: a page that looks then goes on looking."""
    run = runs.create("made", {"method": "simclr", "device": "cpu"})  # by this living process
    assert training.status_of(run)["status"] == "starting"
    assert queue.progress_of("made") == Progress("starting", None)
    with run.lock():
        assert queue.progress_of("made") == Progress("starting", None)
        run.set_status("running", epoch=0, epochs=4)
        assert queue.progress_of("made") == Progress("epoch 1 of 4", 0.0)
        run.set_status("done", epoch=4, epochs=4)
    assert queue.progress_of("made") is None


def test_a_name_that_failed_is_not_given_again_and_keeps_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    runs_this(monkeypatch, *python("print('error: first reason'); raise SystemExit(2)"))
    queue.start_now("taken", [])
    wait(lambda: training.failures() == {"taken": "first reason"})
    assert queue.free_name("taken") == "taken-2"
    assert queue.free_name("other") == "other"
    runs_this(monkeypatch, *python("print('error: second reason'); raise SystemExit(2)"))
    queue.start_now("taken", [])  # asked for by that very name
    wait(lambda: training.failures().get("taken") == "second reason")
    assert training.failures() == {"taken": "second reason", "taken~1": "first reason"}
    training.dismiss("taken~1")
    training.dismiss("taken")
    assert training.failures() == {}


def test_images_are_decoded_by_a_task() -> None:
    decoding = jobs.decoding({"dataset": "digits"}, "train")
    decoding.result_path.unlink(missing_ok=True)
    decoding.start()
    wait(lambda: not decoding.is_running())
    assert decoding.has_result()
    missing = jobs.decoding({"dataset": "cifar10", "root": "/nowhere"}, "test")
    missing.start()
    wait(lambda: not missing.is_running())
    assert "cifar10" in (missing.failure() or "")


SHORT = ["--dataset", "digits", "--epochs", "2", "--set", "threads=1", "--set", "sample=100"]


@pytest.mark.parametrize("closed", ["the pipe behind it", "before it started"])
def test_a_closed_standard_output_ends_no_training(closed: str) -> None:
    """Its reader went away, or it never had one."""
    command = process.command_line(["train", "--run", "quiet", *SHORT])
    if closed == "before it started":
        assert subprocess.run(["sh", "-c", f"{shlex.join(command)} <&- >&- 2>&-"], cwd=ROOT).returncode == 0
    else:
        child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert child.stdout is not None
        child.stdout.close()
        assert child.wait(300) == 0
    run = runs.load("quiet")
    assert run.status()["status"] == "done"
    assert runs.damaged() == {}


def test_a_folder_of_runs_that_is_deleted_while_one_trains_is_named_as_the_reason() -> None:
    queue.enqueue("gone", [*SHORT[:2], "--epochs", "500", *SHORT[4:]])
    wait(lambda: (runs_home() / "gone" / "metrics.jsonl").exists(), 120)
    shutil.rmtree(runs_home(), ignore_errors=True)
    wait(lambda: not process.pid_of("gone"), 120)
    shutil.rmtree(runs_home(), ignore_errors=True)
    assert "the folder of gone was renamed, moved or deleted" in training.failures()["gone"]
    assert [failed.why for failed in activity.activity().failed] == list(training.failures().values())


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
