"""Noise-contrastive estimation against the memory bank (Gutmann & Hyvärinen 2010, AISTATS;
Wu et al. 2018, arXiv 1805.01978, eqs. 5 and 7), with uniform noise over the population.

log Z is a constant of the batch: stored in the method's bank and passed with the pairs, or given
as a setting. Without either it is estimated from the batch's own scores, detached."""

import dataclasses
import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from contrastive_core.base.messages import N_
from contrastive_core.base.registry import knob
from contrastive_core.losses._base import Details
from contrastive_core.losses._softmax import LogitLoss, temperature_knob
from contrastive_core.ops.similarity import compare, masked_mean
from contrastive_core.pairs.types import Masks, Pairs


@dataclass(frozen=True)
class NCE(LogitLoss):
    """NCE: L_i = −log σ(ℓ_ip) − Σ_{k∈N(i)} log(1 − σ(ℓ_ik)), ℓ = s/τ − log Z − log(K/N); w_i = 1."""

    needs_more_inputs = True

    temperature: float = temperature_knob(0.07)
    log_z: float | None = knob(
        None, -1000.0, 1000.0, N_("Log of the normalizer; none: estimated from the method's bank or the batch.")
    )
    normalize: bool = knob(True, help=N_("Compare unit rows (cosine)."))

    def unit_rows(self, pairs: Pairs) -> Pairs:
        """Return the pairs with rows in the form in which they are compared."""
        return super().rows(pairs)

    def rows(self, pairs: Pairs) -> Pairs:
        pairs = self.unit_rows(pairs)
        log_z = self.log_z if self.log_z is not None else pairs.log_z
        if log_z is None:
            log_z = self.estimate_log_z(pairs)
        return dataclasses.replace(pairs, log_z=log_z)

    def estimate_log_z(self, pairs: Pairs) -> Tensor:
        """Return log N + log mean e^{s/τ} over the scores of the first 1,024 anchors, detached; ()."""
        with torch.no_grad():
            logits = compare(pairs.take_anchors(slice(1024)), self.score) / self.temperature
            n, exact = self.population(pairs), torch.float32 if logits.device.type == "mps" else torch.float64
            if logits.numel() == 0:
                return torch.full((), math.log(n), dtype=exact, device=logits.device)
            return math.log(n) + logits.flatten().logsumexp(0).to(exact) - math.log(logits.numel())

    @staticmethod
    def population(pairs: Pairs) -> int:
        """Return N, the number of slots from which noise is sampled."""
        return pairs.population or max(1, len(pairs.candidates))

    def logits(self, scores: Tensor, pairs: Pairs) -> Tensor:
        masks = pairs.masks()
        k = masks.negative.sum(-1, keepdim=True).clamp_min(1).to(scores.dtype)  # (n, 1)
        assert pairs.log_z is not None
        return scores / self.temperature - pairs.log_z - (k / self.population(pairs)).log()

    def per_anchor(self, scores: Tensor, masks: Masks, pairs: Pairs) -> tuple[Tensor, Tensor]:
        logits = self.logits(scores, pairs)  # (n, w)
        accepted = -masked_mean(logsigmoid(logits), masks.positive)
        rejected = torch.where(masks.negative, logsigmoid(-logits), 0.0).sum(-1)
        defined = masks.positive.any(-1) & masks.negative.any(-1)
        return accepted - rejected, defined.to(scores.dtype)

    def pair_weight(self, scores: Tensor, masks: Masks, pairs: Pairs) -> Tensor:
        probability = self.logits(scores, pairs).sigmoid()
        return torch.where(masks.positive | masks.negative, probability, 0.0)

    def details(self, scores: Tensor, masks: Masks, pairs: Pairs) -> Details:
        assert pairs.log_z is not None
        return {**super().details(scores, masks, pairs), "log_z": float(pairs.log_z)}
