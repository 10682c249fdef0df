"""Pictures that come along with loaded vectors, as thumbnails (n, 3, side, side). Torch-free.

In an `.npz` an array `images`; in a table a column of file names, or of pictures as bytes. A vector
file may come from anybody: names are followed only to ordinary files below its own folder, or below
one that a person names; `..`, absolute names and links that lead elsewhere are refused. Only the
formats of PICTURES are tried, Pillow's own limit on pixels is an error here, and what is not a
picture stays gray.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from contrastive_core.embeddings.embedding_set import EmbeddingSet
from contrastive_core.storage import records

__all__ = ["SIDE", "Attached", "pictures_of"]

SIDE = 64  # pixels along the side of a kept picture
ARRAYS = ("images", "image", "pictures")
COLUMNS = ("image", "image_path", "path", "file", "filename", "picture")
PICTURES = ("PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF", "PPM")  # none of which runs a program
GRAY = 128


@dataclass(frozen=True, eq=False)
class Attached:
    """What came along with vectors."""

    images: np.ndarray | None  # (n, c, h, w) uint8; None: no pictures
    told: str = ""  # sentences about names that were refused, or are of no file


def pictures_of(path: Path, rows: EmbeddingSet, folder: Path | None = None) -> Attached:
    """Thumbnails of the rows of a file that `readers.read` has read.

    Args: folder: where file names start, and what they may not leave, if a person has named one;
        the file's own folder always counts too.
    Raises: ValueError when `folder` is not a folder.
    """
    if path.suffix == ".npz":
        return Attached(_array(path, len(rows)))
    if folder is not None and not folder.is_dir():
        raise ValueError(f"There is no folder {folder} of pictures.")
    names = next((rows.columns[n] for n in COLUMNS if _is_text(rows, n)), None)
    if names is None:
        given = _bytes(path) if path.suffix == ".parquet" else None
        return Attached(None if given is None else _stacked(given))
    roots = [f.resolve() for f in (folder, path.parent) if f is not None]
    files = [_inside(str(name), roots) if name else None for name in names]
    given = [str(n) for n in names if n]
    out = [str(n) for n, file in zip(names, files, strict=True) if n and file is None]
    gone = [str(n) for n, file in zip(names, files, strict=True) if file and not file.is_file()]
    return Attached(_stacked(files), _told(out, gone, len(given)))


def _is_text(rows: EmbeddingSet, name: str) -> bool:
    return name in rows.columns and rows.columns[name].dtype.kind == "U"


def _inside(name: str, roots: Sequence[Path]) -> Path | None:
    """The file of that name below the first of `roots` that has it, all links followed; the name
    below the first root where no file is; None where it leads out of all of them."""
    found: list[Path] = []
    for root in roots:
        try:
            file = (root / name).resolve()
            if file.is_file() and file.is_relative_to(root):
                return file
        except (OSError, ValueError, RuntimeError):  # too long, a zero byte, links in a circle
            continue
        if file.is_relative_to(root):
            found.append(file)
    return found[0] if found else None


def _told(out: list[str], gone: list[str], of: int) -> str:
    """What became of names that lead out of the folder, and of those of no file."""
    parts = []
    for names, why in ((out, "their names lead out of its folder"), (gone, "they are not there")):
        if names:
            name = names[0] if len(names[0]) <= 60 else f"{names[0][:57]}…"
            parts.append(f"{len(names):,} of {of:,} pictures were not opened, since {why}: {name}.")
    if parts:
        parts.append("If they lie in another folder, name that when you open the file.")
    return " ".join(parts)


def _stacked(given: Sequence[Any]) -> np.ndarray | None:
    """Pictures (n, 3, side, side), gray where there is none; None where there is none at all."""
    found = [_thumbnail(v) for v in given]
    if all(v is None for v in found):
        return None
    empty = np.full((3, SIDE, SIDE), GRAY, np.uint8)
    return np.stack([empty if v is None else v for v in found])


def _array(path: Path, n: int) -> np.ndarray | None:
    arrays = records.read_npz(path)
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
    elif not isinstance(source, Path) or not source.is_file():  # a pipe would never end
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(source, formats=PICTURES) as image:
                image.draft("RGB", (SIDE, SIDE))
                small = ImageOps.fit(image.convert("RGB"), (SIDE, SIDE))
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError, Warning):
        return None
    return np.asarray(small).transpose(2, 0, 1)
