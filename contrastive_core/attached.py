"""Pictures that come along with loaded vectors, as thumbnails (n, 3, side, side). Torch-free.

In an `.npz` an array `images`; in a table a column of file names, or of pictures as bytes. Pillow's
own limit on pixels is an error here, and what is not a picture stays grey.
"""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from contrastive_core import store
from contrastive_core.embedding_set import EmbeddingSet

__all__ = ["SIDE", "pictures_of"]

SIDE = 64  # pixels along the side of a kept picture
ARRAYS = ("images", "image", "pictures")
COLUMNS = ("image", "image_path", "path", "file", "filename", "picture")
GREY = 128


def pictures_of(path: Path, rows: EmbeddingSet, folder: Path | None = None) -> np.ndarray | None:
    """Thumbnails of the rows of a file that `readers.read` has read; None where it has none.

    Args: folder: what file names are relative to; default: the file's own folder.
    """
    if path.suffix == ".npz":
        return _array(path, len(rows))
    given: list[Any] | None = None
    for name in COLUMNS:
        if name in rows.columns and rows.columns[name].dtype.kind == "U":
            given = [(folder or path.parent) / v if v else None for v in rows.columns[name]]
            break
    if given is None and path.suffix == ".parquet":
        given = _bytes(path)
    if given is None:
        return None
    found = [_thumbnail(v) for v in given]
    if all(v is None for v in found):
        return None
    empty = np.full((3, SIDE, SIDE), GREY, np.uint8)
    return np.stack([empty if v is None else v for v in found])


def _array(path: Path, n: int) -> np.ndarray | None:
    arrays = store.read_npz(path)
    for name in ARRAYS:
        images = arrays.get(name)
        if images is None or images.dtype != np.uint8 or len(images) != n:
            continue
        if images.ndim == 3:
            images = images[:, None]
        if images.ndim == 4 and images.shape[1] not in (1, 3) and images.shape[3] in (1, 3):
            images = images.transpose(0, 3, 1, 2)
        if images.ndim == 4 and images.shape[1] in (1, 3):
            return np.ascontiguousarray(_thinned(images))
    return None


def _thinned(images: np.ndarray) -> np.ndarray:
    step = max(1, -(-max(images.shape[2:]) // SIDE))
    return images[:, :, ::step, ::step]


def _bytes(path: Path) -> list[Any] | None:
    """A column `image` of bytes, or of structures with `bytes`, as image data sets have them."""
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path)
    name = next((c for c in COLUMNS if c in file.schema_arrow.names), None)
    if name is None:
        return None
    values = file.read([name]).column(0).to_pylist()
    return [v.get("bytes") if isinstance(v, dict) else v for v in values]


def _thumbnail(source: Any) -> np.ndarray | None:
    """One picture (3, side, side), its middle square; None where it is none."""
    from PIL import Image, ImageOps

    if isinstance(source, bytes):
        source = io.BytesIO(source)
    if not isinstance(source, (io.BytesIO, Path)):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(source) as image:
                image.draft("RGB", (SIDE, SIDE))
                small = ImageOps.fit(image.convert("RGB"), (SIDE, SIDE))
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError, Warning):
        return None
    return np.asarray(small).transpose(2, 0, 1)
