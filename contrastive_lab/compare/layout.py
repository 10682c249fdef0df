"""Where the parts of Compare stand: the answers at the left of the picture, and what stands in place of both."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator


def columns() -> tuple[DeltaGenerator, DeltaGenerator]:
    """The answers, and the stage at their right. On a phone the first of the answers stands above the stage."""
    row = st.container(horizontal=True, wrap=False, gap=None, key="stage-row")
    return row.container(key="inspector", gap="small"), row.container(key="stage", gap=None)


def empty(title: str, text: str) -> DeltaGenerator:
    """A place in the middle of an empty stage, which says what is missing and holds the way on."""
    place = st.container(key="compare-empty", horizontal_alignment="center", vertical_alignment="center", gap="small")
    place.header(title, width="content")
    place.caption(text, width="content", text_alignment="center")
    return place
