"""Contrastive Lab: `streamlit run app.py`. The server's entry, and what every page stands in."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from contrastive_core.jobs import fork_server, queue
from contrastive_lab import query_params, server, state

PAGES = (
    ("explore", "Explore", ":material/scatter_plot:"),
    ("loss_lab", "Loss Lab", ":material/tune:"),
    ("train", "Train", ":material/play_circle:"),
    ("compare", "Compare", ":material/compare_arrows:"),
    ("samples", "Samples", ":material/image_search:"),
    ("runs", "Runs", ":material/list_alt:"),
    ("methods", "Methods", ":material/menu_book:"),
)

DOCS = Path(__file__).with_name("docs")
STYLE = """<style>
.stMainBlockContainer { padding: 3rem 3rem 6rem; }
@media (max-width: 900px) { .stMainBlockContainer { padding: 4.5rem 1rem 6rem; } }
@media (max-width: 600px) { .stMarkdown :is(th, td) { padding: 0.3rem; overflow-wrap: anywhere; } }
</style>"""  # Streamlit leaves a tenth of the first screen empty; a narrow one has a bar above it


def explore() -> None:
    """/explore: the first page under its name; what its address asks for goes along."""
    st.switch_page("pages/explore.py", query_params=st.query_params.to_dict())


def draw() -> None:
    """One run of the app: the frame that every page stands in, then the page."""
    st.set_page_config("Contrastive Lab", str(DOCS / "icon.svg"), layout="wide")
    st.logo(str(DOCS / "logo.svg"), size="large", icon_image=str(DOCS / "icon.svg"))
    st.html(STYLE)
    pages = [
        st.Page(
            f"pages/{name}.py", title=title, icon=icon, default=name == "explore",
            url_path="first" if name == "explore" else name,  # an address of its own has /explore
        )
        for name, title, icon in PAGES
    ]  # fmt: skip
    page = st.navigation(
        [*pages, st.Page(explore, title="Explore", url_path="explore", visibility="hidden")]
    )
    query_params.arrive(page.title.lower().replace(" ", "_"))
    state.pick_run()
    queue.go_on()  # after a restart of the computer somebody has to start what waits
    page.run()
    query_params.write()
    state.give_back()


if __name__ == "__main__":  # Streamlit draws it
    draw()
else:  # `streamlit run` imports it first, and serves what it is behind (contrastive_lab/server.py)
    fork_server.enable()
    app = st.App(__file__, middleware=server.guards())
