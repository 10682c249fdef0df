"""Rows of an embedding as they come from an encoder, chunk by chunk. Torch-free."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import IO

import numpy as np

from contrastive_core.storage.npz import MAPPED

__all__ = ["GatheredRows"]


class GatheredRows:
    """n rows that come chunk by chunk: into memory, or, where there are MAPPED bytes of them, into
    a file of `folder` that has no name, so that an interruption leaves nothing behind."""

    def __init__(self, n: int, folder: Path | None = None) -> None:
        self.n, self.folder, self.filled = n, folder, 0
        self.rows: np.ndarray | None = None
        self.file: IO[bytes] | None = None

    def add(self, chunk: np.ndarray) -> None:
        """The next rows (r, d), float32. Raises OSError on a full disk."""
        if self.rows is None:
            large = self.folder is not None and self.n * chunk.shape[1] * 4 >= MAPPED
            self.rows = np.empty((0 if large else self.n, chunk.shape[1]), np.float32)
            if large:
                self.file = tempfile.TemporaryFile(dir=self.folder)  # noqa: SIM115  maps need it
        if self.file is not None:
            self.file.write(np.ascontiguousarray(chunk, np.float32).data)
        else:
            self.rows[self.filled : self.filled + len(chunk)] = chunk
        self.filled += len(chunk)

    def whole(self) -> np.ndarray:
        """All rows (n, d); those in a file as a map of it that is only read."""
        assert self.rows is not None
        assert self.filled == self.n
        if self.file is None:
            return self.rows
        self.file.flush()
        return np.memmap(self.file, np.float32, "r", shape=(self.n, self.rows.shape[1]))
