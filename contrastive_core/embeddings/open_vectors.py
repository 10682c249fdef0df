"""Opening a vector file for the pages: read, with its pictures, in a child process with limited
memory and kept under its content, so that nothing of a stranger's file is parsed in the server.
Torch-free."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from contrastive_core.embeddings import attached_images, file_formats, kept_vectors
from contrastive_core.errors import Refused, UnusableEmbedding
from contrastive_core.storage.limited import Limits, call_limited
from contrastive_core.storage.regular import printable

__all__ = ["open_upload", "open_vectors"]

MEMORY = file_formats.ARRAYS + 3 * file_formats.LIMIT  # vectors, and what is known of them
SECONDS = 300
LIBRARIES = {".parquet": ("pyarrow.parquet", "pyarrow.compute"), ".csv": ("pandas",)}


def open_vectors(path: str | Path, name: str, pictures: str | Path | None = None) -> str:
    """Keep the vectors of a file and the pictures that came along; returns the key they are kept
    under, as `kept_vectors.loaded` lists it.

    Args: name: what the file is called for a person; pictures: a folder that file names in it may
        start from, besides its own.
    Raises: UnusableEmbedding, NotRegular, Damaged with a sentence; FileNotFoundError.
    """
    path = Path(path).expanduser().absolute()
    folder = None if pictures is None else Path(pictures).expanduser().absolute()
    libraries = ("PIL.Image", *LIBRARIES.get(path.suffix.lower(), ()))
    limits = Limits(_memory(), SECONDS, preload=libraries)
    try:
        return str(call_limited(_keep, path, name, folder, limits=limits))
    except Refused as error:
        raise UnusableEmbedding(f"{printable(name)} cannot be opened: {error}") from None


def open_upload(name: str, content: bytes | memoryview, pictures: str | None = None) -> str:
    """Keep the vectors of an uploaded file; returns their key. Raises what `open_vectors` does."""
    name = Path(name).name
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / f"vectors{Path(name).suffix.lower()}"
        copy.write_bytes(content)
        try:
            return open_vectors(copy, name, pictures)
        except ValueError as error:
            raise type(error)(str(error).replace(copy.name, printable(name))) from None


def _memory() -> int:
    """Bytes that opening a file may take: never more than half of what the machine has."""
    try:
        return min(MEMORY, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2)
    except (AttributeError, ValueError, OSError):
        return MEMORY


def _keep(path: str, name: str, folder: str | None) -> str:
    """In the child: read, attach, keep."""
    rows = file_formats.read(path)
    attached = attached_images.pictures_of(Path(path), rows, Path(folder) if folder else None)
    images = (
        attached.images if attached.images is not None else attached_images.dataset_pictures(rows)
    )
    note = attached.note if attached.images is not None or images is None else ""
    return kept_vectors.save_vectors(rows, name, images, note)
