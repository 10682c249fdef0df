"""Choices that stand in the page's address: one way for every widget of the app.

    view = query_params.one_of(st.segmented_control, "View", VIEWS, name="view")

The widget always gets a key: without one, a `default` that follows its last value makes it another widget for
Streamlit, which drops the next choice. What a person chose is kept for the session, so that a page shows again what it
showed last; an address that names more than the run stands for itself. Nothing in an address is trusted: a value that
is not among the options gives the default.

`arrive` is called before a page is drawn and `write` after it (app.py). In one run the address is written once, with
what was drawn: parameters of widgets that are gone leave it.

Streamlit's own `bind="query-params"` (1.67) writes an option as it is shown, so that a link would depend on the
language; it names a parameter by the widget's key, which pages would share.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from contrastive_lab import locale
from contrastive_lab.locale import _

T = TypeVar("T")
Then = Callable[[], object] | None  # what to do after a change
SHARED = {"run", "lang"}  # parameters of all pages
SESSION = "address"  # the one entry of the session
LONGEST = 1000  # characters of a text
LISTS = ("selectbox", "multiselect")
STARTS = {"selectbox": "index", "radio": "index"} | dict.fromkeys(
    ("segmented_control", "pills", "multiselect"), "default"
)


@dataclass
class _Session:
    page: str = ""  # where one is
    is_back: bool = False  # one came here by "Back"
    asked: dict[str, str] = field(default_factory=dict)  # of the page's address, not yet taken
    values: dict[str, dict[str, Any]] = field(default_factory=dict)  # what was chosen, by page and key
    shown: dict[str, str] = field(default_factory=dict)  # the parameters drawn in this run
    names: set[str] = field(default_factory=set)  # of the parameters drawn in this visit
    wrong: dict[str, str] = field(default_factory=dict)  # what is wrong with number inputs; "" until drawn in this run
    sent: set[str] = field(default_factory=set)  # keys of widgets that the browser was sent


def _session() -> _Session:
    session: _Session = st.session_state.setdefault(SESSION, _Session())
    return session


def _page_values() -> dict[str, Any]:
    session = _session()
    return session.values.setdefault(session.page, {})


def _key_of(name: str) -> str:
    return f"{_session().page}-{name}"


# --- the address ---------------------------------------------------------------------------------


def arrive(page: str) -> None:
    """A run of the app begins on this page; coming to a page, its address is read."""
    session, context = _session(), get_script_run_ctx()
    session.wrong = {key: "" for key in session.wrong if key in st.session_state}
    session.shown = {}
    is_back = context is not None and context.is_history_navigation
    if page == session.page and not is_back:
        return
    session.page, session.is_back, session.names = page, is_back, set()
    session.asked = st.query_params.to_dict()
    if is_back or set(session.asked) - SHARED:  # else one comes through the menu: what was shown last
        session.values[page] = {}


def write() -> None:
    """The address says what was drawn; not after "Back", which must leave the history alone."""
    session = _session()
    if session.is_back:
        session.is_back = False
        return
    now = st.query_params.to_dict()
    others = {name: text for name, text in now.items() if name not in session.names}
    if (target := {**others, **session.shown}) != now:
        st.query_params.from_dict(target)


def _show(name: str, value: Any) -> None:
    if not name:
        return
    session, context = _session(), get_script_run_ctx()
    session.names.add(name)
    session.shown.pop(name, None)
    if isinstance(value, bool):
        session.shown[name] = "yes" if value else "no"
    elif value is not None and value != "":
        session.shown[name] = f"{value:g}" if isinstance(value, float) else str(value)
    if context is not None and context.fragment_ids_this_run:  # nobody else will
        write()


def choose(key: str, value: Any) -> None:
    """Choose for the widget of this key, from the next time it is drawn. `key` is the widget's own,
    or `PAGE-NAME` where it was given none."""
    _page_values()[key] = value


def chosen(key: str) -> Any:
    """What was chosen with the widget of this key, for its `on_change`."""
    return _page_values()[key]


def requested(name: str) -> str | None:
    """What the address asked for when one came to the page, if no widget has taken it yet."""
    return _session().asked.get(name)


def take(name: str) -> str | None:
    """The same, once."""
    return _session().asked.pop(name, None)


def ask(parameters: dict[str, str]) -> None:
    """Ask for what the address leaves open, before the widgets are drawn."""
    session = _session()
    session.asked = {**parameters, **session.asked}


def begin(parameters: dict[str, str]) -> None:
    """The page begins anew, as if one had come to it by a link with these parameters."""
    session = _session()
    session.values[session.page] = {}
    session.asked = dict(parameters)


def keep(**values: Any) -> None:
    """Put what no widget holds (a component reports it) into the address; None and "" are left out."""
    for name, value in values.items():
        _show(name, value)
        _page_values()[f"kept {name}"] = _session().shown.get(name)
        take(name)


def kept_value(name: str) -> str | None:
    """What was kept under a name on this page, or what its address asks for."""
    return requested(name) or _page_values().get(f"kept {name}")


def kept_number(name: str, default: Any = None, low: float = 0, high: float = 1e9) -> Any:
    """The same as a number, brought between low and high; or the default."""
    try:
        value = float(kept_value(name) or "")
    except ValueError:
        return default
    return default if value != value else min(high, max(low, value))


# --- choices and texts ---------------------------------------------------------------------------


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
    **more: Any,
) -> T:
    """One of some options, by a selectbox, radio, segmented control, pills or select slider.

    Args: widget: `st.selectbox`, or that of a container; name: the address's parameter ("": it has
    none); default: the first option, or none where `optional`; key: of the widget, if its choice
    belongs to something besides the page; text: how an option stands in the address.
    """
    choices, key = list(options), key or _key_of(name)
    fallback = default if optional or default in choices else choices[0]
    if not optional and widget.__name__ in ("segmented_control", "pills"):
        more["required"] = True  # a second click on the choice is no choice

    def is_valid(value: Any) -> bool:
        return value in choices or (optional and value is None)

    value = _value_of(name, key, fallback, lambda word: {text(o): o for o in choices}[word], is_valid)
    picked = _draw(widget, label, choices, key=key, value=value, **more)
    _show(name, None if picked is None else text(picked))
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
    **more: Any,
) -> list[str]:
    """Some of the options (at most `most`), by a multiselect or pills; by commas in the address."""
    choices, key = list(options), key or _key_of(name)
    if most is not None:
        more["max_selections"] = most

    def read(words: str) -> list[str]:
        parts = [p.replace("%2C", ",").replace("%25", "%") for p in words.split(",")]
        return [p for p in dict.fromkeys(parts) if p in choices][:most]

    values = _page_values()
    if key in values:  # options can go
        values[key] = [v for v in values[key] if v in choices]
    value = _value_of(name, key, list(default), read, lambda value: isinstance(value, list))
    picked = list(_draw(widget, label, choices, key=key, value=value, **more))
    _show(name, ",".join(p.replace("%", "%25").replace(",", "%2C") for p in picked))
    return picked


def text(widget: Callable[..., Any], label: str, *, name: str, key: str = "", **more: Any) -> str:
    """What is written into a text input or text area; so many characters stand in the address."""
    key = key or _key_of(name)
    value = _value_of(name, key, "", lambda word: word[:LONGEST], lambda v: isinstance(v, str))
    picked = str(_draw(widget, label, key=key, value=value, **more) or "")
    _show(name, picked if len(picked) <= LONGEST else None)
    return picked


def switch(
    widget: Callable[..., Any], label: str, *, name: str, default: bool = False, key: str = "", **more: Any
) -> bool:
    """On or off, by a toggle or a checkbox; yes and no in the address."""
    key = key or _key_of(name)
    value = _value_of(name, key, default, {"yes": True, "no": False}.__getitem__, lambda v: isinstance(v, bool))
    picked = bool(_draw(widget, label, key=key, value=value, **more))
    _show(name, picked)
    return picked


def current(name: str, options: Iterable[str], default: str, key: str = "") -> str:
    """The option that `one_of` will give, for what stands above the widget."""
    value = _page_values().get(key or _key_of(name), requested(name))
    return str(value) if value in list(options) else default


def _value_of(name: str, key: str, default: Any, read: Callable[[str], Any], is_valid: Callable[[Any], bool]) -> Any:
    """What was chosen, else what the address asks for, else a default that may change with the
    page until somebody chooses."""
    values, word = _page_values(), take(name)
    if key not in values and word is not None:
        with contextlib.suppress(KeyError, ValueError, OverflowError):
            values[key] = read(word)
    value = values.get(key, default)
    return value if is_valid(value) else default


def _draw(
    widget: Callable[..., Any],
    label: str,
    options: Sequence[Any] | None = None,
    *,
    key: str,
    value: Any,
    on_change: Then = None,
    **more: Any,
) -> Any:
    """The widget with its value, in the session's language: the value that it starts from, or, where
    the browser has it already and may show another, that of the session (Streamlit allows no start
    beside it). With another page Streamlit forgets a widget of the sidebar, the browser does not."""
    kind, session = widget.__name__, _session()
    # What is chosen in a list stands in the browser as a text, which would stay in the old language.
    drawn = f"{key}-{locale.language()}" if kind in LISTS and locale.language() != "en" else key
    if (drawn in st.session_state or drawn in session.sent) and st.session_state.get(drawn) != value:
        st.session_state[drawn] = value
    elif options is not None and STARTS.get(kind) == "index":
        more["index"] = None if value is None else options.index(value)
    else:
        more[STARTS.get(kind, "value")] = value
    session.sent.add(drawn)
    if options is not None and locale.language() != "en":
        more = _translated(kind, options, more)
    more |= {name: locale.text(more[name]) for name in ("help", "placeholder") if more.get(name)}
    arguments = [locale.text(label)] if options is None else [locale.text(label), options]
    return widget(*arguments, key=drawn, on_change=_changed, args=(key, on_change, drawn), **more)


def _translated(kind: str, options: Sequence[Any], more: dict[str, Any]) -> dict[str, Any]:
    """The widget's arguments with the options' texts in the session's language: the browser reports
    a text back, so that two may not become the same."""
    text = more.get("format_func", str)
    shown = {option: locale.text(text(option)) for option in options}  # of this session, wherever it is asked for
    if kind in LISTS:
        more = {"placeholder": _("Choose an option"), **more}  # Streamlit has no Chinese of its own
    return more if len({*shown.values()}) < len(options) else {**more, "format_func": lambda o: shown.get(o, str(o))}


def _changed(key: str, then: Then, drawn: str) -> None:
    _page_values()[key] = st.session_state[drawn]
    if then is not None:
        then()


# --- numbers, and the buttons that act on them ---------------------------------------------------


def number(
    widget: Callable[..., Any],
    label: str,
    low: float,
    high: float,
    *,
    name: str,
    default: float | None,
    key: str = "",
    on_change: Then = None,
    **more: Any,
) -> Any:
    """A number between low and high, by a number input; None for an empty field, where `default` is
    None. While the field holds what it cannot take, an error stands below it, `wrong_number` says
    the same, and the number is the last good one.

    Streamlit's own bounds are not used, nor its whole numbers: its browser part keeps what does not
    meet them to itself, and the page would go on with another number than stands in the box.
    """
    kind, key = type(low if default is None else default), key or _key_of(name)
    bounds = kind(low), kind(high)

    def read(word: str) -> float:
        value = float(word)
        if value != value:
            raise ValueError(_("not a number"))
        return kind(value if default is None else min(high, max(low, value)))

    def is_valid(value: Any) -> bool:
        return default is None if value is None else isinstance(value, (int, float)) and low <= value <= high

    fallback = None if default is None else kind(min(high, max(low, default)))
    value = _value_of(name, key, fallback, read, is_valid)
    wrong, typed = _session().wrong, st.session_state.get(key)
    why = _why(label, typed, bounds) if key in wrong else ""
    if why:
        wrong[key] = why
    elif wrong.pop(key, None) is not None and typed is not None:
        value = _page_values()[key] = kind(typed)  # the bounds have moved
    start = {"value": None if value is None else float(value)}
    if key in st.session_state:
        if not why and typed != value:
            st.session_state[key], start = start["value"], {}
        start = {"value": None} if default is None else start
    widget(
        locale.text(label),
        key=key,
        on_change=_typed,
        args=(key, label, bounds, on_change),
        **start,
        **_as_typed(bounds[0], more),
    )
    if why:
        widget.__self__.error(why)  # type: ignore[attr-defined]
    _show(name, value)
    return value


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
    wrong = _session().wrong
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


def _typed(key: str, label: str, bounds: tuple[Any, Any], then: Then) -> None:
    """A good number is kept; what is wrong stays in its field."""
    value, wrong = st.session_state[key], _session().wrong
    if why := _why(label, value, bounds):
        wrong[key] = why
        return
    wrong.pop(key, None)
    _page_values()[key] = None if value is None else type(bounds[0])(value)
    if then is not None:
        then()


def _why(label: str, value: Any, bounds: tuple[Any, Any]) -> str:
    """What is wrong with a number; "" for nothing, and for an empty field."""
    if value is None:
        return ""
    if not bounds[0] <= value <= bounds[1]:
        low, high = (f"{end:,}" if isinstance(end, int) else f"{end:g}" for end in bounds)
        return _("{label} must lie between {low} and {high}.").format(label=locale.text(label), low=low, high=high)
    if isinstance(bounds[0], int) and value != int(value):
        return _("{label} must be a whole number.").format(label=locale.text(label))
    return ""
