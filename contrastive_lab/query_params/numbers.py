"""Numbers bound to the address, and the buttons that act on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from contrastive_lab.locale import _
from contrastive_lab.query_params.number_field import form_field, number_field
from contrastive_lab.query_params.session import entry, key_of, page_values, show, value_of
from contrastive_lab.query_params.widget import draw

__all__ = ["button", "form_number", "number", "optional_number", "wrong_number"]


def number(
    widget: Callable[..., Any],
    label: str,
    low: float,
    high: float,
    *,
    name: str,
    default: float,
    key: str = "",
    on_change: Callable[[], object] | None = None,
    **more: Any,
) -> Any:
    """A number between low and high, of the default's type, by a slider or by a number input: while
    another one stands in that, the last good one, with an error beside it."""
    kind, key = type(default), key or key_of(name)

    def read(word: str) -> float:
        value = float(word)
        if value != value:
            raise ValueError(_("not a number"))
        return kind(min(high, max(low, value)))

    def is_valid(value: Any) -> bool:
        return isinstance(value, (int, float)) and low <= value <= high

    value = value_of(name, key, kind(min(high, max(low, default))), read, is_valid)
    if widget.__name__ == "number_input":
        return _entered(widget, label, (kind(low), kind(high)), value, name, key, on_change, **more)
    start = {"value": value}
    picked = draw(widget, label, low, high, key=key, start=start, then=on_change, **more)
    show(name, picked)
    return picked


def optional_number(
    widget: Callable[..., Any], label: str, low: float, high: float, *, name: str, key: str = "", **more: Any
) -> Any:
    """A number of the kind of `low` between low and high, or None where the field is empty."""
    kind, key = type(low), key or key_of(name)

    def is_valid(value: Any) -> bool:
        return value is None or (isinstance(value, (int, float)) and low <= value <= high)

    value = value_of(name, key, None, lambda word: kind(float(word)), is_valid)
    more["is_optional"] = True
    return _entered(widget, label, (low, high), value, name, key, None, **more)


def form_number(
    widget: Callable[..., Any], label: str, low: float, high: float, value: float, **more: Any
) -> tuple[Any, str]:
    """A number of an `st.form`, of the type of `low`, and what is wrong with it: "" for nothing.

    A form reports nothing before it is sent, so that its button cannot be off: what is wrong is
    said below the field once it was sent, and the caller does nothing.
    """
    return form_field(widget, label, (low, high), value, **more)


def wrong_number(*keys: str) -> str:
    """What is wrong with the number inputs of these keys, or with any of the page where none is
    named: while it is not "", nothing may start."""
    wrong: dict[str, str] = entry()["wrong"]
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
    """Whether a button is pressed that acts on number inputs drawn before it: while one of them
    holds what it cannot take, it is off and its help says why. A press that came together with the
    wrong number is none.

    Args: of: the keys of the number inputs, as `choose` takes them.
    """
    why = wrong_number(*of)
    is_off = disabled or bool(why)
    pressed = widget(label, disabled=is_off, help=why or help, **more)
    return bool(pressed) and not is_off


def _entered(
    widget: Callable[..., Any],
    label: str,
    bounds: tuple[Any, Any],
    value: Any,
    name: str,
    key: str,
    then: Callable[[], object] | None,
    **more: Any,
) -> Any:
    wrong, keep = entry()["wrong"], partial(page_values().__setitem__, key)
    value = number_field(widget, label, bounds, value, key, wrong, keep, then, **more)
    show(name, value)
    return value
