"""Error handling of pages: a damaged run or a refused action shows a message and does not break the page."""

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from contrastive_core.base.errors import LabError, Locked, explained
from contrastive_lab import format
from contrastive_lab.locale import _

# What a file of another shape than expected raises where it is read or drawn.
DAMAGE = (ValueError, TypeError, KeyError, IndexError, AttributeError, OSError)
UNREADABLE = (LabError, OSError)  # what the readers of files raise: where anything else is a fault of the program


@contextmanager
def errors_shown() -> Iterator[None]:
    """Show the reason of a refused action (a name that is taken, a lock, a full disk) in place."""
    try:
        yield
    except (ValueError, OSError, Locked) as error:
        st.error(format.plain(error))


@contextmanager
def errors_told() -> Iterator[None]:
    """Show the reason of a refused action as a toast, for button callbacks, whose output would appear above the
    page."""
    try:
        yield
    except (ValueError, OSError, Locked) as error:
        st.toast(format.plain(error), icon=":material/error:", duration="infinite")


@contextmanager
def errors_kept(form: str, values: object, is_sent: bool) -> Iterator[None]:
    """Show the reason of a refused `st.form` until it is submitted again. Args: values: the submitted ones; a form with
    other values, as on another visit, shows no error."""
    key = f"error of {form}"
    if is_sent:
        st.session_state.pop(key, None)
    try:
        yield
    except (ValueError, OSError, Locked) as error:
        st.session_state[key] = (values, error)
    sent_with, refused = st.session_state.get(key, (None, None))
    if refused is not None and sent_with == values:
        st.error(format.plain(refused))


@contextmanager
def on_its_own(name: str, errors: tuple[type[Exception], ...] = DAMAGE) -> Iterator[None]:
    """Draw a row or section of one run; if its files are damaged, show a warning instead."""
    try:
        yield
    except errors as error:
        st.warning(format.plain(_("{name} is damaged: {reason}").format(name=name, reason=explained(error))))
