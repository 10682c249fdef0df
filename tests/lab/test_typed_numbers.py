"""Numbers that a field cannot take: no button of any page acts on the last good one instead."""

from __future__ import annotations

from typing import Any

import pytest
import streamlit as st
from opened_page import opened
from streamlit.testing.v1 import AppTest

from contrastive_core.engine import queue
from contrastive_lab.runs import import_form


def script() -> None:
    import streamlit as st

    from contrastive_lab import number_inputs, query_params

    query_params.arrive("page")
    count = number_inputs.number(st.number_input, "Count", 1, 9, name="count", default=3)
    number_inputs.number(st.number_input, "Other", 1, 9, name="other", default=3)
    go = number_inputs.button(st.button, "Go", of=["page-count"], help="Counts.", key="go")
    st.json({"count": count, "go": go, "wrong": number_inputs.wrong_number()})


def field(app: AppTest, label: str) -> Any:
    return next(n for n in app.number_input if n.label == label)


def press(app: AppTest, label: str) -> AppTest:
    return next(b for b in app.button if b.label.startswith(label)).click().run()


@pytest.mark.parametrize(("wrong", "right"), [(0, 1), (10, 9), (2.5, 2)])
def test_a_press_that_comes_with_a_wrong_number_is_none(wrong: float, right: int) -> None:
    app = AppTest.from_function(script).run()
    field(app, "Count").set_value(wrong)
    app.button(key="go").click().run()  # both at once, as from a field that one leaves by a click
    assert '"go":false' in app.json[0].value.replace(" ", "")
    assert app.button(key="go").disabled
    assert app.button(key="go").help == app.error[0].value
    assert app.error[0].value.startswith("Count must be" if wrong == 2.5 else "Count must lie")
    field(app, "Count").set_value(right).run()
    assert (app.button(key="go").disabled, app.button(key="go").help) == (False, "Counts.")
    field(app, "Other").set_value(wrong).run()  # is no number of this button
    app.button(key="go").click().run()
    assert f'"count":{right},"go":true' in app.json[0].value.replace(" ", "")
    assert "Other must" in app.json[0].value


def test_a_clone_is_trained_with_what_stands_in_its_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    queued: list[list[str]] = []
    monkeypatch.setattr(queue, "enqueue", lambda name, words: queued.append(words))
    monkeypatch.setattr(st, "switch_page", lambda page: None)

    def page() -> None:
        from contrastive_core.records import runs
        from contrastive_lab.runs import detail

        detail.clone(runs.load("simclr-digits"))

    app = AppTest.from_function(page).run()
    for number, (label, wrong) in enumerate((("Epochs", 0), ("Seed", -1), ("Seed", 0.5)), 1):
        before = field(app, label).value
        field(app, label).set_value(wrong)
        press(app, "Train the clone")
        assert [e.value.startswith(f"{label} must") for e in app.error] == [True]
        assert field(app, label).value == wrong
        assert len(queued) == number - 1
        field(app, label).set_value(before + number)
        press(app, "Train the clone")
        words = queued[-1]
        assert words[words.index(f"--{label.lower()}") + 1] == f"{before + number:g}", words
        assert len(queued) == number


def test_a_map_is_drawn_with_the_seed_that_stands_there() -> None:
    def page() -> None:
        import streamlit as st

        from contrastive_lab import embedding_map

        st.json(embedding_map.settings("umap"))

    app = AppTest.from_function(page).run()
    for wrong, right in ((-1, 7), (10_001, 0), (1.5, 10_000)):
        field(app, "Seed").set_value(wrong)
        press(app, "Draw this map")
        assert app.error[0].value.startswith("Seed must")
        field(app, "Seed").set_value(right)
        press(app, "Draw this map")
        assert not app.error
        assert f'"seed":{right},' in app.json[0].value.replace(" ", "")


def test_a_model_is_imported_at_the_size_that_stands_there(monkeypatch: pytest.MonkeyPatch) -> None:
    imported: list[list[str]] = []
    report = {"encoder": "timm:resnet18", "matched": 1, "missing": [], "unlike": []}
    monkeypatch.setattr(import_form, "preview_import", lambda *a: report)
    monkeypatch.setattr(import_form, "preview", lambda report: None)
    monkeypatch.setattr(import_form, "begin", lambda name, words: imported.append(words))
    app = opened("runs", monkeypatch, view="import", source="model")
    next(t for t in app.text_input if t.label == "Model").input("timm:resnet18").run()
    label = "Image size in pixels (0: its own)"
    for number, (wrong, right) in enumerate(((-1, 32), (4096, 64), (0.5, 224)), 1):
        field(app, label).set_value(wrong).run()
        button = next(b for b in app.button if b.label == "Import")
        assert button.disabled
        assert button.help.startswith("Image size in pixels")
        field(app, label).set_value(right).run()
        press(app, "Import")
        assert imported[-1][:3] == ["timm:resnet18", "--pixels", str(right)]
        assert len(imported) == number


def test_the_command_line_for_many_machines_says_what_it_cannot_be_for() -> None:
    def page() -> None:
        from contrastive_core.records import runs
        from contrastive_lab.runs import detail

        detail.again(runs.load("simclr-digits"))

    app = AppTest.from_function(page).run()
    for wrong, right in ((0, 2), (257, 256), (1.5, 3)):
        field(app, "Machines").set_value(wrong).run()
        assert app.error[0].value.startswith("Machines must")
        field(app, "Machines").set_value(right).run()
        assert not app.error
        assert f"--nnodes={right}" in app.code[1].value.replace("--nnodes ", "--nnodes=")
