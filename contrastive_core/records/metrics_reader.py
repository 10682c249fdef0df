"""Reading a run's metrics while they are written: each look reads what is new. Torch-free.

A run of a million steps has 200 MB of lines. Of the steps' lines a bounded number is kept, spread
over the run, and the last few; the epochs' lines are kept all.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from contrastive_core.records.run_files import METRICS
from contrastive_core.storage import json_files
from contrastive_core.storage.json_files import JsonObject

__all__ = ["MetricsReader"]

KEPT = 600  # lines of steps, at most, and at least half as many once there have been so many
LAST = 20  # lines of the newest steps
CHUNK = 1 << 22  # bytes read at a time
STEP = b'"images_per_s"'  # only a step's line has it


class MetricsReader:
    """`update` reads on; `steps` and `epochs` are lines as `Run.metrics` gives them, `latest` the
    newest steps. Damaged lines are passed over."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._clear()

    def _clear(self) -> None:
        self.steps: list[JsonObject] = []
        self.latest: list[JsonObject] = []
        self.epochs: list[JsonObject] = []
        self._file: tuple[int, int] | None = None  # device and inode
        self._offset, self._count, self._stride = 0, 0, 1

    def update(self) -> MetricsReader:
        """Read what was written since the last look; all of it, if the file is another one or has
        been cut."""
        try:
            with self.path.open("rb") as file:
                self._read(file)
        except FileNotFoundError:
            self._clear()
        return self

    def _read(self, file: BinaryIO) -> None:
        about = os.fstat(file.fileno())
        identity = (about.st_dev, about.st_ino)
        if identity != self._file or about.st_size < self._offset:
            self._clear()
        self._file = identity
        file.seek(self._offset)
        rest, steps = b"", list[bytes]()
        while chunk := file.read(CHUNK):
            *lines, rest = (rest + chunk).split(b"\n")
            self._offset += sum(map(len, lines)) + len(lines)
            for line in lines:
                steps = self._take(line, steps)
        self.latest = [*self.latest, *filter(None, map(_object, steps))][-LAST:]

    def _take(self, line: bytes, newest: list[bytes]) -> list[bytes]:
        """Keep one line; returns the newest steps' lines, which are read at the end only."""
        if STEP not in line:
            if value := _object(line):
                self.epochs.append(value)
            return newest
        if self._count % self._stride == 0 and (value := _object(line)):
            self.steps.append(value)
            if len(self.steps) > KEPT:
                self.steps, self._stride = self.steps[::2], 2 * self._stride
        self._count += 1
        return [*newest[-LAST:], line]


def _object(line: bytes) -> JsonObject | None:
    return json_files.object_of(line, METRICS)
