"""Steps that the backward pass computes again, instead of keeping what they held."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from contrastive_core.ops.similarity import full_precision


def recomputed(task: Callable[..., Any], *inputs: Tensor) -> Any:
    """`task(*inputs)`, whose steps are not kept but computed again by the backward pass.

    Gradients reach `inputs` only, not what `task` holds besides. Unlike `torch.utils.checkpoint`,
    whose first call imports a compiler (nine seconds, 190 MB), it serves `torch.func` too.
    """
    if not torch.is_grad_enabled():
        return task(*inputs)
    return _Recomputed.apply(task, *inputs)


class _Recomputed(torch.autograd.Function):
    @staticmethod
    def forward(task: Callable[..., Any], *inputs: Tensor) -> Any:
        return task(*inputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.task = inputs[0]
        ctx.save_for_backward(*inputs[1:])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        inputs = ctx.saved_tensors
        if torch.is_grad_enabled():  # within a transform, or a second derivative is wanted
            with full_precision(inputs[0].device):
                outputs, back, *_ = torch.func.vjp(ctx.task, *inputs)
                return None, *back(grads if isinstance(outputs, tuple) else grads[0])
        needs = ctx.needs_input_grad[1:]
        leaves = [x.detach().requires_grad_(n) for x, n in zip(inputs, needs, strict=True)]
        with torch.enable_grad(), full_precision(leaves[0].device):
            outputs = ctx.task(*leaves)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        attached = [(y, g) for y, g in zip(outputs, grads, strict=True) if y.requires_grad]
        if attached:
            ys, gs = zip(*attached, strict=True)
            torch.autograd.backward(ys, gs, inputs=[x for x in leaves if x.requires_grad])
        return None, *(x.grad for x in leaves)
