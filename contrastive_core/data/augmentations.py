"""Augmentations as a recipe, batched on the images' own device, own parameters for every image.

A `Recipe` says which steps are on and how strong they are; `augment` draws the parameters from an
explicit generator and applies the steps of pixels.py. A step that applies to some images only is
computed for those only. Deviation from torchvision: the order of the four color steps is drawn
once per call, so once per view, and not once per image.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from contrastive_core.data.augmentation_ops import (
    adjust_brightness,
    adjust_contrast,
    adjust_hue,
    adjust_saturation,
    cutout,
    gaussian_blur,
    grayscale,
    resized_crop,
    rotate,
    sobel,
    to_float,
)
from contrastive_core.registry import knob

__all__ = ["Recipe", "augment", "crop_boxes", "make_views", "steps_of", "to_float"]


@dataclass(frozen=True)
class Recipe:
    """Which augmentations, how often (a probability per image: 0 is off) and how strong."""

    crop: float = knob(1.0, 0, 1, "how often a random resized crop is taken")
    crop_low: float = knob(0.4, 0.01, 1, "smallest part of the area a crop keeps")
    crop_high: float = knob(1.0, 0.01, 1, "largest part of the area a crop keeps")
    crop_aspect: float = knob(4 / 3, 1, 4, "largest aspect ratio of a crop; its inverse too")
    flip: float = knob(0.5, 0, 1, "how often an image is mirrored left to right")
    rotation: float = knob(0.0, 0, 1, "how often an image is turned")
    rotation_degrees: float = knob(15.0, 0, 180, "largest turn to either side, in degrees")
    jitter: float = knob(0.8, 0, 1, "how often the four color steps are applied")
    brightness: float = knob(0.4, 0, 1, "brightness factor within 1 ± this")
    contrast: float = knob(0.4, 0, 1, "contrast factor within 1 ± this")
    saturation: float = knob(0.4, 0, 1, "saturation factor within 1 ± this")
    hue: float = knob(0.5, 0, 0.5, "hue shift within ± this part of the color circle")
    gray: float = knob(0.2, 0, 1, "how often the colors are dropped")
    blur: float = knob(0.0, 0, 1, "how often a Gaussian blur (kernel: a tenth of the image)")
    blur_low: float = knob(0.1, 0.01, 10, "smallest blur, standard deviation in pixels")
    blur_high: float = knob(2.0, 0.01, 10, "largest blur, standard deviation in pixels")
    noise: float = knob(0.0, 0, 1, "how often Gaussian noise is added")
    noise_sigma: float = knob(0.05, 0, 1, "standard deviation of the noise, of the full range")
    sobel: float = knob(0.0, 0, 1, "how often the image is replaced by its edges")
    cutout: float = knob(0.0, 0, 1, "how often a square is blanked out")
    cutout_size: float = knob(0.4, 0, 1, "side of that square, as part of the image's side")
    order: str = knob("", help="steps to take first, as 'blur crop'; the others keep their order")


def make_views(
    images: UInt8[Tensor, "b c h w"], recipe: Recipe, views: int, generator: torch.Generator
) -> Float[Tensor, "b v c h w"]:
    """`views` independent augmentations of each image, in [0, 1], on the images' device."""
    made = [augment(images, recipe, generator) for _ in range(views)]
    return torch.stack(made, dim=1)


def augment(
    images: UInt8[Tensor, "b c h w"], recipe: Recipe, generator: torch.Generator
) -> Float[Tensor, "b c h w"]:
    """One augmented view of each image: uint8 in, float32 in [0, 1] out.

    All parameters are drawn from `generator` (best a CPU one: then nothing waits for the device,
    and every device gets the same parameters). Color steps are left out on gray images.
    Autocast is off inside: bf16 has too few digits for pixels.
    """
    with torch.autocast(images.device.type, enabled=False):
        return _augment(images, recipe, generator)


def _augment(images: Tensor, recipe: Recipe, generator: torch.Generator) -> Tensor:
    draw, x = _Draw(len(images), generator, images.device), to_float(images)
    for name in steps_of(recipe):
        x = _STEPS[name](x, recipe, draw)
    return x


def steps_of(recipe: Recipe) -> list[str]:
    """The steps in the order in which they are taken. Raises ValueError for an unknown one."""
    first = recipe.order.replace(",", " ").split()
    for name in first:
        if name not in _STEPS:
            raise ValueError(f"order names {name!r}; the steps are: {', '.join(_STEPS)}")
    return [*first, *(name for name in _STEPS if name not in first)]


def crop_boxes(
    b: int, h: int, w: int, recipe: Recipe, generator: torch.Generator
) -> Int[Tensor, "b 4"]:
    """Random boxes (top, left, height, width), as RandomResizedCrop draws them: ten tries each,
    the whole image if none fits."""
    tries, device = (10, b), generator.device
    u = torch.rand(4, *tries, generator=generator, device=device)
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


# --- parts -------------------------------------------------------------------------------------


class _Draw:
    """Per-image random parameters: drawn on the generator's device, sent to the images'."""

    def __init__(self, b: int, generator: torch.Generator, device: torch.device) -> None:
        self.b, self.generator, self.device = b, generator, device

    def uniform(self, low: float, high: float) -> Float[Tensor, " b"]:
        u = torch.rand(self.b, generator=self.generator, device=self.generator.device)
        return (low + (high - low) * u).to(self.device, non_blocking=True)

    def often(self, probability: float) -> Int[Tensor, " k"]:
        """Indices of the images that a step applies to."""
        u = torch.rand(self.b, generator=self.generator, device=self.generator.device)
        return (u < probability).nonzero()[:, 0].to(self.device, non_blocking=True)

    def order(self, n: int) -> list[int]:
        g = self.generator
        return torch.randperm(n, generator=g, device=g.device).tolist()


def _some(x: Tensor, chosen: Tensor, step: Callable[..., Tensor], *params: Tensor) -> Tensor:
    """Apply `step` to the chosen images, each with its own parameters."""
    if len(chosen) == 0:
        return x
    params = tuple(p.to(x.device)[chosen] for p in params)
    return x.index_copy(0, chosen, step(x[chosen], *params))


def _crop_and_flip(x: Tensor, recipe: Recipe, draw: _Draw) -> Tensor:
    b, _, h, w = x.shape
    if recipe.crop == 0 and recipe.flip == 0:
        return x
    boxes = torch.tensor([0, 0, h, w]).repeat(b, 1).to(draw.device)
    if recipe.crop > 0:
        drawn = crop_boxes(b, h, w, recipe, draw.generator).to(draw.device)
        chosen = draw.often(recipe.crop)
        boxes = boxes.index_copy(0, chosen, drawn[chosen])
    flip = draw.uniform(0, 1) < recipe.flip
    return resized_crop(x, boxes, flip).clamp_(0, 1)


def _rotate(x: Tensor, recipe: Recipe, draw: _Draw) -> Tensor:
    if recipe.rotation == 0:
        return x
    angle = draw.uniform(-recipe.rotation_degrees, recipe.rotation_degrees)
    return _some(x, draw.often(recipe.rotation), rotate, angle)


def _jitter(x: Tensor, recipe: Recipe, draw: _Draw) -> Tensor:
    if recipe.jitter == 0:
        return x
    chosen, color = draw.often(recipe.jitter), x.shape[1] == 3
    steps: list[tuple[Callable[..., Tensor], Tensor]] = []
    for strength, step in (
        (recipe.brightness, adjust_brightness),
        (recipe.contrast, adjust_contrast),
        (recipe.saturation, adjust_saturation),
    ):
        steps.append((step, draw.uniform(1 - strength, 1 + strength)))
    steps.append((adjust_hue, draw.uniform(-recipe.hue, recipe.hue)))
    strengths = (recipe.brightness, recipe.contrast, recipe.saturation, recipe.hue)
    order = [i for i in draw.order(4) if strengths[i] > 0 and (color or i < 2)]
    if len(chosen) == 0:
        return x
    y = x[chosen]
    for i in order:
        step, value = steps[i]
        y = step(y, value[chosen])
    return x.index_copy(0, chosen, y)


def _gray(x: Tensor, recipe: Recipe, draw: _Draw) -> Tensor:
    if recipe.gray == 0 or x.shape[1] != 3:
        return x
    return _some(x, draw.often(recipe.gray), grayscale)


def _blur(x: Tensor, recipe: Recipe, draw: _Draw) -> Tensor:
    if recipe.blur == 0:
        return x
    sigma = draw.uniform(recipe.blur_low, max(recipe.blur_low, recipe.blur_high))
    return _some(x, draw.often(recipe.blur), gaussian_blur, sigma)


def _noise(x: Tensor, recipe: Recipe, draw: _Draw) -> Tensor:
    if recipe.noise == 0:
        return x
    g = draw.generator
    noise = torch.randn(x.shape, generator=g, device=g.device) * recipe.noise_sigma
    return _some(x, draw.often(recipe.noise), lambda y, e: (y + e).clamp_(0, 1), noise)


def _edges(x: Tensor, recipe: Recipe, draw: _Draw) -> Tensor:
    return x if recipe.sobel == 0 else _some(x, draw.often(recipe.sobel), sobel)


def _cutout(x: Tensor, recipe: Recipe, draw: _Draw) -> Tensor:
    if recipe.cutout == 0:
        return x
    h, w = x.shape[-2:]
    center = torch.stack([draw.uniform(0, h), draw.uniform(0, w)], dim=1).long()  # (b, 2)
    side = round(recipe.cutout_size * min(h, w))
    return _some(x, draw.often(recipe.cutout), lambda y, at: cutout(y, at, side), center)


_STEPS: dict[str, Callable[[Tensor, Recipe, _Draw], Tensor]] = {
    "crop": _crop_and_flip,
    "rotation": _rotate,
    "jitter": _jitter,
    "gray": _gray,
    "blur": _blur,
    "noise": _noise,
    "sobel": _edges,
    "cutout": _cutout,
}
