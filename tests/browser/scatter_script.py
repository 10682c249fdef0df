"""A page with one map of made-up points; the address chooses how many and in which colors."""

import numpy as np
import streamlit as st

from contrastive_lab.components.scatter import LinkedSelection, ScatterData, bring_pictures, draw_scatter
from contrastive_lab.components.shared.mount import NO_THUMBNAILS, thumbnail_sheet

asked = st.query_params
n = int(asked.get("n", 600))
rng = np.random.default_rng(0)
label = np.arange(n) % 5
centers = np.array([[0, 0], [8, 0], [0, 8], [8, 8], [4, 4]], float)
xy = centers[label] + rng.standard_normal((n, 2)) * 0.5
by = st.radio("color", ["label", "number"], horizontal=True)
images = np.broadcast_to((label * 50).astype(np.uint8)[:, None, None, None], (n, 3, 4, 4))
stamp = asked.get("stamp", "one")
st.session_state.runs = st.session_state.get("runs", 0) + 1
pictured = np.arange(0, n, 3) if "some" in asked else None
data = ScatterData(
    xy,
    [f"test/{i:06d}" for i in range(n)],
    str(n),
    label if by == "label" else xy[:, 0],
    [f"<i>class {k}</i>" for k in range(5)] if by == "label" else (),
    thumbnails=thumbnail_sheet(images if pictured is None else images[pictured]) if n <= 2000 else NO_THUMBNAILS,
    pictured=pictured,
)
lit = [1, 2, 3] if asked.get("given") else st.session_state.get("kept", [])
key, gallery = asked.get("key", "map"), "view" not in asked
found = draw_scatter(data, LinkedSelection(lit, stamp), gallery=gallery, key=key).tolist()
st.session_state.kept = found
if "bring" in asked:
    bring_pictures(data.content, n, lambda some: thumbnail_sheet(images, rows=some), key)
st.text(f"runs {st.session_state.runs} rows {len(found)} sum {sum(found)} first {found[:3]}")
