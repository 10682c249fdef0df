"""One packed blob for the browser: a header in JSON, then arrays, each at a multiple of eight.

Only data that are bytes as a whole reach a browser part as they are. `unpack` in transport.js is
the inverse.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

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
    header = json.dumps({"meta": meta, "places": places}).encode()
    header += b" " * (-(len(header) + ALIGN) % ALIGN)
    return len(header).to_bytes(ALIGN, "little") + header + b"".join(parts)


def float_bytes(array: Any) -> bytes:
    """An array as float32, in C order."""
    return np.ascontiguousarray(array, np.float32).tobytes()


def mask_bytes(array: Any) -> bytes:
    """A mask as uint8, in C order."""
    return np.ascontiguousarray(array, np.uint8).tobytes()
