"""A number input whose number is the one that counts, or that says what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from contrastive_lab import locale
from contrastive_lab.locale import _

__all__ = ["form_field", "number_field"]


def number_field(
    widget: Callable[..., Any],
    label: str,
    bounds: tuple[Any, Any],
    value: Any,
    key: str,
    wrong: dict[str, str],
    keep: Callable[[Any], object],
    then: Callable[[], object] | None = None,
    is_optional: bool = False,
    **more: Any,
) -> Any:
    """The number, of the bounds' type; None for an empty field. While the field holds what it
    cannot take, an error stands below it, `wrong[key]` says the same, and the number is the last
    good.

    Streamlit's own bounds are not used, nor its whole numbers: its browser part keeps what does not
    meet them to itself, and the page would go on with another number than stands in the box.

    Args: value: what was typed in last or is to start with; keep: what to do with a good one.
    """
    why = _why(label, st.session_state.get(key), bounds) if key in wrong else ""
    if why:
        wrong[key] = why
    elif wrong.pop(key, None) is not None and st.session_state.get(key) is not None:
        value = type(bounds[0])(st.session_state[key])  # the bounds have moved
        keep(value)
    start: dict[str, Any] = {"value": value if value is None else float(value)}
    if key in st.session_state:
        if not why and st.session_state[key] != value:
            st.session_state[key], start = start["value"], {}
        start = {"value": None} if is_optional else start
    more = _as_typed(bounds, more)
    about = (key, label, bounds, wrong, keep, then)
    widget(locale.text(label), key=key, on_change=_typed, args=about, **start, **more)
    if why:
        widget.__self__.error(why)  # type: ignore[attr-defined]
    return value


def form_field(
    widget: Callable[..., Any], label: str, bounds: tuple[Any, Any], value: float, **more: Any
) -> tuple[Any, str]:
    """A number input of an `st.form`: the number, of the bounds' type, and what is wrong with it,
    which stands below the field as well; "" for nothing."""
    typed = widget(locale.text(label), value=float(value), **_as_typed(bounds, more))
    why = _why(label, typed, bounds)
    if why:
        widget.__self__.error(why)  # type: ignore[attr-defined]
        return value, why
    return type(bounds[0])(typed), ""


def _as_typed(bounds: tuple[Any, Any], more: dict[str, Any]) -> dict[str, Any]:
    """The widget's arguments with which it takes whatever is typed, whole numbers too."""
    if not isinstance(bounds[0], int):
        return more
    return {"format": "%.10g", **more, "step": float(more.get("step", 1))}


def _typed(
    key: str,
    label: str,
    bounds: tuple[Any, Any],
    wrong: dict[str, str],
    keep: Callable[[Any], object],
    then: Callable[[], object] | None,
) -> None:
    """A good number is kept; what is wrong stays in its field."""
    value = st.session_state[key]
    if why := _why(label, value, bounds):
        wrong[key] = why
        return
    wrong.pop(key, None)
    keep(None if value is None else type(bounds[0])(value))
    if then is not None:
        then()


def _why(label: str, value: Any, bounds: tuple[Any, Any]) -> str:
    """What is wrong with a number; "" for nothing, and for an empty field."""
    low, high = (f"{end:,}" if isinstance(end, int) else f"{end:g}" for end in bounds)
    if value is not None and not bounds[0] <= value <= bounds[1]:
        return _("{label} must lie between {low} and {high}.").format(label=locale.text(label), low=low, high=high)
    if value is not None and isinstance(bounds[0], int) and value != int(value):
        return _("{label} must be a whole number.").format(label=locale.text(label))
    return ""
