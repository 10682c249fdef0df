"""Recipes of a training: values for short runs, and those with which the methods were published, on CIFAR-10 and
ImageNet.

A card names what was published (`Published`). Which recipe suits a run follows from its encoder, image size and epochs.
Learning rates follow the batch: linearly with SGD and LARS (Goyal et al. 2017, arXiv 1706.02677), with its square root
with AdamW (Malladi et al. 2022, arXiv 2205.10287).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from contrastive_core.messages import N_, message
from contrastive_core.records.cards import Published, fitting

RECIPES = ("short", "cifar", "imagenet")
LONG = 100  # epochs from which on a published recipe is used: the shortest that was published
LARGE = 96  # pixels of a side from which on it is ImageNet's
ONE_GPU = 256  # images of ImageNet's size in a batch, whatever was published
WARMUP_PART = 0.1  # of the epochs at most


@dataclass(frozen=True)
class BatchRate:
    """A learning rate that follows the batch, and the decay that belongs to it."""

    optimizer: str
    lr: float
    batch: int  # at which the rate is `lr`
    weight_decay: float
    source: str

    def at(self, batch_size: int) -> float:
        """The rate of batches of this size."""
        ratio = batch_size / self.batch
        return self.lr * (ratio**0.5 if self.optimizer == "adamw" else ratio)

    def why(self, batch_size: int) -> str:
        """The reason for the rate of batches of this size."""
        values = {"source": self.source, "lr": f"{self.lr:g}", "batch": str(self.batch)}
        if self.optimizer != "adamw":
            return message("{source}: {lr} · batch / {batch}", **values)
        if batch_size == self.batch:
            return self.source
        return message("{source}: {lr} · √(batch / {batch})", **values)


LARS_SOURCE = N_("SimCLR's with LARS")
SGD_SOURCE = N_("SimCLR's on CIFAR-10 with SGD")
RATES = {  # of optimizers that a recipe does not choose itself
    "lars": BatchRate("lars", 0.3, 256, 1e-6, LARS_SOURCE),
    "sgd": BatchRate("sgd", 0.06, 128, 5e-4, SGD_SOURCE),
}


def suggested(encoder: str, pixels: int, epochs: int, is_start: bool = False) -> tuple[str, str]:
    """The recipe for an encoder on images of so many pixels a side, and why. `is_start`: from trained weights."""
    if is_start:
        return "short", N_("it starts from trained weights, and recipes were published for new ones")
    if encoder == "small":
        return "short", N_("the small encoder learns in short runs")
    if "resnet" not in encoder:
        return "short", N_("recipes were published for ResNets; other encoders learn with AdamW")
    if epochs < LONG:
        why = N_("{epochs} epochs are a short run: recipes were published for {long} and more")
        if epochs == 1:
            why = N_("1 epoch is a short run: recipes were published for {long} and more")
        return "short", message(why, epochs=epochs, long=LONG)
    why = message("{encoder} at {pixels} pixels for {epochs} epochs", encoder=encoder, pixels=pixels, epochs=epochs)
    return ("imagenet" if pixels >= LARGE else "cifar"), why


def rate_of(optimizer: str, usual: BatchRate, published: Published | None) -> BatchRate:
    """The rate of an optimizer: of the published recipe if it uses it, else as published elsewhere, else `usual`, that
    of short runs. `optimizer`: "" for the recipe's own."""
    if published and optimizer in ("", published.optimizer):
        p = published
        return BatchRate(p.optimizer, p.lr, p.per, p.weight_decay, p.source)
    return RATES.get(optimizer, usual)


def batch_of(published: Published, name: str, n_train: int, least: int) -> tuple[int, str]:
    """Images in a batch of the recipe `name`, and why."""
    size, why = published.batch_size, published.source
    if name == "imagenet" and size > ONE_GPU:
        values = {"size": ONE_GPU, "published": f"{size:,}"}
        size, why = ONE_GPU, message("{size} fits on one GPU, published with {published}: the rate follows", **values)
    return fitting(size, why, n_train, least)


def warmup_of(published: Published, epochs: int) -> float:
    """Epochs of warm-up: as published, in a shorter run at most a tenth."""
    return min(published.warmup, WARMUP_PART * epochs)


def of_run(config: Mapping[str, object]) -> str:
    """The recipe of a run's settings; that for short runs before there were others."""
    return str(config.get("training_recipe") or "short")
