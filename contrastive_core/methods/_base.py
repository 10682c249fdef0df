"""Base class of methods: an encoder, a head, a recipe of views, and defaults with reasons.
A method decides which rows are compared: `pairs(batch)` makes views, encodes them and marks positives and negatives.
Only `after_step(pairs)` changes a method's memory."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from contrastive_core import pairs
from contrastive_core.base.messages import N_, message
from contrastive_core.base.registry import Knobs, MethodCard, entry_of, fitting, knob, read_method_card
from contrastive_core.data.augmentations import make_views
from contrastive_core.data.batch_loader import Batch
from contrastive_core.data.captions import Vocabulary
from contrastive_core.data.dataset import DatasetInfo
from contrastive_core.data.recipe import Recipe
from contrastive_core.losses import Loss
from contrastive_core.models.encoders import HEADS, ProjectionHead
from contrastive_core.pairs.types import Pairs

Default = tuple[Any, str]  # a value and the reason for it
Rows = tuple[Tensor, ...]  # encoded rows (b, …) of a batch's images
COLORLESS = {"byol": "blur=1 solarize=0 | blur=0.1 solarize=0.2"}  # view recipes by name, without color steps
TINY = 16  # height in pixels of images that a blur would destroy
CHARACTER = 32  # height in pixels of gray images that may be characters
NO_KNOBS: Knobs = MappingProxyType({})


@dataclass(frozen=True)
class HeadSettings:
    """Settings of the projection head, which all methods share."""

    head: str = knob("nonlinear", help=N_("Projection from h to z."), choices=HEADS)
    dim: int = knob(64, 2, 4096, N_("Width of z, which the loss compares."))
    hidden: int = knob(256, 2, 8192, N_("Width of a nonlinear head's hidden layers."))
    depth: int = knob(2, 2, 4, N_("Layers of a nonlinear head."))
    head_bn: bool = knob(False, help=N_("BatchNorm in the head's hidden layers."))


class Method(nn.Module):
    """A method that trains an encoder by comparing rows. Its card holds its texts and its fixed properties."""

    card: ClassVar[MethodCard]  # NAME.toml beside NAME.py
    Settings: ClassVar[type] = HeadSettings
    loss_knobs_reason: ClassVar[str] = ""  # reason for the card's loss settings
    negatives_in_queue: ClassVar[bool] = False  # True if anchors have no negatives in their batch

    def __init_subclass__(cls) -> None:
        if name := entry_of(cls.__module__, "methods"):
            cls.card = read_method_card(name)

    def __init__(
        self,
        encoder: nn.Module,
        image_shape: tuple[int, int, int],
        n_train: int,
        recipe: Recipe,
        settings: Any,
        vocabulary: Vocabulary,
    ) -> None:
        super().__init__()
        self.encoder, self.recipe, self.settings, self.vocabulary = encoder, recipe, settings, vocabulary
        self.image_shape, self.n_train = tuple(image_shape), n_train
        self.head = self.make_head(int(encoder.out_dim))  # type: ignore[arg-type]
        self.loss: Loss | None = None  # the training loss, if it is set
        self.gather: Callable[[Tensor], Tensor] = lambda rows: rows  # gathers the rows of every process
        self.total_steps = 0  # of the whole training, if known
        self.build()

    def build(self) -> None:
        """Create the method's own modules."""

    def pairs(self, batch: Batch, generator: torch.Generator) -> Pairs:
        """Encode views of a batch and return their pairs."""
        return self.relate(self.rows(batch, generator), batch, generator)

    def rows(self, batch: Batch, generator: torch.Generator) -> Rows:
        """Encode views of a batch: one or more tensors (b, …) in the order of its images; by default z (b, v, e) of the
        setting `views`, or of two. Random values are sampled for the global batch, so the rows of a part of a batch
        equal those of the whole batch."""
        return (self.encode_views(self.views(batch, getattr(self.settings, "views", 2), generator)),)

    def relate(self, rows: Rows, batch: Batch, generator: torch.Generator) -> Pairs:
        """Build the pairs among the `rows` of a batch; by default, views of an image, or of a class, are positives."""
        return pairs.from_views(rows[0], batch.labels if self.card.needs_labels else None)

    @torch.no_grad()
    def after_step(self, pairs: Pairs) -> None:
        """Update the memory after the step on `pairs`."""

    def load_parts(self, weights: Mapping[str, Tensor]) -> None:
        """Load the encoder and head from the weights of a run; memory keeps its initial values."""
        for name in ("encoder", "head"):
            self.get_submodule(name).load_state_dict(part_of(weights, name))

    def use_loss(self, loss: Loss) -> None:
        """Set the training loss."""
        self.loss = loss

    def learning_rate_scales(self) -> dict[int, float]:
        """Return the factors of the learning rate by parameter id; 1 for all other parameters."""
        return {}

    @property
    def batch_kind(self) -> str:
        """The kind of its batches, a name in `batch_loader.PLANS`."""
        return self.card.batch

    def step_metrics(self) -> dict[str, float]:
        """Return the method's values for the metrics log of a step."""
        return {}

    def extra_metrics(self) -> dict[str, float]:
        """Return the method's values for the metrics log of an epoch."""
        return {}

    def features(self, images: Float[Tensor, "b c h w"]) -> Float[Tensor, "b d"]:
        """Return h (b, d) of images (b, c, h, w) in [0, 1]."""
        return self.encoder(images)

    def project(self, h: Float[Tensor, "b d"]) -> Float[Tensor, "b e"]:
        """Return z (b, e) of h (b, d)."""
        return self.head(h)

    def encode_texts(self, texts: Sequence[str]) -> Float[Tensor, "b e"]:
        """Return z (b, e) of texts, for a method with a text tower."""
        raise NotImplementedError

    def forward(self, images: Tensor) -> Tensor:
        """Return z (b, e) of images (b, c, h, w) in [0, 1]."""
        return self.project(self.features(images))

    def make_head(self, in_dim: int) -> ProjectionHead:
        s = self.settings
        return ProjectionHead(s.head, in_dim, s.dim, s.hidden, s.depth, s.head_bn)

    def views(self, batch: Batch, count: int, generator: torch.Generator) -> Tensor:
        """Return augmented views (b, v, c, h, w) of a batch."""
        return make_views(batch.images, self.recipe, count, generator, batch.global_rows)

    def encode_views(self, x: Tensor) -> Tensor:
        """Return z (b, v, e) of views (b, v, c, h, w), encoded in one pass."""
        return self(x.flatten(0, 1)).unflatten(0, x.shape[:2])

    @classmethod
    def defaults(cls, facts: DatasetInfo) -> dict[str, Default]:
        """Return the training defaults for a data set, each with its reason."""
        text = N_("crop and color as on CIFAR-10, with hue up to 0.5: shapes needs it")
        size, why = fitting(128, N_("128: twice the steps of 256; on shapes SimCLR gains 4 points"), facts.n_train)
        usual: dict[str, Default] = {  # for small images, measured with the small encoder
            "batch_size": (size, why),
            "optimizer": ("adamw", N_("small encoders converge in a few epochs")),
            "lr": (3e-3, N_("AdamW with one cycle; measured on shapes and digits")),
            "weight_decay": (1e-4, N_("a low value, because the runs are short")),
            "schedule": ("one_cycle", N_("short runs: up for a third, down to zero")),
            "warmup": (0.0, N_("the cycle warms up by itself")),
            "recipe": fitting_views(Recipe(), text, facts),
        }
        if cls.loss_knobs_reason:
            usual["loss_knobs"] = (cls.card.loss_knobs, cls.loss_knobs_reason)
        return usual

    @classmethod
    def incompatibility(cls, facts: DatasetInfo, batch_size: int, knobs: Knobs = NO_KNOBS) -> str | None:
        """Return why the method cannot train with these settings, and the remedy; None if it can."""
        return None


@dataclass(frozen=True)
class WideHeadSettings(HeadSettings):
    """Settings of a wide head, for losses on the dimensions of z."""

    dim: int = knob(256, 2, 8192, N_("Width of z, whose dimensions the loss compares."))
    hidden: int = knob(256, 2, 8192, N_("Width of a nonlinear head's hidden layers."))
    depth: int = knob(3, 2, 4, N_("Layers of a nonlinear head."))
    head_bn: bool = knob(True, help=N_("BatchNorm in the head's hidden layers."))


def part_of(weights: Mapping[str, Tensor], name: str) -> dict[str, Tensor]:
    """Return the weights of a submodule, without the prefix of their names."""
    return {k.removeprefix(f"{name}."): v for k, v in weights.items() if k.startswith(f"{name}.")}


def fitting_views(recipe: Recipe, reason: str, facts: DatasetInfo) -> tuple[Recipe, str]:
    """Remove augmentations from a recipe that do not apply to these images or change their content; also return why."""
    channels, height, _ = facts.image_shape
    if channels != 3:
        recipe = dataclasses.replace(recipe, hue=0.0, saturation=0.0, gray=0.0, views=COLORLESS.get(recipe.views, ""))
        reason = message("crop, brightness and contrast: {channels} channels have no hue to shift", channels=channels)
    if channels == 1:
        reason = N_("gray images have no hue to shift")
        if height <= CHARACTER:
            recipe = dataclasses.replace(recipe, flip=0.0)
            reason = N_("gray images have no hue to shift; small ones may be characters, which a mirror changes")
    if height <= TINY:  # a crop or mirror can change a tiny digit
        recipe = dataclasses.replace(recipe, crop_low=0.6, flip=0.0, rotation=0.5, blur=0.0, views="")
        reason = N_("tiny gray figures: mild crops, no mirror, small turns")
    return recipe, reason
