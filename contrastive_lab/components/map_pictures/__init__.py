"""Images that a map lacks, brought where pointer or view rest, and the nearest of a sample; the part is unseen."""

from collections.abc import Callable

import numpy as np

from contrastive_lab.components.scatter.rows import rows_of
from contrastive_lab.components.shared.mount import mount, reported_state
from contrastive_lab.components.shared.thumbnails import NO_THUMBNAILS, ThumbnailSheet
from contrastive_lab.components.shared.transport import pack

MOST = 96  # at a time (more.js)


def bring_pictures(content: str, n: int, sheet_of: Callable[[np.ndarray], ThumbnailSheet], key: str = "map") -> None:
    """Send a map (its `content`, n rows, `key`) the thumbnails that it lacks, without redrawing the page."""
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
    """Tell a map which of its rows are the nearest of a selected one, the most similar first."""
    import streamlit as st

    with st.container(key="map-nearest"):
        mount("map_pictures", pack(key=content, row=row, rows=rows, similarity=similarity), None, f"{key}-nearest")
