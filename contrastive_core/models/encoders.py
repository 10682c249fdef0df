"""Backbones and projection heads. Every backbone maps images (b, c, h, w) in [0, 1] to h (b, out_dim)."""

from typing import Any

import torch
from torch import Tensor, nn

from contrastive_core.base.errors import BadSetting
from contrastive_core.base.registry import Knobs
from contrastive_core.models.libraries import LIBRARIES, create_network, fixed_pixels

RESNETS = ("resnet18", "resnet34", "resnet50")
HEADS = ("nonlinear", "linear", "none")
COLORS = {  # mean and deviation of the channels; imported encoders keep those they learned with
    "plain": ((0.5,), (0.25,)),  # of a usual image; a fixed scale needs no pass over the data
    "none": ((0.0,), (1.0,)),
    "imagenet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "cifar10": ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),
    "solo_learn": ((0.4914, 0.4822, 0.4465), (0.247, 0.243, 0.261)),  # its CIFAR-10 and CIFAR-100
}
STEMS = ("small", "padded", "imagenet")
PIXELS = 64 * 64  # of the largest images that are taken `most` at a time


def encoder_names() -> list[str]:
    """Return the names that `create_encoder` accepts, besides `torchvision:NAME` and `timm:NAME`."""
    return ["small", *RESNETS]


def create_encoder(
    name: str,
    channels: int,
    image_size: int,
    colors: Any = "plain",
    pixels: int = 0,
    gray_as_color: bool = False,
    **knobs: Any,
) -> nn.Module:
    """Return a backbone with the attribute `out_dim`, the width of its output.

    Args:
        name: one of `encoder_names()`, `torchvision:NAME` or `timm:NAME`.
        channels: of the images; image_size: their height in pixels.
        colors: one of COLORS, or the channels' means and standard deviations.
        pixels: size to which images are resized first (0: not resized, or to the only possible size).
        gray_as_color: repeat the channel of gray images three times, for an encoder of color images.
        knobs: `width` (a factor, small), `stem` (one of STEMS, ResNets).
    Raises: ValueError for an unknown name or knob, or images too small."""
    pixels = int(pixels)
    if gray_as_color and channels not in (1, 3):
        raise BadSetting("gray_as_color is for gray images; these have {channels} channels", channels=channels)
    channels = 3 if gray_as_color else channels
    if (own := len(_scale(colors)[0])) not in (1, channels):
        raise BadSetting("colors has means of {own} channels; the images have {channels}", own=own, channels=channels)
    size = pixels or image_size
    if name == "small":
        body, out_dim = _small(channels, size, **_only(knobs, name, "width"))
    elif name in RESNETS:
        stem = _only(knobs, name, "stem").get("stem") or ("small" if size <= 64 else "imagenet")
        if stem not in STEMS:
            raise BadSetting("stem must be one of {stems}; got {stem}", stems=", ".join(STEMS), stem=f"{stem!r}")
        body, out_dim = create_network(f"torchvision:{name}", channels if stem == "imagenet" else 3)
        if stem != "imagenet":  # SimCLR's for CIFAR: 3×3, no stride, no pooling; solo-learn pads by 2
            body.conv1 = nn.Conv2d(channels, 64, 3, 1, 2 if stem == "padded" else 1, bias=False)
            body.maxpool = nn.Identity()
    elif name.partition(":")[0] in LIBRARIES:
        _only(knobs, name)
        pixels = pixels or fixed_pixels(name)
        body, out_dim = create_network(name, channels, pixels)
    else:
        choices = ", ".join([*encoder_names(), *(f"{library}:NAME" for library in LIBRARIES)])
        raise BadSetting("unknown encoder {name}; known: {choices}", name=f"{name!r}", choices=choices)
    return _Encoder(body, out_dim, colors, pixels, bool(gray_as_color))


class _Encoder(nn.Module):
    """A backbone with the resizing and normalization of its input."""

    def __init__(self, body: nn.Module, out_dim: int, colors: Any, pixels: int, gray_as_color: bool) -> None:
        super().__init__()
        self.mean, self.deviation = _scale(colors)
        self.body, self.out_dim, self.colors, self.pixels = body, out_dim, colors, pixels
        self.gray_as_color = gray_as_color

    def forward(self, images: Tensor) -> Tensor:
        if self.gray_as_color and images.shape[1] == 1:
            images = images.expand(-1, 3, -1, -1)
        if self.pixels and self.pixels != images.shape[-1]:
            side = (self.pixels, self.pixels)
            images = nn.functional.interpolate(images, side, mode="bilinear", antialias=True)
        if len(self.mean) == 1:
            x = (images - self.mean[0]) / self.deviation[0]
        else:
            mean, deviation = (images.new_tensor(row).view(-1, 1, 1) for row in (self.mean, self.deviation))
            x = (images - mean) / deviation
        return self.body(x.contiguous(memory_format=torch.channels_last))


def _scale(colors: Any) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the mean and standard deviation of each channel, from one of COLORS or from two lists."""
    if isinstance(colors, str) and colors in COLORS:
        return COLORS[colors]
    try:
        mean, deviation = (tuple(float(x) for x in row) for row in colors)
        if len(mean) == len(deviation) and min(deviation) > 0:
            return mean, deviation
    except (TypeError, ValueError):
        pass
    names = ", ".join(COLORS)
    values = {"names": names, "colors": f"{colors!r}"}
    raise BadSetting("colors must be one of {names}, or means and standard deviations; got {colors}", **values)


def _small(channels: int, size: int, width: float = 1.0) -> tuple[nn.Module, int]:
    if size < 4:
        raise BadSetting("images of {size} pixels are too small; at least 4 are needed", size=size)
    w = [max(4, round(width * k)) for k in (16, 32, 64, 64, 128, 128)]
    strides = (1, 2, 2, 1, 2, 1) if size >= 16 else (1, 1, 2, 1, 2, 1)
    layers: list[nn.Module] = []
    for c_in, c_out, stride in zip([channels, *w], w, strides, strict=False):
        layers += [nn.Conv2d(c_in, c_out, 3, stride, 1, bias=False), nn.BatchNorm2d(c_out), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten()), w[-1]


def _only(knobs: Knobs, name: str, *allowed: str) -> Knobs:
    """Return the knobs if all of them are `allowed`. Raises BadSetting for others."""
    if unknown := [f"{key!r}" for key in knobs if key not in allowed]:
        has = ", ".join((*allowed, "colors", "pixels", "gray_as_color"))
        values = {"name": f"{name!r}", "key": unknown[0], "has": has}
        raise BadSetting("encoder {name} has no setting {key}; it has: {has}", **values)
    return knobs


class ProjectionHead(nn.Module):
    """Head that maps h (b, in_dim) to z (b, out_dim): none (z is h), linear, or an MLP of `depth` layers."""

    def __init__(
        self, kind: str, in_dim: int, out_dim: int = 128, hidden: int = 256, depth: int = 2, batch_norm: bool = False
    ) -> None:
        super().__init__()
        if kind not in HEADS:
            raise BadSetting("head must be one of {heads}; got {kind}", heads=", ".join(HEADS), kind=f"{kind!r}")
        self.out_dim = in_dim if kind == "none" else out_dim
        layers: list[nn.Module] = []
        width = in_dim
        for _ in range(depth - 1 if kind == "nonlinear" else 0):
            layers.append(nn.Linear(width, hidden, bias=not batch_norm))
            layers += [nn.BatchNorm1d(hidden)] if batch_norm else []
            layers.append(nn.ReLU(inplace=True))
            width = hidden
        if kind != "none":
            layers.append(nn.Linear(width, out_dim))
        self.layers = nn.Sequential(*layers)

    def forward(self, h: Tensor) -> Tensor:
        return self.layers(h)


class SplitBatchNorm(nn.BatchNorm2d):
    """BatchNorm with separate statistics for each part of the batch, as on several GPUs; for MoCo's shuffling."""

    splits = 1

    def forward(self, input: Tensor) -> Tensor:
        n = len(input)
        if not self.training or n < 2 * self.splits:
            return super().forward(input)
        parts = [super(SplitBatchNorm, self).forward(x) for x in input.tensor_split(self.splits)]
        return torch.cat(parts)


def split_norms(module: nn.Module, splits: int) -> None:
    """Replace every BatchNorm2d of a module by one with `splits` parts; names and state stay the same."""
    if splits == 1:
        return
    for name, child in module.named_children():
        if type(child) is nn.BatchNorm2d:
            other = SplitBatchNorm(child.num_features, child.eps, child.momentum)
            other.load_state_dict(child.state_dict())
            other.splits = splits
            setattr(module, name, other)
        else:
            split_norms(child, splits)


def forward_batch_size(most: int, images: Any, encoder: Any = None) -> int:
    """Return how many images (n, c, h, w) one forward pass takes: `most` up to PIXELS pixels, and for larger ones, also
    by `encoder.pixels`, the number with the same total of pixels, so memory is bounded."""
    h, w = images.shape[-2:]
    own = int(getattr(encoder, "pixels", 0))
    return max(1, most * PIXELS // max(PIXELS, h * w, own * own))
