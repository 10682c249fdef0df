"""Scroll the page to the result of an action, such as a panel below the stage, if it is out of view; give a view the
arrow keys."""

import time

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

PENDING = "scroll"  # of the session: the page scrolls when it is drawn
KEY = "in-view"  # of the container: one on a page
SCRIPT = """<script>setTimeout(() => {
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
    """Scroll to the container the next time it is drawn."""
    st.session_state[PENDING] = True


def in_view() -> DeltaGenerator:
    """Return the container to which the page scrolls."""
    if st.session_state.pop(PENDING, False):
        st.html(f'<i class="frame" id="{time.time()}"></i>{SCRIPT}', unsafe_allow_javascript=True)
    return st.container(key=KEY)


def take_arrows() -> None:
    """Move the focus from the choice of the view, which keeps the arrow keys, to the drawn duel."""
    st.html(f'<i class="frame"></i>{ARROWS}', unsafe_allow_javascript=True)
