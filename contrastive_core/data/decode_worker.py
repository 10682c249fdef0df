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


class DecodedChunk(TypedDict):
    """The first row of a chunk, and by row the reasons of unreadable files and notes on others."""

    start: int
    failed: dict[str, str]
    notes: dict[str, str]


class Form(TypedDict):
    """Pixels of a side, channels and way to get there of every image."""

    side: int
    channels: int
    resize: str


def decode_chunk(file: str, start: int, paths: list[str], form: Form) -> DecodedChunk:
    """Write images into the rows of a file from `start` on. Raises OSError where they cannot be written."""
    rows = np.zeros((len(paths), form["channels"], form["side"], form["side"]), np.uint8)
    decoded = DecodedChunk(start=start, failed={}, notes={})
    for i, path in enumerate(paths):
        try:
            rows[i], note = decode_image(path, **form)
        except Exception as error:  # whatever Pillow raises at a damaged file
            decoded["failed"][str(start + i)] = read_error(error)
            continue
        if note:
            decoded["notes"][str(start + i)] = note
    with open(file, "r+b") as out:
        out.seek(HEADER + start * rows[0].nbytes)
        out.write(rows.data)
    return decoded


def decode_sandboxed(sandbox: Sandbox, file: str, start: int, paths: list[str], form: Form) -> DecodedChunk:
    """`decode_chunk` in its sandbox; a file that crashes the process is reported as unreadable."""
    try:
        decoded: DecodedChunk = sandbox.call(file, start, paths, form)
        return decoded
    except Crashed:
        if len(paths) == 1:
            return DecodedChunk(start=start, failed={str(start): DIED}, notes={})
    decoded = DecodedChunk(start=start, failed={}, notes={})
    for i, path in enumerate(paths):  # one at a time, to find the file
        one = decode_sandboxed(sandbox, file, start + i, [path], form)
        decoded["failed"] |= one["failed"]
        decoded["notes"] |= one["notes"]
    return decoded
