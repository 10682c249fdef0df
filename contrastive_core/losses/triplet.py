"""Triplet loss (Schroff et al. 2015, FaceNet, arXiv 1503.03832, eq. 3) on squared distances.

Many triplets are summed exactly in n² log n: the negatives of an anchor are sorted once, and each positive
needs only the number and the sum of those nearer than D² + ε (sums in float64)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from contrastive_core.base.device import is_free_to_read
from contrastive_core.base.messages import N_
from contrastive_core.base.registry import Kernel, knob
from contrastive_core.losses._base import Details, Loss
from contrastive_core.pairs.types import Masks, Pairs

TRIPLETS = 1 << 18  # triplets in memory: 1 MB in float32


@dataclass(frozen=True)
class Triplet(Loss):
    """The triplet loss: L_i = mean over counted (i, p, k) of max(0, D²_ip − D²_ik + ε); w_i = number counted."""

    score = "squared_distance"

    margin: float = knob(0.2, 0.0, 4.0, N_("Squared distance by which a positive must be nearer."))
    mining: str = knob(
        "all",
        help=N_(
            "All triplets; semi-hard: for each positive the nearest negative that is farther and inside the margin; "
            "or hard: farthest positive with nearest negative."
        ),
        choices=("all", "semi_hard", "hard"),
    )
    average: str = knob(
        "all", help=N_("Average over all counted triplets, or only over active ones."), choices=("all", "active")
    )
    normalize: bool = knob(True, help=N_("Compare unit rows."))

    def per_anchor(self, scores: Tensor, masks: Masks, pairs: Pairs) -> tuple[Tensor, Tensor]:
        if self.mining == "hard":
            total, number, active = self._hard(scores, masks)
        elif self.mining == "semi_hard":
            total, number, active = self._semi_hard(scores, masks)
        else:
            total, number, active = self._all(scores, masks)
        weight = number if self.average == "all" else active
        value = torch.where(weight > 0, total / weight.clamp_min(1), torch.zeros_like(total))
        return value.to(scores.dtype), weight.to(scores.dtype)

    def _hard(self, d: Tensor, masks: Masks) -> tuple[Tensor, Tensor, Tensor]:
        """Return the hinge of farthest positive and nearest negative, and the numbers of all and of active triplets."""
        defined = masks.positive.any(-1) & masks.negative.any(-1)
        far = d.masked_fill(~masks.positive, -torch.inf).amax(-1)
        near = d.masked_fill(~masks.negative, torch.inf).amin(-1)
        far, near = torch.where(defined, far, 0.0), torch.where(defined, near, 0.0)
        hinge = torch.where(defined, (far - near + self.margin).clamp_min(0), 0.0)
        return hinge, defined.long(), (hinge > 0).long()

    def _semi_hard(self, d: Tensor, masks: Masks) -> tuple[Tensor, Tensor, Tensor]:
        """Return the hinges of each positive with the nearest negative that is farther and inside the margin."""
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

    def _all(self, d: Tensor, masks: Masks) -> tuple[Tensor, Tensor, Tensor]:
        """Return Σ max(0, D²_ip − D²_ik + ε) over all triplets, and the numbers of all and of active triplets."""
        columns, real = padded_indices(masks.positive)
        p = d.gather(-1, columns)  # (n, k) distances of positives
        number = real.sum(-1) * masks.negative.sum(-1)
        if p.numel() * d.shape[1] > TRIPLETS:
            near_first, order = d.masked_fill(~masks.negative, torch.inf).sort(-1)
            near_first, w_k = near_first.double(), masks.negative.gather(-1, order).double()  # (n, w)
            weighted = w_k * torch.where(near_first.isinf(), 0.0, near_first)
            counts, sums = (torch.nn.functional.pad(x.cumsum(-1), (1, 0)) for x in (w_k, weighted))  # (n, w + 1) each
            reach = p.double() + self.margin
            place = torch.searchsorted(near_first.detach(), reach.detach())  # (n, k)
            active = counts.gather(-1, place)
            hinges = active * reach - sums.gather(-1, place)  # of each positive, over the negatives
        else:
            each = (p[:, :, None] - d[:, None, :] + self.margin).clamp_min(0)  # (n, k, w)
            hinges, active = ((x * masks.negative[:, None]).sum(-1) for x in (each, each > 0))
        return (real.double() * hinges).sum(-1), number, (real * active).sum(-1)

    def pair_weight(self, scores: Tensor, masks: Masks, pairs: Pairs) -> Tensor:
        """Return 1 for each pair in an active triplet of its anchor."""
        return (self.score_gradient(scores, masks, pairs) != 0).to(scores.dtype)

    def details(self, scores: Tensor, masks: Masks, pairs: Pairs) -> Details:
        """Return the numbers of each anchor's active triplets, and of the semi-hard and hard ones; (n) each."""
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


def padded_indices(mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return the columns (n, k) of each row's true entries, padded to the fullest row, and a mask of the real ones. k
    is all columns if counting would wait for a device."""
    most = mask.shape[1]
    if is_free_to_read(mask):
        most = int(mask.sum(-1).amax()) if len(mask) else 0
    real, columns = mask.byte().topk(most, dim=-1)
    return columns, real.bool()
