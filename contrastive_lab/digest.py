"""Short hashes of plain values. Imports no Streamlit."""

from __future__ import annotations

import hashlib
from typing import Any

__all__ = ["digest"]


def digest(*parts: Any) -> str:
    """A short hash of plain values: the key of what was made from them."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
