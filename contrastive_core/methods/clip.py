"""CLIP (Radford et al. 2021, arXiv 2103.00020): match captions with images. Order and letters of the paper's
figure 3: I_f, T_f → I_e, T_e → logits with exp(t) → cross entropy over rows and over columns."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from contrastive_core import pairs
from contrastive_core.base.messages import N_
from contrastive_core.base.registry import Knobs, knob, knobs_of
from contrastive_core.data.batch_loader import Batch
from contrastive_core.data.recipe import Recipe
from contrastive_core.losses import Loss
from contrastive_core.methods._base import NO_KNOBS, DatasetInfo, Default, HeadSettings, Method, Rows, part_of
from contrastive_core.models.encoders import ProjectionHead
from contrastive_core.models.text_tower import RATE, TEXT_ENCODERS, LearnedTemperature, SentenceTower, TextTower
from contrastive_core.pairs.types import Pairs

CROP = Recipe(crop_low=0.8, crop_aspect=1.0, flip=0.0, jitter=0.0, saturation=0.0, hue=0.0, gray=0.0)
NO_CAPTIONS = N_("clip needs captions: choose shapes, or a folder of images with a file captions.csv")


@dataclass(frozen=True)
class Settings(HeadSettings):
    head: str = knob("linear", help=N_("Projection of each tower from h to z."), choices=("linear", "nonlinear"))
    text_encoder: str = knob(
        "transformer", help=N_("Encoder of the captions, with or without word order."), choices=TEXT_ENCODERS
    )
    text_tower: str = knob(
        "",
        help=N_(
            "Use a pretrained text tower instead: sentence-transformers:FOLDER, a model on this machine with "
            "safetensors."
        ),
    )
    train_text_tower: bool = knob(
        False, help=N_("Train the pretrained text tower too, at 1 % of the learning rate. Off: it stays as it is.")
    )
    learn_temperature: bool = knob(
        True, help=N_("Learn τ, and SigLIP's bias, starting at the loss's values. 1/τ is at most 100.")
    )


class CLIP(Method):
    Settings = Settings
    loss_knobs_reason = N_("τ starts at 0.07, as in the paper, and is learned")

    def build(self) -> None:
        s = self.settings
        self.text_tower: TextTower | SentenceTower = TextTower(self.vocabulary, s.text_encoder)
        if s.text_tower:
            self.text_tower = SentenceTower(s.text_tower, s.train_text_tower)
        self.text_head = ProjectionHead(s.head, self.text_tower.out_dim, s.dim, s.hidden, s.depth, s.head_bn)
        self.temperature = LearnedTemperature()
        self.temperature.requires_grad_(s.learn_temperature)
        self.learns_temperature = False  # that of its loss
        self.bias: nn.Parameter | None = None  # bias of SigLIP's logits

    def use_loss(self, loss: Loss) -> None:
        super().use_loss(loss)
        knobs = knobs_of(type(loss)) if self.settings.learn_temperature else {}
        self.learns_temperature = "temperature" in knobs
        self.temperature.requires_grad_(self.learns_temperature)
        if self.learns_temperature:
            self.temperature.start(loss.temperature)  # type: ignore[attr-defined]
        start = self.temperature.log_scale.new_tensor(getattr(loss, "bias", 0.0))
        self.bias = nn.Parameter(start) if "bias" in knobs else None

    def learned(self) -> dict[str, Tensor]:
        """Return the learned settings of the loss, with gradients."""
        values: dict[str, Tensor] = {"temperature": self.temperature()} if self.learns_temperature else {}
        return values if self.bias is None else {**values, "bias": self.bias}

    def rows(self, batch: Batch, generator: torch.Generator) -> Rows:
        x = self.views(batch, 1, generator)[:, 0]  # (b, c, h, w)
        tokens = self.text_tower.encode(batch.draw_captions(generator))  # (b, length)
        I_f, T_f = self.features(x), self.text_tower(tokens)  # (b, d_i), (b, d_t)
        return self.project(I_f), self.text_head(T_f)  # I_e, T_e (b, e)

    def relate(self, rows: Rows, batch: Batch, generator: torch.Generator) -> Pairs:
        I_e, T_e = rows
        made, learned = pairs.from_towers(I_e, T_e.to(I_e.dtype)), self.learned()
        return dataclasses.replace(made, temperature=learned.get("temperature"), bias=learned.get("bias"))

    def load_parts(self, weights: Mapping[str, Tensor]) -> None:
        super().load_parts(weights)
        state = part_of(weights, "text_tower")
        if isinstance(self.text_tower, SentenceTower):
            self.text_tower.load(state)
        else:
            self.text_tower = TextTower.from_state(state)  # with the training vocabulary
        for name in ("text_head", "temperature"):
            self.get_submodule(name).load_state_dict(part_of(weights, name))
        self.bias = nn.Parameter(weights["bias"]) if "bias" in weights else None

    def encode_texts(self, texts: Sequence[str]) -> Float[Tensor, "b e"]:
        """Return z (b, e) of texts."""
        return self.text_head(self.text_tower(self.text_tower.encode(texts)))

    def learning_rate_scales(self) -> dict[int, float]:
        is_pretrained = isinstance(self.text_tower, SentenceTower)
        return {id(p): RATE for p in self.text_tower.parameters()} if is_pretrained else {}

    @torch.no_grad()
    def after_step(self, pairs: Pairs) -> None:
        self.temperature.clamp()

    def step_metrics(self) -> dict[str, float]:
        return {name: float(value.detach()) for name, value in self.learned().items()}

    @classmethod
    def defaults(cls, facts: DatasetInfo) -> dict[str, Default]:
        why = N_("a mild square crop only: captions may name colors, sizes and sides")
        return super().defaults(facts) | {"recipe": (CROP, why)}

    @classmethod
    def incompatibility(cls, facts: DatasetInfo, batch_size: int, knobs: Knobs = NO_KNOBS) -> str | None:
        return None if facts.has_captions else NO_CAPTIONS
