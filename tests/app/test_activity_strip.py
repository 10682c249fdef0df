"""The strip of activity in the bar at the top: on every page, and nothing where there is nothing."""

import os
import time
from typing import Any

import pytest
from opened_page import page_on
from test_pages import PAGES

from contrastive_core import runs
from contrastive_core.base import json_files
from contrastive_core.base.lock import process_start
from contrastive_core.engine import process, queue
from contrastive_core.engine.activity import Activity, Waits


def record(key: str, **identity: Any) -> None:
    values = {"time": time.time() - 9, "command": ["train"], **identity}
    json_files.write_json(process.folder() / f"{key}.json", values)


def keys_of(app: Any) -> list[str]:
    keys = [str(button.key) for button in app.button]
    return [key for key in keys if key.startswith(("strip-", "look-", "dismiss-"))]


@pytest.mark.parametrize("page", PAGES)
def test_every_page_tells_of_it(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    record("mine", pid=os.getpid(), started=process_start(os.getpid()))
    app = page_on(page, monkeypatch)
    assert not app.exception
    assert "strip-mine" in keys_of(app)


def test_nothing_is_drawn_where_there_is_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    app = page_on("methods", monkeypatch)
    assert not app.exception
    assert keys_of(app) == []


def test_a_failure_is_told_and_dismissed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two", "*three*"):
        record(name, pid=2**30, started=1.0)
        (process.folder() / f"{name}.log").write_text(f"error: {name} went wrong\n")
    app = page_on("methods", monkeypatch)
    assert len(app.error) == 3
    assert any(r"\*three\* went wrong" in e.value for e in app.error)
    app.button(key="dismiss-one").click().run()
    assert not app.exception
    assert len(app.error) == 2
    app.button(key="dismiss-all").click().run()
    assert not app.error
    assert (process.folder() / "one.log").exists()


@pytest.mark.parametrize(
    ("ahead", "told"),
    [(0, "second · waiting"), (1, "second · waiting: 1 run ahead"), (3, "second · waiting: 3 runs ahead")],
)
def test_who_waits_is_told_how_long_the_line_is(ahead: int, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    now = Activity((), (Waits("second", ahead, ""),), ())
    monkeypatch.setattr("contrastive_core.engine.activity.activity", lambda: now)
    app = page_on("methods", monkeypatch)
    assert app.button(key="strip-second").label.replace("\\", "") == told


def test_it_leads_to_the_run_from_train_too(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two"):
        queue.add(name, [], 0.0, "held", hours=0.0)
    runs.create("other", {"method": "simclr"})
    app = page_on("train", monkeypatch, watched="other")
    assert any("budget" in c.value for c in app.caption)
    app.button(key="strip-two").click().run()
    assert not app.exception
    assert app.session_state["watched"] == "two"
    assert app.query_params["watch"] in ("two", ["two"])


def test_an_advisers_tries_are_not_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    from contrastive_core.advice import plan

    name = "advice-digits-012345-e3-s0"
    (plan.runs_home() / ".advice" / "advice-digits").mkdir(parents=True)
    record(name, pid=os.getpid(), started=process_start(os.getpid()))
    app = page_on("methods", monkeypatch)
    assert keys_of(app) == []
