"""Contrastive Lab: `streamlit run app.py`. The server's entry, and what every page stands in."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from contrastive_core.engine import client, queue
from contrastive_lab import activity, locale, query_params, server, state
from contrastive_lab.locale import N_, _

PAGES = (
    ("home", N_("Home"), ":material/home:"),
    ("explore", N_("Explore"), ":material/scatter_plot:"),
    ("loss_lab", N_("Loss Lab"), ":material/tune:"),
    ("train", N_("Train"), ":material/play_circle:"),
    ("compare", N_("Compare"), ":material/compare_arrows:"),
    ("samples", N_("Samples"), ":material/image_search:"),
    ("runs", N_("Runs"), ":material/list_alt:"),
    ("methods", N_("Methods"), ":material/menu_book:"),
)

DOCS = Path(__file__).with_name("docs")
STYLE = """<style>
.stMainBlockContainer { padding: 3rem 3rem 6rem; }
@media (max-width: 900px) { .stMainBlockContainer { padding: 4.5rem 1rem 6rem; } }
.stMain:focus, .stMain:focus-visible { outline: none !important; box-shadow: none !important; }
.stNumberInput:has(input:placeholder-shown) button { display: none; }
.st-key-map-pictures { display: none; }
[class*="st-key-door-"] { position: relative; }
[class*="st-key-door-"]::after { content: "→"; position: absolute; top: .9rem; right: 1.1rem; width: auto; }
[class*="st-key-door-"]:hover { border-color: color-mix(in srgb, currentcolor 55%, transparent); }
[class*="st-key-door-"] .stElementContainer:first-child,
[class*="st-key-door-"] .stElementContainer:first-child * { position: static; }
[class*="st-key-door-"] .stElementContainer:first-child a::after {
  content: ""; position: absolute; inset: 0; z-index: 1;
}
[class*="st-key-door-"] .stElementContainer:nth-child(3) { position: relative; z-index: 2; width: fit-content; }
.st-key-train-numbers .stColumn { min-width: 9.5rem; }
@media (max-width: 600px) {
  .st-key-map-choices { gap: 0.5rem; }
  .st-key-map-choices .stButtonGroup [data-testid="stWidgetLabel"] { position: absolute; clip-path: inset(50%); }
  .st-key-map-choices .stButtonGroup button { padding-inline: 0.4rem; }
  .stButtonGroup :has(> button) { flex-wrap: wrap; }
  @supports (animation-timeline: scroll()) {
    .stButtonGroup :has(> button) {
      flex-wrap: nowrap;
      overflow-x: auto;
      mask: linear-gradient(90deg, #0000, #000 var(--fade-left), #000 calc(100% - var(--fade-right)), #0000);
      animation: fade-edges linear both;
      animation-timeline: scroll(self inline);
    }
  }
  .st-key-samples-lists button { flex: none; }
  .st-key-samples-desk { flex-direction: column-reverse; }
  .st-key-runs-filters:not(:has(.st-key-runs-filters-shown input:checked)) .stColumn ~ .stColumn { display: none; }
  .stElementContainer:has(> * .stPlotlyChart) { overflow: visible; margin-top: 1.75rem; }
  .stPlotlyChart .js-plotly-plot { overflow: visible !important; }
  .stPlotlyChart .modebar-container { top: -1.75rem !important; }
}
@property --fade-left { syntax: "\\3c length>"; inherits: false; initial-value: 0px; }
@property --fade-right { syntax: "\\3c length>"; inherits: false; initial-value: 0px; }
@keyframes fade-edges {
  from { --fade-left: 0px; --fade-right: 4rem; }
  10%, 90% { --fade-left: 4rem; --fade-right: 4rem; }
  to { --fade-left: 4rem; --fade-right: 0px; }
}
@media (min-width: 601px) { .st-key-runs-filters-shown { display: none; } }
[data-testid="stCaptionContainer"] {
  opacity: 1;
  color: color-mix(in srgb, currentcolor 78%, transparent);
}
.stElementContainer:has(> .stHtml > .frame) { display: none; }
[data-testid="stSidebar"] [data-selected="true"] p { color: light-dark(#1F5796, currentcolor); }
.stApp :is([data-testid^="stBaseButton-primary"]:not(:disabled), [data-tag]) :is(p, span, svg) {
  color: light-dark(currentcolor, #0F1419);
}
</style>"""  # Streamlit leaves a tenth of the first screen empty; a narrow one has a bar above it.
# The light theme's blue on the sidebar's is 4.3:1, white on the dark theme's blue 2.5:1. What pops up
# stands outside of Streamlit's color-scheme, and follows a switch of the theme with the next run.
IN_DARK_POPUPS = """<style>
:is([data-testid^="stBaseButton-primary"]:not(:disabled), [data-tag]) :is(p, span, svg) { color: #0F1419; }
</style>"""
# A row of choices that scrolls fades where it goes on: its animation follows its own scrolling. A browser without such
# animations wraps the row. \3c is a less-than sign, for which Streamlit would leave the style out.
# From an empty field without bounds its + and - step from the least number there is.
# Styles alone go to the container of toasts, where a fragment's toast takes their place
# (streamlit#10475): with an element beside them they stay on the page.
IN_PLACE = '<i class="frame"></i>'


def draw() -> None:
    """One run of the app: the frame that every page stands in, then the page."""
    state.take_language()
    st.set_page_config("Contrastive Lab", str(DOCS / "icon.svg"), layout="wide")
    st.logo(str(DOCS / "logo.svg"), size="large", icon_image=str(DOCS / "icon.svg"))
    st.html(IN_PLACE + STYLE + (IN_DARK_POPUPS if st.context.theme.type == "dark" else ""))
    st.html(IN_PLACE + locale.SCRIPTS[locale.language()], unsafe_allow_javascript=True)
    page = st.navigation(
        [st.Page(f"pages/{name}.py", title=_(title), icon=icon, default=name == "home") for name, title, icon in PAGES]
    )
    st.set_page_config(_("{title} · Contrastive Lab").format(title=page.title))  # the tab's title
    name = page.url_path or "home"
    query_params.arrive(name)
    if name != "home":  # which is of no run
        state.pick_run()
    state.pick_language()
    in_sidebar = st.sidebar.container()
    queue.go_on()  # after a restart of the computer somebody has to start what waits
    page.run()
    with in_sidebar:
        activity.strip()
    query_params.write()
    state.give_back()
    client.warm_up()  # its imports take seconds: they begin when the first page is there


if __name__ == "__main__":  # Streamlit draws it
    draw()
else:  # `streamlit run` imports it first, and serves what it is behind (contrastive_lab/server.py)
    app = st.App(__file__, middleware=server.guards())
