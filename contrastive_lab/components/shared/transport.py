"""One packed blob for the browser: a header in JSON, then arrays, each at a multiple of eight.

Only data that are bytes as a whole reach a browser part as they are. `unpack` in transport.js is
the inverse.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from contrastive_lab import words

__all__ = ["float_bytes", "mask_bytes", "pack"]

ALIGN = 8


def pack(meta: dict[str, Any], **arrays: bytes) -> bytes:
    """Meta data and named arrays as one blob."""
    places: dict[str, tuple[int, int]] = {}
    parts, offset = [], 0
    for name, data in arrays.items():
        places[name] = (offset, len(data))
        padding = -len(data) % ALIGN
        parts += [data, b"\0" * padding]
        offset += len(data) + padding
    header = json.dumps({"meta": with_words(meta), "places": places}).encode()
    header += b" " * (-(len(header) + ALIGN) % ALIGN)
    return len(header).to_bytes(ALIGN, "little") + header + b"".join(parts)


def with_words(meta: dict[str, Any]) -> dict[str, Any]:
    """Meta data with the words that its part says, and those in it, in the session's language
    (words.js); in English as it is."""
    language = words.language()
    if language == "en":
        return meta
    said = {text: words.translate(text, language) for text in set(_texts(meta))}
    news = {text: other for text, other in said.items() if other != text}
    return {**meta, "words": words.of_browser_parts(language) | news}


def _texts(node: Any) -> Iterator[str]:
    """Every text in meta data. Ids and keys are in no catalog."""
    if isinstance(node, str):
        yield node
    elif isinstance(node, dict):
        for value in node.values():
            yield from _texts(value)
    elif isinstance(node, (list, tuple)):
        for value in node:
            yield from _texts(value)


def float_bytes(array: Any) -> bytes:
    """An array as float32, in C order."""
    return np.ascontiguousarray(array, np.float32).tobytes()


def mask_bytes(array: Any) -> bytes:
    """A mask as uint8, in C order."""
    return np.ascontiguousarray(array, np.uint8).tobytes()
