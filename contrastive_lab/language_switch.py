"""The switch of the language in the sidebar, and its place in the address (`lang=zh`).

`arrive` is called before anything is drawn: a language in the address that was not there before is
the one that is asked for. What is chosen is kept for the session; `draw` writes it there."""

from __future__ import annotations

import streamlit as st

from contrastive_lab import locale, query_params

NAME = "lang"
SEEN = "language in the address"
KEY = "language-switch"


def arrive() -> None:
    """A run of the app begins: take over what the address asks for."""
    asked = st.query_params.get(NAME)
    if asked != st.session_state.get(SEEN) and asked in locale.LANGUAGES:
        st.session_state[locale.SESSION] = asked
    st.session_state[SEEN] = asked


def draw() -> None:
    """The switch. Its words are those of the languages themselves."""
    chosen = locale.language()
    query_params.keep(lang=chosen if chosen != "en" or locale.browser_language() != "en" else None)
    if st.session_state.get(KEY) != chosen:
        st.session_state[KEY] = chosen
    st.sidebar.segmented_control(
        "Language",
        list(locale.LANGUAGES),
        format_func=locale.LANGUAGES.__getitem__,
        key=KEY,
        label_visibility="collapsed",
        required=True,
        on_change=_chosen,
    )


def _chosen() -> None:
    st.session_state[locale.SESSION] = st.session_state[KEY]
    st.session_state[SEEN] = st.query_params.get(NAME)
