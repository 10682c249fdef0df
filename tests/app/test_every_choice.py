"""Every choice counts: with every widget of every page, three values one after the other stay chosen."""

from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest, element_tree

from contrastive_core.base.storage import ROOT

PAGES = {
    "explore": {"run": "simclr-digits"},
    "loss_lab": {"run": "simclr-digits", "on": "circle"},
    "train": {},
    "compare": {"runs": "simclr-digits,sup_con-digits,cpc-digits"},
    "samples": {"run": "simclr-digits", "split": "test"},
    "runs": {},
    "methods": {},
}
OF_THE_SIDEBAR = ("run-picker", "language-switch")  # tried on one page
KINDS = ("selectbox", "radio", "button_group", "checkbox", "toggle", "number_input", "slider")
LISTS = ("selectbox", "radio", "button_group")
CHOICES = 3


class Option(str):
    """An option by the text that it shows: the browser knows no other."""


def widgets_of(app: AppTest) -> dict[tuple[str, str], Any]:
    """The widgets with which something can be chosen, by kind and identity."""
    found = {(kind, w.key or w.label): w for kind in KINDS for w in app.get(kind) if not w.disabled}
    return {name: w for name, w in found.items() if name[0] != "button_group" or w._is_single_select}


def shown(kind: str, widget: Any) -> Any:
    """The value as the page shows it."""
    if kind == "button_group":
        return next(iter(widget.formatted_values), None)
    if kind in LISTS:
        return None if widget.index is None else widget.options[widget.index]
    return widget.value


def fresh_value(kind: str, widget: Any, past: list[Any]) -> Any:
    """A value that the widget takes and has not shown; None where there is none."""
    if kind in ("checkbox", "toggle"):
        return not widget.value
    if kind in LISTS:
        return next((Option(o) for o in widget.options if o not in past), None)
    step, value = widget.step or 1, widget.value or widget.min or 0
    low, high = (-np.inf if widget.min is None else widget.min), (np.inf if widget.max is None else widget.max)
    near = (value + k * step for k in (1, 2, 3, -1, -2, -3))
    return next((v for v in near if v not in past and low <= v <= high), None)


@pytest.fixture
def options_by_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a test choose an option by its text, whatever object stands behind it."""
    plain = element_tree._format_value_for_widget

    def format_value(format_func: Any, value: Any) -> str:
        return str(value) if isinstance(value, Option) else plain(format_func, value)

    monkeypatch.setattr(element_tree, "_format_value_for_widget", format_value)


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.usefixtures("options_by_text")
def test_every_choice_stays(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("contrastive_core.engine.process.spawn", lambda *a, **k: None)
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=90).run()
    for key, value in PAGES[page].items():
        app.query_params[key] = value
    app.switch_page(f"pages/{page}.py").run()
    assert not app.exception
    names = [n for n in widgets_of(app) if n[1] not in OF_THE_SIDEBAR or page == "explore"]
    counts = {name: choose_in_turn(app, name) for name in names}
    assert max(counts.values()) >= 2, counts


def choose_in_turn(app: AppTest, name: tuple[str, str]) -> int:
    """Choose up to three values with a widget; return how many were chosen."""
    past: list[Any] = []
    for turn in range(CHOICES):
        widget = widgets_of(app).get(name)
        if widget is None or widget.form_id:  # the last choice took it away; a form counts when it is sent
            return turn
        past.append(shown(name[0], widget))
        value = fresh_value(name[0], widget, past)
        if value is None:
            return turn
        widget.set_value(value).run()
        assert not app.exception, (name, value)
        after = widgets_of(app).get(name)
        assert after is None or shown(name[0], after) == value, (name, value)
    return CHOICES
