"""The field of a path: after a refresh it is filled until the browser has surely got it."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from contrastive_lab import command_files, path_input, query_params


def field() -> None:
    from contrastive_lab.path_input import path_input

    path_input("Folder", "folder", "")


def test_a_run_that_is_cut_off_does_not_empty_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Streamlit sends a value from the session's state with one run only, whose answer the next run may replace."""
    monkeypatch.setattr(query_params, "kept_value", lambda name: "id")
    monkeypatch.setattr(query_params, "keep", lambda **values: None)
    monkeypatch.setattr(command_files, "path_of", lambda known: tmp_path)
    app = AppTest.from_function(field)
    for _ in range(path_input.FILLS):
        app.run()
        assert app.text_input[0].value == str(tmp_path)
        assert app.text_input[0].proto.set_value
    assert not app.run().text_input[0].proto.set_value


def test_what_is_typed_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_params, "kept_value", lambda name: "id")
    monkeypatch.setattr(query_params, "keep", lambda **values: None)
    monkeypatch.setattr(command_files, "path_of", lambda known: tmp_path)
    app = AppTest.from_function(field).run()
    app.text_input[0].set_value("/elsewhere").run()
    assert app.text_input[0].value == "/elsewhere"
    assert app.text_input[0].set_value("").run().text_input[0].value == ""
