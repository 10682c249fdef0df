"""Keys of widgets and browser parts, made from whatever names a class, a file or a run has."""

from __future__ import annotations

import hashlib
import re
from typing import Any

__all__ = ["component_key", "key_of"]

PLAIN = re.compile(r"[A-Za-z0-9 ._-]{1,80}")


def key_of(kind: str, *parts: Any) -> str:
    """A key that says what it is for and digests the rest: names may hold anything.

    Args: kind: a short plain word; parts: plain values, equal parts give equal keys.
    """
    return f"{kind}-{hashlib.sha256(repr(parts).encode()).hexdigest()[:16]}"


def component_key(text: str) -> str:
    """The key itself where it is plain; Streamlit refuses two underscores in a component's key."""
    return text if PLAIN.fullmatch(text) and "__" not in text else key_of("part", text)
