"""Optimizers, including LARS, and learning rates over the steps and over the layers of an encoder. Norms and biases
(every parameter with fewer than two dimensions) have no weight decay. The learning rate is a pure function of the step,
so a schedule has no state to save."""

import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch import nn

from contrastive_core.base.messages import N_, message

SCHEDULES = ("constant", "cosine", "steps", "one_cycle")
NUMBERED = re.compile(r"^(.*?\d+)(?:\.|$)")  # blocks.3 of blocks.3.attn.qkv, layer2 of layer2.0.conv1
STEPS = (0.6, 0.8)  # where "steps" divides by ten: 120 and 160 of Inst Disc's 200 epochs
ETA = 0.001  # trust coefficient η of the papers on LARS
ONE_CYCLE_RISE = 0.25  # part of the run in which one-cycle rises


class LARS(torch.optim.Optimizer):
    """SGD with momentum and a separate rate for each layer (You, Gitman, Ginsburg 2017, arXiv 1708.03888), as in SimCLR
    for large batches (Chen et al. 2020, arXiv 2002.05709).

        λ = η ‖w‖ / (‖g‖ + β ‖w‖)        v ← m v + γ λ (g + β w)        w ← w − v

    with γ the learning rate, m the momentum, β the weight decay. Norms and biases (fewer than two dimensions) have λ
    = 1 and β = 0, as in SimCLR's code. A layer whose weights or gradient are zero has λ = 1. State:
    `momentum_buffer` v."""

    def __init__(self, groups: Any, lr: float, momentum: float = 0.9) -> None:
        super().__init__(groups, {"lr": lr, "momentum": momentum, "weight_decay": 0.0})

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        """Update every parameter that has a gradient."""
        for group in self.param_groups:
            m, beta, lr = group["momentum"], group["weight_decay"], group["lr"]
            for w in group["params"]:
                if (g := w.grad) is None:
                    continue
                rate = torch.ones((), device=w.device)  # λ
                if w.ndim >= 2:
                    of_w, of_g = w.norm(), g.norm()
                    rate = torch.where((of_w > 0) & (of_g > 0), ETA * of_w / (of_g + beta * of_w), rate)
                if "momentum_buffer" not in self.state[w]:
                    self.state[w]["momentum_buffer"] = torch.zeros_like(w)
                v = self.state[w]["momentum_buffer"]
                v.mul_(m).add_((g + beta * w) * (lr * rate))
                w.sub_(v)


def _without_compiler(cls: type[torch.optim.Optimizer]) -> type[torch.optim.Optimizer]:
    """Return the optimizer without torch's wrappers that disable the compiler and take seconds to import."""
    names = ("add_param_group", "zero_grad", "state_dict", "load_state_dict")
    methods = {name: inspect.unwrap(getattr(cls, name)) for name in names}
    return type(cls.__name__, (cls,), {**methods, "step": torch.no_grad()(inspect.unwrap(cls.step))})


OPTIMIZERS: Mapping[str, Callable[..., torch.optim.Optimizer]] = {
    "sgd": _without_compiler(torch.optim.SGD),
    "adamw": _without_compiler(torch.optim.AdamW),
    "lars": _without_compiler(LARS),
}


def create_optimizer(
    name: str,
    parameters: Iterable[nn.Parameter],
    lr: float,
    weight_decay: float,
    momentum: float = 0.9,
    scales: Mapping[int, float] = MappingProxyType({}),
) -> torch.optim.Optimizer:
    """Create an optimizer of the parameters that require gradients. `scales`: a factor of the learning rate by the
    parameter's id (default: 1). Raises ValueError for an unknown name, or if there is nothing to train."""
    trained = [p for p in parameters if p.requires_grad]
    if not trained:
        raise ValueError(N_("nothing to train: every parameter is frozen"))
    parts: dict[tuple[float, bool], list[nn.Parameter]] = {}  # by scale, and whether they are norms or biases
    for p in trained:
        parts.setdefault((scales.get(id(p), 1.0), p.ndim < 2), []).append(p)
    groups = [
        {"params": parts[scale, thin], "weight_decay": 0.0 if thin else weight_decay, "lr_scale": scale}
        for scale, thin in sorted(parts)
    ]
    if name not in OPTIMIZERS:
        known = ", ".join(OPTIMIZERS)
        raise ValueError(message("unknown optimizer {name}; known: {optimizers}", name=f"{name!r}", optimizers=known))
    options: dict[str, float] = {} if name == "adamw" else {"momentum": momentum}
    if name != "lars" and all(p.is_cuda for p in trained):
        options["fused"] = True  # one launch for all parameters
    optimizer: torch.optim.Optimizer = OPTIMIZERS[name](groups, lr=lr, **options)
    set_learning_rate(optimizer, lr)
    return optimizer


def learning_rate(step: int, total: int, peak: float, schedule: str, warmup: int = 0) -> float:
    """Return the learning rate of step 0 … total−1. `peak`: the highest rate; `warmup`: steps of linear rise before the
    schedule starts. `schedule`: "constant"; "cosine" to 0; "steps", ×0.1 at 60 % and 80 %; "one_cycle", a cosine from
    peak/25 to peak over the first quarter and on to 0 (it needs no warm-up)."""
    if step < warmup:
        return peak * (step + 1) / warmup
    progress = (step - warmup) / max(1, total - warmup)  # 0 … <1
    if schedule == "constant":
        return peak
    if schedule == "cosine":
        return peak * (1 + math.cos(math.pi * progress)) / 2
    if schedule == "steps":
        return peak * 0.1 ** sum(progress >= at for at in STEPS)
    if schedule != "one_cycle":
        known = ", ".join(SCHEDULES)
        values = {"schedule": f"{schedule!r}", "schedules": known}
        raise ValueError(message("unknown schedule {schedule}; known: {schedules}", **values))
    if progress < ONE_CYCLE_RISE:
        return peak * (1 - 0.96 * (1 + math.cos(math.pi * progress / ONE_CYCLE_RISE)) / 2)
    fall = (progress - ONE_CYCLE_RISE) / (1 - ONE_CYCLE_RISE)
    return peak * (1 + math.cos(math.pi * fall)) / 2


def set_learning_rate(optimizer: torch.optim.Optimizer, lr: float) -> None:
    """Set every parameter group's learning rate to `lr` times its factor."""
    for group in optimizer.param_groups:
        group["lr"] = lr * group.get("lr_scale", 1.0)  # states of older versions have no scale


def learning_rate_scales(encoder: nn.Module, decay: float) -> dict[int, float]:
    """Return the learning-rate factor of every parameter of an encoder, by its id: decay^(L − l) in layer l of L (Bao
    et al. 2022, BEiT, arXiv 2106.08254, after Clark et al. 2020, ELECTRA).

    Parameters with the same first number in their name form a layer (a block of a transformer, a stage of a ResNet).
    Parameters without a number (a patch embedding, a last norm) belong to the preceding layer, as do numbers without a
    parameter of two or more dimensions (a batch norm)."""
    parameters = [(name.removeprefix("body."), p) for name, p in encoder.named_parameters()]
    named = [(match[1] if (match := NUMBERED.match(name)) else "", p) for name, p in parameters]
    with_weights = {start for start, p in named if p.ndim >= 2}
    layers: list[int] = []
    current, layer = "", 0
    for start, _ in named:
        if start and start != current and start in with_weights:
            layer += 1 if layers else 0
            current = start
        layers.append(layer)
    return {id(p): decay ** (layer + 1 - i) for (_, p), i in zip(named, layers, strict=True)}
