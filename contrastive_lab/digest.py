"""Short hashes of plain values. Imports no Streamlit."""

from __future__ import annotations

import hashlib
from typing import Any


def digest(*parts: Any) -> str:
    """A short hash of plain values: the key of what was made from them."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
