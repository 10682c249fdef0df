"""Row log-sum-exps of an n×m matrix of logits that is never held.

A tile of the matrix is made, its exponentials are summed, and it is forgotten; the backward pass
makes each tile again. Where anchors and candidates are the same rows, a tile serves its rows and its
columns, which halves the products. Masks are derived from ids for the tiles that need one: from the
range of groups and row ids in each stripe of rows, most tiles are known to be wanted whole.
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


def can_be_tiled(pairs: Pairs, scale: float) -> bool:
    """Whether relations follow from ids, and no logit is so large that its exponential cannot be summed."""
    if not pairs.by_id:
        return False
    lengths = [float(z.detach().norm(dim=1).amax()) if len(z) else 0.0 for z in (pairs.anchors, pairs.candidates)]
    return abs(scale) * lengths[0] * lengths[1] <= LARGEST[pairs.anchors.dtype]


def tiled_logsumexp(pairs: Pairs, scale: float, relation: str, on_fraction: OnFraction = ignore_fraction) -> Tensor:
    """log Σ e^(scale · a·c) of every anchor over its negatives, or over all it is compared with; (n).

    Args: pairs: those that `can_be_tiled`; relation: "negative" or "compared". −inf, with zero
    gradient, where there is none.
    """
    tiles = _Tiles(pairs, scale, relation)
    return _TiledLogSumExp.apply(pairs.anchors, pairs.candidates, tiles, on_fraction)


@dataclass(frozen=True)
class _Stripe:
    """Some consecutive rows: the range of their groups and row ids, and whether each may be every anchor's
    negative, or positive."""

    rows: slice
    first_group: int
    first_row: int
    all_negative: int
    all_positive: int
    last_group: int
    last_row: int


class _Tiles:
    """The tiles of some pairs, and which entries of each are wanted."""

    def __init__(self, pairs: Pairs, scale: float, relation: str) -> None:
        self.pairs, self.scale, self.relation = pairs, scale, relation
        size = TILE if pairs.anchors.device.type == "cpu" else CUDA_TILE
        roles = torch.stack([pairs.as_negative, pairs.as_positive]).long()
        self.columns = _stripes(torch.stack([pairs.candidate_groups, pairs.candidate_rows, *roles]), size)
        self.mirrored = pairs.symmetric and bool(roles.all())
        every = torch.ones_like(pairs.anchor_rows)
        ids = torch.stack([pairs.anchor_groups, pairs.anchor_rows, every, every])
        stripes = self.columns if self.mirrored else _stripes(ids, size)
        self.stripes = [
            (stripe, self.columns[i:] if self.mirrored else self.columns) for i, stripe in enumerate(stripes)
        ]

    def exponentials(self, a: Tensor, c: Tensor, i: _Stripe, j: _Stripe) -> Tensor:
        """e^ℓ of a tile (r, c), 0 where it is not wanted."""
        logits = (self.scale * a[i.rows]) @ c[j.rows].mT
        if not self._is_whole(i, j):
            masks = self.pairs.masks(i.rows, j.rows)
            wanted = masks.negative if self.relation == "negative" else masks.negative | masks.positive
            logits = logits.masked_fill_(~wanted, -torch.inf)
        return logits.exp_()

    def _is_whole(self, i: _Stripe, j: _Stripe) -> bool:
        grouped = i.first_group != NO_GROUP and j.first_group != NO_GROUP
        strangers = j.last_row == NO_ROW or i.last_row < j.first_row or j.last_row < i.first_row
        apart = i.last_group < j.first_group or j.last_group < i.first_group
        compared = self.relation == "compared" and j.all_positive
        return bool(grouped and strangers and j.all_negative and (apart or compared))


def _stripes(ids: Tensor, size: int) -> list[_Stripe]:
    """Stripes of `size` rows of the ids (4, n): groups, row ids, as negative, as positive."""
    n = ids.shape[1]
    if not n:
        return []
    padded = torch.cat([ids, ids[:, -1:].expand(-1, -n % size)], dim=1).view(4, -1, size)
    low, high = padded.aminmax(dim=2)
    table = torch.cat([low, high[:2]]).mT.tolist()  # one transfer
    return [_Stripe(slice(k * size, min(n, (k + 1) * size)), *line) for k, line in enumerate(table)]


class _TiledLogSumExp(torch.autograd.Function):
    """Keeps rows and their log-sum-exps. All steps can be differentiated again."""

    @staticmethod
    def forward(a: Tensor, c: Tensor, tiles: _Tiles, on_fraction: OnFraction) -> Tensor:
        sums = a.new_zeros(len(a))
        for done, (i, columns) in enumerate(tiles.stripes, 1):
            for j in columns:
                e = tiles.exponentials(a, c, i, j)
                sums[i.rows] += e.sum(1)
                if tiles.mirrored and i is not j:
                    sums[j.rows] += e.sum(0)
            on_fraction(done / len(tiles.stripes))
        return sums.log()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        ctx.tiles = inputs[2]
        ctx.save_for_backward(*inputs[:2], output)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        a, c, lse = ctx.saved_tensors
        tiles, grad_a, grad_c = ctx.tiles, torch.zeros_like(a), torch.zeros_like(c)
        some = lse > -torch.inf
        share = torch.where(some, g, 0.0) * torch.where(some, -lse, 0.0).exp()  # (n): ∂/∂ Σ e^ℓ
        with full_precision(a.device):
            for i, columns in tiles.stripes:
                for j in columns:
                    weight = share[i.rows, None]  # (r, 1)
                    if tiles.mirrored:
                        weight = weight + share[j.rows]  # (r, c): each entry is that of its column's row, too
                    h = weight * tiles.exponentials(a, c, i, j)  # (r, c): ∂/∂ℓ
                    grad_a[i.rows] += h @ c[j.rows]
                    if tiles.mirrored and i is not j:
                        grad_a[j.rows] += h.mT @ a[i.rows]
                    elif ctx.needs_input_grad[1] and not tiles.mirrored:
                        grad_c[j.rows] += h.mT @ a[i.rows]
        return tiles.scale * grad_a, tiles.scale * grad_c, None, None
