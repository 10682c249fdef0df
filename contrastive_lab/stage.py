"""The layout of a page: one toolbar, the stage with its picture, and the inspector beside it.

    with stage.toolbar():
        state.pick_run()
        ...                       # what is looked at; rarely used controls in `with stage.more():`
    picture, inspector = stage.columns()
    with picture:
        ...                       # one component, as high as `--stage-height`
    with inspector:
        ...                       # from the question to the one primary action
    with stage.below():
        ...                       # what is asked for, under the first screen

frame.css gives the sizes: 48 pixels of toolbar, which never wraps; the stage takes the rest, the inspector
360 pixels of its width, 304 on a screen of less than 1280, and stands under the stage on a phone. What a page has for
itself is in pages/*.css.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from contrastive_core.base.paths import BUNDLE
from contrastive_lab.locale import _

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator


MORE = "more-closed"  # of the session: how often

# White on the dark theme's blue is 2.5:1. What pops up stands outside of Streamlit's color-scheme, and follows a switch
# of the theme with the next run.
IN_DARK_POPUPS = """
:is([data-testid^="stBaseButton-primary"]:not(:disabled), [data-tag]) :is(p, span, svg) { color: #0F1419; }
"""


@cache
def style(theme: str | None, page: str) -> str:
    """The styles of the frame and of a page as an HTML element, for the theme "light" or "dark"."""
    files = Path(__file__).with_name("frame.css"), BUNDLE / "pages" / f"{page}.css"
    css = "\n".join(file.read_text("utf-8") for file in files)
    return f"<style>{css}{IN_DARK_POPUPS if theme == 'dark' else ''}</style>"


def toolbar() -> DeltaGenerator:
    """One row of controls without visible labels, in the order: what is looked at, `space`, then tools."""
    return st.container(horizontal=True, wrap=False, vertical_alignment="center", gap="small", key="toolbar")


def more() -> DeltaGenerator:
    """The last of a toolbar: what is rarely used."""
    return st.popover("⋯", help=_("More"), key=f"toolbar-more-{st.session_state.get(MORE, 0)}")


def close_more() -> None:
    """Close what `more` opened: another number makes another popover. A button's callback."""
    st.session_state[MORE] = st.session_state.get(MORE, 0) + 1


def columns(is_first: bool = True) -> tuple[DeltaGenerator, DeltaGenerator]:
    """The stage, and the inspector at its right; at its left where the stage is not first, of which on a phone the
    first part stands above the stage."""
    row = st.container(horizontal=True, wrap=False, gap=None, key="stage-row")
    beside = None if is_first else row.container(key="inspector", gap="small")
    picture = row.container(key="stage", gap=None)
    return picture, row.container(key="inspector", gap="small") if beside is None else beside


def below() -> DeltaGenerator:
    """Return the container under the stage."""
    return st.container(key="below-stage")
