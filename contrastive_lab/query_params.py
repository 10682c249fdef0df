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
class Session:
    page: str = ""  # where one is
    is_back: bool = False  # one came here by "Back"
    asked: dict[str, str] = field(default_factory=dict)  # of the page's address, not yet taken
    values: dict[str, dict[str, Any]] = field(default_factory=dict)  # what was chosen, by page and key
    shown: dict[str, str] = field(default_factory=dict)  # the parameters drawn in this run
    names: set[str] = field(default_factory=set)  # of the parameters drawn in this visit
    wrong: dict[str, str] = field(default_factory=dict)  # what is wrong with number inputs; "" until drawn in this run
    sent: set[str] = field(default_factory=set)  # keys of widgets that the browser was sent


def current_session() -> Session:
    session: Session = st.session_state.setdefault(SESSION, Session())
    return session


def page_values() -> dict[str, Any]:
    session = current_session()
    return session.values.setdefault(session.page, {})


def key_of(name: str) -> str:
    return f"{current_session().page}-{name}"


# --- the address ---------------------------------------------------------------------------------


def arrive(page: str) -> None:
    """A run of the app begins on this page; coming to a page, its address is read."""
    session, context = current_session(), get_script_run_ctx()
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
    session = current_session()
    if session.is_back:
        session.is_back = False
        return
    now = st.query_params.to_dict()
    others = {name: text for name, text in now.items() if name not in session.names}
    if (target := {**others, **session.shown}) != now:
        st.query_params.from_dict(target)


def show(name: str, value: Any) -> None:
    if not name:
        return
    session, context = current_session(), get_script_run_ctx()
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
    page_values()[key] = value


def chosen(key: str) -> Any:
    """Store the choice of the widget of this key, for its `on_change`."""
    return page_values()[key]


def requested(name: str) -> str | None:
    """Return the value in the address on arrival, if no widget has used it yet."""
    return current_session().asked.get(name)


def take(name: str) -> str | None:
    """The same, once."""
    return current_session().asked.pop(name, None)


def ask(parameters: dict[str, str]) -> None:
    """Ask for what the address leaves open, before the widgets are drawn."""
    session = current_session()
    session.asked = {**parameters, **session.asked}


def begin(parameters: dict[str, str]) -> None:
    """The page begins anew, as if one had come to it by a link with these parameters."""
    session = current_session()
    session.values[session.page] = {}
    session.asked = dict(parameters)


def keep(**values: Any) -> None:
    """Put what no widget holds (a component reports it) into the address; None and "" are left out."""
    for name, value in values.items():
        show(name, value)
        page_values()[f"kept {name}"] = current_session().shown.get(name)
        take(name)


def kept_value(name: str) -> str | None:
    """Return the stored value of a name on this page, or the value in its address."""
    return requested(name) or page_values().get(f"kept {name}")


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
    key: str = "",
    text: Callable[[T], str] = str,
    **more: Any,
) -> T:
    """One of some options, by a selectbox, radio, segmented control, pills or select slider.

    Args: widget: `st.selectbox`, or that of a container; name: the address's parameter ("": it has none); default:
        else the first option; key: of the widget, if its choice belongs to something besides the page; text: how an
        option stands in the address.
    """
    choices, key = list(options), key or key_of(name)
    if widget.__name__ in ("segmented_control", "pills"):
        more["required"] = True  # a second click on the choice is no choice
    fallback = default if default in choices else choices[0]
    value = value_of(name, key, fallback, lambda word: {text(o): o for o in choices}[word], choices.__contains__)
    picked: T = _draw(widget, label, choices, key=key, value=value, **more)
    show(name, text(picked))
    return picked


def one_or_none(
    widget: Callable[..., Any], label: str, options: Iterable[str], *, name: str, **more: Any
) -> str | None:
    """One of some options or, at first and after a second click on it, none; by a segmented control or pills."""
    choices, key = list(options), key_of(name)
    value = value_of(name, key, None, {str(o): o for o in choices}.__getitem__, choices.__contains__)
    picked: str | None = _draw(widget, label, choices, key=key, value=value, **more)
    show(name, picked)
    return picked


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
    picked = list(_draw(widget, label, choices, key=key, value=value, **more))
    show(name, ",".join(p.replace("%", "%25").replace(",", "%2C") for p in picked))
    return picked


def text(widget: Callable[..., Any], label: str, *, name: str, key: str = "", **more: Any) -> str:
    """What is written into a text input or text area; so many characters stand in the address."""
    key = key or key_of(name)
    value = value_of(name, key, "", lambda word: word[:LONGEST], lambda v: isinstance(v, str))
    picked = str(_draw(widget, label, key=key, value=value, **more) or "")
    show(name, picked if len(picked) <= LONGEST else None)
    return picked


def switch(
    widget: Callable[..., Any], label: str, *, name: str, default: bool = False, key: str = "", **more: Any
) -> bool:
    """On or off, by a toggle or a checkbox; yes and no in the address."""
    key = key or key_of(name)
    value = value_of(name, key, default, {"yes": True, "no": False}.__getitem__, lambda v: isinstance(v, bool))
    picked = bool(_draw(widget, label, key=key, value=value, **more))
    show(name, picked)
    return picked


def current(name: str, options: Iterable[str], default: str, key: str = "") -> str:
    """The option that `one_of` will give, for what stands above the widget."""
    value = page_values().get(key or key_of(name), requested(name))
    return str(value) if value in list(options) else default


def value_of(name: str, key: str, default: Any, read: Callable[[str], Any], is_valid: Callable[[Any], bool]) -> Any:
    """What was chosen, else what the address asks for, else a default that may change with the
    page until somebody chooses."""
    values, word = page_values(), take(name)
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
    kind, session = widget.__name__, current_session()
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
    page_values()[key] = st.session_state[drawn]
    if then is not None:
        then()
