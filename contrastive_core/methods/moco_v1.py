"""MoCo v1 (He et al. 2020, arXiv 1911.05722): a queue of keys as a dictionary, a linear head."""

from dataclasses import dataclass

from contrastive_core.messages import N_
from contrastive_core.methods._moco import MoCo, MoCoSettings
from contrastive_core.methods._published import INST_DISC_VIEWS, MOCO_DEMO, MOCO_DEMO_KNOBS, MOCO_IMAGENET, MOCO_KNOBS
from contrastive_core.models.encoders import HEADS
from contrastive_core.records.cards import MethodCard, Published
from contrastive_core.registry import knob


@dataclass(frozen=True)
class Settings(MoCoSettings):
    head: str = knob("linear", help=N_("Projection from h to z."), choices=HEADS)


class MoCoV1(MoCo):
    card = MethodCard(
        title="MoCo v1",
        year=2019,
        paper="https://arxiv.org/abs/1911.05722",
        idea=N_(
            "A dictionary of negatives should be large and consistent. A queue makes it large, and a slowly moving "
            "key encoder keeps what is in it comparable."
        ),
        compared=N_("a query with the key of its own image, against the queue alone"),
        flow=(
            ("image", N_("view q"), "encoder*", "head*", "q*"),
            ("image", N_("view k"), N_("key encoder"), N_("key head"), "k"),
            (N_("queue of older keys"),),
        ),
        measured_by_paper=N_(
            "ImageNet linear 60.6 %; momentum 0 fails, 0.9 / 0.99 / 0.999 / 0.9999: 55.2 / 57.8 / 59.0 / 58.9 %. Its "
            "authors' CIFAR-10 recipe, kNN after 200 / 400 / 800 epochs: asymmetric 82.6 / 86.3 / 88.7, symmetric "
            "85.3 / 88.5 / 89.7 %."
        ),
        differences=N_(
            "Keys of other images in the batch are not negatives. Shuffled BatchNorm needs several GPUs or split "
            "norms: on one device without splits it changes nothing."
        ),
        paper_recipe=N_(
            "K 65,536, m 0.999, τ 0.07, linear head, SGD 0.03, batch 256. On CIFAR-10: K 4,096, m 0.99, τ 0.1, SGD "
            "0.06 with cosine, weight decay 5e-4, batch 512, BatchNorm in 8 parts"
        ),
        default_loss="info_nce",
        updates=(
            ("encoder", N_("key encoder"), N_("EMA m")),
            ("head", N_("key head"), N_("EMA m")),
            ("k", N_("queue of older keys"), "enqueue"),
        ),
        loss_knobs={"temperature": 0.1},
        uses=("negatives", "momentum encoder", "memory of older rows"),
        builds_on=(("inst_disc", N_("rows remembered beyond the batch")), ("cpc", N_("the InfoNCE loss"))),
        published={
            "cifar": Published(**MOCO_DEMO, method_knobs=MOCO_DEMO_KNOBS),
            "imagenet": Published(  # the defaults of main_moco.py
                **MOCO_IMAGENET,
                source=N_("MoCo's paper on ImageNet with ResNet-50"),
                schedule="steps",
                method_knobs=MOCO_KNOBS,
                loss_knobs={"temperature": 0.07},
                views=INST_DISC_VIEWS,
            ),
        },
    )
    Settings = Settings
    temperature_reason = N_("as its authors' CIFAR-10 code")
