"""One damaged run does not take a page down: what is drawn of it is drawn on its own."""

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
    """Say why an action is refused (a name that is taken, a lock, a full disk) where it was asked for."""
    try:
        yield
    except (ValueError, OSError, Locked) as error:
        st.error(format.plain(error))


@contextmanager
def errors_told() -> Iterator[None]:
    """As `errors_shown`, in a button's callback: what it draws would stand above the page."""
    try:
        yield
    except (ValueError, OSError, Locked) as error:
        st.toast(format.plain(error), icon=":material/error:", duration="infinite")


@contextmanager
def errors_kept(form: str, values: object, is_sent: bool) -> Iterator[None]:
    """As `errors_shown`, for an `st.form`: the error stays while the page is redrawn, until the form is sent again.
    Args: values: what the form was sent with: another visit begins with others."""
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
    """Draw a row or a section of one run; where its files are damaged, a line says so instead."""
    try:
        yield
    except errors as error:
        st.warning(format.plain(_("{name} is damaged: {reason}").format(name=name, reason=explained(error))))
