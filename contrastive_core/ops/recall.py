"""Which share of the true neighbors several searches found."""

from __future__ import annotations

from collections.abc import Iterable


def lowest_recall(recalls: Iterable[float | None]) -> float | None:
    """The lowest of some searches; None, as of an exact one, where all of them are exact."""
    return min((recall for recall in recalls if recall is not None), default=None)
