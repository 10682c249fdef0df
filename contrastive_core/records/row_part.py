"""The rows that belong to one of several processes."""

from __future__ import annotations


def part_of(n: int, part: tuple[int, int]) -> slice:
    """The rows of n that belong to part i of k (`part`): contiguous, sizes differ by at most one."""
    i, of = part
    return slice(n * i // of, n * (i + 1) // of)
