"""Home: an introduction in one sentence, three entry points, and the recent runs."""

from __future__ import annotations

import streamlit as st

from contrastive_lab import home, state


def page() -> None:
    asked = {name: text for name, text in st.query_params.items() if name != "lang"}
    if asked:  # an address of before there was this page
        st.switch_page("pages/explore.py", query_params=st.query_params.to_dict())
    left, right = st.columns([3, 2], gap="large", vertical_alignment="center")
    with left:
        home.doors()
    with right:
        home.circle()
    home.last_at_work()


state.run(page)
