"""Two samples side by side with the part of each patch or word in their similarity; pointing at one lights its partners
in the other sample."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from contrastive_lab.components.shared.mount import TILE, mount, pack, thumbnail_sheet

LARGEST = 224  # pixels of a side


@dataclass(frozen=True)
class AlikeSide:
    """One of the two samples: its name, the rows and columns of its patches, and its words (none for an image)."""

    name: str
    shape: Sequence[int]
    words: Sequence[str] = ()


def draw_alike(sides: Sequence[AlikeSide], patches: np.ndarray, images: Sequence[np.ndarray], key: str) -> None:
    """Draw two samples with the parts (p, q) of their pairs of patches. images: of the sides without words."""
    tile = TILE if all(max(image.shape) <= TILE for image in images) else LARGEST
    sheet = thumbnail_sheet(np.stack(images) if images else None, tile=tile)
    mount("alike", pack(sides=sides, patches=patches, thumbnails=sheet), None, key)
