"""The strip of activity in the sidebar: on every page, and nothing where there is nothing."""

from __future__ import annotations

import os
import time
from typing import Any

import pytest
from test_pages import PAGES, opened

from contrastive_core.engine import process, queue_files
from contrastive_core.engine.activity import Activity, Waits
from contrastive_core.records import runs
from contrastive_core.storage import json_files
from contrastive_core.storage.lock import process_start


def record(key: str, **identity: Any) -> None:
    values = {"time": time.time() - 9, "command": ["train"], **identity}
    json_files.write_json(process.folder() / f"{key}.json", values)


def keys_of(app: Any) -> list[str]:
    return [str(button.key) for button in app.sidebar.button]


@pytest.mark.parametrize("page", PAGES)
def test_every_page_tells_of_it(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    record("mine", pid=os.getpid(), started=process_start(os.getpid()))
    app = opened(page, monkeypatch)
    assert not app.exception
    assert "strip-mine" in keys_of(app)


def test_nothing_is_drawn_where_there_is_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    app = opened("methods", monkeypatch)
    assert not app.exception
    assert keys_of(app) == []


def test_a_failure_is_told_and_dismissed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two", "*three*"):
        record(name, pid=2**30, started=1.0)
        (process.folder() / f"{name}.log").write_text(f"error: {name} went wrong\n")
    app = opened("methods", monkeypatch)
    assert len(app.sidebar.error) == 3
    assert any(r"\*three\* went wrong" in e.value for e in app.sidebar.error)
    app.sidebar.button(key="dismiss-one").click().run()
    assert not app.exception
    assert len(app.sidebar.error) == 2
    app.sidebar.button(key="dismiss-all").click().run()
    assert not app.sidebar.error
    assert (process.folder() / "one.log").exists()


@pytest.mark.parametrize(
    ("ahead", "told"),
    [(0, "second · waiting"), (1, "second · waiting: 1 run ahead"), (3, "second · waiting: 3 runs ahead")],
)
def test_who_waits_is_told_how_long_the_line_is(ahead: int, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    now = Activity((), (Waits("second", ahead, ""),), ())
    monkeypatch.setattr("contrastive_core.engine.activity.activity", lambda: now)
    app = opened("methods", monkeypatch)
    assert [b.label.replace("\\", "") for b in app.sidebar.button] == [told]


def test_it_leads_to_the_run_from_train_too(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two"):
        queue_files.add(name, [], 0.0, "held", hours=0.0)
    runs.create("other", {"method": "simclr"})
    app = opened("train", monkeypatch, watched="other")
    assert any("budget" in c.value for c in app.sidebar.caption)
    app.sidebar.button(key="strip-two").click().run()
    assert not app.exception
    assert app.session_state["watched"] == "two"
    assert app.query_params["watch"] in ("two", ["two"])


def test_an_advisers_tries_are_not_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    from contrastive_core.records import advice as plan

    name = "advice-digits-012345-e3-s0"
    (plan.runs_home() / ".advice" / "advice-digits").mkdir(parents=True)
    record(name, pid=os.getpid(), started=process_start(os.getpid()))
    app = opened("methods", monkeypatch)
    assert keys_of(app) == []
