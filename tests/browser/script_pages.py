"""One server for the scripts that show a single part: each is a page named like its file, `live` for live_script.py."""

from pathlib import Path

import streamlit as st

NAMES = ("live", "circle", "gallery", "scatter")
FOLDER = Path(__file__).parent
pages = [st.Page(FOLDER / f"{name}_script.py", title=name, url_path=name) for name in NAMES]
# The first page has no path of its own.
st.navigation([st.Page(lambda: None, title="Parts", url_path="parts"), *pages], position="hidden").run()
