"""Augmentations, batched on the images' own device, with own parameters for every image.

A `Recipe` says which steps are on and how strong they are; `augment` draws the parameters from an
explicit generator and applies them. Each step is also a plain function of images and parameters,
and equals its namesake in torchvision.transforms.v2.functional within 2/255.

Crop with flip, and blur, are separable: one small matrix per image and axis, then two batched
matrix products, which needs no loop over images and no gather. A step that applies to some images
only is computed for those only. Deviation from torchvision: the order of the four colour steps
is drawn once per call and view, not once per image.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int, Num, UInt8
from torch import Tensor
from torch.nn import functional as F

from contrastive_core.registry import knob

__all__ = [
    "Recipe",
    "adjust_brightness",
    "adjust_contrast",
    "adjust_hue",
    "adjust_saturation",
    "augment",
    "crop_boxes",
    "cutout",
    "gaussian_blur",
    "greyscale",
    "make_views",
    "resized_crop",
    "rotate",
    "sobel",
    "to_float",
]

GREY = (0.2989, 0.587, 0.114)  # luma weights of ITU-R 601, as torchvision rounds them


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
    jitter: float = knob(0.8, 0, 1, "how often the four colour steps are applied")
    brightness: float = knob(0.4, 0, 1, "brightness factor within 1 ± this")
    contrast: float = knob(0.4, 0, 1, "contrast factor within 1 ± this")
    saturation: float = knob(0.4, 0, 1, "saturation factor within 1 ± this")
    hue: float = knob(0.5, 0, 0.5, "hue shift within ± this part of the colour circle")
    grey: float = knob(0.2, 0, 1, "how often the colours are dropped")
    blur: float = knob(0.0, 0, 1, "how often a Gaussian blur (kernel: a tenth of the image)")
    blur_low: float = knob(0.1, 0.01, 10, "smallest blur, standard deviation in pixels")
    blur_high: float = knob(2.0, 0.01, 10, "largest blur, standard deviation in pixels")
    noise: float = knob(0.0, 0, 1, "how often Gaussian noise is added")
    noise_sigma: float = knob(0.05, 0, 1, "standard deviation of the noise, of the full range")
    sobel: float = knob(0.0, 0, 1, "how often the image is replaced by its edges")
    cutout: float = knob(0.0, 0, 1, "how often a square is blanked out")
    cutout_size: float = knob(0.4, 0, 1, "side of that square, as part of the image's side")


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
    and every device gets the same parameters). Colour steps are left out on grey images.
    Autocast is off inside: bf16 has too few digits for pixels.
    """
    with torch.autocast(images.device.type, enabled=False):
        return _augment(images, recipe, generator)


def _augment(images: Tensor, recipe: Recipe, generator: torch.Generator) -> Tensor:
    b, c, h, w = images.shape
    draw = _Draw(b, generator, images.device)
    x = _crop_and_flip(images, recipe, draw)
    colour = c == 3
    if recipe.rotation > 0:
        angle = draw.uniform(-recipe.rotation_degrees, recipe.rotation_degrees)
        x = _some(x, draw.often(recipe.rotation), rotate, angle)
    if recipe.jitter > 0:
        x = _jitter(x, recipe, draw, colour)
    if recipe.grey > 0 and colour:
        x = _some(x, draw.often(recipe.grey), greyscale)
    if recipe.blur > 0:
        sigma = draw.uniform(recipe.blur_low, max(recipe.blur_low, recipe.blur_high))
        x = _some(x, draw.often(recipe.blur), gaussian_blur, sigma)
    if recipe.noise > 0:
        noise = torch.randn(x.shape, generator=generator, device=generator.device)
        x = _some(x, draw.often(recipe.noise), _add_clipped, noise * recipe.noise_sigma)
    if recipe.sobel > 0:
        x = _some(x, draw.often(recipe.sobel), sobel)
    if recipe.cutout > 0:
        centre = torch.stack([draw.uniform(0, h), draw.uniform(0, w)], dim=1).long()  # (b, 2)
        side = round(recipe.cutout_size * min(h, w))
        x = _some(x, draw.often(recipe.cutout), lambda y, at: cutout(y, at, side), centre)
    return x


def to_float(images: UInt8[Tensor, "b c h w"]) -> Float[Tensor, "b c h w"]:
    """Images as they are, as float32 in [0, 1]."""
    return images.float().div_(255)


# --- the steps: images (b, c, h, w) float in [0, 1], one parameter per image -------------------


def resized_crop(
    x: Num[Tensor, "b c h w"],
    boxes: Int[Tensor, "b 4"],
    flip: Bool[Tensor, " b"] | None = None,
    size: tuple[int, int] | None = None,
) -> Float[Tensor, "b c oh ow"]:
    """Crop each image to its box (top, left, height, width) and resize it, antialiased bilinear.

    `flip` mirrors after the crop. The output has the input's size unless `size` is given.
    """
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
    """Pull each image towards (factor < 1) or away from its mean luminance."""
    mean = _luma(x).mean(dim=(1, 2, 3), keepdim=True)  # (b, 1, 1, 1)
    return torch.lerp(mean, x, factor[:, None, None, None]).clamp_(0, 1)


def adjust_saturation(x: Float[Tensor, "b 3 h w"], factor: Float[Tensor, " b"]) -> Tensor:
    """Pull each image towards (factor < 1) or away from its grey version."""
    return torch.lerp(_luma(x), x, factor[:, None, None, None]).clamp_(0, 1)


def adjust_hue(x: Float[Tensor, "b 3 h w"], shift: Float[Tensor, " b"]) -> Tensor:
    """Turn each image's hue by `shift` of the colour circle (−0.5 … 0.5).

    Largest and smallest channel stay; with hue H in sixths, channel n ∈ {5, 3, 1} becomes
    max − chroma · clamp(min(k, 4 − k), 0, 1), k = (n + H) mod 6: the usual piecewise HSV → RGB.
    """
    r, g, b = x.unbind(1)  # (b, h, w) each
    top, low = x.amax(1), x.amin(1)
    chroma = top - low
    safe = torch.where(chroma > 0, chroma, 1.0)
    hue = torch.where(
        top == r,
        (g - b) / safe,
        torch.where(top == g, (b - r) / safe + 2, (r - g) / safe + 4),
    )
    hue = hue + 6 * shift[:, None, None]
    n = torch.tensor([5.0, 3.0, 1.0], device=x.device)[None, :, None, None]
    k = (hue[:, None] + n).remainder_(6)  # (b, 3, h, w)
    return top[:, None] - chroma[:, None] * torch.minimum(k, 4 - k).clamp_(0, 1)


def greyscale(x: Float[Tensor, "b 3 h w"]) -> Float[Tensor, "b 3 h w"]:
    """Every channel becomes the luminance."""
    return _luma(x).expand_as(x)


def gaussian_blur(
    x: Float[Tensor, "b c h w"], sigma: Float[Tensor, " b"], kernel: int | None = None
) -> Float[Tensor, "b c h w"]:
    """Blur each image with its own `sigma` (pixels), reflecting at the borders.

    `kernel`: odd width in pixels; by default a tenth of the smaller side, at least 3.
    """
    h, w = x.shape[-2:]
    kernel = kernel or max(3, min(h, w) // 10 | 1)
    at = torch.arange(kernel, device=x.device) - kernel // 2
    weight = torch.exp(-0.5 * (at / sigma[:, None]) ** 2)  # (b, k)
    weight = weight / weight.sum(1, keepdim=True)
    return _separable(x, _band(weight, h), _band(weight, w))


def rotate(x: Float[Tensor, "b c h w"], degrees: Float[Tensor, " b"]) -> Float[Tensor, "b c h w"]:
    """Turn each image counter-clockwise about its centre, bilinear, black outside."""
    h, w = x.shape[-2:]
    rad = degrees * (math.pi / 180)
    cos, sin, zero = rad.cos(), rad.sin(), torch.zeros_like(rad)
    # from output to input, in grid coordinates that run from -1 to 1 along either axis
    theta = torch.stack([cos, -sin * h / w, zero, sin * w / h, cos, zero], dim=1).view(-1, 2, 3)
    grid = F.affine_grid(theta, list(x.shape), align_corners=False)
    return F.grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=False)


def sobel(x: Float[Tensor, "b c h w"]) -> Float[Tensor, "b c h w"]:
    """Edges: the gradient magnitude of the luminance (Sobel kernels over 4), in every channel."""
    grey = F.pad(_luma(x), (1, 1, 1, 1), mode="replicate")
    smooth = torch.tensor([1.0, 2.0, 1.0], device=x.device) / 4
    slope = torch.tensor([-1.0, 0.0, 1.0], device=x.device)
    kernels = torch.stack([smooth[:, None] * slope, slope[:, None] * smooth])[:, None]
    return F.conv2d(grey, kernels).norm(dim=1, keepdim=True).clamp(0, 1).expand_as(x)


def cutout(
    x: Float[Tensor, "b c h w"], centre: Int[Tensor, "b 2"], side: int
) -> Float[Tensor, "b c h w"]:
    """Blank a square of `side` pixels around each image's centre point (row, column)."""
    inside = []
    for axis, length in enumerate(x.shape[-2:]):
        at = torch.arange(length, device=x.device) - (centre[:, axis : axis + 1] - side // 2)
        inside.append((at >= 0) & (at < side))  # (b, length)
    hole = inside[0][:, None, :, None] & inside[1][:, None, None, :]
    return x.masked_fill(hole, 0.0)


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


def _crop_and_flip(images: Tensor, recipe: Recipe, draw: _Draw) -> Tensor:
    b, _, h, w = images.shape
    if recipe.crop == 0 and recipe.flip == 0:
        return to_float(images)
    boxes = torch.tensor([0, 0, h, w]).repeat(b, 1).to(draw.device)
    if recipe.crop > 0:
        drawn = crop_boxes(b, h, w, recipe, draw.generator).to(draw.device)
        chosen = draw.often(recipe.crop)
        boxes = boxes.index_copy(0, chosen, drawn[chosen])
    flip = draw.uniform(0, 1) < recipe.flip
    return resized_crop(to_float(images), boxes, flip).clamp_(0, 1)


def _jitter(x: Tensor, recipe: Recipe, draw: _Draw, colour: bool) -> Tensor:
    chosen = draw.often(recipe.jitter)
    steps: list[tuple[Callable[..., Tensor], Tensor]] = []
    for strength, step in (
        (recipe.brightness, adjust_brightness),
        (recipe.contrast, adjust_contrast),
        (recipe.saturation, adjust_saturation),
    ):
        steps.append((step, draw.uniform(1 - strength, 1 + strength)))
    steps.append((adjust_hue, draw.uniform(-recipe.hue, recipe.hue)))
    strengths = (recipe.brightness, recipe.contrast, recipe.saturation, recipe.hue)
    order = [i for i in draw.order(4) if strengths[i] > 0 and (colour or i < 2)]
    if len(chosen) == 0:
        return x
    y = x[chosen]
    for i in order:
        step, value = steps[i]
        y = step(y, value[chosen])
    return x.index_copy(0, chosen, y)


def _add_clipped(x: Tensor, noise: Tensor) -> Tensor:
    return (x + noise).clamp_(0, 1)


def _luma(x: Tensor) -> Tensor:
    """(b, 1, h, w): weighted channels of a colour image, the mean of any other."""
    if x.shape[1] != 3:
        return x.mean(1, keepdim=True)
    r, g, b = x.unbind(1)
    return (GREY[0] * r + GREY[1] * g + GREY[2] * b)[:, None]


def _resample(start: Tensor, length: Tensor, n_in: int, n_out: int) -> Float[Tensor, "b o i"]:
    """Row-stochastic triangle-filter matrices from n_in pixels to n_out over [start, +length)."""
    scale = (length / n_out)[:, None, None]  # input pixels per output pixel
    width = scale.clamp(min=1.0)
    out = torch.arange(n_out, device=start.device)[None, :, None] + 0.5
    at = torch.arange(n_in, device=start.device)[None, None, :] - start[:, None, None]  # (b, 1, i)
    weight = (1 - (at + 0.5 - out * scale).abs() / width).clamp_(min=0)  # (b, o, i)
    weight = weight * ((at >= 0) & (at < length[:, None, None]))
    return weight / weight.sum(2, keepdim=True)


def _band(weight: Float[Tensor, "b k"], n: int) -> Float[Tensor, "b n n"]:
    """Convolution with `weight` along n pixels, reflected at the ends, as one matrix per image."""
    k = weight.shape[1]
    at = torch.arange(n, device=weight.device)[:, None] + torch.arange(k, device=weight.device)
    at = (at - k // 2).abs()
    at = (n - 1) - ((n - 1) - at).abs()  # (n, k): index of each tap
    band = torch.zeros(weight.shape[0], n, n, device=weight.device)
    return band.scatter_add_(2, at.expand(len(weight), -1, -1), weight[:, None].expand(-1, n, -1))


def _separable(x: Tensor, rows: Tensor, cols: Tensor) -> Tensor:
    """rows (b, oh, h) · x (b, c, h, w) · colsᵀ (b, w, ow)."""
    b, c, h, w = x.shape
    oh, ow = rows.shape[1], cols.shape[1]
    x = torch.bmm(x.reshape(b, c * h, w), cols.transpose(1, 2))  # (b, c·h, ow)
    x = x.view(b, c, h, ow).transpose(1, 2).reshape(b, h, c * ow)
    x = torch.bmm(rows, x)  # (b, oh, c·ow)
    return x.view(b, oh, c, ow).transpose(1, 2).contiguous()
