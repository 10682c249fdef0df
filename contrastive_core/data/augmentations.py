"""Augmentations as a recipe: sampled for the global batch, applied to this process's share of it.

A `Recipe` says which steps are on and how strong they are. Each step samples every image's own parameters, a few dozen
numbers, from an explicit generator, and runs a function of augmentation_ops on the images' own device. Every process
samples for the global batch and applies its own rows, so views do not depend on the number of processes. On the CPU a
step that changes only some images is computed for those only; elsewhere for all, so that shapes stay the same.
Deviation from torchvision: the order of the four color steps is sampled once per view, not once per image.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Generator, Tensor

from contrastive_core.data import augmentation_ops as ops
from contrastive_core.data.augmentation_ops import to_float as to_float
from contrastive_core.data.batch_loader import BatchShare
from contrastive_core.device import send
from contrastive_core.errors import BadSetting
from contrastive_core.records.recipe import Recipe


def make_views(
    images: UInt8[Tensor, "b c h w"], recipe: Recipe, views: int, generator: Generator, share: BatchShare | None = None
) -> Float[Tensor, "b v c h w"]:
    """`views` augmentations of each image, in [0, 1], on the images' device, each by the recipe of its view. `share`:
    which rows of the global batch the images are; None: all of them."""
    return torch.stack([augment(images, recipe.of_view(v), generator, share) for v in range(views)], dim=1)


def augment(
    images: UInt8[Tensor, "b c h w"], recipe: Recipe, generator: Generator, share: BatchShare | None = None
) -> Float[Tensor, "b c h w"]:
    """One augmented view of each image: uint8 in, float32 in [0, 1] out; the first of a recipe's views. A CPU generator
    is best: nothing waits for the device, and every device gets the same parameters. Color steps are skipped on gray
    images."""
    share = share or BatchShare.whole(len(images))
    _, c, h, w = images.shape
    sampler = Sampler(share.total, c, h, w, recipe.of_view(0), generator)
    drawn = {name: sampler.draw(name) for name in steps_of(sampler.recipe) if sampler.is_on(name)}
    with torch.autocast(images.device.type, enabled=False):  # bf16 has too few digits for pixels
        x = to_float(images)
        for name, (chosen, values, shared) in drawn.items():
            x = _apply(STEPS[name][1], x, chosen[share.rows], [v[share.rows] for v in values], shared)
        return x


def _apply(
    function: Callable[..., Tensor], x: Tensor, chosen: Tensor, values: list[Tensor], shared: tuple[int, ...]
) -> Tensor:
    """The step on the images that it changes."""
    if x.device.type != "cpu":
        chosen, *values = (send(v, x.device) for v in (chosen, *values))
        return torch.where(chosen[:, None, None, None], function(x, *values, *shared), x)
    if chosen.all():
        return function(x, *values, *shared)
    rows = chosen.nonzero()[:, 0]
    if len(rows) == 0:
        return x
    return x.index_copy(0, rows, function(x[rows], *(v[rows] for v in values), *shared))


@lru_cache(64)
def steps_of(recipe: Recipe) -> tuple[str, ...]:
    """The names of the steps in the order in which they run. Raises ValueError for an unknown one."""
    first = recipe.order.replace(",", " ").split()
    for name in first:
        if name not in STEPS:
            raise BadSetting("order names {name}; the steps are: {steps}", name=f"{name!r}", steps=", ".join(STEPS))
    return (*first, *(name for name in STEPS if name not in first))


class Drawn(NamedTuple):
    """The parameters of one step on a batch: which images it changes, and each image's values."""

    chosen: Bool[Tensor, " b"]
    values: tuple[Tensor, ...] = ()  # (b, …) each
    shared: tuple[int, ...] = ()  # alike for all images: the order of the jitter, the side of the cutout


@dataclass(frozen=True)
class Sampler:
    """Random parameters of each of b images (c, h, w), on the generator's device."""

    b: int
    channels: int
    height: int
    width: int
    recipe: Recipe
    generator: Generator

    def is_on(self, name: str) -> bool:
        if name == "crop":
            return bool(self.recipe.crop or self.recipe.flip)
        return getattr(self.recipe, name) != 0 and (name != "gray" or self.channels == 3)

    def draw(self, name: str) -> Drawn:
        return STEPS[name][0](self, getattr(self.recipe, name))

    def uniform(self, low: float, high: float) -> Float[Tensor, " b"]:
        u = torch.rand(self.b, generator=self.generator, device=self.generator.device)
        return low + (high - low) * u

    def mask(self, probability: float) -> Bool[Tensor, " b"]:
        """Which images a step changes."""
        return self.uniform(0, 1) < probability


def crop_boxes(b: int, h: int, w: int, recipe: Recipe, generator: Generator) -> Int[Tensor, "b 4"]:
    """Random boxes (top, left, height, width) as of RandomResizedCrop: ten tries, else the whole image."""
    u = torch.rand(4, 10, b, generator=generator, device=generator.device)
    low, high = sorted((recipe.crop_low, recipe.crop_high))
    area = h * w * (low + (high - low) * u[0])
    ratio = torch.exp(math.log(recipe.crop_aspect) * (2 * u[1] - 1))
    width = (area * ratio).sqrt().round().long()
    height = (area / ratio).sqrt().round().long()
    fits = (width > 0) & (width <= w) & (height > 0) & (height <= h)  # (10, b)
    first = fits.int().argmax(0, keepdim=True)
    width = torch.where(fits.any(0), width.gather(0, first)[0], w)
    height = torch.where(fits.any(0), height.gather(0, first)[0], h)
    top = (u[2, 0] * (h - height + 1)).long().clamp(max=h - 1)
    left = (u[3, 0] * (w - width + 1)).long().clamp(max=w - 1)
    return torch.stack([top, left, height, width], dim=1)


def _draw_crop(s: Sampler, probability: float) -> Drawn:
    boxes = torch.tensor([0, 0, s.height, s.width], device=s.generator.device).repeat(s.b, 1)  # (b, 4)
    if probability > 0:
        cropped = crop_boxes(s.b, s.height, s.width, s.recipe, s.generator)
        boxes = torch.where(s.mask(probability)[:, None], cropped, boxes)
    flip = s.mask(s.recipe.flip)
    return Drawn(torch.ones_like(flip), (boxes, flip))


def _crop_and_flip(x: Tensor, boxes: Tensor, flip: Tensor) -> Tensor:
    return ops.resized_crop(x, boxes, flip).clamp_(0, 1)


def _draw_rotation(s: Sampler, probability: float) -> Drawn:
    angle = s.uniform(-s.recipe.rotation_degrees, s.recipe.rotation_degrees)
    return Drawn(s.mask(probability), (angle,))


def _draw_jitter(s: Sampler, probability: float) -> Drawn:
    recipe, g = s.recipe, s.generator
    strengths = (recipe.brightness, recipe.contrast, recipe.saturation)
    chosen = s.mask(probability)
    factors = [s.uniform(1 - strength, 1 + strength) for strength in strengths]
    hue = s.uniform(-recipe.hue, recipe.hue)
    order = torch.randperm(4, generator=g, device=g.device).tolist()
    on = [strength > 0 for strength in (*strengths, recipe.hue)]
    return Drawn(chosen, (*factors, hue), tuple(i for i in order if on[i] and (s.channels == 3 or i < 2)))


def _jitter(x: Tensor, brightness: Tensor, contrast: Tensor, saturation: Tensor, hue: Tensor, *order: int) -> Tensor:
    values = (brightness, contrast, saturation, hue)
    functions = (ops.adjust_brightness, ops.adjust_contrast, ops.adjust_saturation, ops.adjust_hue)
    for i in order:
        x = functions[i](x, values[i])
    return x


def _draw_choice(s: Sampler, probability: float) -> Drawn:
    return Drawn(s.mask(probability))


def _draw_blur(s: Sampler, probability: float) -> Drawn:
    sigma = s.uniform(s.recipe.blur_low, max(s.recipe.blur_low, s.recipe.blur_high))
    return Drawn(s.mask(probability), (sigma,))


def _draw_solarize(s: Sampler, probability: float) -> Drawn:
    chosen = s.mask(probability)
    return Drawn(chosen, (torch.full_like(chosen, s.recipe.solarize_from, dtype=torch.float32),))


def _draw_noise(s: Sampler, probability: float) -> Drawn:
    shape, g = (s.b, s.channels, s.height, s.width), s.generator
    noise = torch.randn(shape, generator=g, device=g.device) * s.recipe.noise_sigma
    return Drawn(s.mask(probability), (noise,))


def _add_noise(x: Tensor, noise: Tensor) -> Tensor:
    return (x + noise).clamp_(0, 1)


def _draw_cutout(s: Sampler, probability: float) -> Drawn:
    center = torch.stack([s.uniform(0, s.height), s.uniform(0, s.width)], dim=1).long()  # (b, 2)
    side = round(s.recipe.cutout_size * min(s.height, s.width))
    return Drawn(s.mask(probability), (center,), (side,))


STEPS: dict[str, tuple[Callable[[Sampler, float], Drawn], Callable[..., Tensor]]] = {
    "crop": (_draw_crop, _crop_and_flip),
    "rotation": (_draw_rotation, ops.rotate),
    "jitter": (_draw_jitter, _jitter),
    "gray": (_draw_choice, ops.grayscale),
    "blur": (_draw_blur, ops.gaussian_blur),
    "solarize": (_draw_solarize, ops.solarize),
    "noise": (_draw_noise, _add_noise),
    "sobel": (_draw_choice, ops.sobel),
    "cutout": (_draw_cutout, ops.cutout),
}
