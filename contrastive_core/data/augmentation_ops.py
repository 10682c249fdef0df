"""The steps of augmentation: batched functions of images and of one parameter per image. Each equals its namesake in
torchvision.transforms.v2.functional within 2/255. Images are float in [0, 1]. Crop with flip, and blur, are separable:
one small matrix per image and axis, then two batched matrix products, which needs no loop over images and no gather."""

import math

import torch
from jaxtyping import Bool, Float, Int, Num, UInt8
from torch import Tensor
from torch.nn import functional as F

GRAY = (0.2989, 0.587, 0.114)  # luma weights of ITU-R 601, as torchvision rounds them


def to_float(images: UInt8[Tensor, "b c h w"]) -> Float[Tensor, "b c h w"]:
    """Images as they are, as float32 in [0, 1]."""
    return images.float().div_(255)


def resized_crop(
    x: Num[Tensor, "b c h w"],
    boxes: Int[Tensor, "b 4"],
    flip: Bool[Tensor, " b"] | None = None,
    size: tuple[int, int] | None = None,
) -> Float[Tensor, "b c oh ow"]:
    """Crop to boxes (top, left, height, width), resize to `size` (the input's), antialiased; mirror by `flip`."""
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
    """Pull each image towards (factor < 1) or away from its gray version."""
    return torch.lerp(_luma(x), x, factor[:, None, None, None]).clamp_(0, 1)


def adjust_hue(x: Float[Tensor, "b 3 h w"], shift: Float[Tensor, " b"]) -> Tensor:
    """Turn each image's hue by `shift` of the color circle (−0.5 … 0.5). Largest and smallest channel stay; with hue H
    in sixths, channel n ∈ {5, 3, 1} becomes max − chroma · clamp(min(k, 4 − k), 0, 1), k = (n + H) mod 6: the usual
    piecewise HSV → RGB."""
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
    """Every channel becomes the luminance."""
    return _luma(x).expand_as(x)


def gaussian_blur(
    x: Float[Tensor, "b c h w"], sigma: Float[Tensor, " b"], kernel: int | None = None
) -> Float[Tensor, "b c h w"]:
    """Blur each image with its own `sigma` (pixels), reflecting at the borders.

    `kernel`: odd width in pixels; by default a tenth of the smaller side, at least 3."""
    h, w = x.shape[-2:]
    kernel = kernel or max(3, min(h, w) // 10 | 1)
    at = torch.arange(kernel, device=x.device) - kernel // 2
    weight = torch.exp(-0.5 * (at / sigma[:, None]) ** 2)  # (b, k)
    weight = weight / weight.sum(1, keepdim=True)
    return _separable(x, _band(weight, h), _band(weight, w))


def solarize(x: Float[Tensor, "b c h w"], above: Float[Tensor, " b"]) -> Tensor:
    """Invert what is as bright as each image's `above` (0 to 1), or brighter."""
    return torch.where(x >= above[:, None, None, None], 1 - x, x)


def rotate(x: Float[Tensor, "b c h w"], degrees: Float[Tensor, " b"]) -> Float[Tensor, "b c h w"]:
    """Turn each image counter-clockwise about its center, bilinear, black outside."""
    h, w = x.shape[-2:]
    rad = degrees * (math.pi / 180)
    cos, sin, zero = rad.cos(), rad.sin(), torch.zeros_like(rad)
    # from output to input, in grid coordinates that run from -1 to 1 along either axis
    theta = torch.stack([cos, -sin * h / w, zero, sin * w / h, cos, zero], dim=1).view(-1, 2, 3)
    grid = F.affine_grid(theta, list(x.shape), align_corners=False)
    return F.grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=False)


def sobel(x: Float[Tensor, "b c h w"]) -> Float[Tensor, "b c h w"]:
    """Edges: the gradient magnitude of the luminance (Sobel kernels over 4), in every channel."""
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
    """(b, 1, h, w): weighted channels of a color image, the mean of any other."""
    if x.shape[1] != 3:
        return x.mean(1, keepdim=True)
    r, g, b = x.unbind(1)
    return (GRAY[0] * r + GRAY[1] * g + GRAY[2] * b)[:, None]


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
