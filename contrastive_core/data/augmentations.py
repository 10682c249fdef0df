"""Augmentations as a recipe: sampled for the global batch, applied to this process's share of it.

A `Recipe` says which steps are on and how strong they are. `draw_view` samples every image's own
parameters, a few dozen numbers, from an explicit generator; `apply_view` runs the functions of
augmentation_ops on the images' own device. Every process samples for the global batch and applies
its own rows, so views do not depend on the number of processes. A step that changes only some
images is computed for those only. Deviation from torchvision: the order of the four color steps is
sampled once per view, not once per image.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor

from contrastive_core.data import augmentation_ops as ops
from contrastive_core.data.augmentation_ops import to_float
from contrastive_core.data.batch_loader import BatchShare
from contrastive_core.messages import message
from contrastive_core.records.recipe import Recipe

__all__ = ["apply_view", "augment", "crop_boxes", "draw_view", "make_views", "steps_of", "to_float"]


def make_views(
    images: UInt8[Tensor, "b c h w"],
    recipe: Recipe,
    views: int,
    generator: torch.Generator,
    share: BatchShare | None = None,
) -> Float[Tensor, "b v c h w"]:
    """`views` independent augmentations of each image, in [0, 1], on the images' device, each by
    the recipe of its view.

    Args: share: which rows of the global batch the images are; None: all of them.
    """
    recipes = _recipes(recipe)
    each = [augment(images, recipes[v % len(recipes)], generator, share) for v in range(views)]
    return torch.stack(each, dim=1)


def augment(
    images: UInt8[Tensor, "b c h w"], recipe: Recipe, generator: torch.Generator, share: BatchShare | None = None
) -> Float[Tensor, "b c h w"]:
    """One augmented view of each image: uint8 in, float32 in [0, 1] out. If the views of the recipe
    differ, it is the first.

    A CPU generator is best: nothing waits for the device, and every device gets the same
    parameters. Color steps are skipped on gray images.
    """
    total = len(images) if share is None else share.total
    parameters = draw_view(total, tuple(images.shape[1:]), recipe, generator)
    if share is not None:
        parameters = [step.take(slice(share.start, share.stop)) for step in parameters]
    return apply_view(images, parameters)


def draw_view(b: int, shape: tuple[int, ...], recipe: Recipe, generator: torch.Generator) -> list[StepParameters]:
    """The parameters of one view of `b` images of `shape` (c, h, w), step by step."""
    recipe = _recipes(recipe)[0]
    sampler = ParameterSampler(b, shape, recipe, generator)
    steps = [STEPS[name][0](sampler) for name in steps_of(recipe)]
    return [step for step in steps if step is not None]


def apply_view(images: UInt8[Tensor, "b c h w"], parameters: list[StepParameters]) -> Float[Tensor, "b c h w"]:
    """Images in [0, 1] after the steps sampled for them, on their own device.

    Autocast is off inside: bf16 has too few digits for pixels.
    """
    with torch.autocast(images.device.type, enabled=False):
        x = to_float(images)
        for step in parameters:
            x = _apply_step(x, step)
        return x


def _apply_step(x: Tensor, step: StepParameters) -> Tensor:
    """The step on the images that it changes; which ones is looked up on the generator's device."""
    function = STEPS[step.name][1]
    if step.chosen.all():
        return function(x, *(v.to(x.device, non_blocking=True) for v in step.values), *step.shared)
    rows = step.chosen.nonzero()[:, 0]
    if len(rows) == 0:
        return x
    values = (v[rows].to(x.device, non_blocking=True) for v in step.values)
    rows = rows.to(x.device, non_blocking=True)
    return x.index_copy(0, rows, function(x[rows], *values, *step.shared))


@lru_cache(64)
def steps_of(recipe: Recipe) -> tuple[str, ...]:
    """The names of the steps in the order in which they run. Raises ValueError for an unknown one."""
    first = recipe.order.replace(",", " ").split()
    for name in first:
        if name not in STEPS:
            raise ValueError(
                message("order names {name}; the steps are: {steps}", name=f"{name!r}", steps=", ".join(STEPS))
            )
    return (*first, *(name for name in STEPS if name not in first))


@lru_cache(64)
def _recipes(recipe: Recipe) -> tuple[Recipe, ...]:
    """The recipe of each view."""
    return tuple(recipe.each)


# --- the parameters of each step -----------------------------------------------------------------


@dataclass(frozen=True)
class StepParameters:
    """The parameters of one step on a batch: which images it changes, and each image's values."""

    name: str
    chosen: Bool[Tensor, " b"]
    values: tuple[Tensor, ...] = ()  # (b, …) each
    shared: tuple[int, ...] = ()  # alike for all images: the order of the jitter, the side of the cutout

    def take(self, rows: slice) -> StepParameters:
        """The parameters of some of the images."""
        values = tuple(v[rows] for v in self.values)
        return StepParameters(self.name, self.chosen[rows], values, self.shared)


def crop_boxes(b: int, h: int, w: int, recipe: Recipe, generator: torch.Generator) -> Int[Tensor, "b 4"]:
    """Random boxes (top, left, height, width), sampled as RandomResizedCrop does: ten tries each,
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


class ParameterSampler:
    """Random parameters of each of b images, on the generator's device."""

    def __init__(self, b: int, shape: tuple[int, ...], recipe: Recipe, generator: torch.Generator) -> None:
        self.b, self.recipe, self.generator = b, recipe, generator
        self.channels, self.height, self.width = shape

    def uniform(self, low: float, high: float) -> Float[Tensor, " b"]:
        u = torch.rand(self.b, generator=self.generator, device=self.generator.device)
        return low + (high - low) * u

    def mask(self, probability: float) -> Bool[Tensor, " b"]:
        """Which images a step changes."""
        u = torch.rand(self.b, generator=self.generator, device=self.generator.device)
        return u < probability


def _draw_crop(sampler: ParameterSampler) -> StepParameters | None:
    recipe, h, w = sampler.recipe, sampler.height, sampler.width
    if recipe.crop == 0 and recipe.flip == 0:
        return None
    device = sampler.generator.device
    boxes = torch.tensor([0, 0, h, w], device=device).repeat(sampler.b, 1)  # (b, 4)
    if recipe.crop > 0:
        cropped = crop_boxes(sampler.b, h, w, recipe, sampler.generator)
        boxes = torch.where(sampler.mask(recipe.crop)[:, None], cropped, boxes)
    flip = sampler.mask(recipe.flip)
    return StepParameters("crop", torch.ones_like(flip), (boxes, flip))


def _crop_and_flip(x: Tensor, boxes: Tensor, flip: Tensor) -> Tensor:
    return ops.resized_crop(x, boxes, flip).clamp_(0, 1)


def _draw_rotation(sampler: ParameterSampler) -> StepParameters | None:
    recipe = sampler.recipe
    if recipe.rotation == 0:
        return None
    angle = sampler.uniform(-recipe.rotation_degrees, recipe.rotation_degrees)
    return StepParameters("rotation", sampler.mask(recipe.rotation), (angle,))


def _draw_jitter(sampler: ParameterSampler) -> StepParameters | None:
    recipe = sampler.recipe
    if recipe.jitter == 0:
        return None
    strengths = (recipe.brightness, recipe.contrast, recipe.saturation)
    chosen = sampler.mask(recipe.jitter)
    factors = tuple(sampler.uniform(1 - strength, 1 + strength) for strength in strengths)
    hue = sampler.uniform(-recipe.hue, recipe.hue)
    g = sampler.generator
    order = torch.randperm(4, generator=g, device=g.device).tolist()
    on = [strength > 0 for strength in (*strengths, recipe.hue)]
    steps = tuple(i for i in order if on[i] and (sampler.channels == 3 or i < 2))
    return StepParameters("jitter", chosen, (*factors, hue), steps)


def _jitter(x: Tensor, brightness: Tensor, contrast: Tensor, saturation: Tensor, hue: Tensor, *order: int) -> Tensor:
    values = (brightness, contrast, saturation, hue)
    functions = (ops.adjust_brightness, ops.adjust_contrast, ops.adjust_saturation, ops.adjust_hue)
    for i in order:
        x = functions[i](x, values[i])
    return x


def _draw_gray(sampler: ParameterSampler) -> StepParameters | None:
    if sampler.recipe.gray == 0 or sampler.channels != 3:
        return None
    return StepParameters("gray", sampler.mask(sampler.recipe.gray))


def _draw_blur(sampler: ParameterSampler) -> StepParameters | None:
    recipe = sampler.recipe
    if recipe.blur == 0:
        return None
    sigma = sampler.uniform(recipe.blur_low, max(recipe.blur_low, recipe.blur_high))
    return StepParameters("blur", sampler.mask(recipe.blur), (sigma,))


def _draw_solarize(sampler: ParameterSampler) -> StepParameters | None:
    recipe = sampler.recipe
    if recipe.solarize == 0:
        return None
    chosen = sampler.mask(recipe.solarize)
    return StepParameters("solarize", chosen, (torch.full_like(chosen, recipe.solarize_from, dtype=torch.float32),))


def _draw_noise(sampler: ParameterSampler) -> StepParameters | None:
    recipe, g = sampler.recipe, sampler.generator
    if recipe.noise == 0:
        return None
    shape = (sampler.b, sampler.channels, sampler.height, sampler.width)
    noise = torch.randn(shape, generator=g, device=g.device) * recipe.noise_sigma
    return StepParameters("noise", sampler.mask(recipe.noise), (noise,))


def _add_noise(x: Tensor, noise: Tensor) -> Tensor:
    return (x + noise).clamp_(0, 1)


def _draw_sobel(sampler: ParameterSampler) -> StepParameters | None:
    if sampler.recipe.sobel == 0:
        return None
    return StepParameters("sobel", sampler.mask(sampler.recipe.sobel))


def _draw_cutout(sampler: ParameterSampler) -> StepParameters | None:
    recipe, h, w = sampler.recipe, sampler.height, sampler.width
    if recipe.cutout == 0:
        return None
    center = torch.stack([sampler.uniform(0, h), sampler.uniform(0, w)], dim=1).long()  # (b, 2)
    side = round(recipe.cutout_size * min(h, w))
    return StepParameters("cutout", sampler.mask(recipe.cutout), (center,), (side,))


Sampler = Callable[[ParameterSampler], StepParameters | None]
STEPS: dict[str, tuple[Sampler, Callable[..., Tensor]]] = {
    "crop": (_draw_crop, _crop_and_flip),
    "rotation": (_draw_rotation, ops.rotate),
    "jitter": (_draw_jitter, _jitter),
    "gray": (_draw_gray, ops.grayscale),
    "blur": (_draw_blur, ops.gaussian_blur),
    "solarize": (_draw_solarize, ops.solarize),
    "noise": (_draw_noise, _add_noise),
    "sobel": (_draw_sobel, ops.sobel),
    "cutout": (_draw_cutout, ops.cutout),
}
