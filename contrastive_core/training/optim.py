"""Optimizers and learning rates.

No weight decay on norms and biases (every parameter with fewer than two dimensions). The learning
rate is a pure function of the step, so a schedule has no state that a resume could lose.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import nn

from contrastive_core.messages import N_, message
from contrastive_core.training.lars import LARS

__all__ = ["OPTIMIZERS", "SCHEDULES", "create_optimizer", "learning_rate", "set_learning_rate"]

OPTIMIZERS = ("sgd", "adamw", "lars")
SCHEDULES = ("constant", "cosine", "steps", "one_cycle")
STEPS = (0.6, 0.8)  # where "steps" divides by ten: 120 and 160 of Inst Disc's 200 epochs
ONE_CYCLE_RISE = 0.25  # part of the run in which one-cycle rises


def create_optimizer(
    name: str,
    parameters: Iterable[nn.Parameter],
    lr: float,
    weight_decay: float,
    momentum: float = 0.9,
    scales: Mapping[int, float] | None = None,
) -> torch.optim.Optimizer:
    """SGD with momentum, AdamW or LARS, over the parameters that require gradients.

    `scales`: by a parameter's id, the part of the learning rate that it takes (default: all of it).
    Raises: ValueError for an unknown name or when nothing is to be trained.
    """
    trained = [p for p in parameters if p.requires_grad]
    if not trained:
        raise ValueError(N_("nothing to train: every parameter is frozen"))
    groups = _groups(trained, weight_decay, scales)
    if name == "sgd":
        optimizer: torch.optim.Optimizer = torch.optim.SGD(groups, lr=lr, momentum=momentum)
    elif name == "adamw":
        optimizer = torch.optim.AdamW(groups, lr=lr)
    elif name == "lars":
        optimizer = LARS(groups, lr, momentum)
    else:
        raise ValueError(
            message("unknown optimizer {name}; known: {optimizers}", name=f"{name!r}", optimizers=", ".join(OPTIMIZERS))
        )
    set_learning_rate(optimizer, lr)
    return optimizer


def _groups(
    trained: list[nn.Parameter], weight_decay: float, scales: Mapping[int, float] | None
) -> list[dict[str, Any]]:
    """Parameters with the same weight decay and the same part of the learning rate."""
    decays = ((True, weight_decay), (False, 0.0))
    if scales is None:
        groups = [
            {"params": [p for p in trained if (p.ndim >= 2) == wide], "weight_decay": decay} for wide, decay in decays
        ]
    else:
        groups = [
            {
                "params": [p for p in trained if scales[id(p)] == scale and (p.ndim >= 2) == wide],
                "weight_decay": decay,
                "lr_scale": scale,
            }
            for scale in sorted({scales[id(p)] for p in trained})
            for wide, decay in decays
        ]
    return [g for g in groups if g["params"]]


def learning_rate(step: int, total: int, peak: float, schedule: str, warmup: int = 0) -> float:
    """The learning rate of step 0 … total−1.

    Args:
        peak: the highest rate; warmup: steps of linear rise before the schedule starts.
        schedule: "constant"; "cosine" to 0; "steps", ×0.1 at 60 % and 80 %; "one_cycle", a cosine
            from peak/25 to peak over the first quarter and on to 0 (it needs no warm-up).
    Raises: ValueError for an unknown schedule.
    """
    if step < warmup:
        return peak * (step + 1) / warmup
    progress = (step - warmup) / max(1, total - warmup)  # 0 … <1
    if schedule == "constant":
        return peak
    if schedule == "cosine":
        return peak * (1 + math.cos(math.pi * progress)) / 2
    if schedule == "steps":
        return peak * 0.1 ** sum(progress >= at for at in STEPS)
    if schedule == "one_cycle":
        if progress < ONE_CYCLE_RISE:
            return peak * (1 - 0.96 * (1 + math.cos(math.pi * progress / ONE_CYCLE_RISE)) / 2)
        fall = (progress - ONE_CYCLE_RISE) / (1 - ONE_CYCLE_RISE)
        return peak * (1 + math.cos(math.pi * fall)) / 2
    raise ValueError(
        message(
            "unknown schedule {schedule}; known: {schedules}", schedule=f"{schedule!r}", schedules=", ".join(SCHEDULES)
        )
    )


def set_learning_rate(optimizer: torch.optim.Optimizer, lr: float) -> None:
    """Give every parameter group its part of the rate `lr`."""
    for group in optimizer.param_groups:
        group["lr"] = lr * group.get("lr_scale", 1.0)
