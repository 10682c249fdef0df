"""The size that a run brings the images of a folder to, where its settings do not name one.

What the encoder was made for: `encoder.pixels` if that is set, the input size that timm or torchvision names, 224 of a
ResNet with the stem for ImageNet. Else the median of the images' shorter sides, at most 64: of `small`, of ResNets with
a small stem, and of ResNets where the images are so small themselves.
"""

import dataclasses
from collections.abc import Callable

from contrastive_core.data import datasets, image_sets
from contrastive_core.data.image_cache import median_side
from contrastive_core.data.streamed_images import choose_cache
from contrastive_core.messages import message
from contrastive_core.records.train_config import LARGEST, SMALL, TrainConfig, form_of

IMAGENET = 224


def with_image_size(config: TrainConfig, listings: image_sets.Listings | None = None) -> TrainConfig:
    """The settings with the size of a folder's images filled in; unchanged if there is one, and for data sets whose
    images have a size of their own. `listings`: of the folder, if it was listed already. Raises: ValueError if there is
    no such folder."""
    if config.image_size is not None or not datasets.is_files(config.dataset):
        return config
    files = (listings or image_sets.listings_of(config.dataset))["train"].files
    return dataclasses.replace(config, image_size=size_of(config, lambda: median_side(files)))


def with_cache(config: TrainConfig, listings: image_sets.Listings | None = None) -> TrainConfig:
    """The settings with the choice of `cache=auto` made, once the size of the images is known."""
    if config.cache != "auto" or not datasets.is_files(config.dataset):
        return config
    form = form_of(config.to_dict())
    listings = listings or image_sets.listings_of(config.dataset)
    cache = choose_cache(
        config.cache, form, listings, lambda: datasets.is_made(config.dataset, "train", form, listings)
    )
    return dataclasses.replace(config, cache=cache)


def size_of(config: TrainConfig, median: Callable[[], int], library: int | None = None) -> int:
    """The size in pixels that the settings come to. `median`: of the training images' shorter sides. `library`: pixels
    that the encoder's library names, where they were looked up."""
    size = made_for(config, library)
    if size is None or (config.encoder.startswith("resnet") and median() <= SMALL):
        size = image_sets.usual_side(median())
    return min(size, LARGEST)


def kept_smaller(config: TrainConfig) -> str:
    """What has to be said of an encoder that was made for larger images than are kept of a folder; "" for others."""
    if not datasets.is_files(config.dataset) or (size := made_for(config) or 0) <= LARGEST:
        return ""
    values = {"encoder": config.encoder, "size": size, "largest": LARGEST}
    return message(
        "{encoder} expects images of {size} pixels; images of a folder are stored at {largest} pixels, the maximum "
        "here, and scaling them up adds no detail",
        **values,
    )


def made_for(config: TrainConfig, library: int | None = None) -> int | None:
    """Pixels of a side that the encoder was made for; None where it takes any."""
    knobs = config.encoder_knobs
    if knobs.get("pixels"):
        return int(knobs["pixels"])
    if library is not None:
        return library
    if config.encoder.startswith(("timm:", "torchvision:")):
        from contrastive_core.models.libraries import pretrained  # needs torch, which pages must not import

        try:
            return pretrained(config.encoder)[0].pixels
        except ValueError:
            return IMAGENET  # the encoder itself says what is wrong with its name
    is_large = config.encoder != "small" and knobs.get("stem", "imagenet") in ("", "imagenet")
    return IMAGENET if is_large else None
