"""Augmentations by a recipe: parameters are sampled for the global batch and applied to this process's share.

A `Recipe` sets the probability and strength of each step. A step samples parameters for every image from an explicit
generator and applies a batched function on the images' device. Every process samples for the global batch and uses its
own rows, so views do not depend on the number of processes. On the CPU a step is computed only for the images that it
changes; elsewhere for all, so that shapes stay fixed.
Deviation from torchvision: the order of the four color steps is sampled once per view, not once per image.

The functions take a batch of images and one parameter per image. Each equals its namesake in
torchvision.transforms.v2.functional within 2/255. Images are float in [0, 1]. Crop with flip, and blur, are separable:
one small matrix per image and axis, then two batched matrix products, without a loop over images or a gather."""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int, Num, UInt8
from torch import Generator, Tensor
from torch.nn import functional as F

from contrastive_core.base.device import send
from contrastive_core.base.errors import BadSetting
from contrastive_core.data.batch_loader import BatchShare
from contrastive_core.data.recipe import Recipe

GRAY = (0.2989, 0.587, 0.114)  # luma weights of ITU-R 601, as torchvision rounds them


def to_float(images: UInt8[Tensor, "b c h w"]) -> Float[Tensor, "b c h w"]:
    """Convert uint8 images to float32 in [0, 1]."""
    return images.float().div_(255)


def resized_crop(
    x: Num[Tensor, "b c h w"],
    boxes: Int[Tensor, "b 4"],
    flip: Bool[Tensor, " b"] | None = None,
    size: tuple[int, int] | None = None,
) -> Float[Tensor, "b c oh ow"]:
    """Crop to boxes (top, left, height, width), resize to `size` (default: as x), antialiased; mirror by `flip`."""
    h, w = x.shape[-2:]
    out_h, out_w = size or (h, w)
    rows = _resample(boxes[:, 0], boxes[:, 2], h, out_h)  # (b, oh, h)
    cols = _resample(boxes[:, 1], boxes[:, 3], w, out_w)  # (b, ow, w)
    if flip is not None:
        cols = torch.where(flip[:, None, None], cols.flip(1), cols)
    return _separable(x.float(), rows, cols)


def adjust_brightness(x: Float[Tensor, "b c h w"], factor: Float[Tensor, " b"]) -> Tensor:
    """Multiply each image by its factor."""
    return (x * factor[:, None, None, None]).clamp_(0, 1)


def adjust_contrast(x: Float[Tensor, "b c h w"], factor: Float[Tensor, " b"]) -> Tensor:
    """Blend each image with its mean luminance; a factor below 1 lowers the contrast."""
    mean = _luma(x).mean(dim=(1, 2, 3), keepdim=True)  # (b, 1, 1, 1)
    return torch.lerp(mean, x, factor[:, None, None, None]).clamp_(0, 1)


def adjust_saturation(x: Float[Tensor, "b 3 h w"], factor: Float[Tensor, " b"]) -> Tensor:
    """Blend each image with its gray version; a factor below 1 lowers the saturation."""
    return torch.lerp(_luma(x), x, factor[:, None, None, None]).clamp_(0, 1)


def adjust_hue(x: Float[Tensor, "b 3 h w"], shift: Float[Tensor, " b"]) -> Tensor:
    """Shift each image's hue by `shift` of the color circle (−0.5 to 0.5). The largest and smallest channel values
    stay. With hue H in sixths, channel n ∈ {5, 3, 1} becomes max − chroma · clamp(min(k, 4 − k), 0, 1), k = (n + H) mod
    6, which is the usual piecewise HSV → RGB."""
    r, g, b = x.unbind(1)  # (b, h, w) each
    top, low = x.amax(1), x.amin(1)
    chroma = top - low
    safe = torch.where(chroma > 0, chroma, 1.0)
    hue = torch.where(top == r, (g - b) / safe, torch.where(top == g, (b - r) / safe + 2, (r - g) / safe + 4))
    hue = hue + 6 * shift[:, None, None]
    n = torch.arange(5.0, 0.0, -2.0, device=x.device)[None, :, None, None]  # 5, 3, 1
    k = (hue[:, None] + n).remainder_(6)  # (b, 3, h, w)
    return top[:, None] - chroma[:, None] * torch.minimum(k, 4 - k).clamp_(0, 1)


def grayscale(x: Float[Tensor, "b 3 h w"]) -> Float[Tensor, "b 3 h w"]:
    """Replace every channel by the luminance."""
    return _luma(x).expand_as(x)


def gaussian_blur(
    x: Float[Tensor, "b c h w"], sigma: Float[Tensor, " b"], kernel: int | None = None
) -> Float[Tensor, "b c h w"]:
    """Blur each image with its own `sigma` (pixels), with reflection at the borders.

    `kernel`: odd width in pixels; by default a tenth of the shorter side, at least 3."""
    h, w = x.shape[-2:]
    kernel = kernel or max(3, min(h, w) // 10 | 1)
    at = torch.arange(kernel, device=x.device) - kernel // 2
    weight = torch.exp(-0.5 * (at / sigma[:, None]) ** 2)  # (b, k)
    weight = weight / weight.sum(1, keepdim=True)
    return _separable(x, _band(weight, h), _band(weight, w))


def solarize(x: Float[Tensor, "b c h w"], above: Float[Tensor, " b"]) -> Tensor:
    """Invert the values of each image that are at least its `above` (0 to 1)."""
    return torch.where(x >= above[:, None, None, None], 1 - x, x)


def rotate(x: Float[Tensor, "b c h w"], degrees: Float[Tensor, " b"]) -> Float[Tensor, "b c h w"]:
    """Rotate each image counter-clockwise about its center, with bilinear interpolation and black outside."""
    h, w = x.shape[-2:]
    rad = degrees * (math.pi / 180)
    cos, sin, zero = rad.cos(), rad.sin(), torch.zeros_like(rad)
    # from output to input, in grid coordinates that run from -1 to 1 along either axis
    theta = torch.stack([cos, -sin * h / w, zero, sin * w / h, cos, zero], dim=1).view(-1, 2, 3)
    grid = F.affine_grid(theta, list(x.shape), align_corners=False)
    return F.grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=False)


def sobel(x: Float[Tensor, "b c h w"]) -> Float[Tensor, "b c h w"]:
    """Return the gradient magnitude of the luminance (Sobel kernels over 4) in every channel."""
    gray = F.pad(_luma(x), (1, 1, 1, 1), mode="replicate")
    slope = torch.arange(-1.0, 2.0, device=x.device)  # −1, 0, 1
    smooth = (2 - slope.abs()) / 4  # ¼, ½, ¼
    kernels = torch.stack([smooth[:, None] * slope, slope[:, None] * smooth])[:, None]
    return F.conv2d(gray, kernels).norm(dim=1, keepdim=True).clamp(0, 1).expand_as(x)


def cutout(x: Float[Tensor, "b c h w"], center: Int[Tensor, "b 2"], side: int) -> Float[Tensor, "b c h w"]:
    """Blank a square of `side` pixels around each image's center point (row, column)."""
    inside = []
    for axis, length in enumerate(x.shape[-2:]):
        at = torch.arange(length, device=x.device) - (center[:, axis : axis + 1] - side // 2)
        inside.append((at >= 0) & (at < side))  # (b, length)
    hole = inside[0][:, None, :, None] & inside[1][:, None, None, :]
    return x.masked_fill(hole, 0.0)


def _luma(x: Tensor) -> Tensor:
    """Return the luminance (b, 1, h, w) of a color image, or the mean channel of any other."""
    if x.shape[1] != 3:
        return x.mean(1, keepdim=True)
    r, g, b = x.unbind(1)
    return (GRAY[0] * r + GRAY[1] * g + GRAY[2] * b)[:, None]


def _resample(start: Tensor, length: Tensor, n_in: int, n_out: int) -> Float[Tensor, "b o i"]:
    """Return row-stochastic triangle-filter matrices from n_in to n_out pixels over [start, start + length)."""
    scale = (length / n_out)[:, None, None]  # input pixels per output pixel
    width = scale.clamp(min=1.0)
    out = torch.arange(n_out, device=start.device)[None, :, None] + 0.5
    at = torch.arange(n_in, device=start.device)[None, None, :] - start[:, None, None]  # (b, 1, i)
    weight = (1 - (at + 0.5 - out * scale).abs() / width).clamp_(min=0)  # (b, o, i)
    weight = weight * ((at >= 0) & (at < length[:, None, None]))
    return weight / weight.sum(2, keepdim=True)


def _band(weight: Float[Tensor, "b k"], n: int) -> Float[Tensor, "b n n"]:
    """Return the convolution with `weight` along n pixels, reflected at the ends, as one matrix per image."""
    k = weight.shape[1]
    at = torch.arange(n, device=weight.device)[:, None] + torch.arange(k, device=weight.device)
    at = (at - k // 2).abs()
    at = (n - 1) - ((n - 1) - at).abs()  # (n, k): index of each tap
    band = torch.zeros(weight.shape[0], n, n, device=weight.device)
    return band.scatter_add_(2, at.expand(len(weight), -1, -1), weight[:, None].expand(-1, n, -1))


def _separable(x: Tensor, rows: Tensor, cols: Tensor) -> Tensor:
    """Return rows (b, oh, h) · x (b, c, h, w) · colsᵀ (b, w, ow)."""
    b, c, h, w = x.shape
    oh, ow = rows.shape[1], cols.shape[1]
    x = torch.bmm(x.reshape(b, c * h, w), cols.transpose(1, 2))  # (b, c·h, ow)
    x = x.view(b, c, h, ow).transpose(1, 2).reshape(b, h, c * ow)
    x = torch.bmm(rows, x)  # (b, oh, c·ow)
    return x.view(b, oh, c, ow).transpose(1, 2).contiguous()


def make_views(
    images: UInt8[Tensor, "b c h w"], recipe: Recipe, views: int, generator: Generator, share: BatchShare | None = None
) -> Float[Tensor, "b v c h w"]:
    """Return `views` augmentations of each image in [0, 1], on the images' device, each by the recipe of its view.
    `share` gives the rows of the images in the global batch; None: all of it."""
    return torch.stack([augment(images, recipe.of_view(v), generator, share) for v in range(views)], dim=1)


def augment(
    images: UInt8[Tensor, "b c h w"], recipe: Recipe, generator: Generator, share: BatchShare | None = None
) -> Float[Tensor, "b c h w"]:
    """Return one augmented view of each uint8 image as float32 in [0, 1], by the recipe of the first view. Use a CPU
    generator: it never waits for the device, and every device gets the same parameters. Color steps are skipped on gray
    images."""
    share, recipe = share or BatchShare.whole(len(images)), recipe.of_view(0)
    shape = (share.total, *images.shape[1:])
    drawn = {name: sample(name, recipe, shape, generator) for name in steps_of(recipe) if _is_on(name, recipe, shape)}
    with torch.autocast(images.device.type, enabled=False):  # bf16 has too few digits for pixels
        x = to_float(images)
        for name, step in drawn.items():
            function, chosen = STEPS[name], step.chosen[share.rows]
            values = [value[share.rows] for value in step.values]
            if x.device.type != "cpu":
                chosen, *values = (send(v, x.device) for v in (chosen, *values))
                x = torch.where(chosen[:, None, None, None], function(x, *values, *step.shared), x)
            elif chosen.all():
                x = function(x, *values, *step.shared)
            elif len(rows := chosen.nonzero()[:, 0]):
                x = x.index_copy(0, rows, function(x[rows], *(v[rows] for v in values), *step.shared))
        return x


def _is_on(name: str, recipe: Recipe, shape: tuple[int, ...]) -> bool:
    if name == "crop":
        return bool(recipe.crop or recipe.flip)
    return getattr(recipe, name) != 0 and (name != "gray" or shape[1] == 3)


@lru_cache(64)
def steps_of(recipe: Recipe) -> tuple[str, ...]:
    """Return the names of the steps in their order of execution. Raises ValueError for an unknown name."""
    first = recipe.order.replace(",", " ").split()
    for name in first:
        if name not in STEPS:
            raise BadSetting(
                "order contains the unknown step {name}; known: {steps}", name=f"{name!r}", steps=", ".join(STEPS)
            )
    return (*first, *(name for name in STEPS if name not in first))


class Drawn(NamedTuple):
    """Sampled parameters of one step for a batch: the images that it changes, and each image's values."""

    chosen: Bool[Tensor, " b"]
    values: tuple[Tensor, ...] = ()  # (b, …) each
    shared: tuple[int, ...] = ()  # equal for all images: the order of the jitter, the side of the cutout


def crop_boxes(b: int, h: int, w: int, recipe: Recipe, generator: Generator) -> Int[Tensor, "b 4"]:
    """Sample boxes (top, left, height, width) as in RandomResizedCrop: ten tries, then the whole image."""
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


def sample(name: str, recipe: Recipe, shape: tuple[int, ...], generator: Generator) -> Drawn:
    """Sample the parameters of a step for images of the shape (b, c, h, w), on the generator's device."""
    b, channels, height, width = shape
    device = generator.device

    def uniform(low: float, high: float) -> Float[Tensor, " b"]:
        return low + (high - low) * torch.rand(b, generator=generator, device=device)

    def mask(probability: float) -> Bool[Tensor, " b"]:
        return uniform(0, 1) < probability

    match name:
        case "crop":
            boxes = torch.tensor([0, 0, height, width], device=device).repeat(b, 1)  # (b, 4)
            if recipe.crop > 0:
                cropped = crop_boxes(b, height, width, recipe, generator)
                boxes = torch.where(mask(recipe.crop)[:, None], cropped, boxes)
            flip = mask(recipe.flip)
            return Drawn(torch.ones_like(flip), (boxes, flip))
        case "rotation":
            angle = uniform(-recipe.rotation_degrees, recipe.rotation_degrees)
            return Drawn(mask(recipe.rotation), (angle,))
        case "jitter":
            strengths = (recipe.brightness, recipe.contrast, recipe.saturation)
            chosen = mask(recipe.jitter)
            factors = [uniform(1 - strength, 1 + strength) for strength in strengths]
            hue = uniform(-recipe.hue, recipe.hue)
            on = [strength > 0 for strength in (*strengths, recipe.hue)]
            order = torch.randperm(4, generator=generator, device=device).tolist()
            return Drawn(chosen, (*factors, hue), tuple(i for i in order if on[i] and (channels == 3 or i < 2)))
        case "blur":
            sigma = uniform(recipe.blur_low, max(recipe.blur_low, recipe.blur_high))
            return Drawn(mask(recipe.blur), (sigma,))
        case "solarize":
            chosen = mask(recipe.solarize)
            return Drawn(chosen, (torch.full_like(chosen, recipe.solarize_from, dtype=torch.float32),))
        case "noise":
            noise = torch.randn(shape, generator=generator, device=device) * recipe.noise_sigma
            return Drawn(mask(recipe.noise), (noise,))
        case "cutout":
            center = torch.stack([uniform(0, height), uniform(0, width)], dim=1).long()  # (b, 2)
            return Drawn(mask(recipe.cutout), (center,), (round(recipe.cutout_size * min(height, width)),))
    return Drawn(mask(getattr(recipe, name)))


def _jitter(x: Tensor, brightness: Tensor, contrast: Tensor, saturation: Tensor, hue: Tensor, *order: int) -> Tensor:
    values = (brightness, contrast, saturation, hue)
    functions = (adjust_brightness, adjust_contrast, adjust_saturation, adjust_hue)
    for i in order:
        x = functions[i](x, values[i])
    return x


STEPS: dict[str, Callable[..., Tensor]] = {
    "crop": lambda x, boxes, flip: resized_crop(x, boxes, flip).clamp_(0, 1),
    "rotation": rotate,
    "jitter": _jitter,
    "gray": grayscale,
    "blur": gaussian_blur,
    "solarize": solarize,
    "noise": lambda x, noise: (x + noise).clamp_(0, 1),
    "sobel": sobel,
    "cutout": cutout,
}
