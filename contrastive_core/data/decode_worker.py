"""Decodes files of images into rows of a file that was made for them: a chunk a call. Torch-free.

    python -m contrastive_core.data.decode_worker    (chunks as lines of JSON on standard input)

Of many processes each has rows of its own. They end with the process that feeds them. None imports
NumPy for a picture, which would be half of the time that it takes to start.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from typing import Any

from contrastive_core.data.decoding import reason_of, row_of
from contrastive_core.paths import ROOT

__all__ = ["HEADER", "Chunk", "Worker", "decode_chunk"]

HEADER = 128  # bytes before the first row
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
DIED = "reading it ends the program that reads it"


@dataclass(frozen=True)
class Chunk:
    """Files whose pixels go to the rows of `file` from `start` on."""

    file: str
    start: int
    paths: list[str]
    side: int
    channels: int
    resize: str

    @property
    def row(self) -> tuple[int, int, int]:
        return (self.channels, self.side, self.side)


def decode_chunk(chunk: Chunk) -> dict[str, Any]:
    """Write its rows into the file. Returns reasons ("failed") and remarks ("notes") by row. Raises
    OSError where they cannot be written."""
    size = math.prod(chunk.row)
    rows: list[bytes] = []
    failed: dict[str, str] = {}
    notes: dict[str, str] = {}
    for row, path in enumerate(chunk.paths, chunk.start):
        try:
            pixels, note = row_of(path, chunk.side, chunk.channels, chunk.resize)
        except Exception as error:  # whatever Pillow raises at a damaged file
            pixels, note = bytes(size), ""
            failed[str(row)] = reason_of(error)
        rows.append(pixels)
        notes |= {str(row): note} if note else {}
    with open(chunk.file, "r+b") as file:
        file.seek(HEADER + chunk.start * size)
        file.write(b"".join(rows))
    return {"start": chunk.start, "failed": failed, "notes": notes}


class Worker:
    """A process that decodes; begun anew where a file has ended it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def decode(self, chunk: Chunk) -> dict[str, Any]:
        """As `decode_chunk`; a file that ends the process is left out with a sentence."""
        try:
            answer = self._ask(chunk)
        except (OSError, ValueError):
            self.close()
        else:
            if "error" in answer:
                raise OSError(*answer["error"], chunk.file)
            return answer
        if len(chunk.paths) == 1:
            return {"start": chunk.start, "failed": {str(chunk.start): DIED}, "notes": {}}
        answer = {"start": chunk.start, "failed": {}, "notes": {}}
        for i, path in enumerate(chunk.paths):  # one at a time, to know which it is
            one = self.decode(Chunk(**{**asdict(chunk), "start": chunk.start + i, "paths": [path]}))
            answer["failed"] |= one["failed"]
            answer["notes"] |= one["notes"]
        return answer

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _ask(self, chunk: Chunk) -> dict[str, Any]:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "contrastive_core.data.decode_worker"],
                cwd=ROOT, env={**os.environ, **dict.fromkeys(THREADS, "1")}, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asdict(chunk)) + "\n")
        self._process.stdin.flush()
        return dict(json.loads(self._process.stdout.readline()))


def _serve() -> None:
    for line in sys.stdin:
        try:
            answer = decode_chunk(Chunk(**json.loads(line)))
        except OSError as error:  # of the rows' file: a full disk
            answer = {"error": [error.errno, error.strerror]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    _serve()
