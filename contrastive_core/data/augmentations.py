"""Augmentations as a recipe: drawn for the global batch, applied to this process's share of it.

A `Recipe` says which steps are on and how strong they are. `draw_view` draws every image's own
parameters, a few dozen numbers, from an explicit generator; `apply_view` takes the steps of
augmentation_ops on the images' own device. Every process draws for the global batch and applies its
own rows, so that views do not depend on how many processes there are. A step that changes some
images only is computed for those only. Deviation from torchvision: the order of the four color
steps is drawn once per view, and not once per image.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int, UInt8
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
from contrastive_core.data.batch import BatchShare
from contrastive_core.registry import knob

__all__ = [
    "Recipe",
    "StepParameters",
    "apply_view",
    "augment",
    "crop_boxes",
    "draw_view",
    "make_views",
    "steps_of",
    "to_float",
]


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
    images: UInt8[Tensor, "b c h w"],
    recipe: Recipe,
    views: int,
    generator: torch.Generator,
    share: BatchShare | None = None,
) -> Float[Tensor, "b v c h w"]:
    """`views` independent augmentations of each image, in [0, 1], on the images' device.

    Args: share: which rows of the global batch the images are; None: all of them.
    """
    each = [augment(images, recipe, generator, share) for _ in range(views)]
    return torch.stack(each, dim=1)


def augment(
    images: UInt8[Tensor, "b c h w"],
    recipe: Recipe,
    generator: torch.Generator,
    share: BatchShare | None = None,
) -> Float[Tensor, "b c h w"]:
    """One augmented view of each image: uint8 in, float32 in [0, 1] out.

    The generator is best a CPU one: then nothing waits for the device, and every device gets the
    same parameters. Color steps are left out on gray images.
    """
    share = share or BatchShare.whole(len(images))
    parameters = draw_view(share.total, tuple(images.shape[1:]), recipe, generator)
    return apply_view(images, [step.take(share.rows) for step in parameters])


@dataclass(frozen=True)
class StepParameters:
    """What one step does to a batch: which images it changes, each with values of its own."""

    name: str
    chosen: Bool[Tensor, " b"]
    values: tuple[Tensor, ...] = ()  # (b, …) each
    shared: tuple[int, ...] = ()  # alike for all images: the jitter's order, the cutout's side

    def take(self, rows: slice) -> StepParameters:
        """The parameters of some of the images."""
        values = tuple(v[rows] for v in self.values)
        return StepParameters(self.name, self.chosen[rows], values, self.shared)


def draw_view(
    b: int, shape: tuple[int, ...], recipe: Recipe, generator: torch.Generator
) -> list[StepParameters]:
    """The parameters of one view of `b` images of `shape` (c, h, w), step by step."""
    draw = _Draw(b, shape, recipe, generator)
    steps = (_STEPS[name][0](draw) for name in steps_of(recipe))
    return [step for step in steps if step is not None]


def apply_view(
    images: UInt8[Tensor, "b c h w"], parameters: list[StepParameters]
) -> Float[Tensor, "b c h w"]:
    """Images in [0, 1] after the steps that were drawn for them, on their own device.

    Autocast is off inside: bf16 has too few digits for pixels.
    """
    with torch.autocast(images.device.type, enabled=False):
        x = to_float(images)
        for step in parameters:
            x = _apply_step(x, step)
        return x


def _apply_step(x: Tensor, step: StepParameters) -> Tensor:
    """The step on the images that it changes; which ones is looked up on the generator's device."""
    function = _STEPS[step.name][1]
    if step.chosen.all():
        return function(x, *(v.to(x.device, non_blocking=True) for v in step.values), *step.shared)
    rows = step.chosen.nonzero()[:, 0]
    if len(rows) == 0:
        return x
    values = (v[rows].to(x.device, non_blocking=True) for v in step.values)
    rows = rows.to(x.device, non_blocking=True)
    return x.index_copy(0, rows, function(x[rows], *values, *step.shared))


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


# --- each step: drawn, then applied ------------------------------------------------------------


class _Draw:
    """Random parameters of each of b images, on the generator's device."""

    def __init__(
        self, b: int, shape: tuple[int, ...], recipe: Recipe, generator: torch.Generator
    ) -> None:
        self.b, self.recipe, self.generator = b, recipe, generator
        self.channels, self.height, self.width = shape

    def uniform(self, low: float, high: float) -> Float[Tensor, " b"]:
        u = torch.rand(self.b, generator=self.generator, device=self.generator.device)
        return low + (high - low) * u

    def often(self, probability: float) -> Bool[Tensor, " b"]:
        """Which images a step changes."""
        u = torch.rand(self.b, generator=self.generator, device=self.generator.device)
        return u < probability


def _draw_crop(draw: _Draw) -> StepParameters | None:
    recipe, h, w = draw.recipe, draw.height, draw.width
    if recipe.crop == 0 and recipe.flip == 0:
        return None
    device = draw.generator.device
    boxes = torch.tensor([0, 0, h, w], device=device).repeat(draw.b, 1)  # (b, 4)
    if recipe.crop > 0:
        cropped = crop_boxes(draw.b, h, w, recipe, draw.generator)
        boxes = torch.where(draw.often(recipe.crop)[:, None], cropped, boxes)
    flip = draw.often(recipe.flip)
    return StepParameters("crop", torch.ones_like(flip), (boxes, flip))


def _crop_and_flip(x: Tensor, boxes: Tensor, flip: Tensor) -> Tensor:
    return resized_crop(x, boxes, flip).clamp_(0, 1)


def _draw_rotation(draw: _Draw) -> StepParameters | None:
    recipe = draw.recipe
    if recipe.rotation == 0:
        return None
    angle = draw.uniform(-recipe.rotation_degrees, recipe.rotation_degrees)
    return StepParameters("rotation", draw.often(recipe.rotation), (angle,))


def _draw_jitter(draw: _Draw) -> StepParameters | None:
    recipe = draw.recipe
    if recipe.jitter == 0:
        return None
    strengths = (recipe.brightness, recipe.contrast, recipe.saturation)
    chosen = draw.often(recipe.jitter)
    factors = tuple(draw.uniform(1 - strength, 1 + strength) for strength in strengths)
    hue = draw.uniform(-recipe.hue, recipe.hue)
    g = draw.generator
    order = torch.randperm(4, generator=g, device=g.device).tolist()
    on = [strength > 0 for strength in (*strengths, recipe.hue)]
    steps = tuple(i for i in order if on[i] and (draw.channels == 3 or i < 2))
    return StepParameters("jitter", chosen, (*factors, hue), steps)


def _jitter(
    x: Tensor, brightness: Tensor, contrast: Tensor, saturation: Tensor, hue: Tensor, *order: int
) -> Tensor:
    values = (brightness, contrast, saturation, hue)
    functions = (adjust_brightness, adjust_contrast, adjust_saturation, adjust_hue)
    for i in order:
        x = functions[i](x, values[i])
    return x


def _draw_gray(draw: _Draw) -> StepParameters | None:
    if draw.recipe.gray == 0 or draw.channels != 3:
        return None
    return StepParameters("gray", draw.often(draw.recipe.gray))


def _draw_blur(draw: _Draw) -> StepParameters | None:
    recipe = draw.recipe
    if recipe.blur == 0:
        return None
    sigma = draw.uniform(recipe.blur_low, max(recipe.blur_low, recipe.blur_high))
    return StepParameters("blur", draw.often(recipe.blur), (sigma,))


def _draw_noise(draw: _Draw) -> StepParameters | None:
    recipe, g = draw.recipe, draw.generator
    if recipe.noise == 0:
        return None
    shape = (draw.b, draw.channels, draw.height, draw.width)
    noise = torch.randn(shape, generator=g, device=g.device) * recipe.noise_sigma
    return StepParameters("noise", draw.often(recipe.noise), (noise,))


def _add_noise(x: Tensor, noise: Tensor) -> Tensor:
    return (x + noise).clamp_(0, 1)


def _draw_sobel(draw: _Draw) -> StepParameters | None:
    if draw.recipe.sobel == 0:
        return None
    return StepParameters("sobel", draw.often(draw.recipe.sobel))


def _draw_cutout(draw: _Draw) -> StepParameters | None:
    recipe, h, w = draw.recipe, draw.height, draw.width
    if recipe.cutout == 0:
        return None
    center = torch.stack([draw.uniform(0, h), draw.uniform(0, w)], dim=1).long()  # (b, 2)
    side = round(recipe.cutout_size * min(h, w))
    return StepParameters("cutout", draw.often(recipe.cutout), (center,), (side,))


_Drawer = Callable[[_Draw], StepParameters | None]
_STEPS: dict[str, tuple[_Drawer, Callable[..., Tensor]]] = {
    "crop": (_draw_crop, _crop_and_flip),
    "rotation": (_draw_rotation, rotate),
    "jitter": (_draw_jitter, _jitter),
    "gray": (_draw_gray, grayscale),
    "blur": (_draw_blur, gaussian_blur),
    "noise": (_draw_noise, _add_noise),
    "sobel": (_draw_sobel, sobel),
    "cutout": (_draw_cutout, cutout),
}
