"""Choices that stand in the page's address: one way for every widget of the app.

    view = query_params.one_of(st.segmented_control, "View", VIEWS, name="view")

The widget always gets a key: without one, a `default` that follows its last value makes it another
widget for Streamlit, which drops the next choice. What a person
chose is kept for the session, so that a page shows again what it showed last; an address that names
more than the run stands for itself. Nothing in an address is trusted: a value that is not among the
options gives the default.

`arrive` is called before a page is drawn and `write` after it (app.py). In one run the address is
written once, with what was drawn: parameters of widgets that are gone leave it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from contrastive_lab import words
from contrastive_lab.number_field import number_field

__all__ = [
    "Address",
    "arrive",
    "ask",
    "begin",
    "choose",
    "chosen",
    "current",
    "is_wrong",
    "keep",
    "kept_value",
    "many_of",
    "number",
    "one_of",
    "optional_number",
    "requested",
    "switch",
    "take",
    "text",
    "write",
]

T = TypeVar("T")
SHARED = {"run", "lang"}  # parameters of all pages
LONGEST = 1000  # characters of a text
SESSION = "address"  # the one entry of the session


# --- a page comes, a page goes ----------------------------------------------------------------


def arrive(page: str) -> None:
    """A run of the app begins on this page; coming to a page, its address is read."""
    session, context = _session(), get_script_run_ctx()
    session["wrong"] = {key: False for key in session["wrong"] if key in st.session_state}
    back = context is not None and context.is_history_navigation
    if page == session["page"] and not back:
        session["shown"] = {}
        return
    parameters = st.query_params.to_dict()
    if back or set(parameters) - SHARED:  # else one comes through the menu: what was shown last
        session["values"][page] = {}
    session.update(page=page, asked=parameters, shown={}, names=set(), back=back)


def write() -> None:
    """The address says what was drawn; not after "Back", which must leave the history alone."""
    session = _session()
    if session["back"]:
        session["back"] = False
        return
    now = st.query_params.to_dict()
    others = {name: text for name, text in now.items() if name not in session["names"]}
    if (target := {**others, **session["shown"]}) != now:
        st.query_params.from_dict(target)


# --- widgets ----------------------------------------------------------------------------------


def one_of(
    widget: Callable[..., Any], label: str, options: Iterable[T], *, name: str,
    default: T | None = None, optional: bool = False, key: str = "",
    text: Callable[[T], str] = str, on_change: Callable[[], object] | None = None, **more: Any,
) -> T:  # fmt: skip
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

    key = key or _key(name)
    value = _value(name, key, fallback, lambda word: {text(o): o for o in choices}[word], is_valid)
    if widget.__name__ in ("selectbox", "radio"):
        start: dict[str, Any] = {"index": None if value is None else choices.index(value)}
    else:
        start = {"value" if widget.__name__ == "select_slider" else "default": value}
    picked = _draw(widget, label, choices, key=key, start=start, then=on_change, **more)
    _show(name, None if picked is None else text(picked))
    return picked  # type: ignore[no-any-return]


def many_of(
    widget: Callable[..., Any], label: str, options: Iterable[str], *, name: str,
    default: Sequence[str] = (), key: str = "", most: int | None = None,
    on_change: Callable[[], object] | None = None, **more: Any,
) -> list[str]:  # fmt: skip
    """Some of the options (at most `most`), by a multiselect or pills; by commas in the address."""
    choices, key = list(options), key or _key(name)
    if most is not None:
        more["max_selections"] = most

    def read(words: str) -> list[str]:
        parts = [p.replace("%2C", ",").replace("%25", "%") for p in words.split(",")]
        return [p for p in dict.fromkeys(parts) if p in choices][:most]

    values = _values()
    if key in values:  # options can go
        values[key] = [v for v in values[key] if v in choices]
    value = _value(name, key, list(default), read, lambda value: isinstance(value, list))
    start = {"default": value}
    picked = _draw(widget, label, choices, key=key, start=start, then=on_change, **more)
    _show(name, ",".join(p.replace("%", "%25").replace(",", "%2C") for p in picked) or None)
    return list(picked)


def number(
    widget: Callable[..., Any], label: str, low: float, high: float, *, name: str, default: float,
    key: str = "", on_change: Callable[[], object] | None = None, **more: Any,
) -> Any:  # fmt: skip
    """A number between low and high, of the default's type, by a slider or by a number input: while
    another one stands in that, the last good one, with an error beside it."""
    kind, key = type(default), key or _key(name)

    def read(word: str) -> float:
        value = float(word)
        if value != value:
            raise ValueError("not a number")
        return kind(min(high, max(low, value)))

    def is_valid(value: Any) -> bool:
        return isinstance(value, (int, float)) and low <= value <= high

    value = _value(name, key, kind(min(high, max(low, default))), read, is_valid)
    if widget.__name__ == "number_input":
        return _entered(widget, label, (kind(low), kind(high)), value, name, key, on_change, **more)
    start = {"value": value}
    picked = _draw(widget, label, low, high, key=key, start=start, then=on_change, **more)
    _show(name, picked)
    return picked


def optional_number(
    widget: Callable[..., Any], label: str, low: float, high: float, *, name: str, **more: Any
) -> Any:
    """A number of the kind of `low` between low and high, or None where the field is empty."""
    kind, key = type(low), _key(name)

    def is_valid(value: Any) -> bool:
        return value is None or (isinstance(value, (int, float)) and low <= value <= high)

    value = _value(name, key, None, lambda word: kind(float(word)), is_valid)
    more["is_optional"] = True
    return _entered(widget, label, (low, high), value, name, key, None, **more)


def is_wrong() -> bool:
    """Whether a number input of this page holds what it cannot take: then nothing may start."""
    return any(_session()["wrong"].values())


def text(widget: Callable[..., Any], label: str, *, name: str, key: str = "", **more: Any) -> str:
    """What is written into a text input or text area; so many characters stand in the address."""
    key = key or _key(name)
    value = _value(name, key, "", lambda word: word[:LONGEST], lambda v: isinstance(v, str))
    picked = str(_draw(widget, label, key=key, start={"value": value}, then=None, **more) or "")
    _show(name, picked if len(picked) <= LONGEST else None)
    return picked


def switch(
    widget: Callable[..., Any], label: str, *, name: str, default: bool = False, key: str = "",
    on_change: Callable[[], object] | None = None, **more: Any,
) -> bool:  # fmt: skip
    """On or off, by a toggle or a checkbox; yes and no in the address."""
    key = key or _key(name)
    value = _value(name, key, default, {"yes": True, "no": False}.__getitem__,
                   lambda value: isinstance(value, bool))  # fmt: skip
    picked = _draw(widget, label, key=key, start={"value": value}, then=on_change, **more)
    _show(name, picked)
    return bool(picked)


def current(name: str, options: Iterable[str], default: str, key: str = "") -> str:
    """The option that `one_of` will give, for what stands above the widget."""
    value = _values().get(key or _key(name), requested(name))
    return str(value) if value in list(options) else default


# --- what is no widget ------------------------------------------------------------------------


def choose(key: str, value: Any) -> None:
    """Choose for the widget of this key, from the next time it is drawn. `key` is the widget's own,
    or `PAGE-NAME` where it was given none."""
    _values()[key] = value


def chosen(key: str) -> Any:
    """What was chosen with the widget of this key, for its `on_change`."""
    return _values()[key]


def requested(name: str) -> str | None:
    """What the address asked for when one came to the page, if no widget has taken it yet."""
    parameters: dict[str, str] = _session()["asked"]
    return parameters.get(name)


def take(name: str) -> str | None:
    """The same, once."""
    parameters: dict[str, str] = _session()["asked"]
    return parameters.pop(name, None)


def ask(parameters: dict[str, str]) -> None:
    """Ask for what the address leaves open, before the widgets are drawn."""
    session = _session()
    session["asked"] = {**parameters, **session["asked"]}


def begin(parameters: dict[str, str]) -> None:
    """The page begins anew, as if one had come to it by a link with these parameters."""
    session = _session()
    session["values"][session["page"]] = {}
    session["asked"] = dict(parameters)


def keep(**values: Any) -> None:
    """Put what no widget holds (a component reports it) into the address; None and "" are left
    out."""
    for name, value in values.items():
        _show(name, value)
        _values()[f"kept {name}"] = _session()["shown"].get(name)
        _session()["asked"].pop(name, None)


def kept_value(name: str) -> str | None:
    """What was kept under a name on this page, or what its address asks for."""
    return requested(name) or _values().get(f"kept {name}")


class Address:
    """Values of a page that no widget holds, checked one by one."""

    def __init__(self, page: str) -> None:
        self._page = page

    def text(self, name: str, default: str, allowed: Collection[str] | None = None) -> str:
        """A value, or the default if there is none or it is not among the known."""
        value = kept_value(name)
        return default if value is None or (allowed is not None and value not in allowed) else value

    def number(self, name: str, default: Any = None, low: float = 0, high: float = 1e9) -> Any:
        """A number, brought between low and high, or the default."""
        try:
            value = float(kept_value(name) or "")
        except ValueError:
            return default
        return default if value != value else min(high, max(low, value))

    def keep(self, **values: Any) -> None:
        keep(**values)


# --- the session ------------------------------------------------------------------------------


def _session() -> dict[str, Any]:
    """`page`: where one is; `asked`: of its address and not yet taken; `values`: by page and key,
    what was chosen; `shown`: the parameters drawn in this run; `names`: in this visit; `wrong`:
    number inputs that hold what they cannot take, and whether they were drawn in this run."""
    empty: dict[str, Any] = {"page": "", "back": False, "names": set()}
    empty |= {name: {} for name in ("asked", "values", "shown", "wrong")}
    session: dict[str, Any] = st.session_state.setdefault(SESSION, empty)
    return session


def _values() -> dict[str, Any]:
    session = _session()
    values: dict[str, Any] = session["values"].setdefault(session["page"], {})
    return values


def _key(name: str) -> str:
    return f"{_session()['page']}-{name}"


def _value(
    name: str, key: str, default: Any, read: Callable[[str], Any], is_valid: Callable[[Any], bool]
) -> Any:
    """What was chosen, else what the address asks for, else a default that may change with the
    page until somebody chooses."""
    values, word = _values(), _session()["asked"].pop(name, None)
    if key not in values and word is not None:
        with contextlib.suppress(KeyError, ValueError, OverflowError):
            values[key] = read(word)
    value = values.get(key, default)
    return value if is_valid(value) else default


def _draw(
    widget: Callable[..., Any], *arguments: Any, key: str, start: dict[str, Any],
    then: Callable[[], object] | None, **more: Any,
) -> Any:  # fmt: skip
    """The widget with its value: the one it starts from, or, where it stands on the page already
    and has another, that of the session (Streamlit sends this one once, and allows no start)."""
    (value,) = start.values()
    if "index" in start and value is not None:
        value = arguments[1][value]
    drawn = _drawn_key(widget, key)
    if drawn in st.session_state and st.session_state[drawn] != value:
        st.session_state[drawn], start = value, {}
    if len(arguments) == 2:  # label and options
        more = _translated(widget, arguments[1], more)
    about = (key, then, drawn)
    return widget(*arguments, key=drawn, on_change=_changed, args=about, **start, **more)


def _entered(
    widget: Callable[..., Any], label: str, bounds: tuple[Any, Any], value: Any, name: str,
    key: str, then: Callable[[], object] | None, **more: Any,
) -> Any:  # fmt: skip
    wrong, keep = _session()["wrong"], partial(_values().__setitem__, key)
    value = number_field(widget, label, bounds, value, key, wrong, keep, then, **more)
    _show(name, value)
    return value


def _drawn_key(widget: Callable[..., Any], key: str) -> str:
    """The key by which Streamlit knows a widget. What is chosen in a list stands in the browser as
    a text, which would stay in the old language: in another it is another widget."""
    in_list = widget.__name__ in ("selectbox", "multiselect") and words.language() != "en"
    return f"{key}-{words.language()}" if in_list else key


def _translated(
    widget: Callable[..., Any], options: Sequence[Any], more: dict[str, Any]
) -> dict[str, Any]:
    """The widget's arguments with the options' texts in the session's language: the browser reports
    a text back, so that two may not become the same."""
    text, language = more.get("format_func", str), words.language()
    if language == "en":
        return more

    def shown(option: Any) -> str:
        return words.translate(text(option), language)

    if widget.__name__ in ("selectbox", "multiselect"):
        more = {"placeholder": "Choose an option", **more}  # Streamlit has no Chinese of its own
    return more if len({*map(shown, options)}) < len(options) else {**more, "format_func": shown}


def _changed(key: str, then: Callable[[], object] | None, drawn: str = "") -> None:
    _values()[key] = st.session_state[drawn or key]
    if then is not None:
        then()


def _show(name: str, value: Any) -> None:
    if not name:
        return
    session, context = _session(), get_script_run_ctx()
    session["names"].add(name)
    session["shown"].pop(name, None)
    if value is not None and value != "":
        session["shown"][name] = _text(value)
    if context is not None and context.fragment_ids_this_run:  # nobody else will
        write()


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)
