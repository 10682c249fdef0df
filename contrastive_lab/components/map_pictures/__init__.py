"""Images that a map lacks, brought where pointer or view rest; the part itself is unseen."""

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
