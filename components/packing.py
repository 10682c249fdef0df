"""One packed blob for the browser: a header in JSON, then arrays, each at a multiple of eight.

Only data that are bytes as a whole reach a browser part as they are. `unpack` in packing.js is the
inverse. `mount` joins a part's scripts, which share one scope, into the module that Streamlit
sends.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["mount", "pack"]

HERE = Path(__file__).parent

ALIGN = 8


def pack(meta: dict[str, Any], **arrays: bytes) -> bytes:
    """Meta data and named arrays as one blob."""
    places: dict[str, tuple[int, int]] = {}
    parts, at = [], 0
    for name, data in arrays.items():
        places[name] = (at, len(data))
        padding = -len(data) % ALIGN
        parts += [data, b"\0" * padding]
        at += len(data) + padding
    header = json.dumps({"meta": meta, "places": places}).encode()
    header += b" " * (-(len(header) + ALIGN) % ALIGN)
    return len(header).to_bytes(ALIGN, "little") + header + b"".join(parts)


def mount(name: str, scripts: Sequence[str], style: str) -> Any:
    """A browser part from script files and a style sheet of this folder."""
    import streamlit as st

    script = "\n".join((HERE / f"{s}.js").read_text("utf-8") for s in scripts)
    return st.components.v2.component(
        name,
        html="<div></div>",
        css=(HERE / f"{style}.css").read_text("utf-8"),
        js=script.replace("export function", "function"),
    )
