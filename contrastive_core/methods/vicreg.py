"""VICReg (Bardes et al. 2022, arXiv 2105.04906): views meet, every dimension varies, no two vary together."""

from contrastive_core.messages import N_
from contrastive_core.methods._dimensions import DimensionMethod
from contrastive_core.methods._published import BYOL_VIEWS, LARS
from contrastive_core.records.cards import MethodCard, Published


class VICReg(DimensionMethod):
    card = MethodCard(
        title="VICReg",
        year=2022,
        paper="https://arxiv.org/abs/2105.04906",
        idea=N_(
            "Three plain terms: the views of an image meet, each dimension keeps its deviation over the batch, and no "
            "two dimensions vary together. The second and third keep the embedding from collapsing."
        ),
        compared=N_("the two views of an image, and the dimensions of each view over the batch"),
        flow=(
            ("image", N_("view 1"), "encoder*", "head*", "z₁*", N_("columns*")),
            ("image", N_("view 2"), "encoder*", "head*", "z₂*", N_("columns*")),
        ),
        measured_by_paper=N_(
            "ImageNet linear, ResNet-50, 1,000 epochs: 73.2 % (quoted; not checked against the paper itself)."
        ),
        differences=N_(
            "The distance of two views is a mean over dimensions and the variance term a mean over views, as in the "
            "published code; the paper's formula has sums."
        ),
        paper_recipe=N_("batch 2,048, λ 25, μ 25, ν 1, d 8,192, three layers of 8,192, LARS"),
        default_loss="vicreg",
        loss_knobs={"invariance": 25.0, "variance": 25.0, "covariance": 1.0},
        builds_on=(("barlow_twins", N_("terms between dimensions")),),
        published={
            "imagenet": Published(  # github.com/facebookresearch/vicreg, main_vicreg.py
                **LARS | {"batch_size": 2048},
                source=N_("VICReg's paper on ImageNet with ResNet-50"),
                lr=0.2,
                weight_decay=1e-6,
                epochs=1000,
                method_knobs={"depth": 3, "hidden": 8192, "dim": 8192},
                views=BYOL_VIEWS,
            )
        },
    )
    loss_knobs_reason = N_("25, 25 and 1, as published")
