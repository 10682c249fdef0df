"""How n rows are shared out among processes. Torch-free."""

from __future__ import annotations

__all__ = ["part_of"]


def part_of(n: int, part: tuple[int, int]) -> slice:
    """The rows of n that are the part's: contiguous, at most one more or less than another's."""
    i, of = part
    return slice(n * i // of, n * (i + 1) // of)
