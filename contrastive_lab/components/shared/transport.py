"""One packed blob for the browser: a header in JSON, then arrays, each at a multiple of eight.

Only data that are bytes as a whole reach a browser part as they are. `unpack` in transport.js is
the inverse. `mount` joins a part's scripts, which share one scope, into the module that Streamlit
sends.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["SHARED", "mount", "pack"]

PARTS = Path(__file__).resolve().parents[1]

ALIGN = 8
SHARED = ("shared/transport", "shared/dom", "shared/knob")  # scripts of a part with a knob


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
    """A browser part from script files and a style sheet, named from the components' folder."""
    import streamlit as st

    script = "\n".join((PARTS / f"{s}.js").read_text("utf-8") for s in scripts)
    return st.components.v2.component(
        name,
        html="<div></div>",
        css=(PARTS / f"{style}.css").read_text("utf-8"),
        js=script.replace("export function", "function"),
    )
