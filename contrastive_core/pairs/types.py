"""Who is compared with whom, as ids and not as an n×m mask: masks are derived tile by tile, so
that a loss over 100,000 rows runs in a few megabytes.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from contrastive_core.messages import N_
from contrastive_core.pairs.checks import check_pairs

__all__ = ["NO_GROUP", "NO_ROW", "Masks", "Pairs"]

NO_GROUP = -1  # a label that belongs to no group: neither positive nor negative of anything
NO_ROW = -1  # a candidate that is nobody's own row (memory bank, queue)

Rows = slice | Tensor  # some rows: a slice, or their numbers


def is_rows(x: Any, ndim: int) -> bool:
    """Whether these are floating-point numbers of so many dimensions: the look that every step takes. What is wrong
    with others checks.py says."""
    return isinstance(x, Tensor) and x.ndim == ndim and x.is_floating_point()


def _fit(a: Any, c: Any, anchor_ids: list[Tensor], candidate_ids: list[Tensor]) -> bool:
    """Whether these are surely pairs; others may be, too."""
    if not is_rows(a, 2) or not is_rows(c, 2):
        return False
    (n, d), (m, width) = a.shape, c.shape
    return (
        (d, a.dtype, a.device) == (width, c.dtype, c.device)
        and {x.shape for x in anchor_ids} == {(n,)}
        and {x.shape for x in candidate_ids} == {(m,)}
    )


class Masks(NamedTuple):
    """Boolean relations of some anchors (rows) to some candidates (columns)."""

    positive: Bool[Tensor, "n m"]
    negative: Bool[Tensor, "n m"]
    self_pair: Bool[Tensor, "n m"]


@dataclass(frozen=True, eq=False)
class Pairs:
    """Anchors, candidates, and who relates to whom.

    A candidate is a positive of an anchor if both are in the same group and it is `as_positive`;
    a negative if both are in some group, not the same one, and it is `as_negative`. Equal row ids
    make a self pair, which is neither; a row has one group wherever it stands. With `columns`,
    anchor i meets only the candidates `columns[i]` (repeats count each time). With explicit
    `positive`/`negative` masks these decide instead of the groups. `across` compares rows of different views (0 and 1)
    only: two towers. `log_z` and `population` serve noise-contrastive estimation, `temperature` and `bias` are learned
    ones, `seed` is of what a loss draws, `targets` are each anchor's shares of the candidates. `group_size` is how many
    candidates the largest group has, where it is known without counting.
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
    log_z: float | Float[Tensor, ""] | None = None
    across: bool = False
    temperature: Float[Tensor, ""] | None = None
    bias: Float[Tensor, ""] | None = None
    seed: int = 0
    targets: Float[Tensor, "n m"] | None = None
    group_size: int | None = None

    def __post_init__(self) -> None:
        anchor_ids = [self.anchor_groups, self.anchor_rows, self.anchor_views]
        candidate_ids = [self.candidate_groups, self.candidate_rows, self.candidate_views]
        roles = [self.as_positive, self.as_negative]
        if not _fit(self.anchors, self.candidates, anchor_ids, candidate_ids + roles):
            check_pairs(self.anchors, self.candidates, anchor_ids, candidate_ids + roles)

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
    def group_keys(self) -> tuple[Tensor, Tensor]:
        """Numbers (n) and (m) that are equal where anchor and candidate share a group; across towers: that of the
        other."""
        if not self.across:
            return self.anchor_groups.contiguous(), self.candidate_groups
        return 2 * self.anchor_groups + 1 - self.anchor_views, 2 * self.candidate_groups + self.candidate_views

    @cached_property
    def group_places(self) -> tuple[Tensor, Tensor, Tensor]:
        """Candidates in the order of their groups (m), and where in it each anchor's group begins and ends; (n)."""
        wanted, groups = self.group_keys
        groups, order = groups.sort(stable=True)
        return order, torch.searchsorted(groups, wanted), torch.searchsorted(groups, wanted, right=True)

    def with_rows(self, anchors: Float[Tensor, "n d"], candidates: Float[Tensor, "m d"]) -> Pairs:
        """The same relations between other vectors, row for row."""
        return dataclasses.replace(self, anchors=anchors, candidates=candidates)

    def take_anchors(self, rows: Rows) -> Pairs:
        """Some anchors, with all their candidates."""
        names = (
            "anchors",
            "anchor_groups",
            "anchor_rows",
            "anchor_views",
            "columns",
            "positive",
            "negative",
            "targets",
        )
        parts: dict[str, Any] = {k: x[rows] for k in names if (x := getattr(self, k)) is not None}
        return dataclasses.replace(self, **parts)

    def take_candidates(self, rows: Rows) -> Pairs:
        """All anchors, with some candidates. Raises ValueError where `columns` number them."""
        if self.columns is not None:
            raise ValueError(N_("candidates referenced by columns cannot be removed"))
        names = ("candidates", "candidate_groups", "candidate_rows", "candidate_views", "as_positive", "as_negative")
        parts: dict[str, Any] = {name: getattr(self, name)[rows] for name in names}
        if self.positive is not None and self.negative is not None:
            parts |= {"positive": self.positive[:, rows], "negative": self.negative[:, rows]}
        return dataclasses.replace(self, **parts)

    def among_candidates(self) -> Pairs:
        """Every candidate in the place of its partner: compared with what the anchors of its group are compared with;
        of pairs related by id."""
        return dataclasses.replace(
            self,
            anchors=self.candidates,
            anchor_groups=self.candidate_groups,
            anchor_rows=self.candidate_rows,
            anchor_views=1 - self.candidate_views if self.across else self.candidate_views,
        )

    def tower_weight(self) -> Tensor | None:
        """1/(2n) for an anchor of the first tower and 1/(2m) for one of the second, 1 for towers of one size;
        (anchors). None for pairs that are not across."""
        if not self.across:
            return None
        m = self.candidate_views.sum()
        sizes = torch.stack([self.candidates.shape[0] - m, m])
        each = torch.where(sizes[0] == sizes[1], 1.0, 0.5 / sizes.clamp_min(1).to(self.anchors.dtype))
        return each[self.anchor_views]

    def masks(self, rows: slice = slice(None), cols: slice = slice(None)) -> Masks:
        """Relations of anchors `rows` to candidates (or columns) `cols`: bool (r, c) each."""
        g_i, r_i = self.anchor_groups[rows, None], self.anchor_rows[rows, None]
        j = (None, cols) if self.columns is None else (self.columns[rows, cols],)  # (1, c) or (r, c)
        g_j, r_j = self.candidate_groups[j], self.candidate_rows[j]
        self_pair = torch.where(r_i == NO_ROW, NO_ROW - 1, r_i) == r_j
        comparable = ~self_pair
        if self.across:
            comparable &= self.anchor_views[rows, None] != self.candidate_views[j]
        if self.positive is not None and self.negative is not None:
            positive, negative = self.positive[rows, cols], self.negative[rows, cols]
            return Masks(positive & comparable, negative & comparable, self_pair)
        grouped = g_i != NO_GROUP
        same = torch.where(grouped, g_i, NO_GROUP - 1) == g_j
        negative = grouped & (self.as_negative[j] & (g_j != NO_GROUP))
        negative &= comparable & ~same
        positive = same & self.as_positive[j]
        positive &= comparable
        return Masks(positive, negative, self_pair)
