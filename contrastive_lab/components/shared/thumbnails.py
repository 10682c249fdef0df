"""Thumbnails of many images in one sheet, which a browser component cuts up."""

import io
import itertools
import math
from dataclasses import dataclass

import numpy as np

TILE = 32  # pixels along the side of a thumbnail
QUALITIES = (80, 60, 40, 20)  # of a WebP, the first that fits
MANY = 10_000  # images; more get tiles half as wide
BLOCK = 1 << 24  # numbers of images that are read at once, since they may lie in a file


@dataclass(frozen=True, eq=False)
class ThumbnailSheet:
    """An image of square tiles, `across` in a row, each `tile` pixels wide."""

    picture: bytes = b""  # PNG, JPEG or WebP; empty: there are none
    across: int = 1
    tile: int = TILE


NO_THUMBNAILS = ThumbnailSheet()


def thumbnail_sheet(
    images: np.ndarray | None, most: int | None = None, tile: int = 0, rows: np.ndarray | None = None
) -> ThumbnailSheet:
    """Return all images (n, c, h, w) uint8 in one sheet: a PNG, or a JPEG for many.

    Args: most: maximum bytes; then a WebP of the best quality that fits, with smaller tiles if necessary. tile: side of
    each in pixels; 0: depends on their number. A sheet of larger tiles is a WebP. rows: (m) int64, only these images,
    in this order."""
    if images is None or not len(images if rows is None else rows):
        return NO_THUMBNAILS
    rows = np.arange(len(images)) if rows is None else rows
    tile = tile or (TILE if len(rows) <= MANY else TILE // 2)
    if most is not None:
        for side, quality in itertools.product((tile, tile // 2, tile // 4), QUALITIES):
            pixels, across = _tiles(images, rows, side)
            if len(picture := _encoded(pixels, "WEBP", quality=quality)) <= most:
                return ThumbnailSheet(picture, across, side)
        return NO_THUMBNAILS
    pixels, across = _tiles(images, rows, tile)
    if tile > TILE:
        return ThumbnailSheet(_encoded(pixels, "WEBP", quality=QUALITIES[0], method=0), across, tile)  # the fastest
    return ThumbnailSheet(_encoded(pixels, "PNG" if tile == TILE else "JPEG"), across, tile)


def _encoded(pixels: np.ndarray, kind: str, **settings: int) -> bytes:
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, kind, **settings)
    return buffer.getvalue()


def _tiles(images: np.ndarray, rows: np.ndarray, tile: int) -> tuple[np.ndarray, int]:
    """Return the pixels (h, w, 3) of some images' tiles, read in blocks, and the number of tiles in a row."""
    n, (c, h, w) = len(rows), images.shape[1:]
    across = math.ceil(math.sqrt(n))
    down = math.ceil(n / across)
    middles = (np.arange(tile) + 0.5) / tile
    y, x = (np.minimum(middles * size, size - 1).astype(np.int64) for size in (h, w))  # the nearest pixels
    sheet, step = np.zeros((down * across, tile, tile, 3), np.uint8), max(1, BLOCK // (c * h * w))
    for start in range(0, n, step):
        block = np.asarray(images[rows[start : start + step]])
        small = block[:, :, y][:, :, :, x].transpose(0, 2, 3, 1)  # (b, t, t, c)
        sheet[start : start + step][: len(small)] = small[..., : 3 if c > 2 else 1]
    sheet = sheet.reshape(down, across, tile, tile, 3).transpose(0, 2, 1, 3, 4)
    return sheet.reshape(down * tile, across * tile, 3), across
