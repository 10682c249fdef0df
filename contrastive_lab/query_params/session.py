"""What of a page's choices the session keeps, and when its address is read and written."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

__all__ = ["arrive", "entry", "key_of", "page_values", "show", "value_of", "write"]

SHARED = {"run", "lang"}  # parameters of all pages
SESSION = "address"  # the one entry of the session


def arrive(page: str) -> None:
    """A run of the app begins on this page; coming to a page, its address is read."""
    session, context = entry(), get_script_run_ctx()
    session["wrong"] = {key: "" for key in session["wrong"] if key in st.session_state}
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
    session = entry()
    if session["back"]:
        session["back"] = False
        return
    now = st.query_params.to_dict()
    others = {name: text for name, text in now.items() if name not in session["names"]}
    if (target := {**others, **session["shown"]}) != now:
        st.query_params.from_dict(target)


def entry() -> dict[str, Any]:
    """`page`: where one is; `asked`: of its address and not yet taken; `values`: by page and key,
    what was chosen; `shown`: the parameters drawn in this run; `names`: in this visit; `wrong`:
    of number inputs that held what they cannot take, what is wrong; "" until drawn in this run;
    `sent`: widgets that the browser was sent."""
    empty: dict[str, Any] = {"page": "", "back": False}
    empty |= {name: set() for name in ("names", "sent")}
    empty |= {name: {} for name in ("asked", "values", "shown", "wrong")}
    session: dict[str, Any] = st.session_state.setdefault(SESSION, empty)
    return session


def page_values() -> dict[str, Any]:
    session = entry()
    values: dict[str, Any] = session["values"].setdefault(session["page"], {})
    return values


def key_of(name: str) -> str:
    return f"{entry()['page']}-{name}"


def value_of(name: str, key: str, default: Any, read: Callable[[str], Any], is_valid: Callable[[Any], bool]) -> Any:
    """What was chosen, else what the address asks for, else a default that may change with the
    page until somebody chooses."""
    values, word = page_values(), entry()["asked"].pop(name, None)
    if key not in values and word is not None:
        with contextlib.suppress(KeyError, ValueError, OverflowError):
            values[key] = read(word)
    value = values.get(key, default)
    return value if is_valid(value) else default


def show(name: str, value: Any) -> None:
    if not name:
        return
    session, context = entry(), get_script_run_ctx()
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
