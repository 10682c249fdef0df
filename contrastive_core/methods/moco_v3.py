"""MoCo v3 (Chen et al. 2021, arXiv 2104.02057): a momentum encoder and a predictor, with the batch's keys in place of a
queue. Order and letters of the paper's algorithm 1: q₁, q₂, k₁, k₂ → ctr(q₁, k₂) + ctr(q₂, k₁)."""

from contrastive_core.messages import N_
from contrastive_core.methods._base import DatasetInfo, Default
from contrastive_core.methods._predictor import MomentumPredictorMethod
from contrastive_core.methods._published import BYOL_VIEWS, LARS
from contrastive_core.records.cards import MethodCard, Published


class MoCoV3(MomentumPredictorMethod):
    card = MethodCard(
        title="MoCo v3",
        year=2021,
        paper="https://arxiv.org/abs/2104.02057",
        idea=N_(
            "MoCo's slow copy with BYOL's predictor, and the keys of a large batch instead of a queue. It was made to "
            "train vision transformers steadily."
        ),
        compared=N_("the prediction of one view with the keys of all images' other views"),
        flow=(
            ("image", N_("view 1"), "encoder*", "head*", N_("predictor*"), "q*"),
            ("image", N_("view 2"), N_("key encoder"), N_("key head"), "k"),
        ),
        measured_by_paper=N_(
            "ImageNet linear, ResNet-50: 68.9 % (100 epochs), 74.6 % (1,000 epochs); quoted, not checked."
        ),
        differences=N_(
            "The paper scales the loss by 2τ and sums both directions; here it is a mean without that factor. The "
            "patch layer is not frozen: no encoder here has patches."
        ),
        paper_recipe=N_(
            "batch 4,096, τ 1.0 (ResNet-50) or 0.2 (ViT), d 256, hidden 4,096, m 0.99 or 0.996 rising to 1"
        ),
        default_loss="info_nce",
        loss_knobs={"temperature": 0.2},
        updates=(("encoder", N_("key encoder"), N_("EMA m")), ("head", N_("key head"), N_("EMA m"))),
        uses=("negatives", "momentum encoder", "large batch", "predictor"),
        builds_on=(("moco_v2", N_("momentum encoder")), ("byol", N_("predictor"))),
        published={
            "imagenet": Published(  # github.com/facebookresearch/moco-v3, CONFIG.md and main_moco.py
                **LARS,
                source=N_("MoCo v3's authors on ImageNet with ResNet-50"),
                lr=0.3,
                weight_decay=1e-6,
                epochs=300,
                method_knobs={"hidden": 4096, "dim": 256, "predictor_hidden": 4096, "momentum": 0.99},
                loss_knobs={"temperature": 1.0},
                views={**BYOL_VIEWS, "crop_low": 0.2},
            )
        },
    )
    loss_knobs_reason = N_("τ 0.2, as for transformers; 1.0 is slower in short runs")

    @classmethod
    def defaults(cls, facts: DatasetInfo) -> dict[str, Default]:
        reason = N_("m 0.99 rising to 1, as published for ResNets; not measured in short runs")
        return super().defaults(facts) | {"method_knobs": ({"momentum": 0.99}, reason)}
