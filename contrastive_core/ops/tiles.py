"""An n×m matrix of products, tile by tile: which tiles there are, and which of their entries count.

Where anchors and candidates are the same rows, a tile serves its rows and its columns, which halves the products:
across two towers a·bᵀ is computed once for both directions. Entries that do not count are listed by group where they
are few; elsewhere masks are derived from ids, for the tiles that need one.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from contrastive_core.device import is_free_to_read
from contrastive_core.pairs.types import NO_GROUP, NO_ROW, Pairs

TILE = 512  # rows of a tile: 1 MB in float32, about a second-level cache
CUDA_TILE = 8192
LOOK_FROM = CUDA_TILE**2  # scores on a device from which on the tiles left out are worth waiting for their ids
LISTED = 32  # entries an anchor, on average, up to which those of its group are listed


@dataclass(frozen=True)
class Stripe:
    """Some consecutive rows: the range of their groups, row ids and views, and whether each may be every anchor's
    negative, or positive."""

    rows: slice
    first_group: int
    first_row: int
    first_view: int
    all_negative: int
    all_positive: int
    last_group: int
    last_row: int
    last_view: int

    def __len__(self) -> int:
        return self.rows.stop - self.start

    @property
    def start(self) -> int:
        return self.rows.start


class Tiles:
    """The tiles of some pairs, and which entries of each are wanted."""

    def __init__(self, pairs: Pairs, scale: float | Tensor, relation: str, limits: Tensor | None = None) -> None:
        """Args: relation: "negative" or "compared"; limits: (n), logits above which a candidate is left out."""
        self.pairs, self.scale, self.relation, self.limits = pairs, scale, relation, limits
        self.looks = is_free_to_read(pairs.anchors) or len(pairs) * pairs.width > LOOK_FROM
        if not self.looks:  # every tile is masked: to know more of it would wait for the device
            self.mirrored, self.unwanted, all_columns = False, None, _unknown(pairs.width)
            self.stripes = [(i, all_columns) for i in _unknown(len(pairs))]
            return
        roles = torch.stack([pairs.as_negative, pairs.as_positive]).long()
        ids = (pairs.candidate_groups, pairs.candidate_rows, pairs.candidate_views)
        columns = _stripes(torch.stack([*ids, *roles]), pairs)
        self.mirrored = pairs.symmetric and bool(roles.all())
        every = torch.ones_like(pairs.anchor_rows)
        ids = (pairs.anchor_groups, pairs.anchor_rows, pairs.anchor_views)
        stripes = columns if self.mirrored else _stripes(torch.stack([*ids, every, every]), pairs)
        self.stripes = [
            (i, [j for j in (columns[k:] if self.mirrored else columns) if not self._is_empty(i, j)])
            for k, i in enumerate(stripes)
        ]
        self.unwanted = self._list_unwanted(stripes, columns)

    @property
    def size(self) -> int:
        """How many entries all tiles have."""
        return sum(len(i) * len(j) for i, columns in self.stripes for j in columns)

    def logits(self, a: Tensor, c: Tensor, i: Stripe, j: Stripe) -> Tensor:
        """ℓ of a tile (r, c), −inf where it is not wanted."""
        logits = (self.scale * a[i.rows]) @ c[j.rows].mT
        if self._is_whole_but_for_groups(i, j):
            if self.unwanted is not None:
                entries = self.unwanted.get((i.start, j.start))
                if entries is not None:
                    logits.view(-1).index_fill_(0, entries, -torch.inf)
                return logits
            if self._has_strangers(i, j) and (self.relation == "compared" or groups_differ(i, j)):
                return logits
        masks = self.pairs.masks(i.rows, j.rows)
        wanted = masks.negative if self.relation == "negative" else masks.negative | masks.positive
        return logits.masked_fill_(~wanted, -torch.inf)

    def of_rows(self, logits: Tensor, i: Stripe) -> Tensor:
        """A tile's logits as its rows count them."""
        return logits if self.limits is None else logits.masked_fill(logits > self.limits[i.rows, None], -torch.inf)

    def of_columns(self, logits: Tensor, j: Stripe) -> Tensor:
        """A tile's logits as its columns count them."""
        return logits if self.limits is None else logits.masked_fill(logits > self.limits[j.rows], -torch.inf)

    def per_entry(self, of_rows: Tensor, i: Stripe, j: Stripe) -> Tensor:
        """What is sent to the entries of a tile by its rows (n), and by its columns where it serves them: (r, c) or
        (r, 1)."""
        weight = of_rows[i.rows, None]
        return weight + of_rows[j.rows] if self.mirrored else weight

    def gradients(self, a: Tensor, c: Tensor) -> tuple[Tensor, Tensor | None]:
        """Zeros for the gradients of anchors and candidates: those of mirrored tiles all go to the anchors."""
        return torch.zeros_like(a), None if self.mirrored else torch.zeros_like(c)

    def add_gradients(
        self, h: Tensor, rows: tuple[Tensor, Tensor], grads: tuple[Tensor, Tensor | None], at: "Tile"
    ) -> None:
        """Add what ∂/∂ℓ of a tile, h (r, c), sends to anchors and candidates."""
        (a, c), (grad_a, grad_c), (i, j) = rows, grads, at
        alpha = self.scale
        if isinstance(alpha, Tensor):  # of a learned τ, which stays on its device
            h, alpha = alpha * h, 1.0
        grad_a[i.rows].addmm_(h, c[j.rows], alpha=alpha)
        if i is not j or grad_c is not None:
            (grad_a if grad_c is None else grad_c)[j.rows].addmm_(h.mT, a[i.rows], alpha=alpha)

    def _is_whole_but_for_groups(self, i: Stripe, j: Stripe) -> bool:
        """Whether all entries are surely wanted that are in two groups, or are positives that count."""
        grouped = i.first_group != NO_GROUP and j.first_group != NO_GROUP
        crossed = not self.pairs.across or _views_differ(i, j)
        return bool(grouped and crossed and j.all_negative and (self.relation == "negative" or j.all_positive))

    @staticmethod
    def _has_strangers(i: Stripe, j: Stripe) -> bool:
        """Whether no row surely meets itself."""
        return j.last_row == NO_ROW or i.last_row < j.first_row or j.last_row < i.first_row

    def _is_empty(self, i: Stripe, j: Stripe) -> bool:
        return self.pairs.across and i.first_view == i.last_view == j.first_view == j.last_view

    def _list_unwanted(self, stripes: list[Stripe], columns: list[Stripe]) -> dict[tuple[int, int], Tensor] | None:
        """By tile, the entries (k) in its flat order that do not count: of one group, or self pairs alone; None where
        they are many."""
        pairs = self.pairs
        if not stripes or not columns or (entries := _entries_in_a_group(pairs, LISTED * len(pairs))) is None:
            return None
        row, column = entries
        if self.relation == "compared":
            themselves = (pairs.anchor_rows[row] == pairs.candidate_rows[column]) & (pairs.anchor_rows[row] != NO_ROW)
            row, column = row[themselves], column[themselves]
        (first_i, i), (first_j, j) = _place_in(stripes, row), _place_in(columns, column)
        widths = torch.tensor([len(one) for one in columns], device=row.device)
        tile, order = (i * len(columns) + j).sort()
        flat = ((row - first_i) * widths[j] + column - first_j)[order]
        tiles, sizes = tile.unique_consecutive(return_counts=True)
        found = zip(tiles.tolist(), flat.split(sizes.tolist()), strict=True)
        return {(stripes[k // len(columns)].start, columns[k % len(columns)].start): part for k, part in found}


Tile = tuple[Stripe, Stripe]


def groups_differ(i: Stripe, j: Stripe) -> bool:
    """Whether no row of one stripe is surely in a group of the other."""
    return i.last_group < j.first_group or j.last_group < i.first_group


def _entries_in_a_group(pairs: Pairs, most: int) -> tuple[Tensor, Tensor] | None:
    """Anchor and candidate (k) of every pair in one group, self pairs included; None where there are over `most`."""
    order, first, last = pairs.group_places
    number = torch.where(pairs.anchor_groups == NO_GROUP, 0, last - first)  # (n)
    total = int(number.sum())
    if total > most:
        return None
    anchor = torch.arange(len(pairs), device=order.device).repeat_interleave(number, output_size=total)
    within = torch.arange(total, device=order.device) - (number.cumsum(0) - number)[anchor]
    return anchor, order[first[anchor] + within]


def _views_differ(i: Stripe, j: Stripe) -> bool:
    return i.first_view == i.last_view != j.first_view == j.last_view


def _unknown(n: int) -> list[Stripe]:
    """Stripes of n rows on a device, of which nothing is known."""
    parts = (slice(start, min(n, start + CUDA_TILE)) for start in range(0, n, CUDA_TILE))
    return [Stripe(rows, NO_GROUP, NO_ROW, 0, False, False, NO_GROUP, n, 1) for rows in parts]


def _place_in(stripes: list[Stripe], row: Tensor) -> tuple[Tensor, Tensor]:
    """Where the stripe of each row (k) starts, and which it is."""
    starts = torch.tensor([one.start for one in stripes], device=row.device)
    which = torch.searchsorted(starts, row, right=True) - 1
    return starts[which], which


def _stripes(ids: Tensor, pairs: Pairs) -> list[Stripe]:
    """Stripes of the ids (5, n): groups, row ids, views, as negative, as positive. Each tower begins a new one."""
    n, size = ids.shape[1], TILE if pairs.anchors.device.type == "cpu" else CUDA_TILE
    changes = (ids[2].diff().nonzero()[:, 0] + 1).tolist() if pairs.across else []
    ends = [*changes, n] if len(changes) <= n // size else [n]
    return [
        stripe
        for start, stop in zip([0, *ends], ends, strict=False)
        for stripe in _stripes_between(ids[:, start:stop], start, size)
    ]


def _stripes_between(ids: Tensor, start: int, size: int) -> list[Stripe]:
    n = ids.shape[1]
    if not n:
        return []
    padded = torch.cat([ids, ids[:, -1:].expand(-1, -n % size)], dim=1).view(5, -1, size)
    low, high = padded.aminmax(dim=2)
    table = torch.cat([low, high[:3]]).mT.tolist()  # one transfer
    return [Stripe(slice(start + k * size, start + min(n, (k + 1) * size)), *line) for k, line in enumerate(table)]
