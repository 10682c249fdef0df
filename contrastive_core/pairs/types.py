"""The types that everything else speaks: who is compared with whom, and what it cost.

`Pairs` carries relations as ids, not as an n×m mask, so that masks can be derived tile by tile
and a loss over 100,000 rows runs in a few megabytes. (`EmbeddingSet`, which pages read without
torch, lives in `embedding_set.py`.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

__all__ = ["NO_GROUP", "NO_ROW", "Even", "Masks", "Pairs"]

NO_GROUP = -1  # a label that belongs to no group: neither positive nor negative of anything
NO_ROW = -1  # a candidate that is nobody's own row (memory bank, queue)


class Masks(NamedTuple):
    """Boolean relations of some anchors (rows) to some candidates (columns)."""

    positive: Bool[Tensor, "n m"]
    negative: Bool[Tensor, "n m"]
    self_pair: Bool[Tensor, "n m"]


class Even(NamedTuple):
    """Ids known to be even: row i belongs to group i // views, is row i, and may be anything."""

    views: int
    groups: Int[Tensor, " n"]
    rows: Int[Tensor, " n"]
    allowed: Bool[Tensor, " n"]


@dataclass(frozen=True, eq=False)
class Pairs:
    """Anchors, candidates, and who relates to whom.

    A candidate is a positive of an anchor if both are in the same group and it is `as_positive`;
    a negative if both are in some group, not the same one, and it is `as_negative`. Equal row ids
    make a self pair, which is neither. With `columns`, anchor i meets only the candidates
    `columns[i]` (repeats count each time). With explicit `positive`/`negative` masks these decide
    instead of the groups. `log_z` and `population` serve noise-contrastive estimation; `even`
    spares a look at ids that are known.
    """

    anchors: Float[Tensor, "n d"]
    candidates: Float[Tensor, "m d"]
    anchor_groups: Int[Tensor, " n"]
    candidate_groups: Int[Tensor, " m"]
    anchor_rows: Int[Tensor, " n"]
    candidate_rows: Int[Tensor, " m"]
    anchor_views: Int[Tensor, " n"]
    candidate_views: Int[Tensor, " m"]
    as_positive: Bool[Tensor, " m"]
    as_negative: Bool[Tensor, " m"]
    columns: Int[Tensor, "n k"] | None = None
    positive: Bool[Tensor, "n m"] | None = None
    negative: Bool[Tensor, "n m"] | None = None
    population: int | None = None
    log_z: float | None = None
    even: Even | None = None

    def __len__(self) -> int:
        return self.anchors.shape[0]

    @property
    def width(self) -> int:
        """Candidates each anchor meets: m, or k with `columns`."""
        return self.candidates.shape[0] if self.columns is None else self.columns.shape[1]

    @property
    def by_id(self) -> bool:
        """True when relations follow from ids alone over all n×m pairs."""
        return self.columns is None and self.positive is None

    @property
    def symmetric(self) -> bool:
        """True when anchors and candidates are the same rows in the same roles."""
        return (
            self.by_id
            and self.anchors is self.candidates
            and self.anchor_groups is self.candidate_groups
            and self.anchor_rows is self.candidate_rows
        )

    @property
    def even_views(self) -> int | None:
        """v ≥ 2 where all n rows meet, v of each group side by side: no id need be looked up.

        None where that is not known. It is known only of the very ids it was said of.
        """
        known = self.even
        if known is None or not self.symmetric or self.as_positive is not self.as_negative:
            return None
        ours = (self.anchor_groups, self.anchor_rows, self.as_positive)
        same = all(a is b for a, b in zip(ours, known[1:], strict=True))
        return known.views if same and known.views > 1 else None

    def masks(self, rows: slice = slice(None), cols: slice = slice(None)) -> Masks:
        """Relations of anchors `rows` to candidates (or columns) `cols`: bool (r, c) each."""
        g_i, r_i = self.anchor_groups[rows, None], self.anchor_rows[rows, None]
        if self.columns is not None:
            j = self.columns[rows, cols]  # (r, c)
            g_j, r_j = self.candidate_groups[j], self.candidate_rows[j]
            may_pos, may_neg = self.as_positive[j], self.as_negative[j]
        else:
            g_j, r_j = self.candidate_groups[None, cols], self.candidate_rows[None, cols]
            may_pos, may_neg = self.as_positive[None, cols], self.as_negative[None, cols]
        self_pair = torch.where(r_i == NO_ROW, NO_ROW - 1, r_i) == r_j
        if self.positive is not None and self.negative is not None:
            positive, negative = self.positive[rows, cols], self.negative[rows, cols]
            return Masks(positive & ~self_pair, negative & ~self_pair, self_pair)
        grouped = g_i != NO_GROUP
        same = torch.where(grouped, g_i, NO_GROUP - 1) == g_j
        negative = grouped & (may_neg & (g_j != NO_GROUP))
        negative &= ~(same | self_pair)
        positive = same & may_pos
        positive &= ~self_pair
        return Masks(positive, negative, self_pair)
