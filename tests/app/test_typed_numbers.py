"""Numbers in the fields of forms and beside buttons: their bounds, and that they are what is done."""

import pytest
import streamlit as st
from opened_page import field, press, queued
from streamlit.testing.v1 import AppTest


def test_a_clone_is_trained_with_what_stands_in_its_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    started = queued(monkeypatch)
    monkeypatch.setattr(st, "switch_page", lambda page: None)

    def page() -> None:
        from contrastive_core import runs
        from contrastive_lab.runs import detail

        detail.clone(runs.load("simclr-digits"))

    app = AppTest.from_function(page, default_timeout=90).run()
    for number, (label, bounds) in enumerate((("Epochs", (1, 100_000)), ("Seed", (0, 2**31 - 1))), 1):
        before = field(app, label).value
        assert (field(app, label).min, field(app, label).max) == bounds
        field(app, label).set_value(before + number)
        press(app, "Train the clone")
        words = started[-1]
        assert words[words.index(f"--{label.lower()}") + 1] == f"{before + number:g}", words
        assert len(started) == number


def test_a_map_is_drawn_with_the_seed_that_stands_there() -> None:
    def page() -> None:
        import streamlit as st

        from contrastive_lab import embedding_map

        st.json(embedding_map.settings("umap"))

    app = AppTest.from_function(page, default_timeout=90).run()
    for right in (7, 0, 10_000):
        field(app, "Seed").set_value(right)
        press(app, "Draw this map")
        assert f'"seed":{right},' in app.json[0].value.replace(" ", "")
