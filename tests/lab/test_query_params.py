"""Widgets and the address: where they start, that every choice counts, and that nothing in an
address is trusted."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from contrastive_lab import query_params


def script() -> None:
    import streamlit as st

    from contrastive_lab import number_inputs, query_params

    query_params.arrive("page")
    where = query_params.one_of(st.selectbox, "Where", ["here", "there", "away"], name="where")
    kind = query_params.one_of(st.segmented_control, "Kind", ["a", "b", "c"], name="kind")
    some = query_params.many_of(st.multiselect, "Some", ["p,q", "r", "50%"], name="some", default=["r"])
    count = number_inputs.number(st.number_input, "Count", 1, 9, name="count", default=3)
    size = number_inputs.number(st.number_input, "Size", 0.0, 1.0, name="size", default=0.5)
    ready = query_params.switch(st.toggle, "Ready", name="ready")
    query_params.write()
    st.json({"where": where, "kind": kind, "some": some, "count": count, "size": size, "ready": ready})


DEFAULT = {"where": "here", "kind": "a", "some": ["r"], "count": 3, "size": 0.5, "ready": False}
CHOICES: dict[str, list[tuple[Any, str]]] = {
    "where": [("there", "there"), ("away", "away"), ("here", "here")],
    "kind": [("b", "b"), ("c", "c"), ("a", "a")],
    "some": [(["r", "p,q"], "r,p%2Cq"), (["p,q", "50%"], "p%2Cq,50%25"), (["50%"], "50%25")],
    "count": [(4, "4"), (9, "9"), (1, "1")],
    "size": [(0.25, "0.25"), (1.0, "1"), (0.0, "0")],
    "ready": [(True, "yes"), (False, "no"), (True, "yes")],
}
BAD = {
    "where": ["nowhere", "", "0"],
    "kind": ["d", "a,b"],
    "count": ["many", "nan"],
    "size": ["low", "nan"],
    "ready": ["True", "1"],
}


def opened(**query: str) -> AppTest:
    app = AppTest.from_function(script)
    for name, text in query.items():
        app.query_params[name] = text
    app.run()
    assert not app.exception
    return app


def values(app: AppTest) -> dict[str, Any]:
    assert not app.exception
    found: dict[str, Any] = json.loads(app.json[0].value)
    return found


def address(app: AppTest) -> dict[str, str]:
    return {k: v[0] if isinstance(v, list) else v for k, v in app.query_params.items()}


def widget(app: AppTest, name: str) -> Any:
    kinds = {
        "where": app.selectbox,
        "kind": app.button_group,
        "some": app.multiselect,
        "count": app.number_input,
        "size": app.number_input,
        "ready": app.toggle,
    }
    return kinds[name](key=f"page-{name}")


def test_without_an_address_the_defaults_stand_and_are_written() -> None:
    app = opened()
    assert values(app) == DEFAULT
    assert address(app) == {"where": "here", "kind": "a", "some": "r", "count": "3", "size": "0.5", "ready": "no"}


@pytest.mark.parametrize("name", CHOICES)
def test_three_choices_in_a_row_count_and_nothing_else_moves(name: str) -> None:
    app = opened()
    for value, text in CHOICES[name]:
        widget(app, name).set_value(value).run()
        assert values(app) == {**DEFAULT, name: value}
        assert widget(app, name).value == value
        assert address(app)[name] == text
        app.run()  # whatever else the page is drawn again for
        assert values(app) == {**DEFAULT, name: value}


@pytest.mark.parametrize("name", CHOICES)
def test_an_address_is_where_a_page_starts_and_the_next_choices_count(name: str) -> None:
    (first, text), *others = CHOICES[name]
    app = opened(**{name: text})
    assert values(app) == {**DEFAULT, name: first}
    for value, text in others:
        widget(app, name).set_value(value).run()
        assert (values(app)[name], address(app)[name]) == (value, text)


@pytest.mark.parametrize(("name", "text"), [(n, t) for n, texts in BAD.items() for t in texts])
def test_what_an_address_cannot_mean_gives_what_can_be_chosen(name: str, text: str) -> None:
    app = opened(**{name: text})
    assert values(app) == DEFAULT
    assert address(app)[name] != text
    value, text = CHOICES[name][0]
    widget(app, name).set_value(value).run()
    assert values(app)[name] == value


def test_numbers_outside_come_to_the_nearest_end_and_unknown_options_are_left_out() -> None:
    app = opened(count="99", size="-4", some="r,unknown,r")
    assert values(app) == {**DEFAULT, "count": 9, "size": 0.0}
    assert address(app)["some"] == "r"
    assert values(opened(count="inf")) == {**DEFAULT, "count": 9}


def test_going_back_shows_what_the_address_says_and_leaves_it_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    app = opened()
    for name, choices in CHOICES.items():
        widget(app, name).set_value(choices[0][0]).run()
    went_back = SimpleNamespace(is_history_navigation=True, fragment_ids_this_run=None)
    with monkeypatch.context() as patch:
        patch.setattr(query_params, "get_script_run_ctx", lambda: went_back)
        app.query_params.clear()
        app.query_params["where"] = "away"
        app.query_params["count"] = "7"
        app.run()
    assert values(app) == {**DEFAULT, "where": "away", "count": 7}
    assert address(app) == {"where": "away", "count": "7"}
    widget(app, "kind").set_value("c").run()
    assert values(app) == {**DEFAULT, "where": "away", "count": 7, "kind": "c"}
