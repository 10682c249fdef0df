"""Home: the star, four entry points, and a link to the newest run."""

from __future__ import annotations

import streamlit as st

from contrastive_lab import home, state


def page() -> None:
    asked = {name: text for name, text in st.query_params.items() if name != "lang"}
    if asked:  # an address of before there was this page
        st.switch_page("pages/explore.py", query_params=st.query_params.to_dict())
    home.star()
    home.doors()
    home.examples()
    home.drop_target()


state.run(page)
