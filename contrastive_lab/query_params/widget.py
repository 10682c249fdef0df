"""A widget as it is drawn: with its value, and in the session's language."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from contrastive_lab import locale
from contrastive_lab.locale import _
from contrastive_lab.query_params.session import entry, page_values

__all__ = ["draw"]


def draw(
    widget: Callable[..., Any],
    *arguments: Any,
    key: str,
    start: dict[str, Any],
    then: Callable[[], object] | None,
    **more: Any,
) -> Any:
    """The widget with its value: the one it starts from, or, where the browser has it already and
    may show another, that of the session (Streamlit allows no start beside it). With another page
    Streamlit forgets a widget of the sidebar, the browser does not."""
    (value,) = start.values()
    if "index" in start and value is not None:
        value = arguments[1][value]
    drawn = _drawn_key(widget, key)
    sent: set[str] = entry()["sent"]
    is_there = drawn in st.session_state or drawn in sent
    if is_there and st.session_state.get(drawn) != value:
        st.session_state[drawn], start = value, {}
    sent.add(drawn)
    if len(arguments) == 2:  # label and options
        more = _translated(widget, arguments[1], more)
    about = (key, then, drawn)
    arguments = (locale.text(arguments[0]), *arguments[1:])
    more |= {name: locale.text(more[name]) for name in ("help", "placeholder") if more.get(name)}
    return widget(*arguments, key=drawn, on_change=_changed, args=about, **start, **more)


def _drawn_key(widget: Callable[..., Any], key: str) -> str:
    """The key by which Streamlit knows a widget. What is chosen in a list stands in the browser as
    a text, which would stay in the old language: in another it is another widget."""
    in_list = widget.__name__ in ("selectbox", "multiselect") and locale.language() != "en"
    return f"{key}-{locale.language()}" if in_list else key


def _translated(widget: Callable[..., Any], options: Sequence[Any], more: dict[str, Any]) -> dict[str, Any]:
    """The widget's arguments with the options' texts in the session's language: the browser reports
    a text back, so that two may not become the same."""
    if locale.language() == "en":
        return more
    text = more.get("format_func", str)
    shown = {option: locale.text(text(option)) for option in options}  # of this session, wherever it is asked for
    if widget.__name__ in ("selectbox", "multiselect"):
        more = {"placeholder": _("Choose an option"), **more}  # Streamlit has no Chinese of its own
    return more if len({*shown.values()}) < len(options) else {**more, "format_func": lambda o: shown.get(o, str(o))}


def _changed(key: str, then: Callable[[], object] | None, drawn: str = "") -> None:
    page_values()[key] = st.session_state[drawn or key]
    if then is not None:
        then()
