"""Widgets and the address: where they start, that every choice counts, and that nothing in an
address is trusted."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from contrastive_lab import query_params


def script() -> None:
    import streamlit as st

    from contrastive_lab import query_params

    query_params.share(["where", "kind", "some", "count", "size", "ready"])
    query_params.arrive(st.session_state.setdefault("page", "page"))
    if st.session_state["page"] == "page":
        where = query_params.one_of(st.selectbox, "Where", ["here", "there", "away"], name="where")
        kind = query_params.one_of(st.segmented_control, "Kind", ["a", "b", "c"], name="kind")
        some = query_params.many_of(st.multiselect, "Some", ["p,q", "r", "50%"], name="some", default=["r"])
        default = st.session_state.setdefault("count default", 3)
        count = query_params.number(st.number_input, "Count", 1, 9, name="count", default=default)
        size = query_params.number(st.number_input, "Size", 0.0, 1.0, name="size", default=0.5)
        ready = query_params.switch(st.toggle, "Ready", name="ready")
        own = query_params.text(st.text_input, "Own", name="own")
        chosen = {"where": where, "kind": kind, "some": some, "count": count, "size": size, "ready": ready, "own": own}
        st.json(chosen)
    query_params.write()


DEFAULT = {"where": "here", "kind": "a", "some": ["r"], "count": 3, "size": 0.5, "ready": False, "own": ""}
CHOICES: dict[str, list[tuple[Any, str]]] = {
    "where": [("there", "there"), ("away", "away"), ("here", "here")],
    "kind": [("b", "b"), ("c", "c"), ("a", "a")],
    "some": [(["r", "p,q"], "r,p%2Cq"), (["p,q", "50%"], "p%2Cq,50%25"), (["50%"], "50%25")],
    "count": [(4, "4"), (9, "9"), (1, "1")],
    "size": [(0.25, "0.25"), (1.0, "1"), (0.0, "0")],
    "ready": [(True, "yes"), (False, "no"), (True, "yes")],
    "own": [("one", ""), ("two", ""), ("three", "")],
}
BAD = {
    "where": ["nowhere", "", "0"],
    "kind": ["d", "a,b"],
    "count": ["many", "nan"],
    "size": ["low", "nan"],
    "ready": ["True", "1"],
}


def opened(**query: str) -> AppTest:
    app = AppTest.from_function(script, default_timeout=90)
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
        "own": app.text_input,
    }
    return kinds[name](key=f"page-{name}")


def test_without_an_address_the_defaults_stand_and_are_written() -> None:
    app = opened()
    assert values(app) == DEFAULT
    assert address(app) == {"where": "here", "kind": "a", "some": "r", "count": "3", "size": "0.5", "ready": "no"}


def test_three_choices_in_a_row_count_and_nothing_else_moves() -> None:
    for name, choices in CHOICES.items():
        app = opened()
        for value, text in choices:
            widget(app, name).set_value(value).run()
            assert values(app) == {**DEFAULT, name: value}
            assert widget(app, name).value == value
            assert address(app).get(name, "") == text
            app.run()  # whatever else the page is drawn again for
            assert values(app) == {**DEFAULT, name: value}


def test_an_address_is_where_a_page_starts_and_the_next_choices_count() -> None:
    for name, ((first, text), *others) in CHOICES.items():
        app = opened(**{name: text or first})
        assert values(app) == {**DEFAULT, name: first}
        for value, text in others:
            widget(app, name).set_value(value).run()
            assert (values(app)[name], address(app).get(name, "")) == (value, text)


def test_what_an_address_cannot_mean_gives_what_can_be_chosen() -> None:
    for name, text in [(name, text) for name, texts in BAD.items() for text in texts]:
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


def test_a_default_that_changes_is_followed_until_somebody_chooses() -> None:
    app = opened()
    for default, choice in ((5, None), (6, 2), (7, 4), (8, 9)):
        app.session_state["count default"] = default
        app.run()
        if choice is None:
            assert values(app)["count"] == default
            continue
        widget(app, "count").set_value(choice).run()
        assert values(app)["count"] == widget(app, "count").value == choice


def test_choices_outlast_a_visit_of_another_page() -> None:
    app = opened()
    chosen = {name: choices[0][0] for name, choices in CHOICES.items()}
    for name, value in chosen.items():
        widget(app, name).set_value(value).run()
    for page in ("other", "page"):
        app.session_state["page"] = page
        app.query_params.clear()  # as the menu does
        app.run()
    assert values(app) == chosen
    assert {name: widget(app, name).value for name in chosen} == chosen


def test_going_back_shows_what_the_address_says(monkeypatch: pytest.MonkeyPatch) -> None:
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
    before = {**DEFAULT, "where": "away", "count": 7, "own": "one"}  # what no address holds stays
    assert values(app) == before
    widget(app, "kind").set_value("c").run()
    assert values(app) == {**before, "kind": "c"}
