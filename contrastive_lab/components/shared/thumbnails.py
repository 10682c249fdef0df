"""Thumbnails of many images in one PNG, which a browser part cuts up again."""

from __future__ import annotations

import io
import math

import numpy as np

__all__ = ["TILE", "sprite"]

TILE = 32  # pixels along the side of a thumbnail


def sprite(images: np.ndarray, tile: int = TILE) -> tuple[bytes, int]:
    """All images (n, c, h, w) uint8 as square tiles in one picture, and how many stand in a row.

    A PNG; a JPEG where tiles are smaller than usual, since there are many of them.
    """
    from PIL import Image

    n, c, h, w = images.shape
    across = max(1, math.ceil(math.sqrt(n)))
    rows, columns = _nearest(h, tile), _nearest(w, tile)
    small = np.asarray(images)[:, :, rows][:, :, :, columns].transpose(0, 2, 3, 1)  # (n, t, t, c)
    down = math.ceil(n / across)
    sheet = np.zeros((down * across, tile, tile, 3), np.uint8)
    sheet[:n] = small if c == 3 else small[..., :1]
    sheet = sheet.reshape(down, across, tile, tile, 3).transpose(0, 2, 1, 3, 4)
    buffer = io.BytesIO()
    kind = "PNG" if tile == TILE else "JPEG"
    Image.fromarray(sheet.reshape(down * tile, across * tile, 3)).save(buffer, kind)
    return buffer.getvalue(), across


def _nearest(size: int, tile: int) -> np.ndarray:
    """Rows of an image of `size` pixels that its thumbnail shows."""
    return np.minimum((np.arange(tile) + 0.5) * size / tile, size - 1).astype(np.int64)
