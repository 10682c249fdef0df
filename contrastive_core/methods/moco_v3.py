"""MoCo v3 (Chen et al. 2021, arXiv 2104.02057): a momentum encoder and a predictor, with the keys of the batch instead
of a queue. Order and letters of the paper's algorithm 1: q₁, q₂, k₁, k₂ → ctr(q₁, k₂) + ctr(q₂, k₁)."""

from contrastive_core.base.messages import N_
from contrastive_core.methods._asymmetric import MomentumPredictorMethod
from contrastive_core.methods._base import DatasetInfo, Default


class MoCoV3(MomentumPredictorMethod):
    loss_knobs_reason = N_("τ 0.2, as for transformers; 1.0 is slower in short runs")

    @classmethod
    def defaults(cls, facts: DatasetInfo) -> dict[str, Default]:
        reason = N_("m 0.99 rising to 1, as published for ResNets; not measured in short runs")
        return super().defaults(facts) | {"method_knobs": ({"momentum": 0.99}, reason)}
