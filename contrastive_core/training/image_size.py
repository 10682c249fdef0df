"""The size that a run brings the images of a folder to, where its settings do not name one.

What the encoder was made for: `encoder.pixels` if that is set, the input size that timm or
torchvision names, 224 of a ResNet with the stem for ImageNet. Else the median of the images'
shorter sides, at most 64: of `small`, of ResNets with a small stem, and of ResNets where the images
are so small themselves.
"""

from __future__ import annotations

import dataclasses

from contrastive_core.data import datasets, image_sets
from contrastive_core.data.image_cache import median_side
from contrastive_core.data.image_form import LARGEST, SMALL
from contrastive_core.models.libraries import pretrained
from contrastive_core.training.config import TrainConfig

__all__ = ["made_for", "with_image_size"]

IMAGENET = 224


def with_image_size(config: TrainConfig) -> TrainConfig:
    """The settings with the size of a folder's images filled in; unchanged where there is one, and
    for data sets whose images have a size of their own. Raises ValueError for no such folder."""
    if config.image_size is not None or not datasets.is_files(config.dataset):
        return config
    files = image_sets.listings_of(config.dataset)["train"].files
    size = made_for(config)
    if size is None or (config.encoder.startswith("resnet") and median_side(files) <= SMALL):
        size = image_sets.usual_side(files)
    return dataclasses.replace(config, image_size=min(size, LARGEST))


def made_for(config: TrainConfig) -> int | None:
    """Pixels of a side that the encoder was made for; None where it takes any."""
    knobs = config.encoder_knobs
    if knobs.get("pixels"):
        return int(knobs["pixels"])
    if config.encoder.startswith(("timm:", "torchvision:")):
        try:
            return pretrained(config.encoder)[0].pixels
        except ValueError:
            return IMAGENET  # the encoder itself says what is wrong with its name
    is_large = config.encoder != "small" and knobs.get("stem", "imagenet") in ("", "imagenet")
    return IMAGENET if is_large else None
