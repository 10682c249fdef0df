"""An invisible component that sends a map the images missing at the pointer or in view, and a sample's nearest rows."""

from collections.abc import Callable

import numpy as np

from contrastive_lab.components.scatter.rows import rows_of
from contrastive_lab.components.shared.mount import mount, reported_state
from contrastive_lab.components.shared.thumbnails import NO_THUMBNAILS, ThumbnailSheet
from contrastive_lab.components.shared.transport import pack

MOST = 96  # at a time (more.js)


def bring_pictures(content: str, n: int, sheet_of: Callable[[np.ndarray], ThumbnailSheet], key: str = "map") -> None:
    """Send a map (its `content`, n rows, `key`) its missing thumbnails, without redrawing the page."""
    import streamlit as st

    own = f"{key}-brought"

    def bring() -> None:
        rows = rows_of(reported_state(own, "wanted"))[:MOST]
        rows = rows[(rows >= 0) & (rows < n)]
        blob = pack(key=content, rows=rows.tolist(), thumbnails=sheet_of(rows) if len(rows) else NO_THUMBNAILS)
        with st.container(key="map-pictures"):
            mount("map_pictures", blob, "wanted", own)

    st.fragment(bring)()


def tell_nearest(content: str, row: int, rows: list[int], similarity: list[float], key: str = "map") -> None:
    """Send a map the rows nearest to a selected one, the most similar first."""
    import streamlit as st

    with st.container(key="map-nearest"):
        mount("map_pictures", pack(key=content, row=row, rows=rows, similarity=similarity), None, f"{key}-nearest")
