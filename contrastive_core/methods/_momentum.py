"""Base class of methods with a momentum encoder: a key encoder and head that follow the trained ones slowly
(MoCo's key, BYOL's target). θ_k ← m θ_k + (1 − m) θ_q after each step (He et al. 2020, arXiv 1911.05722, eq. 2)."""

import copy
import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from contrastive_core.base.messages import N_
from contrastive_core.base.registry import knob
from contrastive_core.methods._base import HeadSettings, Method
from contrastive_core.models.memory_bank import ema_update
from contrastive_core.pairs.types import Pairs


@dataclass(frozen=True)
class MomentumSettings(HeadSettings):
    """Settings of the momentum encoder."""

    momentum: float = knob(
        0.99, 0.0, 1.0, N_("m: momentum of the key encoder; higher values make it follow more slowly.")
    )
    momentum_warmup: bool = knob(False, help=N_("m rises as (1+t)/(10+t) to its value."))
    momentum_cosine: bool = knob(False, help=N_("m rises to 1 along half a cosine, as in BYOL."))


class MomentumMethod(Method):
    """A method with a key encoder and a key head."""

    steps: Tensor

    def build(self) -> None:
        self.key_encoder = copy.deepcopy(self.encoder).requires_grad_(False)
        self.key_head = copy.deepcopy(self.head).requires_grad_(False)
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))
        self.taken = 0  # `steps` on the host, without waiting for a device
        self.register_load_state_dict_post_hook(_count_steps)

    @torch.no_grad()
    def encode_keys(self, x: Tensor) -> Tensor:
        """Return the keys (b, v, e) of views (b, v, c, h, w), without gradient."""
        return self.key_head(self.key_encoder(x.flatten(0, 1))).unflatten(0, x.shape[:2])

    @torch.no_grad()
    def after_step(self, pairs: Pairs) -> None:
        ema_update(self.key_encoder, self.encoder, self.m)
        ema_update(self.key_head, self.head, self.m)
        self.steps += 1
        self.taken += 1

    @property
    def m(self) -> float:
        """The momentum m at step t; with a cosine 1 − (1 − m)(cos(πt/T) + 1)/2 for T steps (BYOL, arXiv 2006.07733)."""
        m, t = self.settings.momentum, self.taken
        if self.settings.momentum_warmup:
            m = min(m, (1 + t) / (10 + t))
        if self.settings.momentum_cosine:
            part = min(1.0, t / max(1, self.total_steps))
            m = 1 - (1 - m) * (math.cos(math.pi * part) + 1) / 2
        return m

    def extra_metrics(self) -> dict[str, float]:
        return {"momentum": self.m, "key_distance": weight_distance(self.encoder, self.key_encoder)}


def _count_steps(method: nn.Module, problems: object) -> None:
    """Set the number of steps from a loaded state."""
    method.taken = int(method.get_buffer("steps"))  # type: ignore[assignment]


@torch.no_grad()
def weight_distance(one: nn.Module, other: nn.Module) -> float:
    """Return ‖θ − θ'‖ / ‖θ‖ over all parameters."""
    weights, others = (torch.cat([p.float().flatten() for p in module.parameters()]) for module in (one, other))
    return float((weights - others).norm() / weights.norm())
