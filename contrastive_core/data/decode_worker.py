"""Decodes files of images into rows of a file that was made for them: a chunk a call. Torch-free.

    python -m contrastive_core.data.decode_worker    (chunks as lines of JSON on standard input)

Of many processes each has rows of its own. They end with the process that feeds them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from contrastive_core.data.decoding import decoded, reason_of
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
    gray: bool
    resize: str


def decode_chunk(chunk: Chunk) -> dict[str, Any]:
    """Write its rows to the disk. Returns reasons ("failed") and remarks ("notes") by row."""
    row = (1 if chunk.gray else 3, chunk.side, chunk.side)
    images = np.memmap(
        chunk.file, np.uint8, "r+", HEADER + chunk.start * int(np.prod(row)),
        (len(chunk.paths), *row),
    )  # fmt: skip
    failed: dict[str, str] = {}
    notes: dict[str, str] = {}
    for i, path in enumerate(chunk.paths):
        try:
            images[i], note = decoded(Path(path), chunk.side, chunk.gray, chunk.resize)
        except Exception as error:  # whatever Pillow raises at a damaged file
            failed[str(chunk.start + i)] = reason_of(error)
        else:
            notes |= {str(chunk.start + i): note} if note else {}
    images.flush()
    return {"start": chunk.start, "failed": failed, "notes": notes}


class Worker:
    """A process that decodes; begun anew where a file has ended it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def decode(self, chunk: Chunk) -> dict[str, Any]:
        """As `decode_chunk`; a file that ends the process is left out with a sentence."""
        try:
            return self._ask(chunk)
        except (OSError, ValueError):
            self.close()
        if len(chunk.paths) == 1:
            return {"start": chunk.start, "failed": {str(chunk.start): DIED}, "notes": {}}
        answer: dict[str, Any] = {"start": chunk.start, "failed": {}, "notes": {}}
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
        print(json.dumps(decode_chunk(Chunk(**json.loads(line)))), flush=True)


if __name__ == "__main__":
    _serve()
