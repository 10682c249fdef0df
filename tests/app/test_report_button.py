"""The button that makes a report: asked for once, followed, then offered."""

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from contrastive_lab.report import button

RUN = "sup_con-digits"


def script() -> None:
    from contrastive_lab.report import button

    button.offer(["sup_con-digits"])


@pytest.fixture
def followed(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Keys of the tasks that the page follows, none of which is started."""
    keys: list[str] = []
    monkeypatch.setenv("CONTRASTIVE_LAB_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CONTRASTIVE_LAB_RUNS", str(tmp_path / "runs"))
    monkeypatch.setattr(button, "follow", lambda task, *_, **__: keys.append(task.key))
    return keys


def test_nothing_starts_until_it_is_asked_for(followed: list[str]) -> None:
    page = AppTest.from_function(script, default_timeout=90).run()
    assert not page.exception
    assert followed == []
    page.button[0].click().run()
    key = button.job_of([RUN], "test", "h").key
    assert followed == [key]
    page.run()
    assert followed == [key, key]  # it is followed until the file is there


def test_a_report_that_is_there_is_offered(followed: list[str]) -> None:
    task = button.job_of([RUN], "test", "h")
    task.result_path.parent.mkdir(parents=True)
    task.result_path.write_text("<!doctype html>")
    page = AppTest.from_function(script, default_timeout=90).run()
    assert not page.exception
    assert [b.label for b in page.button] == []
    assert followed == []
    (offered,) = page.get("download_button")
    assert offered.proto.label == "Download the report (.html)"
