"""What runs, waits and failed, as the records of child processes tell it, and the strip at the top of every page."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from opened_page import page_on
from test_pages import PAGES

from contrastive_core import runs
from contrastive_core.advice import plan
from contrastive_core.base import json_files
from contrastive_core.base.lock import process_start
from contrastive_core.base.progress import Progress
from contrastive_core.engine import jobs, process, queue
from contrastive_core.engine.client import Call, Stopped
from contrastive_lab import activity


def record(key: str, command: list[str], lives: bool, **about: Any) -> None:
    """What `spawn` leaves; a living process is this one."""
    living = {"pid": os.getpid(), "started": process_start(os.getpid())}
    identity = living if lives else {"pid": 2**30, "started": "1"}
    values = {"time": time.time() - 100, **about, **identity, "command": command}
    json_files.write_json(process.folder() / f"{key}.json", values)


def said(key: str, stage: str, fraction: float, since: float, begun: float = 0.0) -> None:
    line = {"stage": stage, "fraction": fraction, "since": time.time() - since, "begun": begun}
    process.progress_path(key).write_text(json.dumps(line) + "\n")


def asked(kind: str, key: str, error: Exception | None = None) -> None:
    """A question as the client keeps it, at work where there is no error."""
    call = Call(None, 0, progress=Progress("layout", 0.6))  # type: ignore[arg-type]
    if error:
        call.outcome.set_exception(error)
    jobs._asked[key] = jobs.Asked(jobs.Job(key, Path("/none") / key, kind=kind), "The map", call)


def test_what_is_at_work_says_how_far_it_is_and_how_long_it_takes() -> None:
    record("mine", ["train", "--run", "mine"], lives=True)
    said("mine", "epoch 7 of 10", 0.6, since=50, begun=0.4)
    record("map-1", ["report", "a"], lives=True, label="The map", result="/x/map.npz")
    said("map-1", "layout", 0.5, since=1)
    asked("map", "a")
    (process.folder() / "bad.json").write_text("{")  # a damaged record hides no other
    record("odd", "train", lives=True)  # type: ignore[arg-type]
    now = activity.activity()
    question, job, run = sorted(now.running, key=lambda work: work.key)
    assert (run.run, run.label, run.progress) == ("mine", "mine", Progress("epoch 7 of 10", 0.6))
    assert run.progress.seconds_left == pytest.approx(100.0, rel=0.1)  # at 0.4 before, after 50 s at 0.6
    assert (job.run, job.label, job.progress) == ("", "The map", Progress("layout", 0.5))
    assert job.progress.seconds_left is None  # too soon to say
    assert Progress("rows", 0.5).seconds_left is None  # nobody knows since when
    assert (question.label, question.progress) == ("The map", Progress("layout", 0.6))
    assert len(now.running) == 3
    assert now.is_live


def test_who_waits_knows_how_many_are_ahead() -> None:
    for name in ("first", "second"):
        queue.add(name, ["--device", "cpu"], time.time())
    queue.add("held", ["--device", "cpu"], 0.0, "sweep", hours=0.0)
    now = activity.activity()
    assert [(work.run, work.ahead) for work in now.waiting] == [("first", 0), ("second", 1), ("held", 2)]
    assert "used up" in now.waiting[2].why
    record("starts", ["train", "--device", "cpu"], lives=True)
    assert [work.ahead for work in activity.activity().waiting] == [1, 2, 3]
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
    asked("map", "c", ValueError("columns are gone"))
    asked("map", "d", Stopped())
    for kind in activity.ASKED_WHILE_TYPING:  # said beside the field
        asked(kind, kind, ValueError("no such folder"))
    now = activity.activity()
    assert {(work.label, work.run, work.why) for work in now.failed} == {
        ("begun", "begun", "the disk is full"),
        ("not-begun", "not-begun", "no folder /x"),
        ("The map", "", "rows are gone"),
        ("The map", "", "columns are gone"),
    }
    assert not now.is_live
    activity.dismiss(*(work for work in now.failed if work.key in ("begun", "c")))
    assert {work.key for work in activity.activity().failed} == {"not-begun", "map-1"}
    record("begun", ["train", "--resume"], lives=False, time=time.time() + 1)  # it fails anew
    assert {work.key for work in activity.activity().failed} == {"begun", "not-begun", "map-1"}


def test_a_result_that_is_removed_later_is_no_failure(tmp_path: Path) -> None:
    """A cache that makes room, or a folder that somebody cleared; one that was killed before is a failure."""
    record("map-1", ["report", "a"], lives=False, result=str(tmp_path / "result"))
    assert activity.activity() == activity.Activity()  # nobody saw it at work: it may have been made and removed
    (tmp_path / "result").touch()
    record("map-2", ["report", "a"], lives=True, result=str(tmp_path / "result"))
    assert activity.activity().running
    record("map-2", ["report", "a"], lives=False, result=str(tmp_path / "result"))
    assert not activity.activity().failed
    (tmp_path / "result").unlink()
    assert not activity.activity().failed
    killed = {"result": str(tmp_path / "other"), "time": time.time() - 100}
    record("map-3", ["report", "a"], lives=True, **killed)
    assert activity.activity().running
    record("map-3", ["report", "a"], lives=False, **killed)
    assert ["ran out of memory" in work.why for work in activity.activity().failed] == [True]


# --- on the pages --------------------------------------------------------------------------------------


def keys_of(app: Any) -> list[str]:
    keys = [str(button.key) for button in app.button]
    return [key for key in keys if key.startswith(("strip-", "look-", "dismiss-"))]


@pytest.mark.parametrize("page", PAGES)
def test_every_page_tells_of_it(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    record("mine", ["train"], lives=True)
    (plan.runs_home() / ".advice" / "advice-digits").mkdir(parents=True)
    record("advice-digits-012345-e3-s0", ["train"], lives=True)  # an adviser's trials are not told of
    app = page_on(page, monkeypatch)
    assert not app.exception
    assert keys_of(app) == ["strip-mine"]


def test_a_failure_is_told_and_dismissed(monkeypatch: pytest.MonkeyPatch) -> None:
    app = page_on("methods", monkeypatch)
    assert not app.exception
    assert keys_of(app) == []
    for name in ("one", "two", "*three*"):
        record(name, ["train"], lives=False)
        (process.folder() / f"{name}.log").write_text(f"error: {name} went wrong\n")
    app.run()
    assert len(app.error) == 3
    assert any(r"\*three\* went wrong" in e.value for e in app.error)
    app.button(key="dismiss-one").click().run()
    assert not app.exception
    assert len(app.error) == 2
    app.button(key="dismiss-all").click().run()
    assert not app.error
    assert (process.folder() / "one.log").exists()


def test_who_waits_leads_to_the_run_from_train_too(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two"):
        queue.add(name, [], 0.0, "held", hours=0.0)
    runs.create("other", {"method": "simclr"})
    app = page_on("train", monkeypatch, watched="other")
    assert any("budget" in c.value for c in app.caption)
    labels = {button.key: button.label for button in app.button}
    assert labels["strip-two"].endswith("held")
    app.button(key="strip-two").click().run()
    assert not app.exception
    assert app.session_state["watched"] == "two"
    assert app.query_params["watch"] in ("two", ["two"])
