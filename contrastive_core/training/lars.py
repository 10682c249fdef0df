"""LARS: each layer's rate is scaled by the ratio of its weights' norm to its gradient's (You,
Gitman, Ginsburg 2017, arXiv 1708.03888), as SimCLR does for large batches (Chen et al. 2020, arXiv
2002.05709).

    λ = η ‖w‖ / (‖g‖ + β ‖w‖)        v ← m v + γ λ (g + β w)        w ← w − v

with γ the learning rate, m the momentum, β the weight decay and η 0.001. Norms and biases (fewer
than two dimensions) take λ = 1 and β = 0, as in SimCLR's code; so does a layer whose weights or
gradient are zero take λ = 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

__all__ = ["ETA", "LARS"]

ETA = 0.001  # trust coefficient η of both papers


class LARS(torch.optim.Optimizer):
    """SGD with momentum at a rate of each layer's own. State: `momentum_buffer` v."""

    def __init__(self, groups: Any, lr: float, momentum: float = 0.9) -> None:
        super().__init__(groups, {"lr": lr, "momentum": momentum, "weight_decay": 0.0})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """One update of every parameter that has a gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for w in group["params"]:
                if w.grad is not None:
                    self._update(w, w.grad, group)
        return loss

    def _update(self, w: Tensor, g: Tensor, group: dict[str, Any]) -> None:
        beta = group["weight_decay"]
        rate = trust(w, g, beta) if w.ndim >= 2 else torch.ones((), device=w.device)
        state = self.state[w]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = torch.zeros_like(w)
        v = state["momentum_buffer"]
        v.mul_(group["momentum"]).add_((g + beta * w) * (group["lr"] * rate))
        w.sub_(v)


def trust(w: Tensor, g: Tensor, weight_decay: float) -> Tensor:
    """λ of a layer's weights w and gradient g, as a tensor without dimensions."""
    of_w, of_g = w.norm(), g.norm()
    ratio = ETA * of_w / (of_g + weight_decay * of_w)
    return torch.where((of_w > 0) & (of_g > 0), ratio, torch.ones_like(ratio))
