"""Room for large arrays: in memory, or mapped from a file without a name. Torch-free."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np

from contrastive_core.paths import data_home
from contrastive_core.storage import atomic

__all__ = ["room"]

MAPPED = 1 << 29  # bytes from which an array lies in a file: of eight at once, 4 GB stay in memory
ZEROS = 1 << 24  # bytes written at a time where the system has no way to set room aside


def room(
    shape: tuple[int, ...], dtype: np.dtype | type = np.float32, folder: Path | None = None
) -> np.ndarray:
    """Zeros of a shape. Those of `MAPPED` bytes lie in a file, from where the system takes into
    memory what is used; it goes with the array, also where the process is killed.

    Args: folder: where such a file lies (default: `data_home()`; a system's own folder for such
        files is often kept in memory). Raises OSError where the disk has no room for it.
    """
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    if size < MAPPED:
        return np.zeros(shape, dtype)
    with tempfile.TemporaryFile(dir=atomic.make_folder(folder or data_home())) as file:
        _set_aside(file.fileno(), size)
        return np.memmap(file, dtype, "r+", shape=shape)


def _set_aside(handle: int, size: int) -> None:
    """Give a file its size on the disk: a full one is an error now, not the process's end when a
    page of the map is written."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(handle, 0, size)
        return
    for start in range(0, size, ZEROS):
        os.write(handle, bytes(min(ZEROS, size - start)))
