"""SimSiam (Chen & He 2021, arXiv 2011.10566): BYOL without the slow copy. Order and letters of the paper's algorithm 1:
x₁, x₂ → z → p, and D(p₁, z₂)/2 + D(p₂, z₁)/2 with no gradient through z."""

from dataclasses import dataclass

import torch

from contrastive_core.data.batch_loader import Batch
from contrastive_core.messages import N_
from contrastive_core.methods._base import Method, Rows
from contrastive_core.methods._predictor import PredictorSettings, across_views, make_predictor, predicted
from contrastive_core.methods._published import MOCO_V2_VIEWS, SIMSIAM_CIFAR_VIEWS
from contrastive_core.pairs.types import Pairs
from contrastive_core.records.cards import MethodCard, Published
from contrastive_core.registry import knob


@dataclass(frozen=True)
class Settings(PredictorSettings):
    stop_gradient: bool = knob(True, help=N_("No gradient through z. Turned off, the embedding collapses."))


class SimSiam(Method):
    card = MethodCard(
        title="SimSiam",
        year=2021,
        paper="https://arxiv.org/abs/2011.10566",
        idea=N_(
            "Two views through one encoder, a predictor on one side and a stopped gradient on the other. Neither "
            "negatives nor a slow copy are needed; without the stopped gradient it collapses at once."
        ),
        compared=N_("the prediction of one view with the row of the other view, without gradient"),
        flow=(
            ("image", N_("view 1"), "encoder*", "head*", N_("predictor*"), "p*"),
            ("image", N_("view 2"), "encoder*", "head*", N_("stopped gradient"), "z"),
        ),
        measured_by_paper=N_(
            "ImageNet linear, ResNet-50, 100 epochs: 68.1 %, without the stopped gradient 0.1 %; CIFAR-10, ResNet-18, "
            "800 epochs: 91.8 % (linear; quoted, not checked against the paper itself)."
        ),
        differences=N_(
            "The head's last layer has no BatchNorm here; the paper's has one without scale and shift. The learning "
            "rate of the predictor decays with all others; the paper keeps it constant."
        ),
        paper_recipe=N_("batch 512, SGD 0.05 · batch / 256, cosine, d 2,048, predictor 512"),
        default_loss="negative_cosine",
        loss_knobs={"form": "cosine"},
        uses=("predictor",),
        builds_on=(("byol", N_("predictor, without its momentum encoder")),),
        published={
            "cifar": Published(  # 2011.10566, appendix D: unchecked
                source=N_("SimSiam's paper on CIFAR-10 with ResNet-18"),
                optimizer="sgd",
                lr=0.03,
                per=256,
                weight_decay=5e-4,
                batch_size=512,
                epochs=800,
                method_knobs={"hidden": 2048, "dim": 2048, "predictor_hidden": 512},
                views=SIMSIAM_CIFAR_VIEWS,
            ),
            "imagenet": Published(  # github.com/facebookresearch/simsiam, main_simsiam.py and builder.py
                source=N_("SimSiam's paper on ImageNet with ResNet-50"),
                optimizer="sgd",
                lr=0.05,
                per=256,
                weight_decay=1e-4,
                batch_size=512,
                epochs=100,
                method_knobs={"depth": 3, "hidden": 2048, "dim": 2048, "predictor_hidden": 512},
                views=MOCO_V2_VIEWS,
            ),
        },
    )
    Settings = Settings
    loss_knobs_reason = N_("−cos, as published")

    def build(self) -> None:
        self.predictor = make_predictor(self.settings, self.head.out_dim)

    def rows(self, batch: Batch, generator: torch.Generator) -> Rows:
        z = self.encode_views(self.views(batch, 2, generator))  # (b, 2, e)
        return predicted(self.predictor, z), z

    def relate(self, rows: Rows, batch: Batch, generator: torch.Generator) -> Pairs:
        p, z = rows
        return across_views(p, z.detach() if self.settings.stop_gradient else z)
