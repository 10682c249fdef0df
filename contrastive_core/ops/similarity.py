"""Similarities, distances and masked reductions that are right where naive ones are not.

A zero row normalizes to zero with zero gradient. Gram distances cancel for near rows (a float32
Gram distance is 100 % off below 1e-3 of the norms), so close pairs are recomputed from
differences. Log-sum-exp runs over the masked entries only: mask first, then reduce. Where a mask
holds numbers instead of truth values, each is how many entries its own stands for.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Num
from torch import Tensor
from torch.nn import functional

from contrastive_core.ops.functions import Function
from contrastive_core.pairs.types import Pairs

__all__ = [
    "compare",
    "cosine",
    "deterministic_gather",
    "distance",
    "dot",
    "float_rows",
    "full_precision",
    "longest",
    "masked_logsumexp",
    "masked_mean",
    "masked_sum",
    "normalize",
    "safe_sqrt",
    "softmax_over",
    "squared_distance",
    "unit_rows",
]

Mask = Bool[Tensor, "n m"] | Num[Tensor, "n m"]

CLOSE = 1e-3  # of the squared norms: below it a Gram distance has lost its digits


def normalize(z: Float[Tensor, "*n d"]) -> Float[Tensor, "*n d"]:
    """Rows scaled to unit length; a zero row stays zero and gets zero gradient."""
    return _Normalize.apply(z)[0]


class _Normalize(Function):
    """u = z / ‖z‖ and ∂z = (∂u − u (u·∂u)) / ‖z‖; keeps z, u and 1 / ‖z‖.

    Tiny and huge rows are divided by their largest number first, kept as `scale`: it keeps their
    squares in range.
    """

    @staticmethod
    def forward(z: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        inverse = torch.linalg.vector_norm(z, dim=-1, keepdim=True).reciprocal_()
        if z.device.type == "cpu" and _in_range(inverse):
            return z * inverse, inverse, None
        scale = torch.linalg.vector_norm(z, torch.inf, -1, keepdim=True)
        scale = torch.where(scale > 0, scale, 1.0)
        u = z / scale
        length = u.norm(dim=-1, keepdim=True)
        inverse = torch.where(length > 0, 1 / length, 0.0)
        return u.mul_(inverse), inverse, scale

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        u, inverse, scale = output
        ctx.mark_non_differentiable(*output[1 : 2 + (scale is not None)])
        ctx.save_for_backward(inputs[0], u, inverse, scale)

    @staticmethod
    def backward(ctx: Any, g: Tensor, *_: Tensor | None) -> Tensor:
        z, u, inverse, scale = ctx.saved_tensors
        if torch.is_grad_enabled():  # second derivatives are wanted: the length depends on z
            y, some = z if scale is None else z / scale, inverse > 0
            length = torch.where(some, y, 1.0).norm(dim=-1, keepdim=True)
            inverse = torch.where(some, 1 / length, 0.0)
        grad = torch.addcmul(g, u, (u * g).sum(-1, keepdim=True), value=-1) * inverse
        return grad if scale is None else grad / scale


def _in_range(inverse: Tensor) -> bool:
    """Whether no row is so short or long that its squares, summed, left the range of numbers."""
    if not inverse.numel():
        return True
    low, high = torch.stack(inverse.aminmax()).tolist()
    return low > 1e-15 and high < 1e15


def unit_rows(features: np.ndarray, device: torch.device | None = None) -> Tensor:
    """Rows of length 1 as a float32 tensor (n, d); scaled first, so that no norm overflows."""
    x = float_rows(features).to(device or "cpu")
    tiny = torch.finfo(torch.float32).tiny
    x = x / torch.linalg.vector_norm(x, torch.inf, 1, keepdim=True).clamp_min(tiny)
    return x.div_(x.norm(dim=1, keepdim=True).clamp_min(tiny))  # no third copy


def float_rows(features: np.ndarray) -> Tensor:
    """Rows (n, d) in float32, not copied where they are that; they are read only, so torch need
    not warn that a mapped file cannot be written."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return torch.from_numpy(np.ascontiguousarray(features, np.float32))


def dot(a: Float[Tensor, "n d"], b: Float[Tensor, "m d"]) -> Float[Tensor, "n m"]:
    """Inner products of all rows."""
    return a @ b.mT


def cosine(a: Float[Tensor, "n d"], b: Float[Tensor, "m d"]) -> Float[Tensor, "n m"]:
    """Cosine similarities of all rows; 0 where a row is zero."""
    return normalize(a) @ normalize(b).mT


def squared_distance(a: Float[Tensor, "n d"], b: Float[Tensor, "m d"]) -> Float[Tensor, "n m"]:
    """Squared Euclidean distances; pairs close relative to their norms come from differences."""
    return _SquaredDistance.apply(a, b, a is b)[0]


class _SquaredDistance(Function):
    """‖a_i − b_j‖² and its gradient 2 (a_i − b_j), both from differences where rows are close."""

    @staticmethod
    def forward(a: Tensor, b: Tensor, same: bool) -> tuple[Tensor, Tensor, Tensor]:
        norms = a.square().sum(-1)[:, None] + b.square().sum(-1)  # (n, m)
        gram = torch.addmm(norms, a, b.mT, alpha=-2).clamp_min_(0)
        close = gram < CLOSE * norms
        if same:
            gram.fill_diagonal_(0)
            close.fill_diagonal_(False)
        i, j = close.nonzero().unbind(1)  # (pairs)
        if len(i):
            gram[i, j] = (a[i] - b[j]).square().sum(-1)
        return gram, i.contiguous(), j.contiguous()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        a, b, ctx.same = inputs
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(a, b, *output[1:])

    @staticmethod
    def backward(ctx: Any, g: Tensor, *_: Tensor | None) -> tuple[Tensor, Tensor | None, None]:
        a, b, i, j = ctx.saved_tensors
        near, far = g[i, j, None], g.index_put((i, j), g.new_zeros(())) if len(i) else g
        if ctx.same:
            far = far + far.mT
        to_a = 2 * torch.addmm(far.sum(1, keepdim=True) * a, far, b, alpha=-1)
        to_b = None
        if ctx.needs_input_grad[1] and not ctx.same:
            to_b = 2 * torch.addmm(far.sum(0)[:, None] * b, far.mT, a, alpha=-1)
        if len(i):
            along = 2 * near * (deterministic_gather(a, i) - deterministic_gather(b, j))
            to_a = to_a + _sum_at(i, along, len(a))
            if ctx.same:
                to_a = to_a - _sum_at(j, along, len(a))
            elif to_b is not None:
                to_b = to_b - _sum_at(j, along, len(b))
        return to_a, to_b, None


def deterministic_gather(x: Float[Tensor, "n d"], rows: Int[Tensor, ...]) -> Float[Tensor, "... d"]:
    """`x[rows]`, whose gradient is summed in one order; that of indexing follows the threads."""
    return functional.embedding(rows, x)


def _sum_at(rows: Tensor, x: Tensor, n: int) -> Tensor:
    """Σ of the x (pairs, d) of each row (n, d), in one order, as `deterministic_gather` needs."""
    return torch.ops.aten.embedding_dense_backward(x, rows, n, -1, False)


def distance(a: Float[Tensor, "n d"], b: Float[Tensor, "m d"]) -> Float[Tensor, "n m"]:
    """Euclidean distances; the gradient at distance 0 is 0, not NaN."""
    return safe_sqrt(squared_distance(a, b))


def safe_sqrt(squared: Float[Tensor, "n m"]) -> Float[Tensor, "n m"]:
    """Square roots whose gradient at 0 is 0."""
    zero = squared == 0
    return torch.where(zero, 0.0, torch.where(zero, 1.0, squared).sqrt())


def longest(*rows: Float[Tensor, "_ d"]) -> float:
    """A length that no row exceeds, within √d of the longest, from its largest number; NaN, inf."""
    ends = [torch.stack(z.detach().aminmax()).abs().amax() for z in rows if z.numel()]
    return float(torch.stack(ends).amax()) * rows[0].shape[1] ** 0.5 if ends else 0.0


def masked_logsumexp(x: Float[Tensor, "n m"], mask: Mask) -> Float[Tensor, " n"]:
    """Row log-sum-exp over the masked entries only; -inf, with zero gradient, where none is."""
    if mask.dtype != torch.bool:
        return (x + mask.log()).logsumexp(-1)  # log Σ w e^x
    return _MaskedLogSumExp.apply(x, mask)[0]


class _MaskedLogSumExp(Function):
    """log Σ e^x, whose gradient is the softmax: one buffer, where autograd keeps four."""

    @staticmethod
    def forward(x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        terms = x.masked_fill(~mask, -torch.inf)
        if not x.shape[-1]:
            return terms.logsumexp(-1), terms, terms.sum(-1, keepdim=True)
        top = terms.amax(-1, keepdim=True)
        top = torch.where(top.isinf(), 0.0, top)
        sums = terms.sub_(top).exp_().sum(-1, keepdim=True)
        return (sums.log() + top).squeeze(-1), terms, sums

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.set_materialize_grads(False)  # no zeros for the saved terms
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(*inputs, *output[1:])

    @staticmethod
    def backward(ctx: Any, g: Tensor | None, *_: Tensor | None) -> tuple[Tensor | None, None]:
        if g is None:
            return None, None
        x, mask, terms, sums = ctx.saved_tensors
        if torch.is_grad_enabled():  # for a second derivative, the softmax must depend on x
            return g[:, None] * softmax_over(x, mask), None
        return terms * torch.where(sums > 0, g[:, None] / sums, 0.0), None


def softmax_over(x: Float[Tensor, "n m"], mask: Bool[Tensor, "n m"]) -> Float[Tensor, "n m"]:
    """Softmax over the masked entries of each row; 0 elsewhere."""
    some = mask.any(-1, keepdim=True)
    filled = x.masked_fill(~mask, -torch.inf)
    return torch.where(some, torch.where(some, filled, 0.0).softmax(-1), 0.0) * mask


def masked_sum(x: Float[Tensor, "n m"], mask: Mask) -> Float[Tensor, " n"]:
    """Row sum over the masked entries; 0 where none is."""
    kept = torch.where(mask, x, 0.0) if mask.dtype == torch.bool else x * mask
    return kept.sum(-1)


def masked_mean(x: Float[Tensor, "n m"], mask: Mask) -> Float[Tensor, " n"]:
    """Row mean over the masked entries; 0 where none is."""
    return masked_sum(x, mask) / mask.sum(-1).clamp_min(1)


def compare(pairs: Pairs, score: str) -> Float[Tensor, "n w"]:
    """Scores of all anchors with their candidates: dot, distance or squared_distance."""
    if pairs.columns is None:
        return SCORES[score](pairs.anchors, pairs.candidates)
    a, c = (pairs.anchors[:, None, :], deterministic_gather(pairs.candidates, pairs.columns))  # (n, 1, d), (n, k, d)
    if score == "dot":
        return (c @ a.mT).squeeze(-1)
    squared = (a - c).square().sum(-1)  # (n, k)
    return squared if score == "squared_distance" else safe_sqrt(squared)


SCORES = {"dot": dot, "distance": distance, "squared_distance": squared_distance}


@contextmanager
def full_precision(device: torch.device) -> Iterator[None]:
    """No autocast and no TF32 inside."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        with torch.autocast(device.type, enabled=False):
            yield
    finally:
        torch.set_float32_matmul_precision(before)
