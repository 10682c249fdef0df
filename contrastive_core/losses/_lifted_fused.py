"""Smooth lifted structure of a small batch in closed form: few calls, as for 64 rows calls are
what takes the time.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from contrastive_core.ops.functions import Function
from contrastive_core.ops.similarity import CLOSE, distance, full_precision
from contrastive_core.pairs.types import Masks, Pairs

__all__ = ["lifted_at_once"]

SMALL = 256  # rows


def lifted_at_once(pairs: Pairs, margin: float) -> tuple[Tensor, Tensor] | None:
    """Loss and weight (n) of a few rows that all meet all; None where they are others, or so close
    that the Gram matrix does not know their distance, or one has no negative.
    """
    n, z = len(pairs), pairs.anchors.detach()
    if not (pairs.symmetric and 0 < n <= SMALL):
        return None
    squares, masks = z.square().sum(1), pairs.masks()
    norms = squares[:, None] + squares
    d = torch.addmm(norms, z, z.mT, alpha=-2)  # D² (n, n)
    close = (d <= CLOSE * norms).fill_diagonal_(False)
    if bool(close.any() | ~masks.negative.any(1).all()):
        return None
    number = masks.positive.sum(1).to(d.dtype)
    d = d.fill_diagonal_(0).sqrt()
    return _Lifted.apply(pairs.anchors, d, masks, number.clamp_min(1), margin)[0], number


class _Lifted(Function):
    """With A = ∂L/∂J, S the negatives' log-sum-exp and p their softmax, each distance gets
    A_ij − p_ij Σ_p (A_ip + A_pi) ∂J_ip/∂S_i, and its rows that along their difference."""

    @staticmethod
    def forward(
        a: Tensor, d: Tensor, masks: Masks, number: Tensor, margin: float
    ) -> tuple[Tensor, ...]:
        terms = _terms(d, masks, margin)
        return terms[-1].square().sum(1) / (2 * number), *terms

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        a, d, ctx.masks, number, ctx.margin = inputs
        ctx.set_materialize_grads(False)  # else zeros are made for what is only kept
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(a, d, number, *output[1:])

    @staticmethod
    def backward(ctx: Any, g: Tensor | None, *_: Tensor | None) -> tuple[Tensor | None, ...]:
        if g is None:
            return (None,) * 5
        a, d, number, *terms = ctx.saved_tensors
        with full_precision(a.device):
            if torch.is_grad_enabled():  # a second derivative is wanted: these depend on the rows
                d = distance(a, a)
                terms = _terms(d, ctx.masks, ctx.margin)
                d = d + torch.eye(len(d), dtype=d.dtype, device=d.device)  # no 0/0 with itself
            x, s, both, j = terms
            of_j = j * (g / number)[:, None]
            slope = (s[:, None] - both).exp()  # ∂J_ij/∂S_i
            of_s = (slope * (of_j + of_j.mT)).sum(1, keepdim=True)
            of_d = torch.addcmul(of_j, (x - s[:, None]).exp(), of_s, value=-1)
            along = ((of_d + of_d.mT) / d).fill_diagonal_(0)
            grad = torch.addmm(along.sum(1, keepdim=True) * a, along, a, alpha=-1)
        return grad, None, None, None, None


def _terms(d: Tensor, masks: Masks, margin: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """ε − D of the negatives, log Σ of it by row (n), that of both ends, max(0, J)."""
    x = (margin - d).masked_fill(~masks.negative, -torch.inf)
    s = x.logsumexp(1)
    both = torch.logaddexp(s[:, None], s)
    return x, s, both, (d + both).clamp_min(0) * masks.positive
