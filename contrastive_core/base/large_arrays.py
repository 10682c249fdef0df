"""Arrays of many rows: in memory or mapped from an unnamed file, the slice of one process, a reproducible sample of
rows, and the overlap of two neighbor graphs. Torch-free."""

import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from contrastive_core.base import safe_files
from contrastive_core.base.paths import data_home

MAPPED = 1 << 29  # bytes from which on an array is in a file: eight smaller ones fit in 4 GB
MAPPED_ROWS = 1 << 28  # the same for the rows of an encoder
ZEROS = 1 << 24  # bytes per write if the system cannot reserve space


def mapped_zeros(
    shape: tuple[int, ...], dtype: np.dtype | type = np.float32, folder: Path | None = None, least: int | None = None
) -> np.ndarray:
    """Return an array of zeros; from `least` bytes (default: `MAPPED`) on it is mapped from a file in `folder`.

    The system loads only the used parts of the file. The file has no name, so it disappears with the array, even if the
    process is killed. `folder` defaults to `data_home()`, because the system's temporary folder is often in memory.
    Raises OSError if the disk is too full."""
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    if size < (MAPPED if least is None else least):
        return np.zeros(shape, dtype)
    with tempfile.TemporaryFile(dir=safe_files.make_folder(folder or data_home())) as file:
        # reserve the space on the disk first: writing to a map on a full disk would kill the process
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size)
        else:
            for start in range(0, size, ZEROS):
                os.write(file.fileno(), bytes(min(ZEROS, size - start)))
        return np.memmap(file, dtype, "r+", shape=shape)


class RowBuffer:
    """Buffer for n rows (n, d) float32, added in chunks. With a folder, many rows are mapped from a file there."""

    def __init__(self, n: int, folder: Path | None = None) -> None:
        self.n, self.folder, self.filled = n, folder, 0
        self.rows: np.ndarray | None = None

    def add(self, chunk: np.ndarray) -> None:
        """Append rows (r, d). Raises OSError if the disk is too full."""
        if self.rows is None:
            shape = (self.n, chunk.shape[1])
            least = MAPPED_ROWS if self.folder else sys.maxsize
            self.rows = mapped_zeros(shape, folder=self.folder, least=least)
        self.rows[self.filled : self.filled + len(chunk)] = chunk
        self.filled += len(chunk)

    def full(self) -> np.ndarray:
        """Return all rows (n, d)."""
        assert self.rows is not None
        assert self.filled == self.n
        return self.rows


def part_of(n: int, part: tuple[int, int]) -> slice:
    """Cut n rows into k contiguous parts of nearly equal size and return the slice of part i; `part` is (i, k)."""
    i, of = part
    return slice(n * i // of, n * (i + 1) // of)


BLOCK = 1024  # rows whose neighbors are compared at a time


def rows_of_sample(n: int, most: int, seed: int = 0) -> np.ndarray:
    """Return the sorted indices (m) of at most `most` of n rows: all, or a random sample without replacement."""
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, most, replace=False))


def sample_text(count: int, n: int, what: str = "rows") -> str:
    """Return the size of a sample as text, "1,000 of 50,000 rows"; "" if nothing is left out."""
    return f"{count:,} of {n:,} {what}" if count < n else ""


def lowest_recall(recalls: Iterable[float | None]) -> float | None:
    """Return the lowest recall of several searches; None if all of them are exact."""
    return min((recall for recall in recalls if recall is not None), default=None)


def overlap(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the share of the k neighbors (n, k) that two spaces have in common, per sample (n)."""
    return in_common(a, b).mean(1)


def in_common(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return whether each neighbor in a (n, k) is also among the neighbors in b (n, k), as booleans (n, k)."""
    parts = (slice(start, start + BLOCK) for start in range(0, len(a), BLOCK))
    return np.concatenate([(a[part, :, None] == b[part, None]).any(2) for part in parts])  # of (r, k, k)
