"""Triplet loss (Schroff et al. 2015, FaceNet, arXiv 1503.03832, eq. 3) on squared distances.

All triplets are summed exactly in n² log n: an anchor's negatives are sorted once, and a positive
needs only the number and the sum of those nearer than D² + ε (sums in float64). Anchors with few
positives take them one by one, which is quicker.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from contrastive_core.losses._anatomy import score_gradient
from contrastive_core.losses._base import Loss
from contrastive_core.losses._output import Details
from contrastive_core.losses._triplet_hinges import FEW_POSITIVES, hinge_sums, padded_indices
from contrastive_core.messages import N_
from contrastive_core.pairs.types import Masks, Pairs
from contrastive_core.records.cards import Kernel, LossCard
from contrastive_core.registry import knob

__all__ = ["Triplet"]


@dataclass(frozen=True)
class Triplet(Loss):
    """L_i = mean over counted (i, p, k) of max(0, D²_ip − D²_ik + ε); w_i = number counted."""

    card: ClassVar[LossCard] = LossCard(
        title=N_("Triplet"),
        year=2015,
        paper="https://arxiv.org/abs/1503.03832",
        formula=r"L_i = \operatorname{mean}_{(p,k)}\max\big(0,\,D_{ip}^2 - D_{ik}^2 + \varepsilon\big)",
        summary=(
            N_(
                "A positive must be nearer than every negative by the margin. Triplets that already "
                "are say nothing more, so mining chooses those that do."
            )
        ),
        family="hinge",
        score="squared_distance",
        by_label=True,
    )

    margin: float = knob(0.2, 0.0, 4.0, N_("How much nearer (in squared distance) a positive must be."))
    mining: str = knob(
        "all",
        help=N_(
            "Every triplet; per positive the nearest negative farther than it and inside the "
            "margin; or farthest positive with nearest negative."
        ),
        choices=("all", "semi_hard", "hard"),
    )
    average: str = knob("all", help=N_("Mean over all counted triplets, or active ones."), choices=("all", "active"))
    normalize: bool = knob(True, help=N_("Compare unit rows."))

    @property
    def takes_weights(self) -> bool:
        return self.mining == "all"  # else the one nearest or farthest of all counts

    def per_anchor(self, scores: Tensor, masks: Masks, pairs: Pairs) -> tuple[Tensor, Tensor]:
        if self.mining == "hard":
            total, number, active = self._hard(scores, masks)
        elif self.mining == "semi_hard":
            total, number, active = self._semi_hard(scores, masks)
        elif masks.negative.dtype != torch.bool or int(masks.positive.sum(-1).amax()) > FEW_POSITIVES:
            total, number, active = self._all_sorted(scores, masks)
        else:
            total, number, active = self._all_listed(scores, masks)
        weight = number if self.average == "all" else active
        value = torch.where(weight > 0, total / weight.clamp_min(1), torch.zeros_like(total))
        return value.to(scores.dtype), weight.to(scores.dtype)

    def _hard(self, d: Tensor, masks: Masks) -> tuple[Tensor, Tensor, Tensor]:
        """Farthest positive and nearest negative."""
        defined = masks.positive.any(-1) & masks.negative.any(-1)
        far = d.masked_fill(~masks.positive, -torch.inf).amax(-1)
        near = d.masked_fill(~masks.negative, torch.inf).amin(-1)
        far, near = torch.where(defined, far, 0.0), torch.where(defined, near, 0.0)
        hinge = torch.where(defined, (far - near + self.margin).clamp_min(0), 0.0)
        return hinge, defined.long(), (hinge > 0).long()

    def _semi_hard(self, d: Tensor, masks: Masks) -> tuple[Tensor, Tensor, Tensor]:
        """Each positive with the nearest negative farther than it and inside the margin; ties share."""
        columns, real = padded_indices(masks.positive)
        near_first = d.masked_fill(~masks.negative, torch.inf).sort(-1).values.double()  # (n, w)
        sums = torch.where(near_first.isinf(), 0.0, near_first).cumsum(-1)
        sums = torch.nn.functional.pad(sums, (1, 0))  # (n, w + 1)
        ascending, last = near_first.detach().contiguous(), near_first.shape[-1] - 1
        p = d.gather(-1, columns).double()  # (n, k) distances of positives
        low = torch.searchsorted(ascending, p.detach(), right=True)
        value = ascending.gather(-1, low.clamp_max(last))
        high = torch.searchsorted(ascending, value, right=True)
        counted = real & (low <= last) & (value < p.detach() + self.margin)
        mean = (sums.gather(-1, high) - sums.gather(-1, low)) / (high - low).clamp_min(1)
        hinges = torch.where(counted, p + self.margin - mean, 0.0)
        number = counted.sum(-1)
        return hinges.sum(-1), number, number

    def _all_listed(self, d: Tensor, masks: Masks) -> tuple[Tensor, Tensor, Tensor]:
        """Σ max(0, D²_ip − D²_ik + ε), a few positives at a time with all negatives."""
        columns, real = padded_indices(masks.positive)
        reach = torch.where(real, d.detach().gather(-1, columns) + self.margin, -torch.inf)
        total, active = hinge_sums(d, masks.negative, columns, reach)
        return total, real.sum(-1) * masks.negative.sum(-1), active

    def _all_sorted(self, d: Tensor, masks: Masks) -> tuple[Tensor, Tensor, Tensor]:
        """Σ w_ip w_ik max(0, D²_ip − D²_ik + ε), where masks may say how many a candidate stands for."""
        columns, real = padded_indices(masks.positive > 0)
        w_p = torch.where(real, masks.positive.gather(-1, columns), 0).double()  # (n, k)
        near_first, order = d.masked_fill(masks.negative == 0, torch.inf).sort(-1)
        near_first, w_k = near_first.double(), masks.negative.gather(-1, order).double()  # (n, w)
        weighted = w_k * torch.where(near_first.isinf(), 0.0, near_first)
        counts, sums = (torch.nn.functional.pad(x.cumsum(-1), (1, 0)) for x in (w_k, weighted))  # (n, w + 1) each
        reach = d.gather(-1, columns).double() + self.margin
        active = torch.searchsorted(near_first.detach(), reach.detach())  # (n, k)
        of_each = counts.gather(-1, active)  # active negatives
        hinges = of_each * reach - sums.gather(-1, active)
        number = w_p.sum(-1) * counts[:, -1]
        return (w_p * hinges).sum(-1), number, (w_p * of_each).sum(-1)

    def pair_weight(self, scores: Tensor, masks: Masks, pairs: Pairs) -> Tensor:
        """1 for each pair in an active triplet of its anchor."""
        return (score_gradient(self, scores, masks, pairs) != 0).to(scores.dtype)

    def details(self, scores: Tensor, masks: Masks, pairs: Pairs) -> Details:
        """Triplets of each anchor: active, and of these semi-hard and hard; (n) each."""
        negatives = scores.double().masked_fill(~masks.negative, torch.inf).sort(-1).values
        d = scores.double()
        inside = torch.searchsorted(negatives, d + self.margin)
        hard = torch.searchsorted(negatives, d, right=True)
        active, hard = (torch.where(masks.positive, c, 0).sum(-1) for c in (inside, hard))
        hard = torch.minimum(hard, active)
        return {"active": active, "hard": hard, "semi_hard": active - hard}

    def kernel(self) -> Kernel:
        return Kernel(
            family="hinge", knob="margin", margin=self.margin, form="triplet", mining=self.mining, average=self.average
        )
