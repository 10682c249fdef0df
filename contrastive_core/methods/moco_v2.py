"""MoCo v2 (Chen et al. 2020, arXiv 2003.04297): v1 with an MLP head, blur, a cosine schedule."""

import dataclasses

from contrastive_core.messages import N_, message
from contrastive_core.methods._base import DatasetInfo, Default
from contrastive_core.methods._moco import MoCo, MoCoSettings
from contrastive_core.methods._published import MOCO_DEMO, MOCO_DEMO_KNOBS, MOCO_IMAGENET, MOCO_KNOBS, MOCO_V2_VIEWS
from contrastive_core.records.cards import MethodCard, Published


class MoCoV2(MoCo):
    card = MethodCard(
        title="MoCo v2",
        year=2020,
        paper="https://arxiv.org/abs/2003.04297",
        idea=N_(
            "MoCo with SimCLR's head and augmentations: it needs no large batch. Each of the three small changes helps."
        ),
        compared=N_("a query with the key of its own image, against the queue alone"),
        flow=(
            ("image", N_("view q"), "encoder*", N_("MLP head*"), "q*"),
            ("image", N_("view k"), N_("key encoder"), N_("key head"), "k"),
            (N_("queue of older keys"),),
        ),
        measured_by_paper=N_(
            "ImageNet linear: v1 60.6, + MLP 66.2, + augmentation 63.4, both 67.3 (not checked against the paper "
            "itself), + cosine 67.5 %."
        ),
        differences=N_("Blur is left out below 16 pixels, where it removes the image. All else as MoCo v1."),
        paper_recipe=N_("K 65,536, m 0.999, τ 0.2, MLP head, blur, cosine, batch 256"),
        default_loss="info_nce",
        updates=(
            ("encoder", N_("key encoder"), N_("EMA m")),
            (N_("MLP head"), N_("key head"), N_("EMA m")),
            ("k", N_("queue of older keys"), "enqueue"),
        ),
        loss_knobs={"temperature": 0.2},
        uses=("negatives", "momentum encoder", "memory of older rows"),
        builds_on=(("moco_v1", N_("queue and momentum encoder")), ("simclr", N_("head and augmentations"))),
        published={
            # the head of lightly's MoCo in cifar10_benchmark.py; the authors' notebook has v1's linear layer
            "cifar": Published(**MOCO_DEMO, method_knobs={**MOCO_DEMO_KNOBS, "hidden": 512}),
            "imagenet": Published(  # --mlp --moco-t 0.2 --aug-plus --cos
                **MOCO_IMAGENET,
                source=N_("MoCo v2's paper on ImageNet with ResNet-50"),
                method_knobs={**MOCO_KNOBS, "hidden": 2048},
                loss_knobs={"temperature": 0.2},
                views=MOCO_V2_VIEWS,
            ),
        },
    )
    Settings = MoCoSettings
    temperature_reason = N_("as published")

    @classmethod
    def defaults(cls, facts: DatasetInfo) -> dict[str, Default]:
        defaults = super().defaults(facts)
        if facts.image_shape[1] > 16:
            recipe, why = defaults["recipe"]
            blurred = dataclasses.replace(recipe, blur=0.5, blur_high=1.0)
            defaults["recipe"] = (blurred, message("{why}; blur 0.5, as aug+ of the paper", why=why))
        return defaults
