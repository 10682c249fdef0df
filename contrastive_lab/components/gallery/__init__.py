"""Pictures with captions, of which some can be chosen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from contrastive_lab.components.shared.mount import mount
from contrastive_lab.components.shared.thumbnails import thumbnail_sheet
from contrastive_lab.components.shared.transport import pack


def draw_gallery(
    images: np.ndarray,
    captions: Sequence[str],
    *,
    labels: Sequence[str] = (),
    selected: Sequence[int] = (),
    size: int = 72,
    height: int = 0,
    single: bool = False,
    title: str = "pictures",
    key: str = "gallery",
) -> list[int]:
    """Show images (n, c, h, w) uint8 with a caption each; returns the chosen rows.

    Captions are shown as text, whatever they hold; an empty one is none.

    Args: labels: what each is called where its caption does not say it. size: a picture's side in
    pixels. height: of all, in pixels, above which they scroll; 0: the usual. single: at most one
    is chosen.
    """
    blob = pack(
        thumbnails=thumbnail_sheet(images),
        captions=captions,
        labels=labels or captions,
        selected=selected,
        size=size,
        height=height,
        title=title,
        single=single,
    )
    return list(mount("gallery", blob, "selected", style="map", key=key, first=list(selected)) or [])
