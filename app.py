"""Contrastive Lab: `streamlit run app.py`."""

from __future__ import annotations

import streamlit as st

import session
from contrastive_core import waiting

PAGES = (
    ("explore", "Explore", ":material/scatter_plot:"),
    ("loss_lab", "Loss Lab", ":material/tune:"),
    ("train", "Train", ":material/play_circle:"),
    ("compare", "Compare", ":material/compare_arrows:"),
    ("samples", "Samples", ":material/image_search:"),
    ("runs", "Runs", ":material/list_alt:"),
    ("methods", "Methods", ":material/menu_book:"),
)

st.set_page_config("Contrastive Lab", "docs/icon.svg", layout="wide")
page = st.navigation(
    [
        st.Page(
            f"pages/{name}.py", title=title, icon=icon, url_path=name, default=name == "explore"
        )
        for name, title, icon in PAGES
    ]
)
session.pick_run()
waiting.go_on()  # after a restart of the computer somebody has to start what waits
page.run()
session.give_back()
