"""Pictures with captions, of which some can be chosen."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from contrastive_lab.components.shared.thumbnails import TILE, sprite
from contrastive_lab.components.shared.transport import mount, pack

__all__ = ["gallery"]


@cache
def _mount() -> Any:
    return mount(
        "gallery",
        ("shared/transport", "shared/dom", "gallery/grid", "gallery/gallery"),
        "scatter/scatter",
    )


def gallery(
    images: np.ndarray,
    captions: Sequence[str],
    *,
    selected: Sequence[int] = (),
    size: int = 72,
    title: str = "pictures",
    key: str = "gallery",
) -> list[int]:
    """Show images (n, c, h, w) uint8 with a caption each; returns the chosen rows.

    Captions are shown as text, whatever they hold. `size` is a picture's side in pixels.
    """
    if len(images) != len(captions):
        raise ValueError(f"{len(images)} images, but {len(captions)} captions")
    sheet, across = sprite(images) if len(images) else (b"", 1)
    meta = {
        "captions": [str(c) for c in captions], "selected": [int(i) for i in selected],
        "across": across, "tile": TILE, "size": size, "title": title,
    }  # fmt: skip
    found = _mount()(
        key=key,
        data=pack(meta, sprite=sheet),
        default={"selected": [int(i) for i in selected]},
        on_selected_change=lambda: None,
    )
    return [int(i) for i in found.selected or []]
