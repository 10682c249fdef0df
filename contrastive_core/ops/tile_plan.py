"""Which tiles of an n×m matrix are needed, in what order, and what is blank in each.

All of it follows from ids: from the range of groups and rows in each stripe, most tiles are known
to be wanted whole, or not at all, without looking at a single pair.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from contrastive_core.pairs.types import NO_GROUP, NO_ROW, Pairs

__all__ = ["TilePlan"]

ONE_TILE = 1 << 22  # scores kept for the backward pass in one buffer: 16 MB in float32
SQUARE = 1 << 18  # the same where tiles serve rows and columns: there keeping spares little
TILE = 512  # rows of a tile: 1 MB in float32, about a second-level cache
CUDA_TILE = 8192


@dataclass(frozen=True)
class _Stripe:
    """What is known of some consecutive rows."""

    first_group: int
    last_group: int
    first_row: int
    last_row: int
    no_group: bool
    all_negative: bool
    any_negative: bool


class TilePlan:
    """The tiles of some pairs: `relation` is "negative" or "compared" (negatives and positives)."""

    def __init__(self, pairs: Pairs, relation: str) -> None:
        self.pairs, self.relation = pairs, relation
        n, m = len(pairs), pairs.width
        self._look()
        size = _tile_size(n, m, pairs.anchors, self.mirrored)
        self.rows, self.cols = _slices(n, size), _slices(m, size)
        self.single = len(self.rows) == len(self.cols) == 1
        self._look_at_stripes(size)
        self.rounds = [
            tiles
            for one in _rounds(len(self.rows), len(self.cols), self.mirrored)
            if (tiles := [(i, j) for i, j in one if self._kind(i, j) != "empty"])
        ]

    def _look(self) -> None:
        """What is true of all ids, in one transfer."""
        pairs = self.pairs
        rising = (pairs.candidate_rows[1:] > pairs.candidate_rows[:-1]).all()
        flags = torch.stack([pairs.as_negative.all(), pairs.as_positive.all(), rising]).tolist()
        self.all_positive, self.rising = flags[1:]
        self.mirrored = pairs.symmetric and flags[0] and flags[1]

    def _look_at_stripes(self, size: int) -> None:
        pairs = self.pairs
        ids = (pairs.candidate_groups, pairs.candidate_rows, pairs.as_negative)
        self._of_cols = _stripes(*ids, size)
        every = torch.ones_like(pairs.anchor_rows, dtype=torch.bool)
        ids = (pairs.anchor_groups, pairs.anchor_rows, every)
        self._of_rows = self._of_cols if self.mirrored else _stripes(*ids, size)

    def blank(self, x: Tensor, i: int, j: int, value: float) -> Tensor:
        """`x` (r, c), in place, with `value` where tile (i, j) has no wanted pair."""
        kind = self._kind(i, j)
        if kind == "diagonal":
            x.fill_diagonal_(value)
        elif kind == "masked":
            masks = self.pairs.masks(self.rows[i], self.cols[j])
            mask = masks.negative
            if self.relation == "compared":
                mask = mask | masks.positive
            x.masked_fill_(~mask, value)
        return x

    def _kind(self, i: int, j: int) -> str:
        """whole, empty, diagonal (all but the self pairs there) or masked."""
        a, c = self._of_rows[i], self._of_cols[j]
        apart = a.last_group < c.first_group or c.last_group < a.first_group
        one = not apart and a.first_group == a.last_group and c.first_group == c.last_group
        if one and (self.relation == "negative" or a.first_group == NO_GROUP):
            return "empty"
        if not c.any_negative and (apart or self.relation == "negative"):
            return "empty"
        if a.no_group or c.no_group or not c.all_negative:
            return "masked"
        strangers = c.last_row == NO_ROW or a.last_row < c.first_row or c.last_row < a.first_row
        if apart and strangers:
            return "whole"
        if self.relation == "compared" and self.all_positive:
            if strangers:
                return "whole"
            if self.mirrored and i == j and self.rising:
                return "diagonal"
        return "masked"


def _tile_size(n: int, m: int, like: Tensor, mirrored: bool) -> int:
    on_cpu = like.device.type == "cpu"
    if n * m <= (min(SQUARE, ONE_TILE) if mirrored and on_cpu else ONE_TILE):
        return max(1, n, m)
    if not on_cpu:
        return CUDA_TILE
    return max(TILE // 2, min(TILE, max(n, m) // 16))


def _slices(n: int, size: int) -> list[slice]:
    return [slice(i, min(i + size, n)) for i in range(0, n, size)]


def _stripes(groups: Tensor, rows: Tensor, negative: Tensor, size: int) -> list[_Stripe]:
    """What is known of each stripe of `size` rows, in one transfer."""
    n = len(groups)
    if not n:
        return []
    short = -n % size
    ids = torch.stack([groups, rows, negative.to(groups.dtype)])
    if short:
        ids = torch.cat([ids, ids[:, -1:].expand(-1, short)], dim=1)
    groups, rows, negative = ids.view(3, -1, size)
    none = (groups == NO_GROUP).any(1).to(groups.dtype)
    ends = [*groups.aminmax(dim=1), *rows.aminmax(dim=1), none, *negative.aminmax(dim=1)]
    table = torch.stack(ends, dim=1).tolist()
    return [_Stripe(*line[:4], *map(bool, line[4:])) for line in table]


def _rounds(rows: int, cols: int, mirrored: bool) -> list[list[tuple[int, int]]]:
    """All tiles, in rounds in which no two touch the same stripe.

    Mirrored: a tournament in which everyone meets everyone once (the circle method), after the
    diagonal. Else: each row stripe meets the columns in turn, all starting at another one.
    """
    if not mirrored:
        size = max(rows, cols)
        turns = [[(i, (i + r) % size) for i in range(rows)] for r in range(size)]
        return [[(i, j) for i, j in one if j < cols] for one in turns]
    size = rows + rows % 2
    ring = list(range(size))
    rounds = [[(i, i) for i in range(rows)]]
    for _ in range(size - 1):
        meet = [(ring[k], ring[size - 1 - k]) for k in range(size // 2)]
        rounds.append([(min(p), max(p)) for p in meet if max(p) < rows])
        ring = [ring[0], ring[-1], *ring[1:-1]]
    return rounds
