"""Choices of a page, kept for the session; the URL holds those worth sharing.

    view = query_params.one_of(st.segmented_control, "View", VIEWS, name="view")

A link may contain any parameter; `write` puts only those of ADDRESS, and the knobs of the loss in the Loss Lab, into
the URL. The URL is not trusted: an invalid value gives the default.

`arrive` is called before a page is drawn and `write` after it (app.py). Streamlit's own `bind="query-params"` (1.67)
writes an option as displayed, so a link would depend on the language. Its `persist_state` supports no default that
varies with the page until the user chooses."""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from contrastive_core.base.errors import BadSetting
from contrastive_core.base.registry import Knob
from contrastive_lab import locale
from contrastive_lab.locale import _

T = TypeVar("T")
ADDRESS = frozenset(
    "lang run runs vectors data folder file importing sweep watch method view features sample split list cut every "
    "pair lesson on step loss rows size batch pairing direction anchor second arrange masks points groups towers "
    "scatter at play images qrels near picture picked selected disagree beside adapter".split()
)  # of the Loss Lab all that makes the same picture
OF_ALL_PAGES = {"run", "lang"}
SESSION = "address"  # the one entry of the session
LONGEST = 1000  # characters of a text
LISTS = ("selectbox", "multiselect")
STARTS = {"selectbox": "index", "radio": "index"} | dict.fromkeys(
    ("segmented_control", "pills", "multiselect"), "default"
)
# A page writes its address after it was reached, for which Streamlit adds a second entry to the browser's history:
# the first Back would change the address alone. Until the visitor acts, the page keeps one entry.
ONE_ENTRY = """<script>
if (!window.hasOneEntryAPage) {
  window.hasOneEntryAPage = true;
  let isArriving = true;
  for (const kind of ["pointerdown", "keydown"]) addEventListener(kind, () => { isArriving = false; }, true);
  addEventListener("popstate", () => { isArriving = true; }, true);
  const push = history.pushState;
  history.pushState = (state, title, url) => {
    const isOtherPage = new URL(url, location).pathname !== location.pathname;
    isArriving ||= isOtherPage;
    (isArriving && !isOtherPage ? history.replaceState : push).call(history, state, title, url);
  };
}
</script>"""


@dataclass
class Session:
    page: str = ""
    asked: dict[str, str] = field(default_factory=dict)  # the address on arrival, as far as no widget has taken it
    values: dict[str, dict[str, Any]] = field(default_factory=dict)  # choices by page and key
    shown: dict[str, str] = field(default_factory=dict)  # parameters drawn in this run
    keys: dict[str, str] = field(default_factory=dict)  # parameter of each key drawn
    knobs: set[str] = field(default_factory=set)  # parameters in the address besides ADDRESS
    sent: set[str] = field(default_factory=set)  # keys of widgets that the browser was sent
    renewed: Counter[str] = field(default_factory=Counter)  # how often the widget of a key was drawn as another one


def current_session() -> Session:
    session: Session = st.session_state.setdefault(SESSION, Session())
    return session


def page_values() -> dict[str, Any]:
    session = current_session()
    return session.values.setdefault(session.page, {})


def key_of(name: str) -> str:
    return f"{current_session().page}-{name}"


# --- the address ---------------------------------------------------------------------------------


def arrive(page: str) -> bool:
    """Start a run of the app on this page; read the URL on arrival and after Back. Return whether it was read."""
    session, context = current_session(), get_script_run_ctx()
    session.shown = {}
    is_back = context is not None and context.is_history_navigation
    if page == session.page and not is_back:
        return False
    session.page, session.asked = page, st.query_params.to_dict()
    if is_back:  # what the address leaves out had no value then; what it never holds stays
        values = page_values()
        session.values[page] = {key: values[key] for key in values if not _is_shared(session.keys.get(key, ""))}
    elif set(session.asked) - OF_ALL_PAGES:  # a link; the menu shows the page as it was left
        session.values[page] = {}
    return True


def share(names: Iterable[str]) -> None:
    """Add the parameters with these names to the URL."""
    current_session().knobs.update(names)


def write() -> None:
    """Write the drawn choices, and requested ones that are not drawn yet, into the URL."""
    session = current_session()
    asked = {name: text for name, text in session.asked.items() if _is_shared(name)}
    if (target := asked | session.shown) != st.query_params.to_dict():
        st.query_params.from_dict(target)


def _is_shared(name: str) -> bool:
    return name in ADDRESS or name in current_session().knobs


def _show(name: str, key: str, value: Any) -> None:
    session, context = current_session(), get_script_run_ctx()
    session.keys[key] = name
    session.shown.pop(name, None)
    if _is_shared(name) and value is not None and value != "":
        session.shown[name] = _as_text(value)
    if context is not None and context.fragment_ids_this_run:  # nobody else will
        write()


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def choose(key: str, value: Any, in_popover: bool = False) -> None:
    """Set the choice of a widget from its next drawing. `key` is that of the widget, or `PAGE-NAME` by default.
    `in_popover`: the widget is in a popover. A closed popover ignores new values and would send the old one with the
    next click, so the widget is replaced."""
    page_values()[key] = value
    current_session().renewed[key] += in_popover


def chosen(key: str) -> Any:
    """Return the choice of the widget with this key, for its `on_change`."""
    return page_values()[key]


def requested(name: str) -> str | None:
    """Return the value in the URL on arrival, if no widget has used it yet."""
    return current_session().asked.get(name)


def take(name: str) -> str | None:
    """Return a parameter and remove it from the URL's requested values."""
    return current_session().asked.pop(name, None)


def ask(parameters: dict[str, str]) -> None:
    """Request values for parameters that the URL does not set, before the widgets are drawn."""
    session = current_session()
    session.asked = {**parameters, **session.asked}


def begin(parameters: dict[str, str]) -> None:
    """Restart the page as if it had been opened by a link with these parameters."""
    session = current_session()
    session.values[session.page] = {}
    session.asked = dict(parameters)


def keep(**values: Any) -> None:
    """Store values that no widget holds (reported by a component); None and "" remove them."""
    for name, value in values.items():
        key = f"kept {name}"
        page_values()[key] = None if value is None or value == "" else _as_text(value)
        _show(name, key, value)
        take(name)


def kept_value(name: str) -> str | None:
    """Return the stored value of a name on this page, or the value in the URL."""
    return requested(name) or page_values().get(f"kept {name}")


def kept_number(name: str, default: Any = None, low: float = 0, high: float = 1e9) -> Any:
    """Return a stored parameter as a number, clamped to low and high; or the default."""
    try:
        value = float(kept_value(name) or "")
    except ValueError:
        return default
    return default if value != value else min(high, max(low, value))


# --- widgets -------------------------------------------------------------------------------------


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
    """Draw a selectbox, radio, segmented control, pills or select slider; return the chosen option.

    Args: widget: `st.selectbox`, or that of a container; options: or a dict of their titles; name: the parameter ("":
        none); default: the first option if not given; key: of the widget, if its choice depends on more than the page;
        text: converts an option to its text in the URL."""
    choices, key, more = list(options), key or key_of(name), _titled(options, more)
    if widget.__name__ in ("segmented_control", "pills"):
        more["required"] = True  # a second click on the choice is no choice
    fallback = default if default in choices else choices[0]
    value = _value(name, key, fallback, lambda word: {text(o): o for o in choices}[word], choices.__contains__)
    picked: T = _draw(widget, label, choices, key=key, value=value, **more)
    _show(name, key, text(picked))
    return picked


def one_or_none(
    widget: Callable[..., Any], label: str, options: Iterable[str], *, name: str, **more: Any
) -> str | None:
    """Draw a segmented control or pills; return the option, or None at first and after a second click."""
    choices, key = list(options), key_of(name)
    value = _value(name, key, None, {str(o): o for o in choices}.__getitem__, choices.__contains__)
    picked: str | None = _draw(widget, label, choices, key=key, value=value, **more)
    _show(name, key, picked)
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
    """Draw a multiselect or pills; return the options chosen (at most `most`), separated by commas in the URL."""
    choices, key, more = list(options), key or key_of(name), _titled(options, more)
    if most is not None:
        more["max_selections"] = most

    def read(words: str) -> list[str]:
        parts = [p.replace("%2C", ",").replace("%25", "%") for p in words.split(",")]
        return [p for p in dict.fromkeys(parts) if p in choices][:most]

    values = page_values()
    if key in values:  # options can go
        values[key] = [v for v in values[key] if v in choices]
    value = _value(name, key, list(default), read, lambda value: isinstance(value, list))
    picked = list(_draw(widget, label, choices, key=key, value=value, **more))
    _show(name, key, ",".join(p.replace("%", "%25").replace(",", "%2C") for p in picked))
    return picked


def text(widget: Callable[..., Any], label: str, *, name: str, key: str = "", **more: Any) -> str:
    """Draw a text input or text area; return its text."""
    key = key or key_of(name)
    value = _value(name, key, "", lambda word: word[:LONGEST], lambda v: isinstance(v, str))
    return str(_draw(widget, label, key=key, value=value, **more) or "")


def switch(
    widget: Callable[..., Any], label: str, *, name: str, default: bool = False, key: str = "", **more: Any
) -> bool:
    """Draw a toggle or checkbox; return its state, yes or no in the URL."""
    key = key or key_of(name)
    value = _value(name, key, default, {"yes": True, "no": False}.__getitem__, lambda v: isinstance(v, bool))
    picked = bool(_draw(widget, label, key=key, value=value, **more))
    _show(name, key, picked)
    return picked


def number(
    widget: Callable[..., Any],
    label: str,
    low: float,
    high: float,
    *,
    name: str,
    default: float | None,
    key: str = "",
    wrong: list[str] | None = None,
    **more: Any,
) -> Any:
    """Draw a number input from low to high, an integer if they are; None for an empty field with `default` None.

    Args: wrong: gets the reason if the number is outside the range, for a form that must not start then, and the
    default is returned. Without it the browser explains the range and does not send the number: the old one counts."""
    kind, key, is_optional = type(low if default is None else default), key or key_of(name), default is None
    low, high = kind(low), kind(high)

    def read(word: str | float) -> Any:  # NaN is not valid
        number = float(word)
        if is_optional and not low <= number <= high:
            raise ValueError(word)
        return kind(number if is_optional or number != number else min(high, max(low, number)))

    def is_valid(number: Any) -> bool:
        return is_optional if number is None else wrong is not None or bool(low <= number <= high)

    value = _value(name, key, None if default is None else read(default), read, is_valid)
    more = {"step": 1 if kind is int else None, **more}  # without it and bounds, an integer would become a float
    more |= {"min_value": low, "max_value": high} if wrong is None else {}
    picked = _draw(widget, label, key=key, value=value, is_optional=is_optional, **more)
    _show(name, key, picked)
    if wrong is not None:
        try:
            Knob(default, low, high).check(label, picked)
        except BadSetting as error:
            wrong.append(locale.sentence(error))
            return default
    return picked


def current(name: str, options: Iterable[str], default: str, key: str = "") -> str:
    """Return the option that `one_of` will give, for content above the widget."""
    value = page_values().get(key or key_of(name), requested(name))
    return str(value) if value in list(options) else default


def _titled(options: Iterable[Any], more: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a widget whose options may be a dict of their titles."""
    if not isinstance(options, dict) or not all(isinstance(title, str) for title in options.values()):
        return more
    return {"format_func": lambda option: options.get(option, str(option)), **more}  # also of a choice that has gone


def _value(name: str, key: str, default: Any, read: Callable[[str], Any], is_valid: Callable[[Any], bool]) -> Any:
    """Return the chosen value, else that of the URL, else a default that may vary with the page until then."""
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
    is_optional: bool = False,
    on_change: Callable[[], object] | None = None,
    **more: Any,
) -> Any:
    """Draw a widget in the session's language with its value. Each run passes the initial value. If the browser has the
    widget with a possibly different value, the session's value is passed instead; it would undo a choice in transit.
    After a page change Streamlit forgets a widget of the sidebar, but the browser does not."""
    kind, language, sent = widget.__name__, locale.language(), current_session().sent
    # What is chosen in a list stands in the browser as a text, which would stay in the old language.
    drawn = f"{key}-{language}" if kind in LISTS and language != "en" else key
    if renewed := current_session().renewed[key]:
        drawn = f"{drawn}-{renewed}"
    is_known = drawn in st.session_state or drawn in sent
    if is_set := is_known and st.session_state.get(drawn) != value:
        st.session_state[drawn] = value  # Streamlit allows no start beside it
    if is_known and is_optional:
        more["value"] = None
    elif not is_set:
        start = STARTS.get(kind, "value")
        more[start] = options.index(value) if options and start == "index" else value
    sent.add(drawn)
    more |= {name: locale.text(more[name]) for name in ("help", "placeholder") if more.get(name)}
    if options is not None and language != "en":
        if kind in LISTS:
            more = {"placeholder": _("Choose an option"), **more}  # Streamlit has no Chinese of its own
        text = more.get("format_func", str)
        titles = {option: locale.text(text(option)) for option in options}  # of this session, wherever it is asked for
        if len({*titles.values()}) == len(options):  # the browser reports an option's text
            more["format_func"] = lambda option: titles.get(option, str(option))
    arguments = [locale.text(label)] if options is None else [locale.text(label), options]

    def change() -> None:
        page_values()[key] = st.session_state[drawn]
        if on_change is not None:
            on_change()

    return widget(*arguments, key=drawn, on_change=change, **more)
