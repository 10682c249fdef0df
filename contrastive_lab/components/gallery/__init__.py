"""Images with captions that can be selected."""

from collections.abc import Mapping, Sequence

import numpy as np

from contrastive_lab.components.shared.mount import mount, pack, thumbnail_sheet


def draw_gallery(
    images: np.ndarray,
    captions: Sequence[str],
    *,
    labels: Sequence[str] = (),
    selected: Sequence[int] = (),
    size: int = 72,
    title: str = "pictures",
    points: Mapping[str, object] | None = None,
    key: str = "gallery",
) -> list[int]:
    """Draw images (n, c, h, w) uint8 with captions, `size` pixels wide; return the selected rows.

    Args: labels: names for screen readers, default the captions. points: draw one line, where hovering over an image
    highlights its point: the content of a map, and the images' rows on it ("map", "rows")."""
    look = {"labels": labels or captions, "size": size, "title": title, "points": points}
    blob = pack(thumbnails=thumbnail_sheet(images), captions=captions, selected=selected, **look)
    return list(mount("gallery", blob, "selected", key, first=list(selected)) or [])


def draw_strip(images: np.ndarray, labels: Sequence[str], size: int, height: int, title: str, key: str) -> list[int]:
    """Draw images in a box that scrolls above `height` pixels; at most one is selected. labels: for screen readers."""
    look = {"labels": labels, "size": size, "height": height, "title": title, "single": True}
    blob = pack(thumbnails=thumbnail_sheet(images), captions=[""] * len(labels), selected=[], **look)
    return list(mount("gallery", blob, "selected", key, first=[]) or [])
