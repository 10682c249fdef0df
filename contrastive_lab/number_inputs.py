"""Number inputs that say what is wrong with a number, and the buttons that act on them.

Streamlit's own bounds are not used, nor its whole numbers: its browser part keeps what does not meet them to itself,
and the page would go on with another number than stands in the box.
"""

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from contrastive_lab import locale, query_params
from contrastive_lab.locale import _

Bounds = tuple[Any, Any]  # the least and the largest number, both whole or both not


def number(
    widget: Callable[..., Any],
    label: str,
    low: float,
    high: float,
    *,
    name: str,
    default: float | None,
    key: str = "",
    **more: Any,
) -> Any:
    """A number between low and high, by a number input; None for an empty field, where `default` is
    None. While the field holds what it cannot take, an error stands below it, `wrong_number` says
    the same, and the number is the last good one. `name` and `key` as in `query_params.one_of`.
    """
    kind, key = type(low if default is None else default), key or query_params.key_of(name)
    bounds, wrong = (kind(low), kind(high)), query_params.current_session().wrong
    value, why = _last_good(name, key, default, bounds), ""
    if key in wrong:
        typed = st.session_state.get(key)
        why = wrong[key] = _why(label, typed, bounds)
        if not why:  # the bounds have moved
            del wrong[key]
            if typed is not None:
                value = kind(typed)
                query_params.choose(key, value)
    arguments = _as_typed(bounds[0], more) | _start(key, value, default, is_wrong=bool(why))
    widget(locale.text(label), key=key, on_change=_typed, args=(key, label, bounds), **arguments)
    if why:
        widget.__self__.error(why)  # type: ignore[attr-defined]
    query_params.show(name, value)
    return value


def _last_good(name: str, key: str, default: float | None, bounds: Bounds) -> Any:
    """What was typed last, else what the address asks for, else the default."""
    low, high = bounds

    def clipped(value: float) -> Any:
        return type(low)(min(high, max(low, value)))

    def read(word: str) -> Any:
        value = float(word)
        if value != value:
            raise ValueError(_("not a number"))
        return type(low)(value) if default is None else clipped(value)

    def is_valid(value: Any) -> bool:
        return default is None if value is None else isinstance(value, (int, float)) and low <= value <= high

    return query_params.value_of(name, key, None if default is None else clipped(default), read, is_valid)


def _start(key: str, value: Any, default: float | None, is_wrong: bool) -> dict[str, float | None]:
    """The argument by which the widget begins with a number; where it is there already, its state takes the number."""
    number = None if value is None else float(value)
    if key not in st.session_state:
        return {"value": number}
    is_set = not is_wrong and st.session_state[key] != value
    if is_set:
        st.session_state[key] = number
    if default is None:
        return {"value": None}
    return {} if is_set else {"value": number}


def form_number(
    widget: Callable[..., Any], label: str, low: float, high: float, value: float, **more: Any
) -> tuple[Any, str]:
    """A number of an `st.form`, of the type of `low`, and what is wrong with it: "" for nothing.

    A form reports nothing before it is sent, so that its button cannot be off: what is wrong is
    said below the field once it was sent, and the caller does nothing.
    """
    typed = widget(locale.text(label), value=float(value), **_as_typed(low, more))
    if why := _why(label, typed, (low, high)):
        widget.__self__.error(why)  # type: ignore[attr-defined]
        return value, why
    return type(low)(typed), ""


def wrong_number(*keys: str) -> str:
    """What is wrong with the number inputs of these keys, or with any of the page where none is
    named: while it is not "", nothing may start."""
    wrong = query_params.current_session().wrong
    return next(filter(None, (wrong.get(key, "") for key in keys or wrong)), "")


def button(
    widget: Callable[..., Any],
    label: str,
    *,
    of: Sequence[str],
    disabled: bool = False,
    help: str | None = None,
    **more: Any,
) -> bool:
    """Whether a button is pressed that acts on number inputs drawn before it: while one of them holds what it cannot
    take, it is off and its help says why. A press that came together with the wrong number is none.

    Args: of: the keys of the number inputs, as `choose` takes them.
    """
    why = wrong_number(*of)
    is_off = disabled or bool(why)
    return bool(widget(label, disabled=is_off, help=why or help, **more)) and not is_off


def _as_typed(low: float, more: dict[str, Any]) -> dict[str, Any]:
    """The widget's arguments with which it takes whatever is typed, whole numbers too."""
    if not isinstance(low, int):
        return more
    return {"format": "%.10g", **more, "step": float(more.get("step", 1))}


def _typed(key: str, label: str, bounds: Bounds) -> None:
    """A good number is kept; what is wrong stays in its field."""
    value, wrong = st.session_state[key], query_params.current_session().wrong
    if why := _why(label, value, bounds):
        wrong[key] = why
        return
    wrong.pop(key, None)
    query_params.choose(key, None if value is None else type(bounds[0])(value))


def _why(label: str, value: Any, bounds: Bounds) -> str:
    """What is wrong with a number; "" for nothing, and for an empty field."""
    if value is None:
        return ""
    if not bounds[0] <= value <= bounds[1]:
        low, high = (f"{end:,}" if isinstance(end, int) else f"{end:g}" for end in bounds)
        return _("{label} must lie between {low} and {high}.").format(label=locale.text(label), low=low, high=high)
    if isinstance(bounds[0], int) and value != int(value):
        return _("{label} must be a whole number.").format(label=locale.text(label))
    return ""
