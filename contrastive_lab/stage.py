"""The layout of a page: a toolbar, the stage with its picture, and the inspector beside it.

    with stage.toolbar():
        state.pick_run()
        ...                       # the subject; rare controls in `with stage.more():`
    picture, inspector = stage.columns()
    with picture:
        ...                       # one component, as high as `--stage-height`
    with inspector:
        ...                       # from the question to the one primary action
    with stage.below():
        ...                       # optional content, below the first screen

frame.css sets the sizes: 48 pixels for the toolbar, which never wraps, and the rest for the stage. On a phone the
toolbar shows its first control and "Options", and the inspector stands below. pages/*.css has the styles of single
pages. The page scrolls to the result of an action, such as a panel below the stage, if it is out of view."""

from __future__ import annotations

import html
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from contrastive_core.base.errors import LabError, Locked, explained
from contrastive_core.base.storage import BUNDLE
from contrastive_lab import format
from contrastive_lab.locale import _

MORE = "more-closed"  # of the session: how often

# White on the dark theme's blue is 2.5:1. What pops up stands outside of Streamlit's color-scheme, and follows a switch
# of the theme with the next run.
IN_DARK_POPUPS = """
:is([data-testid^="stBaseButton-primary"]:not(:disabled), [data-tag]) :is(p, span, svg) { color: #0F1419; }
"""


@cache
def style(theme: str | None, page: str) -> str:
    """Return the styles of the frame and of a page as an HTML element, for the theme "light" or "dark"."""
    own = Path(__file__).parent
    files = own / "frame.css", own / "components" / "shared" / "texts.css", BUNDLE / "pages" / f"{page}.css"
    css = "\n".join(file.read_text("utf-8") for file in files)
    return f"<style>{css}{IN_DARK_POPUPS if theme == 'dark' else ''}</style>"


def toolbar() -> DeltaGenerator:
    """Return a row of controls without visible labels, in the order: the subject, `space`, then tools."""
    row = st.container(horizontal=True, wrap=False, vertical_alignment="center", gap="small", key="toolbar")
    label = html.escape(_("Options"))
    row.html(f'<details class="options"><summary>{label}</summary></details>', width="content")
    return row


def more() -> DeltaGenerator:
    """Return the menu of rare controls at the end of a toolbar."""
    return st.popover("⋯", help=_("More"), key=f"toolbar-more-{st.session_state.get(MORE, 0)}")


def close_more() -> None:
    """Close the menu `more` by giving it a new key. A button's callback."""
    st.session_state[MORE] = st.session_state.get(MORE, 0) + 1


def columns(is_first: bool = True) -> tuple[DeltaGenerator, DeltaGenerator]:
    """Return the stage and the inspector on its right. With `is_first` False the inspector is on the left, and on a
    phone above the stage."""
    row = st.container(horizontal=True, wrap=False, gap=None, key="stage-row")
    beside = None if is_first else row.container(key="inspector", gap="small")
    picture = row.container(key="stage", gap=None)
    return picture, row.container(key="inspector", gap="small") if beside is None else beside


def below() -> DeltaGenerator:
    """Return the container under the stage."""
    return st.container(key="below-stage")


# --- what an action brings into view ---------------------------------------------------------------


PENDING = "scroll"  # of the session: the page scrolls when it is drawn
IN_VIEW = "in-view"  # of the container: one on a page
SCROLL = """<script>setTimeout(() => {
  const place = document.querySelector(".st-key-in-view");
  if (!place) return;
  place.style.scrollMarginTop = "7rem";
  const { top } = place.getBoundingClientRect();
  if (0 > top || top > innerHeight / 2) place.scrollIntoView({ behavior: "smooth" });
}, 500)</script>"""  # server.py permits both by their hashes
ARROWS = """<script>setTimeout(() => {
  const duel = document.querySelector(".st-key-duel");
  if (!duel || !document.activeElement?.closest("[data-testid=stButtonGroup]")) return;
  duel.tabIndex = -1;
  duel.style.outline = "none";
  duel.focus({ preventScroll: true });
})</script>"""


def scroll_next() -> None:
    """Scroll to the container whenever it is drawn, until `end_scroll`."""
    st.session_state[PENDING] = True


def end_scroll() -> None:
    """Scroll no more after this time, because the container holds its result and not its progress."""
    st.session_state.pop(PENDING, None)


def in_view() -> DeltaGenerator:
    """Return the container to which the page scrolls."""
    if PENDING in st.session_state:
        st.html(f'<i class="frame" id="{time.time()}"></i>{SCROLL}', unsafe_allow_javascript=True)
    return st.container(key=IN_VIEW)


def take_arrows() -> None:
    """Move the focus from the choice of the view, which keeps the arrow keys, to the drawn duel."""
    st.html(f'<i class="frame"></i>{ARROWS}', unsafe_allow_javascript=True)


# --- errors on a page -------------------------------------------------------------------------------

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
