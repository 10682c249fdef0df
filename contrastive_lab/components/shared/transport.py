"""One packed blob for the browser: a header in JSON, then arrays at multiples of eight; transport.js unpacks it."""

import hashlib
import io
import itertools
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from contrastive_lab import locale

ALIGN = 8
TEXTS = {"hints", "label", "note", "reason", "scoreName", "sentence", "title", "why"}  # keys of texts to show


def pack(view: Any = None, **more: Any) -> bytes:
    """The fields of a dataclass as one blob, with further fields, or others in their place.

    Arrays (floats as float32), bytes and thumbnails go as bytes under the path of their field; all
    else goes as JSON, fields in JavaScript's spelling."""
    places: dict[str, tuple[int, int]] = {}
    arrays: dict[str, bytes] = {}
    parts, offset = [], 0
    meta = localized(_plain(_fields({} if view is None else vars(view), more), "", arrays))
    for path, data in arrays.items():
        places[path] = (offset, len(data))
        padding = -len(data) % ALIGN
        parts += [data, b"\0" * padding]
        offset += len(data) + padding
    header = json.dumps({"meta": meta, "places": places}).encode()
    header += b" " * (-(len(header) + ALIGN) % ALIGN)
    return len(header).to_bytes(ALIGN, "little") + header + b"".join(parts)


def _fields(values: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Fields by their names in JavaScript: `column_names` is columnNames there."""
    names = {name: name.split("_") for name in {**values, **more}}
    camel = {name: first + "".join(map(str.capitalize, rest)) for name, (first, *rest) in names.items()}
    return {camel[name]: value for name, value in {**values, **more}.items()}


def _plain(value: Any, path: str, arrays: dict[str, bytes]) -> Any:
    """What JSON can say of a value; what goes as bytes is put into `arrays`."""
    match value:
        case str() | int() | float() | None:
            return value
        case bytes():
            arrays[path] = value
        case np.ndarray():
            arrays[path] = np.ascontiguousarray(value, np.float32 if value.dtype.kind == "f" else None).tobytes()
        case ThumbnailSheet():
            arrays[path] = value.picture
            return {"across": value.across, "tile": value.tile}
        case Mapping():
            return {name: _plain(one, f"{path}.{name}".lstrip("."), arrays) for name, one in value.items()}
        case list() | tuple() | range():
            return [_plain(one, path, arrays) for one in value]
        case _:
            return _plain(_fields(vars(value), {}), path, arrays)
    return None


def localized(meta: dict[str, Any]) -> dict[str, Any]:
    """Meta data in the session's language, with the messages of the browser parts beside it."""
    if (language := locale.language()) == "en":
        return meta
    return {**_translated(meta), "language": language, "messages": locale.browser_messages(language)}


def _translated(node: Any, key: str = "") -> Any:
    """Messages of the library, and constants under a key of TEXTS, translated; names stay."""
    if isinstance(node, dict):
        return {k: _translated(v, str(k)) for k, v in node.items()}
    if isinstance(node, (list, tuple)):
        return [_translated(one, key) for one in node]
    return locale.text(node) if isinstance(node, locale.Message) or (isinstance(node, str) and key in TEXTS) else node


@dataclass(frozen=True)
class SliderKnob:
    """A number that a loss is computed with, as a slider, linear or logarithmic."""

    label: str  # "τ, temperature": the symbol, then what it is
    low: float
    high: float
    value: float | None  # None: switched off
    log: bool = False  # from 0: a fourth power, which has a zero
    name: str = ""  # of the knob; where several stand below one another
    first: float | None = None  # what it is switched on at
    is_whole: bool = False


def digest(*parts: Any) -> str:
    """A short hash of plain values: the key of what was made from them."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


# --- thumbnails of many images in one picture, which a browser part cuts up again ------------------

TILE = 32  # pixels along the side of a thumbnail
QUALITIES = (80, 60, 40, 20)  # of a WebP, the first that fits
MANY = 10_000  # images; more get tiles half as wide
BLOCK = 1 << 24  # numbers of images that are read at once, since they may lie in a file


@dataclass(frozen=True, eq=False)
class ThumbnailSheet:
    """Square tiles of one picture, `across` in a row, each `tile` pixels wide."""

    picture: bytes = b""  # PNG, JPEG or WebP; empty: there are none
    across: int = 1
    tile: int = TILE


NO_THUMBNAILS = ThumbnailSheet()


def thumbnail_sheet(
    images: np.ndarray | None, most: int | None = None, tile: int = 0, rows: np.ndarray | None = None
) -> ThumbnailSheet:
    """All images (n, c, h, w) uint8 in one picture: a PNG, or a JPEG where there are many.

    Args: most: bytes; then a WebP, as good as fits into so many, of smaller tiles if it must be.
    tile: side in pixels of each; 0: as their number allows. Of larger ones it is a WebP.
    rows: (m) int64, of these images only, in this order."""
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
        return ThumbnailSheet(_encoded(pixels, "WEBP", quality=QUALITIES[0]), across, tile)
    return ThumbnailSheet(_encoded(pixels, "PNG" if tile == TILE else "JPEG"), across, tile)


def _encoded(pixels: np.ndarray, kind: str, **settings: int) -> bytes:
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, kind, **settings)
    return buffer.getvalue()


def _tiles(images: np.ndarray, rows: np.ndarray, tile: int) -> tuple[np.ndarray, int]:
    """Pixels (h, w, 3) of the tiles of some images, read in blocks, and how many stand in a row."""
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
