"""Widgets of choices and texts, bound to the address."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from contrastive_lab.query_params.address import requested
from contrastive_lab.query_params.session import key_of, page_values, show, value_of
from contrastive_lab.query_params.widget import draw

__all__ = ["current", "many_of", "one_of", "switch", "text"]

T = TypeVar("T")
LONGEST = 1000  # characters of a text


def one_of(
    widget: Callable[..., Any],
    label: str,
    options: Iterable[T],
    *,
    name: str,
    default: T | None = None,
    optional: bool = False,
    key: str = "",
    text: Callable[[T], str] = str,
    on_change: Callable[[], object] | None = None,
    **more: Any,
) -> T:
    """One of some options, by a selectbox, radio, segmented control, pills or select slider.

    Args: widget: `st.selectbox`, or that of a container; name: the address's parameter ("": it has
    none); default: the first option, or none where `optional`; key: of the widget, if its choice
    belongs to something besides the page; text: how an option stands in the address.
    """
    choices = list(options)
    fallback = default if optional or default in choices else choices[0]
    if not optional and widget.__name__ in ("segmented_control", "pills"):
        more["required"] = True  # a second click on the choice is no choice

    def is_valid(value: Any) -> bool:
        return value in choices or (optional and value is None)

    key = key or key_of(name)
    value = value_of(name, key, fallback, lambda word: {text(o): o for o in choices}[word], is_valid)
    if widget.__name__ in ("selectbox", "radio"):
        start: dict[str, Any] = {"index": None if value is None else choices.index(value)}
    else:
        start = {"value" if widget.__name__ == "select_slider" else "default": value}
    picked = draw(widget, label, choices, key=key, start=start, then=on_change, **more)
    show(name, None if picked is None else text(picked))
    return picked  # type: ignore[no-any-return]


def many_of(
    widget: Callable[..., Any],
    label: str,
    options: Iterable[str],
    *,
    name: str,
    default: Sequence[str] = (),
    key: str = "",
    most: int | None = None,
    on_change: Callable[[], object] | None = None,
    **more: Any,
) -> list[str]:
    """Some of the options (at most `most`), by a multiselect or pills; by commas in the address."""
    choices, key = list(options), key or key_of(name)
    if most is not None:
        more["max_selections"] = most

    def read(words: str) -> list[str]:
        parts = [p.replace("%2C", ",").replace("%25", "%") for p in words.split(",")]
        return [p for p in dict.fromkeys(parts) if p in choices][:most]

    values = page_values()
    if key in values:  # options can go
        values[key] = [v for v in values[key] if v in choices]
    value = value_of(name, key, list(default), read, lambda value: isinstance(value, list))
    start = {"default": value}
    picked = draw(widget, label, choices, key=key, start=start, then=on_change, **more)
    show(name, ",".join(p.replace("%", "%25").replace(",", "%2C") for p in picked) or None)
    return list(picked)


def text(widget: Callable[..., Any], label: str, *, name: str, key: str = "", **more: Any) -> str:
    """What is written into a text input or text area; so many characters stand in the address."""
    key = key or key_of(name)
    value = value_of(name, key, "", lambda word: word[:LONGEST], lambda v: isinstance(v, str))
    picked = str(draw(widget, label, key=key, start={"value": value}, then=None, **more) or "")
    show(name, picked if len(picked) <= LONGEST else None)
    return picked


def switch(
    widget: Callable[..., Any],
    label: str,
    *,
    name: str,
    default: bool = False,
    key: str = "",
    on_change: Callable[[], object] | None = None,
    **more: Any,
) -> bool:
    """On or off, by a toggle or a checkbox; yes and no in the address."""
    key = key or key_of(name)
    value = value_of(name, key, default, {"yes": True, "no": False}.__getitem__, lambda value: isinstance(value, bool))
    picked = draw(widget, label, key=key, start={"value": value}, then=on_change, **more)
    show(name, picked)
    return bool(picked)


def current(name: str, options: Iterable[str], default: str, key: str = "") -> str:
    """The option that `one_of` will give, for what stands above the widget."""
    value = page_values().get(key or key_of(name), requested(name))
    return str(value) if value in list(options) else default
