"""Augmentations as a recipe: drawn for the global batch, applied to this process's share of it.

A `Recipe` says which steps are on and how strong they are. `draw_view` draws every image's own
parameters, a few dozen numbers, from an explicit generator; `apply_view` takes the steps of
augmentation_ops on the images' own device. Every process draws for the global batch and applies its
own rows, so that views do not depend on how many processes there are. A step that changes some
images only is computed for those only. Deviation from torchvision: the order of the four color
steps is drawn once per view, and not once per image.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from contrastive_core.data.augmentation_ops import to_float
from contrastive_core.data.augmentation_steps import STEPS, ParameterDraw, StepParameters
from contrastive_core.data.batch import BatchShare
from contrastive_core.data.recipe import Recipe

__all__ = [
    "apply_view",
    "augment",
    "draw_view",
    "make_views",
    "steps_of",
    "to_float",
]


def make_views(
    images: UInt8[Tensor, "b c h w"],
    recipe: Recipe,
    views: int,
    generator: torch.Generator,
    share: BatchShare | None = None,
) -> Float[Tensor, "b v c h w"]:
    """`views` independent augmentations of each image, in [0, 1], on the images' device; each by
    the recipe of its view.

    Args: share: which rows of the global batch the images are; None: all of them.
    """
    each = [augment(images, recipe.of_view(v), generator, share) for v in range(views)]
    return torch.stack(each, dim=1)


def augment(
    images: UInt8[Tensor, "b c h w"],
    recipe: Recipe,
    generator: torch.Generator,
    share: BatchShare | None = None,
) -> Float[Tensor, "b c h w"]:
    """One augmented view of each image: uint8 in, float32 in [0, 1] out. Of a recipe whose views
    differ it is the first.

    The generator is best a CPU one: then nothing waits for the device, and every device gets the
    same parameters. Color steps are left out on gray images.
    """
    share = share or BatchShare.whole(len(images))
    parameters = draw_view(share.total, tuple(images.shape[1:]), recipe, generator)
    return apply_view(images, [step.take(share.rows) for step in parameters])


def draw_view(
    b: int, shape: tuple[int, ...], recipe: Recipe, generator: torch.Generator
) -> list[StepParameters]:
    """The parameters of one view of `b` images of `shape` (c, h, w), step by step."""
    recipe = recipe.of_view(0)
    draw = ParameterDraw(b, shape, recipe, generator)
    steps = (STEPS[name][0](draw) for name in steps_of(recipe))
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
    function = STEPS[step.name][1]
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
        if name not in STEPS:
            raise ValueError(f"order names {name!r}; the steps are: {', '.join(STEPS)}")
    return [*first, *(name for name in STEPS if name not in first)]
