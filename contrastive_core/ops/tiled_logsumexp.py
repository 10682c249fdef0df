"""Row log-sum-exps of an n×m matrix of logits that is never held.

A tile of the matrix is made, its exponentials are summed, and it is forgotten; the backward pass
makes each tile again. Where anchors and candidates are the same rows, a tile serves its rows and its
columns, which halves the products: across two towers a·bᵀ is computed once for both directions. Masks are
derived from ids for the tiles that need one: from the range of groups, row ids and views in each stripe of
rows, most tiles are known to be wanted whole, or not at all.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from contrastive_core.ops.similarity import full_precision
from contrastive_core.pairs.types import NO_GROUP, NO_ROW, Pairs
from contrastive_core.progress import OnFraction, ignore_fraction

LARGEST = {torch.float32: 40.0, torch.float64: 300.0}  # |logit| whose exponentials can be summed as they are
TILE = 512  # rows of a tile: 1 MB in float32, about a second-level cache
CUDA_TILE = 8192


def tiled_logsumexp(
    pairs: Pairs, scale: float, relation: str, on_fraction: OnFraction = ignore_fraction, limits: Tensor | None = None
) -> Tensor:
    """log Σ e^(scale · a·c) of every anchor over its negatives, or over all it is compared with; (n).

    Args: pairs: related by id; relation: "negative" or "compared"; limits: (n), logits above which a candidate is left
    out. −inf, with zero gradient, where there is none.
    """
    tiles = Tiles(pairs, scale, relation, limits)
    return _TiledLogSumExp.apply(pairs.anchors, pairs.candidates, tiles, on_fraction)


@dataclass(frozen=True)
class _Stripe:
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


class Tiles:
    """The tiles of some pairs, and which entries of each are wanted."""

    def __init__(self, pairs: Pairs, scale: float, relation: str, limits: Tensor | None = None) -> None:
        self.pairs, self.scale, self.relation, self.limits = pairs, scale, relation, limits
        size = TILE if pairs.anchors.device.type == "cpu" else CUDA_TILE
        roles = torch.stack([pairs.as_negative, pairs.as_positive]).long()
        ids = (pairs.candidate_groups, pairs.candidate_rows, pairs.candidate_views)
        columns = _stripes(torch.stack([*ids, *roles]), size)
        self.mirrored = pairs.symmetric and bool(roles.all())
        every = torch.ones_like(pairs.anchor_rows)
        ids = (pairs.anchor_groups, pairs.anchor_rows, pairs.anchor_views)
        stripes = columns if self.mirrored else _stripes(torch.stack([*ids, every, every]), size)
        self.stripes = [
            (i, [j for j in (columns[k:] if self.mirrored else columns) if not self._is_empty(i, j)])
            for k, i in enumerate(stripes)
        ]

    def logits(self, a: Tensor, c: Tensor, i: _Stripe, j: _Stripe) -> Tensor:
        """ℓ of a tile (r, c), −inf where it is not wanted."""
        logits = (self.scale * a[i.rows]) @ c[j.rows].mT
        if self.is_whole(i, j):
            return logits
        masks = self.pairs.masks(i.rows, j.rows)
        wanted = masks.negative if self.relation == "negative" else masks.negative | masks.positive
        return logits.masked_fill_(~wanted, -torch.inf)

    def of_rows(self, logits: Tensor, i: _Stripe) -> Tensor:
        """A tile's logits as its rows count them."""
        return logits if self.limits is None else logits.masked_fill(logits > self.limits[i.rows, None], -torch.inf)

    def of_columns(self, logits: Tensor, j: _Stripe) -> Tensor:
        """A tile's logits as its columns count them."""
        return logits if self.limits is None else logits.masked_fill(logits > self.limits[j.rows], -torch.inf)

    def is_whole(self, i: _Stripe, j: _Stripe) -> bool:
        """Whether all entries are surely wanted."""
        grouped = i.first_group != NO_GROUP and j.first_group != NO_GROUP
        strangers = j.last_row == NO_ROW or i.last_row < j.first_row or j.last_row < i.first_row
        compared = self.relation == "compared" and j.all_positive
        crossed = not self.pairs.across or _views_differ(i, j)
        return bool(grouped and strangers and crossed and j.all_negative and (compared or groups_differ(i, j)))

    def _is_empty(self, i: _Stripe, j: _Stripe) -> bool:
        return self.pairs.across and i.first_view == i.last_view == j.first_view == j.last_view


def groups_differ(i: _Stripe, j: _Stripe) -> bool:
    """Whether no row of one stripe is surely in a group of the other."""
    return i.last_group < j.first_group or j.last_group < i.first_group


def _views_differ(i: _Stripe, j: _Stripe) -> bool:
    return i.first_view == i.last_view != j.first_view == j.last_view


def _stripes(ids: Tensor, size: int) -> list[_Stripe]:
    """Stripes of `size` rows of the ids (5, n): groups, row ids, views, as negative, as positive."""
    n = ids.shape[1]
    if not n:
        return []
    padded = torch.cat([ids, ids[:, -1:].expand(-1, -n % size)], dim=1).view(5, -1, size)
    low, high = padded.aminmax(dim=2)
    table = torch.cat([low, high[:3]]).mT.tolist()  # one transfer
    return [_Stripe(slice(k * size, min(n, (k + 1) * size)), *line) for k, line in enumerate(table)]


class _TiledLogSumExp(torch.autograd.Function):
    """Keeps rows and their log-sum-exps. All steps can be differentiated again."""

    @staticmethod
    def forward(a: Tensor, c: Tensor, tiles: Tiles, on_fraction: OnFraction) -> Tensor:
        small = _are_small(a, c, tiles)
        sums, tops = a.new_zeros(len(a)), a.new_full((len(a),), 0.0 if small else -torch.inf)
        for done, (i, columns) in enumerate(tiles.stripes, 1):
            for j in columns:
                logits, mirrored = tiles.logits(a, c, i, j), tiles.mirrored and i is not j
                if small:
                    e = logits.exp_()
                    sums[i.rows] += e.sum(1)
                    if mirrored:
                        sums[j.rows] += e.sum(0)
                    continue
                _add(sums[i.rows], tops[i.rows], tiles.of_rows(logits, i), 1)
                if mirrored:
                    _add(sums[j.rows], tops[j.rows], tiles.of_columns(logits, j), 0)
            on_fraction(done / len(tiles.stripes))
        return sums.log() + tops

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        ctx.tiles = inputs[2]
        ctx.save_for_backward(*inputs[:2], output)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        a, c, lse = ctx.saved_tensors
        tiles, grad_a, grad_c = ctx.tiles, torch.zeros_like(a), torch.zeros_like(c)
        some = lse > -torch.inf
        share = _Share(tiles, torch.where(some, g, 0.0), torch.where(some, lse, 0.0), _are_small(a, c, tiles))
        with full_precision(a.device):
            for i, columns in tiles.stripes:
                for j in columns:
                    h = share.of(tiles.logits(a, c, i, j), i, j)  # (r, c): ∂/∂ℓ
                    grad_a[i.rows] += h @ c[j.rows]
                    if tiles.mirrored and i is not j:
                        grad_a[j.rows] += h.mT @ a[i.rows]
                    elif ctx.needs_input_grad[1] and not tiles.mirrored:
                        grad_c[j.rows] += h.mT @ a[i.rows]
        return tiles.scale * grad_a, tiles.scale * grad_c, None, None


def _are_small(a: Tensor, c: Tensor, tiles: Tiles) -> bool:
    """Whether all exponentials can be summed as they are, and count alike for rows and columns."""
    lengths = [float(z.detach().norm(dim=1).amax()) if len(z) else 0.0 for z in (a, c)]
    return tiles.limits is None and abs(tiles.scale) * lengths[0] * lengths[1] <= LARGEST[a.dtype]


def _add(sums: Tensor, tops: Tensor, logits: Tensor, dim: int) -> None:
    """Add Σ e^ℓ over `dim` to sums · e^tops, in place: the largest exponent so far is taken out."""
    peak = torch.maximum(tops, logits.amax(dim))
    safe = torch.where(peak == -torch.inf, 0.0, peak)
    sums.mul_((tops - safe).exp()).add_((logits - safe.unsqueeze(dim)).exp_().sum(dim))
    tops.copy_(peak)


class _Share:
    """What the gradient of each row's log-sum-exp, g (n), sends to the logits of a tile."""

    def __init__(self, tiles: Tiles, g: Tensor, lse: Tensor, small: bool) -> None:
        self.tiles, self.g, self.lse = tiles, g, lse
        self.each = g * (-lse).exp() if small else None  # (n): ∂/∂ Σ e^ℓ

    def of(self, logits: Tensor, i: _Stripe, j: _Stripe) -> Tensor:
        """∂/∂ℓ (r, c); where a tile is mirrored, each entry is that of its column's row, too."""
        mirrored = self.tiles.mirrored
        if self.each is not None:
            weight = self.each[i.rows, None]  # (r, 1)
            return (weight + self.each[j.rows] if mirrored else weight) * logits.exp_()
        h = self.g[i.rows, None] * (self.tiles.of_rows(logits, i) - self.lse[i.rows, None]).exp()
        if not mirrored:
            return h
        return h + self.g[j.rows] * (self.tiles.of_columns(logits, j) - self.lse[j.rows]).exp()
