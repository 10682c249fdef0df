"""Each step of a recipe: how its parameters are drawn, and the function that takes them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
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
    solarize,
)
from contrastive_core.data.recipe import Recipe

__all__ = ["STEPS", "ParameterDraw", "StepParameters", "crop_boxes"]


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


class ParameterDraw:
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


def _draw_crop(draw: ParameterDraw) -> StepParameters | None:
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


def _draw_rotation(draw: ParameterDraw) -> StepParameters | None:
    recipe = draw.recipe
    if recipe.rotation == 0:
        return None
    angle = draw.uniform(-recipe.rotation_degrees, recipe.rotation_degrees)
    return StepParameters("rotation", draw.often(recipe.rotation), (angle,))


def _draw_jitter(draw: ParameterDraw) -> StepParameters | None:
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


def _draw_gray(draw: ParameterDraw) -> StepParameters | None:
    if draw.recipe.gray == 0 or draw.channels != 3:
        return None
    return StepParameters("gray", draw.often(draw.recipe.gray))


def _draw_blur(draw: ParameterDraw) -> StepParameters | None:
    recipe = draw.recipe
    if recipe.blur == 0:
        return None
    sigma = draw.uniform(recipe.blur_low, max(recipe.blur_low, recipe.blur_high))
    return StepParameters("blur", draw.often(recipe.blur), (sigma,))


def _draw_solarize(draw: ParameterDraw) -> StepParameters | None:
    recipe = draw.recipe
    if recipe.solarize == 0:
        return None
    chosen = draw.often(recipe.solarize)
    return StepParameters("solarize", chosen, (torch.full_like(chosen, recipe.solarize_from,
                                                               dtype=torch.float32),))  # fmt: skip


def _draw_noise(draw: ParameterDraw) -> StepParameters | None:
    recipe, g = draw.recipe, draw.generator
    if recipe.noise == 0:
        return None
    shape = (draw.b, draw.channels, draw.height, draw.width)
    noise = torch.randn(shape, generator=g, device=g.device) * recipe.noise_sigma
    return StepParameters("noise", draw.often(recipe.noise), (noise,))


def _add_noise(x: Tensor, noise: Tensor) -> Tensor:
    return (x + noise).clamp_(0, 1)


def _draw_sobel(draw: ParameterDraw) -> StepParameters | None:
    if draw.recipe.sobel == 0:
        return None
    return StepParameters("sobel", draw.often(draw.recipe.sobel))


def _draw_cutout(draw: ParameterDraw) -> StepParameters | None:
    recipe, h, w = draw.recipe, draw.height, draw.width
    if recipe.cutout == 0:
        return None
    center = torch.stack([draw.uniform(0, h), draw.uniform(0, w)], dim=1).long()  # (b, 2)
    side = round(recipe.cutout_size * min(h, w))
    return StepParameters("cutout", draw.often(recipe.cutout), (center,), (side,))


Drawer = Callable[[ParameterDraw], StepParameters | None]
STEPS: dict[str, tuple[Drawer, Callable[..., Tensor]]] = {
    "crop": (_draw_crop, _crop_and_flip),
    "rotation": (_draw_rotation, rotate),
    "jitter": (_draw_jitter, _jitter),
    "gray": (_draw_gray, grayscale),
    "blur": (_draw_blur, gaussian_blur),
    "solarize": (_draw_solarize, solarize),
    "noise": (_draw_noise, _add_noise),
    "sobel": (_draw_sobel, sobel),
    "cutout": (_draw_cutout, cutout),
}
