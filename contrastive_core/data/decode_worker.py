"""Decode image files into rows of a file, one chunk per call.

Each process writes its own rows, and ends with the process that feeds it.
"""

from __future__ import annotations

from typing import TypedDict

import numpy as np

from contrastive_core.data.image_decoding import decode_image, read_error
from contrastive_core.messages import N_
from contrastive_core.storage.sandbox import Crashed, Sandbox

HEADER = 128  # bytes before the first row
DIED = N_("reading it ends the program that reads it")


class Chunk(TypedDict):
    """Files whose pixels are written to the rows of `file` from `start` on."""

    file: str
    start: int
    paths: list[str]
    side: int
    channels: int
    resize: str


class DecodedChunk(TypedDict):
    """The first row of a chunk, and by row the reasons of unreadable files and notes on others."""

    start: int
    failed: dict[str, str]
    notes: dict[str, str]


def decode_chunk(chunk: Chunk) -> DecodedChunk:
    """Write a chunk's rows into its file. Raises OSError where they cannot be written."""
    start, side, channels = chunk["start"], chunk["side"], chunk["channels"]
    rows = np.zeros((len(chunk["paths"]), channels, side, side), np.uint8)
    decoded = DecodedChunk(start=start, failed={}, notes={})
    for i, path in enumerate(chunk["paths"]):
        try:
            rows[i], note = decode_image(path, side, channels, chunk["resize"])
        except Exception as error:  # whatever Pillow raises at a damaged file
            decoded["failed"][str(start + i)] = read_error(error)
            continue
        if note:
            decoded["notes"][str(start + i)] = note
    with open(chunk["file"], "r+b") as file:
        file.seek(HEADER + start * rows[0].nbytes)
        file.write(rows.data)
    return decoded


def decode_sandboxed(sandbox: Sandbox, chunk: Chunk) -> DecodedChunk:
    """`decode_chunk` in its sandbox; a file that crashes the process is reported as unreadable."""
    start, paths = chunk["start"], chunk["paths"]
    try:
        decoded: DecodedChunk = sandbox.call(chunk)
        return decoded
    except Crashed:
        if len(paths) == 1:
            return DecodedChunk(start=start, failed={str(start): DIED}, notes={})
    decoded = DecodedChunk(start=start, failed={}, notes={})
    for i, path in enumerate(paths):  # one at a time, to find the file
        one = decode_sandboxed(sandbox, {**chunk, "start": start + i, "paths": [path]})
        decoded["failed"] |= one["failed"]
        decoded["notes"] |= one["notes"]
    return decoded
