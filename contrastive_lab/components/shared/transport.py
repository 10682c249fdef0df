"""One packed blob for the browser: a header in JSON, then arrays, each at a multiple of eight.

Only data that are bytes as a whole reach a browser part as they are. `unpack` in transport.js is
the inverse.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from contrastive_lab import locale

ALIGN = 8
TEXTS = {"hints", "label", "note", "reason", "scoreName", "sentence", "title", "why"}  # keys of texts to show


def pack(meta: dict[str, Any], **arrays: bytes) -> bytes:
    """Meta data and named arrays as one blob."""
    places: dict[str, tuple[int, int]] = {}
    parts, offset = [], 0
    for name, data in arrays.items():
        places[name] = (offset, len(data))
        padding = -len(data) % ALIGN
        parts += [data, b"\0" * padding]
        offset += len(data) + padding
    header = json.dumps({"meta": localized(meta), "places": places}).encode()
    header += b" " * (-(len(header) + ALIGN) % ALIGN)
    return len(header).to_bytes(ALIGN, "little") + header + b"".join(parts)


def localized(meta: dict[str, Any]) -> dict[str, Any]:
    """Meta data in the session's language, with the messages of the browser parts beside it."""
    if (language := locale.language()) == "en":
        return meta
    return {**_translated(meta), "language": language, "messages": locale.browser_messages(language)}


def _translated(node: Any, key: str = "") -> Any:
    """Messages of the library, and constants under a key of TEXTS, translated; names stay."""
    if isinstance(node, dict):
        return {k: _translated(v, str(k)) for k, v in node.items()}
    if isinstance(node, (list, tuple)):
        return [_translated(one, key) for one in node]
    return locale.text(node) if isinstance(node, locale.Message) or (isinstance(node, str) and key in TEXTS) else node


def float_bytes(array: Any) -> bytes:
    """An array as float32, in C order."""
    return np.ascontiguousarray(array, np.float32).tobytes()


def mask_bytes(array: Any) -> bytes:
    """A mask as uint8, in C order."""
    return np.ascontiguousarray(array, np.uint8).tobytes()
