"""Smooth lifted structure of a small batch in closed form: few calls, as for 64 rows calls are
what takes the time. Second derivatives come from the plain formula.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from contrastive_core.ops.similarity import CLOSE, full_precision
from contrastive_core.pairs.types import Masks, Pairs

__all__ = ["lifted_at_once"]

SMALL = 256  # rows
Plain = Callable[[Pairs], tuple[Tensor, Tensor]]


def lifted_at_once(pairs: Pairs, margin: float, plain: Plain) -> tuple[Tensor, Tensor] | None:
    """Loss and weight (n) of a few rows that all meet all; None where they are others, or so close
    that the Gram matrix does not know their distance, or one has no negative.

    Args: plain: the same for any pairs, as a formula of plain operations.
    """
    n, a, z = len(pairs), pairs.anchors, pairs.anchors.detach()
    if not (pairs.symmetric and 0 < n <= SMALL):
        return None
    squares, masks = z.square().sum(1), pairs.masks()
    norms = squares[:, None] + squares
    d = torch.addmm(norms, z, z.mT, alpha=-2)  # D² (n, n)
    close = (d <= CLOSE * norms).fill_diagonal_(False)
    if bool(close.any() | ~masks.negative.any(1).all()):
        return None
    number = masks.positive.sum(1).to(d.dtype)

    def again(a: Tensor) -> Tensor:
        return plain(dataclasses.replace(pairs, anchors=a, candidates=a))[0]

    d.fill_diagonal_(0).sqrt_()
    return _Lifted.apply(a, d, masks, number.clamp_min(1), margin, again), number


class _Lifted(torch.autograd.Function):
    """With A = ∂L/∂J, S the negatives' log-sum-exp and p their softmax, each distance gets
    A_ij − p_ij Σ_p (A_ip + A_pi) ∂J_ip/∂S_i, and its rows that along their difference."""

    @staticmethod
    def forward(
        ctx: Any,
        a: Tensor,
        d: Tensor,
        masks: Masks,
        number: Tensor,
        margin: float,
        again: Callable[[Tensor], Tensor],
    ) -> Tensor:
        x = (margin - d).masked_fill_(~masks.negative, -torch.inf)
        s = x.logsumexp(1)
        both = torch.logaddexp(s[:, None], s)  # (n, n)
        j = (d + both).clamp_min_(0).mul_(masks.positive)
        ctx.again = again
        ctx.save_for_backward(a, d, x, s, both, j, number)
        return j.square().sum(1) / (2 * number)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        a, d, x, s, both, j, number = ctx.saved_tensors
        with full_precision(a.device):
            if torch.is_grad_enabled():
                (grad,) = torch.autograd.grad(ctx.again(a), a, g, create_graph=True)
                return grad, None, None, None, None, None
            of_j = j * (g / number)[:, None]
            own = (s[:, None] - both).exp_()  # ∂J_ij/∂S_i
            of_s = (own.mul_(of_j + of_j.mT)).sum(1, keepdim=True)
            of_d = torch.addcmul(of_j, (x - s[:, None]).exp_(), of_s, value=-1)
            along = (of_d + of_d.mT).div_(d).fill_diagonal_(0)
            grad = torch.addmm(along.sum(1, keepdim=True) * a, along, a, alpha=-1)
        return grad, None, None, None, None, None
