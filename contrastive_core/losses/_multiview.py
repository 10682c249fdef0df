"""What is simpler where all views of some images meet and nothing else: row i is of image i // v.

Then a row's positives stand beside it, and a small batch's loss and gradient are a closed form:
softmax minus target, times the rows.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from contrastive_core.ops.differentiation import first_order
from contrastive_core.ops.functions import Function
from contrastive_core.ops.similarity import full_precision
from contrastive_core.ops.thread_pool import thread_buffer

__all__ = ["contrast_of_views", "mean_of_views"]

ROWS = 1 << 10  # rows at once


def contrast_of_views(a: Tensor, scale: float, v: int) -> Tensor:
    """log Σ_{j≠i} e^ℓ_ij − mean of ℓ_ip over the v − 1 other views p of i; ℓ = scale · a_i·a_j.

    Args: a: (n, d), v views of each image side by side; |ℓ| so small that e^ℓ can be summed.
    Returns: (n). Holds e^ℓ (n, n) for the backward pass.
    """
    return _Contrast.apply(a, scale, v)[0]


def mean_of_views(a: Tensor, v: int) -> Tensor:
    """The mean of a_i·a_p over the v − 1 other views p of i's image; (n). No further (n, d)."""
    return _Mean.apply(a.contiguous(), v)


class _Contrast(Function):
    @staticmethod
    def forward(a: Tensor, scale: float, v: int) -> tuple[Tensor, Tensor, Tensor]:
        a, n = a.contiguous(), len(a)
        x = a.new_empty(n, n)
        torch.addmm(x, a, a.mT, beta=0, alpha=scale, out=x)
        x.fill_diagonal_(0)
        positive = _within(x, v).sum(1).mT.reshape(n) / (v - 1)
        x.exp_().fill_diagonal_(0)
        sums = x.sum(1)
        return sums.log().sub_(positive), x, sums

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        a, ctx.scale, ctx.v = inputs
        ctx.set_materialize_grads(False)  # else zeros are made for what is only kept
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(a, *output[1:])

    @staticmethod
    def backward(ctx: Any, g: Tensor | None, *_: Tensor | None) -> tuple[Tensor | None, ...]:
        if g is None:
            return (None,) * 3
        return first_order(_contrast_gradient, g, *ctx.saved_tensors, ctx.scale, ctx.v), None, None


def _contrast_gradient(
    g: Tensor, a: Tensor, x: Tensor, sums: Tensor, scale: float, v: int
) -> Tensor:
    g = g * scale
    share, target = g / sums, (g / (v - 1)).view(-1, v).mT  # (n), (v, images)
    h = torch.add(share[:, None], share, out=thread_buffer(len(a), len(a), a))
    h.mul_(x)  # ∂/∂ℓ_ij + ∂/∂ℓ_ji
    _within(h, v).sub_(target[:, None]).sub_(target)
    h.fill_diagonal_(0)
    with full_precision(a.device):
        return h @ a


def _within(x: Tensor, v: int) -> Tensor:
    """The entries of x (n, n) between views of one image: (v, v, images), a view of `x`."""
    return x.view(-1, v, len(x) // v, v).diagonal(dim1=0, dim2=2)


class _Mean(Function):
    @staticmethod
    def forward(a: Tensor, v: int) -> Tensor:
        means = a.new_empty(len(a))
        for r in _spans(len(a), v):
            x = a[r].view(-1, v, a.shape[1])  # (images, v, d)
            others = x.sum(1, keepdim=True) - x
            torch.sum(others.mul_(x), -1, out=means[r].view(-1, v))
        return means.div_(v - 1)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        a, ctx.v = inputs
        ctx.save_for_backward(a)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        return first_order(_mean_gradient, g, *ctx.saved_tensors, ctx.v), None


def _mean_gradient(g: Tensor, a: Tensor, v: int) -> Tensor:
    grad = torch.empty_like(a)
    for r in _spans(len(a), v):
        x, w = a[r].view(-1, v, a.shape[1]), (g[r] / (v - 1)).view(-1, v, 1)
        wx = x * w
        block = torch.sub(wx.sum(1, keepdim=True), wx, out=grad[r].view_as(x))
        block.addcmul_(w, x.sum(1, keepdim=True)).sub_(wx)
    return grad


def _spans(n: int, v: int) -> list[slice]:
    """Some rows at a time, whole images."""
    size = max(1, ROWS // v) * v
    return [slice(i, min(i + size, n)) for i in range(0, n, size)]
