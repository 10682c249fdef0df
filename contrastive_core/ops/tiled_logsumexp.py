"""The tiled engine: row log-sum-exps of an n×m matrix of logits that is never held.

Masks are derived from ids, tile by tile. The forward pass keeps only the row sums; the backward
pass computes each tile again. Where anchors and candidates are the same rows, each tile serves its
rows and its columns, which halves the work. Tiles run in rounds in which no two share a row or a
column, so threads never meet and the order of summation, hence the result, does not depend on
their number. A matrix that fits one small buffer is one tile, kept for the backward pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from contrastive_core.ops import similarity
from contrastive_core.ops.differentiation import first_order
from contrastive_core.ops.functions import Function
from contrastive_core.ops.thread_pool import run_rounds, thread_buffer
from contrastive_core.ops.tile_plan import TilePlan
from contrastive_core.pairs.types import Pairs
from contrastive_core.progress import OnFraction, ignore_fraction

__all__ = ["TILED_FROM", "Logits", "by_group", "tiled_logsumexp"]

TILED_FROM = 1 << 17  # scores: half a megabyte in float32; the dense formula costs 0.5 ms more at most
SAFE = {torch.float32: 40.0, torch.float64: 300.0}  # |logit| whose exponentials can be summed


@dataclass(frozen=True)
class Logits:
    """ℓ = scale · score: of a tile, and what its gradient sends back to the rows."""

    score: str = "dot"  # or "squared_distance"
    scale: float = 1.0
    unit: bool = False  # rows have unit length, or none

    def tile(self, a: Tensor, c: Tensor, in_new_buffer: bool = False) -> Tensor:
        """The logits (r, c) of a tile, in this thread's buffer, or `in_new_buffer`."""
        buffer = a.new_empty(len(a), len(c)) if in_new_buffer else thread_buffer(len(a), len(c), a)
        if self.score == "dot":
            return torch.addmm(buffer, a, c.mT, beta=0, alpha=self.scale, out=buffer)
        return torch.mul(similarity.squared_distance(a, c), self.scale, out=buffer)

    def bound(self, a: Tensor, c: Tensor) -> float:
        """A number that no |ℓ| exceeds."""
        if not len(a) or not len(c):
            return 0.0
        if self.unit:
            return abs(self.scale) * (1 if self.score == "dot" else 4)
        x = float(a.norm(dim=1).amax())
        y = x if c is a else float(c.norm(dim=1).amax())
        return abs(self.scale) * (x * y if self.score == "dot" else (x + y) ** 2)

    def add_gradient(self, grad: Tensor, g: Tensor, a: Tensor, c: Tensor) -> None:
        """Add to `grad` (r, d) what the gradient `g` (r, c) of the logits sends to rows `a`."""
        if self.score == "dot":
            grad.addmm_(g, c, alpha=self.scale)
        else:
            grad.addmm_(g, c, alpha=-2 * self.scale)
            grad.addcmul_(g.sum(1, keepdim=True), a, value=2 * self.scale)


def tiled_logsumexp(pairs: Pairs, logits: Logits, relation: str, on_fraction: OnFraction = ignore_fraction) -> Tensor:
    """log Σ e^ℓ of every anchor over its negatives, or over all it is compared with; (n).

    Args: relation: "negative" or "compared". −inf, with zero gradient, where there is none.
    """
    plan = TilePlan(pairs, relation)
    a = pairs.anchors.contiguous()
    c = a if plan.mirrored else pairs.candidates.contiguous()
    small = logits.bound(a.detach(), c.detach()) <= SAFE[a.dtype]
    return _LogSums.apply(a, c, _Task(plan, logits, small, on_fraction))[0]


def by_group(pairs: Pairs) -> tuple[Pairs, Tensor]:
    """The pairs with rows sorted by group, so that positives adjoin, and the order (n) of the anchors."""
    groups = (pairs.anchor_groups, pairs.candidate_groups)
    if all(bool((g[1:] >= g[:-1]).all()) for g in groups):
        return pairs, torch.arange(len(pairs), device=groups[0].device)
    order = pairs.anchor_groups.argsort(stable=True)
    if pairs.symmetric:
        return pairs.take_rows(order), order
    by_candidate = pairs.take_candidates(pairs.candidate_groups.argsort(stable=True))
    return by_candidate.take_anchors(order), order


@dataclass(frozen=True)
class _Task:
    """Which tiles of which logits; `small`: no logit is large, and exponentials can be summed."""

    plan: TilePlan
    logits: Logits
    small: bool
    on_fraction: OnFraction = ignore_fraction


class _LogSums(Function):
    """Row log-sum-exps; keeps the rows and the row sums, or the one tile.

    Where no logit is large the exponentials themselves are summed, one per pair of rows; else
    every row's sum runs along with its largest logit.
    """

    @staticmethod
    def forward(a: Tensor, c: Tensor, task: _Task) -> tuple[Tensor, Tensor, Tensor | None]:
        plan, small = task.plan, task.small
        sums, top = a.new_zeros(len(a)), a.new_full((len(a),), 0.0 if small else -torch.inf)
        saved_tiles: list[Tensor] = []
        c = a if plan.mirrored else c

        def tile(i: int, j: int) -> None:
            rows, cols = plan.rows[i], plan.cols[j]
            x = _terms(task, a, c, i, j)
            add = _add_small if small else _add_large
            add(x, sums[rows], top[rows])
            if plan.mirrored and i != j:
                add(x.mT, sums[cols], top[cols])
            if plan.single:
                saved_tiles.append(x)

        run_rounds(plan.rounds, tile, a, plan.single, task.on_fraction)
        return sums.log() + top, sums, saved_tiles[0] if saved_tiles else None

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        a, c, ctx.task = inputs
        lse, sums, saved_tile = output
        ctx.set_materialize_grads(False)  # else zeros are made for what is only kept
        ctx.mark_non_differentiable(*output[1 : 2 + (saved_tile is not None)])
        ctx.save_for_backward(a, c, sums if ctx.task.small else lse, saved_tile)

    @staticmethod
    def backward(ctx: Any, g: Tensor | None, *_: Tensor | None) -> tuple[Tensor | None, ...]:
        if g is None:
            return (None,) * 3
        to_a, to_c = ctx.needs_input_grad[:2]
        needs = (to_a or ctx.task.plan.mirrored, to_c and not ctx.task.plan.mirrored)
        return *first_order(_gradient, g, *ctx.saved_tensors, ctx.task, needs), None


def _gradient(
    g: Tensor, a: Tensor, c: Tensor, total: Tensor, saved_tile: Tensor | None, task: _Task, needs: tuple[bool, bool]
) -> tuple[Tensor | None, Tensor | None]:
    """What g (n), the gradient of the row sums, sends to the rows; tiles are computed again.

    Args: total: the sums themselves (small), or their logarithms; (n).
    """
    plan, logits, small = task.plan, task.logits, task.small
    c = a if plan.mirrored else c
    grad_a, grad_c = (torch.zeros_like(x) if n else None for x, n in zip((a, c), needs, strict=True))
    none = (total == 0) if small else total.isinf()
    share = torch.where(none, 0.0, g / torch.where(none, 1.0, total) if small else g)
    level = torch.where(none, 0.0, total)

    def tile(i: int, j: int) -> None:
        rows, cols = plan.rows[i], plan.cols[j]
        x = _terms(task, a, c, i, j) if saved_tile is None else saved_tile
        h = _weights(x, share, level, rows, cols, small, plan.mirrored)
        if grad_a is not None:
            logits.add_gradient(grad_a[rows], h, a[rows], c[cols])
            if plan.mirrored and i != j:
                logits.add_gradient(grad_a[cols], h.mT, a[cols], a[rows])
        if grad_c is not None:
            logits.add_gradient(grad_c[cols], h.mT, c[cols], a[rows])

    with similarity.full_precision(a.device):
        run_rounds(plan.rounds, tile, a, plan.single)
    return grad_a, grad_c


def _terms(task: _Task, a: Tensor, c: Tensor, i: int, j: int) -> Tensor:
    """A tile's e^ℓ, 0 where not wanted (small); or its ℓ, −inf where not wanted; (r, c)."""
    plan = task.plan
    x = task.logits.tile(a[plan.rows[i]], c[plan.cols[j]], plan.single)
    if task.small:
        return plan.blank(x.exp_(), i, j, 0.0)
    return plan.blank(x, i, j, -torch.inf)


def _add_small(x: Tensor, sums: Tensor, top: Tensor) -> None:
    sums += x.sum(1)


def _add_large(x: Tensor, sums: Tensor, top: Tensor) -> None:
    """Take a tile's logits (r, c) into the sums (r), which are relative to `top` (r)."""
    higher = torch.maximum(top, x.amax(1))
    level = torch.where(higher.isinf(), 0.0, higher)
    sums *= (top - level).exp_()
    sums += torch.sub(x, level[:, None], out=_spare(x, 1)).exp_().sum(1)
    top.copy_(higher)


def _weights(x: Tensor, share: Tensor, level: Tensor, rows: slice, cols: slice, small: bool, both: bool) -> Tensor:
    """∂/∂ℓ of the tile (r, c): of its rows' sums, and of its columns' where it serves both."""
    g_i, g_j = share[rows, None], share[None, cols]
    h = _spare(x, 1)
    if small:
        return torch.mul(x, torch.add(g_i, g_j, out=h) if both else g_i, out=h)
    torch.sub(x, level[rows, None], out=h).exp_().mul_(g_i)
    if both:
        h += torch.sub(x, level[None, cols], out=_spare(x, 2)).exp_().mul_(g_j)
    return h


def _spare(x: Tensor, slot: int) -> Tensor:
    return thread_buffer(len(x), x.shape[1], x, slot)
