"""Decode image files into rows of a file, one chunk per call.

Each process writes its own rows, and ends with the process that feeds it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, TypedDict

import numpy as np

from contrastive_core.data.image_decoding import decode_image, read_error
from contrastive_core.messages import N_
from contrastive_core.storage.sandbox import Crashed, Sandbox

__all__ = ["HEADER", "Chunk", "DecodeWorker", "DecodedChunk", "decode_chunk", "decode_fields"]

HEADER = 128  # bytes before the first row
DIED = N_("reading it ends the program that reads it")


@dataclass(frozen=True)
class Chunk:
    """Files whose pixels are written to the rows of `file` from `start` on."""

    file: str
    start: int
    paths: list[str]
    side: int
    channels: int
    resize: str

    @property
    def row(self) -> tuple[int, int, int]:
        return (self.channels, self.side, self.side)


class DecodedChunk(TypedDict):
    """The first row of a chunk, and by row the reasons of unreadable files and notes on others."""

    start: int
    failed: dict[str, str]
    notes: dict[str, str]


def decode_chunk(chunk: Chunk) -> DecodedChunk:
    """Write a chunk's rows into its file. Raises OSError where they cannot be written."""
    rows = np.zeros((len(chunk.paths), *chunk.row), np.uint8)
    failed: dict[str, str] = {}
    notes: dict[str, str] = {}
    for i, path in enumerate(chunk.paths):
        row = str(chunk.start + i)
        try:
            rows[i], note = decode_image(path, chunk.side, chunk.channels, chunk.resize)
        except Exception as error:  # whatever Pillow raises at a damaged file
            failed[row] = read_error(error)
            continue
        if note:
            notes[row] = note
    with open(chunk.file, "r+b") as file:
        file.seek(HEADER + chunk.start * rows[0].nbytes)
        file.write(rows.data)
    return {"start": chunk.start, "failed": failed, "notes": notes}


def decode_fields(fields: dict[str, Any]) -> DecodedChunk:
    """`decode_chunk` of the fields of a chunk, in a sandbox."""
    return decode_chunk(Chunk(**fields))


class DecodeWorker:
    """A sandbox that decodes, restarted after a file that crashes it."""

    def __init__(self) -> None:
        self._sandbox = Sandbox(decode_fields)

    def decode(self, chunk: Chunk) -> DecodedChunk:
        """Decode a chunk as `decode_chunk` does; a file that crashes the process is reported as unreadable."""
        try:
            answer = self._sandbox.call(asdict(chunk))
            return DecodedChunk(start=answer["start"], failed=answer["failed"], notes=answer["notes"])
        except Crashed:
            pass
        if len(chunk.paths) == 1:
            return DecodedChunk(start=chunk.start, failed={str(chunk.start): DIED}, notes={})
        decoded = DecodedChunk(start=chunk.start, failed={}, notes={})
        for i, path in enumerate(chunk.paths):  # one at a time, to find the file
            one = self.decode(Chunk(**{**asdict(chunk), "start": chunk.start + i, "paths": [path]}))
            decoded["failed"] |= one["failed"]
            decoded["notes"] |= one["notes"]
        return decoded

    def close(self) -> None:
        """End the process."""
        self._sandbox.close()
