"""Barlow Twins (Zbontar et al. 2021, arXiv 2103.03230): two views whose dimensions correlate with themselves alone."""

from contrastive_core.messages import N_
from contrastive_core.methods._dimensions import DimensionMethod
from contrastive_core.methods._published import BYOL_VIEWS, LARS, LIGHTLY
from contrastive_core.records.cards import MethodCard, Published


class BarlowTwins(DimensionMethod):
    card = MethodCard(
        title="Barlow Twins",
        year=2021,
        paper="https://arxiv.org/abs/2103.03230",
        idea=N_(
            "Over the batch, each dimension of one view should agree with the same dimension of the other view and no "
            "other. Redundant dimensions cost, so the embedding cannot collapse."
        ),
        compared=N_("every dimension of one view with every dimension of the other, over the batch"),
        flow=(
            ("image", N_("view 1"), "encoder*", "head*", "z₁*", N_("columns*")),
            ("image", N_("view 2"), "encoder*", "head*", "z₂*", N_("columns*")),
        ),
        measured_by_paper=N_(
            "ImageNet linear, ResNet-50, 1,000 epochs: 73.2 %; batches of 256 lose little, wider z keeps gaining up "
            "to 16,384 (quoted; not checked against the paper itself)."
        ),
        differences=N_("z has 256 dimensions here, 8,192 in the paper; λ is the paper's."),
        paper_recipe=N_("batch 2,048, λ 0.005, d 8,192, three layers of 8,192, LARS"),
        default_loss="barlow_twins",
        loss_knobs={"off_diagonal": 0.005},
        builds_on=(("simclr", N_("head and augmentations")),),
        published={
            "cifar": Published(**LIGHTLY, method_knobs={"depth": 2, "hidden": 2048, "dim": 2048}),
            "imagenet": Published(  # 2103.03230, section 2.2: unchecked; README.md of its code decays by 1e-6
                **LARS | {"batch_size": 2048},
                source=N_("Barlow Twins' paper on ImageNet with ResNet-50"),
                lr=0.2,
                weight_decay=1.5e-6,
                epochs=1000,
                method_knobs={"depth": 3, "hidden": 8192, "dim": 8192},
                views=BYOL_VIEWS,
            ),
        },
    )
    loss_knobs_reason = N_("λ 0.005, as published")
