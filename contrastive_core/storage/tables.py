"""Cells of tables that other programs open."""

from __future__ import annotations

import math
from typing import Any

__all__ = ["safe_cell"]


def safe_cell(value: Any) -> Any:
    """Text that a spreadsheet will not run as a formula."""
    text = str(value)
    return (
        f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") and not _number(text) else text
    )


def _number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
