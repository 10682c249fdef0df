"""Pictures with captions, of which some can be chosen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from contrastive_lab.components.shared.mount import mount
from contrastive_lab.components.shared.thumbnails import thumbnail_sheet
from contrastive_lab.components.shared.transport import pack
from contrastive_lab.locale import _


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
    if len(images) != len(captions):
        raise ValueError(
            _("{images} images, but {captions} captions").format(images=len(images), captions=len(captions))
        )
    sheet, lit = thumbnail_sheet(images), [int(i) for i in selected]
    meta = {
        "captions": [str(c) for c in captions],
        "labels": [str(s) for s in labels or captions],
        "selected": lit,
        "across": sheet.across,
        "tile": sheet.tile,
        "size": size,
        "height": height,
        "title": title,
        "single": single,
    }
    blob = pack(meta, sprite=sheet.picture)
    return [int(i) for i in mount("gallery", blob, "selected", style="map", key=key, first=lit) or []]
