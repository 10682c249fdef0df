"""Row sums of a function of an n×m matrix of logits that is never held, such as Σ e^ℓ or Σ log(1 + e^ℓ).

A tile of the matrix is made, summed and forgotten; the backward pass makes each tile again. Tiles of small batches are
kept for it instead, which saves one product of four.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from contrastive_core.ops.similarity import full_precision
from contrastive_core.ops.tiles import Tiles
from contrastive_core.pairs.types import Pairs
from contrastive_core.progress import OnFraction, ignore_fraction

__all__ = ["EXP", "LARGEST", "largest_logit", "tiled_softplus", "tiled_sum"]

LARGEST = {torch.float32: 40.0, torch.float64: 300.0}  # |logit| whose exponentials can be summed as they are
KEPT = 1 << 22  # entries, up to which tiles are kept for the backward pass: 16 MB in float32


class Summand(NamedTuple):
    """A function of the logits: what is computed of a tile in place and may be kept, value and slope from that, and the
    slope in place from the logits themselves."""

    prepare: Callable[[Tensor], Tensor]
    value: Callable[[Tensor], Tensor]
    slope: Callable[[Tensor], Tensor]
    slope_: Callable[[Tensor], Tensor]


EXP = Summand(torch.exp_, lambda e: e, lambda e: e, torch.exp_)
SOFTPLUS = Summand(torch.exp_, torch.log1p, lambda e: e / (1 + e), lambda x: x.exp_().div_(1 + x))
SAFE_SOFTPLUS = Summand(lambda x: x, lambda x: -logsigmoid(-x), torch.sigmoid, torch.sigmoid_)


def tiled_sum(
    tiles: Tiles, summand: Summand, bias: Tensor | None = None, on_fraction: OnFraction = ignore_fraction
) -> Tensor:
    """Σ f(scale · a·c + bias) of every anchor over its wanted candidates; (n). `bias`: a number, with its gradient."""
    a, c = tiles.pairs.anchors, tiles.pairs.candidates
    learns = torch.is_grad_enabled() and (a.requires_grad or c.requires_grad)
    keep: dict[tuple[int, int], Tensor] | None = {} if learns and tiles.size <= KEPT else None
    return _TiledSum.apply(a, c, bias, tiles, summand, keep, on_fraction)


def tiled_softplus(
    pairs: Pairs, scale: float, relation: str, bias: Tensor, on_fraction: OnFraction = ignore_fraction
) -> Tensor:
    """Σ log(1 + e^(scale · a·c + bias)) of every anchor over its negatives, or over all it is compared with; (n)."""
    tiles = Tiles(pairs, scale, relation)
    is_small = tiles.looks and largest_logit(tiles) + abs(float(bias.detach())) <= LARGEST[pairs.anchors.dtype]
    return tiled_sum(tiles, SOFTPLUS if is_small else SAFE_SOFTPLUS, bias, on_fraction)


def largest_logit(tiles: Tiles) -> float:
    """A number that no |logit| exceeds; infinite where to know it would wait for a device."""
    if not tiles.looks:
        return math.inf
    a, c = tiles.pairs.anchors, tiles.pairs.candidates
    longest = _longest(a)
    return abs(float(tiles.scale)) * longest * (longest if c is a else _longest(c))


def _longest(z: Tensor) -> float:
    return float(z.detach().norm(dim=1).amax()) if len(z) else 0.0


class _TiledSum(torch.autograd.Function):
    """Keeps rows, and tiles of a small batch. All steps can be differentiated again."""

    @staticmethod
    def forward(a: Tensor, c: Tensor, bias: Tensor | None, tiles: Tiles, f: Summand, keep: Any, on: Any) -> Tensor:
        sums = a.new_zeros(len(a))
        for done, (i, columns) in enumerate(tiles.stripes, 1):
            for j in columns:
                tile = f.prepare(_biased(tiles.logits(a, c, i, j), bias))
                if keep is not None:
                    keep[i.start, j.start] = tile
                values = f.value(tile)
                sums[i.rows] += values.sum(1)
                if tiles.mirrored and i is not j:
                    sums[j.rows] += values.sum(0)
            on(done / len(tiles.stripes))
        return sums

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        ctx.tiles, ctx.summand, ctx.kept = inputs[3:6]
        ctx.save_for_backward(*inputs[:3])

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        a, c, bias = ctx.saved_tensors
        tiles, f = ctx.tiles, ctx.summand
        grads = tiles.gradients(a, c)
        is_last = not torch.is_grad_enabled()  # nobody differentiates again: a tile's memory serves all its steps
        kept = (ctx.kept or {}) if is_last else {}
        grad_bias = torch.zeros_like(bias) if ctx.needs_input_grad[2] else None
        with full_precision(a.device):
            for i, columns in tiles.stripes:
                for j in columns:
                    tile, per_entry = kept.pop((i.start, j.start), None), tiles.per_entry(g, i, j)
                    if tile is None and is_last:
                        h = f.slope_(_biased(tiles.logits(a, c, i, j), bias)).mul_(per_entry)  # (r, c): ∂/∂ℓ
                    else:
                        tile = f.prepare(_biased(tiles.logits(a, c, i, j), bias)) if tile is None else tile
                        h = f.slope(tile) * per_entry
                    tiles.add_gradients(h, (a, c), grads, (i, j))
                    if grad_bias is not None:
                        grad_bias = grad_bias + h.sum() / (2 if tiles.mirrored and i is j else 1)
        return *grads, grad_bias, None, None, None, None


def _biased(logits: Tensor, bias: Tensor | None) -> Tensor:
    return logits if bias is None else logits.add_(bias)
