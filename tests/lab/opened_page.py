"""A page of the app as a test opens it."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from contrastive_core.engine.client import STARTING, Question
from contrastive_core.paths import ROOT

__all__ = ["opened"]


def opened(page: str, monkeypatch: pytest.MonkeyPatch, **query: str) -> AppTest:
    """A page of the app; it starts no process, and no question that it asks is answered."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("contrastive_core.engine.process.spawn", lambda *a, **k: None)
    asked: set[str] = set()
    monkeypatch.setattr(Question, "start", lambda question, **_: asked.add(question.key))
    monkeypatch.setattr(Question, "is_running", lambda question: question.key in asked)
    monkeypatch.setattr(Question, "progress", lambda question: STARTING if question.key in asked else None)
    monkeypatch.setattr("contrastive_core.engine.client.warm_up", lambda: None)
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=90).run()
    app.switch_page(f"pages/{page}.py")
    for name, value in query.items():
        app.query_params[name] = value
    return app.run()
