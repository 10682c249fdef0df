"""Row log-sum-exps of an n×m matrix of logits that is never held.

Where all logits are small, their exponentials are summed as they are, and count alike for rows and columns. Otherwise
the largest exponent of each row is taken out.
"""

from typing import Any

import torch
from torch import Tensor

from contrastive_core.ops.similarity import full_precision
from contrastive_core.ops.tiled_sum import EXP, LARGEST, largest_logit, tiled_sum
from contrastive_core.ops.tiles import Stripe, Tiles
from contrastive_core.pairs.types import Pairs
from contrastive_core.progress import OnFraction, ignore_fraction


def tiled_logsumexp(
    pairs: Pairs, scale: float, relation: str, on_fraction: OnFraction = ignore_fraction, limits: Tensor | None = None
) -> Tensor:
    """log Σ e^(scale · a·c) of every anchor over its negatives, or over all it is compared with; (n).

    Args: pairs: related by id; relation: "negative" or "compared"; limits: (n), logits above which a candidate is left
    out. −inf, with zero gradient, where there is none.
    """
    tiles = Tiles(pairs, scale, relation, limits)
    if limits is None and largest_logit(tiles) <= LARGEST[pairs.anchors.dtype]:
        total = tiled_sum(tiles, EXP, on_fraction=on_fraction)
        some = total > 0
        return torch.where(some, torch.where(some, total, 1.0).log(), -torch.inf)
    return _TiledLogSumExp.apply(pairs.anchors, pairs.candidates, tiles, on_fraction)


class _TiledLogSumExp(torch.autograd.Function):
    """Keeps rows and their log-sum-exps. All steps can be differentiated again."""

    @staticmethod
    def forward(a: Tensor, c: Tensor, tiles: Tiles, on_fraction: OnFraction) -> Tensor:
        sums, tops = a.new_zeros(len(a)), a.new_full((len(a),), -torch.inf)
        for done, (i, columns) in enumerate(tiles.stripes, 1):
            for j in columns:
                logits = tiles.logits(a, c, i, j)
                _add(sums[i.rows], tops[i.rows], tiles.of_rows(logits, i), 1)
                if tiles.mirrored and i is not j:
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
        tiles = ctx.tiles
        grads = tiles.gradients(a, c)
        some = lse > -torch.inf
        g, lse = torch.where(some, g, 0.0), torch.where(some, lse, 0.0)
        with full_precision(a.device):
            for i, columns in tiles.stripes:
                for j in columns:
                    h = _share(tiles, g, lse, tiles.logits(a, c, i, j), (i, j))  # (r, c): ∂/∂ℓ
                    tiles.add_gradients(h, (a, c), grads, (i, j))
        return *grads, None, None


def _add(sums: Tensor, tops: Tensor, logits: Tensor, dim: int) -> None:
    """Add Σ e^ℓ over `dim` to sums · e^tops, in place: the largest exponent so far is taken out."""
    peak = torch.maximum(tops, logits.amax(dim))
    safe = torch.where(peak == -torch.inf, 0.0, peak)
    sums.mul_((tops - safe).exp()).add_((logits - safe.unsqueeze(dim)).exp_().sum(dim))
    tops.copy_(peak)


def _share(tiles: Tiles, g: Tensor, lse: Tensor, logits: Tensor, at: tuple[Stripe, Stripe]) -> Tensor:
    """What the gradient of each row's log-sum-exp, g (n), sends to the logits of a tile (r, c); where a tile is
    mirrored, each entry is that of its column's row, too."""
    i, j = at
    h = g[i.rows, None] * (tiles.of_rows(logits, i) - lse[i.rows, None]).exp()
    if not tiles.mirrored:
        return h
    return h + g[j.rows] * (tiles.of_columns(logits, j) - lse[j.rows]).exp()
