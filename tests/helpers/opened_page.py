"""Pages of the app as a test opens them, their fields and buttons by label, and the trainings that they start."""

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from contrastive_core.base.progress import STARTING
from contrastive_core.base.storage import ROOT
from contrastive_core.engine.jobs import Job

__all__ = ["field", "opened", "page_at", "page_on", "press", "queued", "revisit"]

FIELDS = ("number_input", "text_input", "text_area", "selectbox", "multiselect")


def opened(page: str, monkeypatch: pytest.MonkeyPatch, **query: str) -> AppTest:
    """A page of the app; it starts no process, and no question that it asks is answered."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("contrastive_core.engine.process.spawn", lambda *a, **k: None)
    asked: set[str] = set()
    monkeypatch.setattr(Job, "start", lambda question, **_: asked.add(question.key))
    monkeypatch.setattr(Job, "is_running", lambda question: question.key in asked)
    monkeypatch.setattr(Job, "progress", lambda question: STARTING if question.key in asked else None)
    monkeypatch.setattr("contrastive_core.engine.client.warm_up", lambda: None)
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=90).run()
    app.switch_page(f"pages/{page}.py")
    for name, value in query.items():
        app.query_params[name] = value
    return app.run()


def page_at(name: str, monkeypatch: pytest.MonkeyPatch, **query: str) -> AppTest:
    """A page at an address that one comes to from outside; it starts no process."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("contrastive_core.engine.process.spawn", lambda *a, **k: None)
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=90)
    app.switch_page(f"pages/{name}.py")
    for parameter, value in query.items():
        app.query_params[parameter] = value
    return app.run()


def queued(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The arguments of each training that a page starts, which does not begin."""
    started: list[list[str]] = []
    monkeypatch.setattr("contrastive_core.engine.queue.enqueue", lambda name, words, **_: started.append(words))
    return started


def field(app: AppTest, label: str) -> Any:
    """The field with this label."""
    return next(f for kind in FIELDS for f in app.get(kind) if f.label == label)


def press(app: AppTest, label: str) -> AppTest:
    """Press the button with the shortest label that begins so."""
    found = [b for b in app.button if b.label.replace("\\", "").startswith(label)]
    return min(found, key=lambda b: len(b.label)).click().run()


def revisit(app: AppTest, page: str) -> None:
    """Go through the menu to another page, and come back."""
    for name in ("methods" if page != "methods" else "runs", page):
        app.query_params.clear()
        app.switch_page(f"pages/{name}.py").run()
        assert not app.exception


def page_on(page: str, monkeypatch: pytest.MonkeyPatch, **state: str | int) -> AppTest:
    """The app on one page, with this in its session; it starts no process, and a worker may answer."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("contrastive_core.engine.process.spawn", lambda *a, **k: None)
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=90)
    for key, value in state.items():
        app.session_state[key] = value
    app.run()
    if page != "home":
        app.switch_page(f"pages/{page}.py").run()
    return app
