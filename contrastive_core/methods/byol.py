"""BYOL (Grill et al. 2020, arXiv 2006.07733): predict what a slowly moving copy of the encoder says of another view.
Order and letters of the paper: t, t' → y → z → q(z) on the online side, z' on the target side."""

from contrastive_core.messages import N_
from contrastive_core.methods._base import DatasetInfo, Default
from contrastive_core.methods._predictor import MomentumPredictorMethod
from contrastive_core.methods._published import BYOL_VIEWS, LARS, LIGHTLY
from contrastive_core.records.cards import MethodCard, Published


class BYOL(MomentumPredictorMethod):
    card = MethodCard(
        title="BYOL",
        year=2020,
        paper="https://arxiv.org/abs/2006.07733",
        idea=N_(
            "Predict from one view what a slow copy of the encoder says of the other view. There are no negatives; the "
            "predictor and the slow copy keep the embedding from collapsing."
        ),
        compared=N_("the prediction of one view with the slow copy's row of the other view"),
        flow=(
            ("image", N_("view 1"), "encoder*", "head*", N_("predictor*"), "q*"),
            ("image", N_("view 2"), N_("key encoder"), N_("key head"), "z′"),
        ),
        measured_by_paper=N_(
            "ImageNet linear, ResNet-50, 1,000 epochs: 74.3 %; with batches of 256 instead of 4,096 it loses less than "
            "SimCLR does (quoted; not checked against the paper itself)."
        ),
        differences=N_(
            "Both directions are one mean over all views; the paper sums the two, which doubles the loss. LARS and "
            "m 0.996 over 1,000 epochs are not used here."
        ),
        paper_recipe=N_("batch 4,096, d 256, hidden 4,096 with BatchNorm, m 0.996 rising to 1, LARS"),
        default_loss="negative_cosine",
        updates=(("encoder", N_("key encoder"), N_("EMA m")), ("head", N_("key head"), N_("EMA m"))),
        uses=("momentum encoder", "predictor"),
        builds_on=(("moco_v1", N_("momentum encoder")), ("simclr", N_("head and augmentations"))),
        published={
            "cifar": Published(
                **LIGHTLY,
                method_knobs={
                    "hidden": 1024,
                    "dim": 256,
                    "predictor_hidden": 1024,
                    "momentum": 0.99,
                    "momentum_cosine": False,
                },
            ),
            "imagenet": Published(  # deepmind-research/byol/configs/byol.py
                **LARS,
                source=N_("BYOL's paper on ImageNet with ResNet-50"),
                lr=0.2,
                weight_decay=1.5e-6,
                epochs=1000,
                method_knobs={
                    "hidden": 4096,
                    "dim": 256,
                    "predictor_hidden": 4096,
                    "momentum": 0.996,
                    "momentum_cosine": True,
                },
                views=BYOL_VIEWS,
            ),
        },
    )

    @classmethod
    def defaults(cls, facts: DatasetInfo) -> dict[str, Default]:
        reason = N_(
            "m 0.9, constant: best of four on digits, by kNN on the test images of one seed, so a choice and no "
            "finding; in a short run a slower copy lags behind the encoder"
        )
        return super().defaults(facts) | {"method_knobs": ({"momentum": 0.9, "momentum_cosine": False}, reason)}
