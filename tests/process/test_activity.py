"""What is at work, what waits and what failed, as the records of child processes tell it."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from contrastive_core import runs
from contrastive_core.base import json_files
from contrastive_core.base.lock import process_start
from contrastive_core.base.progress import Progress
from contrastive_core.engine import activity, jobs, process, queue
from contrastive_core.engine.client import Call, Stopped

NOBODY = {"pid": 2**30, "started": "1"}


def record(key: str, command: list[str], lives: bool, **about: Any) -> None:
    """What `spawn` leaves; a living process is this one."""
    living = {"pid": os.getpid(), "started": process_start(os.getpid())}
    identity = living if lives else NOBODY
    values = {"time": time.time() - 100, **about, **identity, "command": command}
    json_files.write_json(process.folder() / f"{key}.json", values)


def said(key: str, *lines: tuple[str, float | None], **start: float) -> None:
    text = "".join(json.dumps({"stage": s, "fraction": f, **start}) + "\n" for s, f in lines)
    process.progress_path(key).write_text(text)


def test_nothing_is_nothing() -> None:
    assert not activity.activity()


def test_what_is_at_work_says_how_far_it_is_and_how_long_it_takes() -> None:
    record("mine", ["train", "--run", "mine"], lives=True)
    said("mine", ("epoch 3 of 10", 0.2), ("epoch 7 of 10", 0.6), since=time.time() - 50, begun=0.4)
    record("map-1", ["report", "a"], lives=True, label="The map", result="/x/map.npz")
    said("map-1", ("rows", 0.9), ("layout", 0.5))
    now = activity.activity()
    run, task = sorted(now.at_work, key=lambda w: w.label, reverse=True)
    assert (run.run, run.label, run.progress) == ("mine", "mine", Progress("epoch 7 of 10", 0.6))
    assert run.seconds_left == pytest.approx(100.0, rel=0.1)  # resumed at 0.4 and after 50 s at 0.6: 0.4 to do
    assert (task.run, task.label, task.progress) == ("", "The map", Progress("layout", 0.5))
    assert task.seconds_left is None  # a share of its stage, not of all
    assert now.is_live


def test_who_waits_knows_how_many_are_ahead() -> None:
    for name in ("first", "second"):
        queue.add(name, ["--device", "cpu"], time.time())
    queue.add("held", ["--device", "cpu"], 0.0, "sweep", hours=0.0)
    now = activity.activity()
    assert [(w.run, w.ahead) for w in now.waiting] == [("first", 0), ("second", 1), ("held", 2)]
    assert "used up" in now.waiting[2].why
    record("starts", ["train", "--device", "cpu"], lives=True)
    assert [w.ahead for w in activity.activity().waiting] == [1, 2, 3]
    process.forget("starts")
    assert now.is_live
    for job in queue.queue():
        if job.name != "held":
            job.path.unlink()
    assert not activity.activity().is_live  # nothing changes until somebody does something


def test_what_failed_says_why_until_it_is_dismissed(tmp_path: Path) -> None:
    record("begun", ["train"], lives=False)
    runs.create("begun", {"method": "simclr"}).set_status("failed", reason="the disk is full")
    record("not-begun", ["train"], lives=False)
    (process.folder() / "not-begun.log").write_text("error: no folder /x\n")
    record("ended", ["train"], lives=False)
    runs.create("ended", {"method": "simclr"}).set_status("done")
    record("stopped", ["train"], lives=False, stopped=True)
    record("map-1", ["report", "a"], False, label="The map", result=str(tmp_path / "r"))
    (process.folder() / "map-1.log").write_text("error: rows are gone\n")
    now = activity.activity()
    assert {(f.label, f.run, f.why) for f in now.failed} == {
        ("begun", "begun", "the disk is full"),
        ("not-begun", "not-begun", "no folder /x"),
        ("The map", "", "rows are gone"),
    }
    assert not now.is_live
    activity.dismiss(next(f for f in now.failed if f.label == "begun"))
    assert {f.label for f in activity.activity().failed} == {"not-begun", "The map"}
    record("begun", ["train", "--resume"], lives=False, time=time.time() + 1)  # it fails anew
    assert {f.label for f in activity.activity().failed} == {"begun", "not-begun", "The map"}


def test_a_result_that_is_removed_later_is_no_failure(tmp_path: Path) -> None:
    """A cache that makes room, or a folder that somebody cleared."""
    record("map-1", ["report", "a"], lives=False, result=str(tmp_path / "result"))
    assert not activity.activity()  # nobody saw it at work: it may have been made and removed
    (tmp_path / "result").touch()
    record("map-2", ["report", "a"], lives=True, result=str(tmp_path / "result"))
    assert activity.activity().at_work
    record("map-2", ["report", "a"], lives=False, result=str(tmp_path / "result"))
    assert not activity.activity()
    (tmp_path / "result").unlink()
    assert not activity.activity()


def test_one_that_is_killed_before_its_result_is_told_of(tmp_path: Path) -> None:
    began = time.time() - 100
    about = {"result": str(tmp_path / "result"), "label": "The map", "time": began}
    record("map-3", ["report", "a"], lives=True, **about)
    assert activity.activity().at_work
    record("map-3", ["report", "a"], lives=False, **about)
    assert ["ran out of memory" in f.why for f in activity.activity().failed] == [True]


def asked(kind: str, key: str, error: Exception | None = None, *stages: Progress) -> jobs.Asked:
    """A question as the client keeps it, at work where there is no error."""
    call = Call(None, 0)  # type: ignore[arg-type]
    call.first, call.last = (stages[0], stages[-1]) if stages else (None, None)
    if error:
        call.outcome.set_exception(error)
    job = jobs.Job(key, Path("/none") / key, kind=kind)
    kept = jobs.Asked(job, "The map", call, time.time() - 100)
    jobs._asked[key] = kept
    return kept


def test_questions_at_work_and_failed_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "_asked", {})
    asked("map", "a", None, Progress("layout", 0.2), Progress("layout", 0.6))
    asked("map", "b", None, Progress("rows", 0.9), Progress("layout", 0.6))
    asked("map", "c", ValueError("rows are gone"))
    asked("map", "d", Stopped())
    now = activity.activity()
    assert [(w.label, w.progress) for w in now.at_work] == [("The map", Progress("layout", 0.6))] * 2
    assert now.at_work[0].seconds_left == pytest.approx(100.0, rel=0.1)
    assert now.at_work[1].seconds_left is None  # a fraction of its stage, not of all
    assert [(f.label, f.why) for f in now.failed] == [("The map", "rows are gone")]
    activity.dismiss(now.failed[0])
    assert not activity.activity().failed


@pytest.mark.parametrize("kind", sorted(activity.ASKED_WHILE_TYPING))
def test_what_is_said_where_it_is_typed_is_not_said_twice(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "_asked", {})
    asked(kind, "a", ValueError("no such folder"))
    assert not activity.activity()


def test_a_damaged_record_hides_no_other() -> None:
    record("mine", ["train"], lives=True)
    (process.folder() / "bad.json").write_text("{")
    record("odd", "train", lives=True)  # type: ignore[arg-type]
    assert [w.run for w in activity.activity().at_work] == ["mine"]
