"""Contrastive Lab: `streamlit run app.py`. The server's entry, and what every page stands in."""

from __future__ import annotations

import ctypes
import html
import sys
from pathlib import Path

import streamlit as st

from contrastive_core.engine import client, queue
from contrastive_lab import figures, locale, query_params, server, stage, state
from contrastive_lab.locale import N_, _

PAGES = (
    ("home", N_("Home")),
    ("explore", N_("Explore")),
    ("loss_lab", N_("Loss Lab")),
    ("compare", N_("Compare")),
    ("samples", N_("Samples")),
    ("train", N_("Train")),
    ("runs", N_("Runs")),
    ("methods", N_("Methods")),
)

DOCS = Path(__file__).with_name("docs")
# Styles alone go to the container of toasts, where a fragment's toast takes their place
# (streamlit#10475): with an element beside them they stay on the page.
IN_PLACE = '<i class="frame"></i>'


def draw() -> None:
    """One run of the app: the frame that every page stands in, then the page."""
    # their caches ask for Streamlit's runtime, which the server's import precedes
    from contrastive_lab import activity
    from contrastive_lab.loss_lab.lessons import LESSONS

    state.take_language()
    st.set_page_config("Contrastive Lab", str(DOCS / "icon.svg"), layout="wide")
    st.logo(str(DOCS / "logo.svg"), size="large", icon_image=str(DOCS / "icon.svg"))
    st.html(IN_PLACE + locale.SCRIPTS[locale.language()] + query_params.ONE_ENTRY, unsafe_allow_javascript=True)
    pages = [st.Page(f"pages/{name}.py", title=_(title), default=name == "home") for name, title in PAGES]
    page = st.navigation(pages, position="top")
    st.set_page_config(_("{title} · Contrastive Lab").format(title=page.title))  # the tab's title
    name = page.url_path or "home"
    st.html(IN_PLACE + stage.style(st.context.theme.type, name))
    is_arrival = query_params.arrive(name)
    corner = st.container(key="corner", horizontal=True, wrap=False, horizontal_alignment="right", gap="small")
    with corner:
        title = html.escape(
            "Contrastive Lab" if name == "home" else page.title
        )  # a phone has no navigation that shows it
        st.html(f'<b class="page-name" aria-hidden="true">{title}</b>', width="content")
        state.pick_language()
    if is_arrival and name != "home":  # which passes an address on
        state.say_missing(len(LESSONS))
    state.settle_run()
    queue.go_on()  # after a restart of the computer somebody has to start what waits
    page.run()
    with corner:
        activity.strip()
    query_params.write()
    if trim := getattr(ctypes.CDLL(None) if sys.platform == "linux" else None, "malloc_trim", None):
        trim(0)  # glibc would keep about a fifth of the memory of drawing (benchmarks/start.py)
    client.warm_up()  # its imports take seconds: they begin when the first page is there


if __name__ == "__main__":  # Streamlit draws it
    draw()
else:  # `streamlit run` imports it first, and serves what it is behind (contrastive_lab/server.py)
    app = st.App(__file__, routes=[figures.PDF_ROUTE], middleware=server.guards())
