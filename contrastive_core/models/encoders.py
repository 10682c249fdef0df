"""Backbones and heads. Every backbone maps images (b, c, h, w) in [0, 1] to h (b, out_dim).

`small` is made for 8 to 64 pixels and a CPU (0.28 M parameters; its field of view, 41 pixels,
covers a 32-pixel image). torchvision's ResNets have the stem of their papers' ImageNet or small
images; any name of timm, if it is installed, is `timm:NAME`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["ProjectionHead", "SplitBatchNorm", "create_encoder", "encoder_names"]

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


def encoder_names() -> list[str]:
    """Names that `create_encoder` takes, besides `timm:NAME`."""
    return ["small", *RESNETS]


def create_encoder(name: str, channels: int, image_size: int, **knobs: Any) -> nn.Module:
    """A backbone with `.out_dim`.

    Args:
        name: one of `encoder_names()`, or `timm:NAME`.
        channels: of the images; image_size: their height in pixels.
        knobs: `width` (a factor, small), `stem` (one of STEMS, ResNets), and for all:
            `colors`, one of COLORS; `pixels`, to which images are brought first (0: as they are).
    Raises: ValueError for an unknown name or knob, or images too small.
    """
    scale = {"colors": knobs.pop("colors", "plain"), "pixels": int(knobs.pop("pixels", 0))}
    image_size = scale["pixels"] or image_size
    if name == "small":
        return _Encoder(*_small(channels, image_size, **_only(knobs, name, "width")), **scale)
    if name in RESNETS:
        return _Encoder(*_resnet(name, channels, image_size, **_only(knobs, name, "stem")), **scale)
    if name.startswith("timm:"):
        return _Encoder(*_timm(name.removeprefix("timm:"), channels, **_only(knobs, name)), **scale)
    choices = ", ".join(encoder_names())
    raise ValueError(f"unknown encoder {name!r}; known: {choices}, timm:NAME")


class _Encoder(nn.Module):
    """A backbone behind the scaling of its input."""

    def __init__(
        self, body: nn.Module, out_dim: int, colors: str = "plain", pixels: int = 0
    ) -> None:
        super().__init__()
        if colors not in COLORS:
            raise ValueError(f"colors must be one of {', '.join(COLORS)}; got {colors!r}")
        self.body, self.out_dim, self.colors, self.pixels = body, out_dim, colors, pixels

    def forward(self, images: Tensor) -> Tensor:
        if self.pixels and self.pixels != images.shape[-1]:
            side = (self.pixels, self.pixels)
            images = nn.functional.interpolate(images, side, mode="bilinear", antialias=True)
        mean, deviation = COLORS[self.colors]
        if len(mean) == 1:
            x = (images - mean[0]) / deviation[0]
        else:
            shape = (-1, 1, 1)
            x = (images - images.new_tensor(mean).view(shape)) / images.new_tensor(deviation).view(
                shape
            )
        return self.body(x.contiguous(memory_format=torch.channels_last))


def _small(channels: int, size: int, width: float = 1.0) -> tuple[nn.Module, int]:
    if size < 4:
        raise ValueError(f"images of {size} pixels are too small; at least 4 are needed")
    w = [max(4, round(width * k)) for k in (16, 32, 64, 64, 128, 128)]
    strides = (1, 2, 2, 1, 2, 1) if size >= 16 else (1, 1, 2, 1, 2, 1)
    layers: list[nn.Module] = []
    for c_in, c_out, stride in zip([channels, *w], w, strides, strict=False):
        layers += [
            nn.Conv2d(c_in, c_out, 3, stride, 1, bias=False),
            nn.BatchNorm2d(c_out),
            nn.ReLU(inplace=True),
        ]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten()), w[-1]


def _resnet(name: str, channels: int, size: int, stem: str = "") -> tuple[nn.Module, int]:
    import torchvision.models as models

    stem = stem or ("small" if size <= 64 else "imagenet")
    if stem not in STEMS:
        raise ValueError(f"stem must be one of {', '.join(STEMS)}; got {stem!r}")
    net = getattr(models, name)(weights=None)
    out_dim = net.fc.in_features
    net.fc = nn.Identity()
    if stem != "imagenet":  # SimCLR's for CIFAR: 3×3, no stride, no pooling; solo-learn pads by 2
        net.conv1 = nn.Conv2d(channels, 64, 3, 1, 2 if stem == "padded" else 1, bias=False)
        net.maxpool = nn.Identity()
    elif channels != 3:
        net.conv1 = nn.Conv2d(channels, 64, 7, 2, 3, bias=False)
    return net, out_dim


def _timm(name: str, channels: int) -> tuple[nn.Module, int]:
    try:
        import timm
    except ImportError:
        raise ValueError(
            "timm is not installed: pip install timm, or choose another encoder"
        ) from None
    if not timm.is_model(name):
        raise ValueError(f"timm has no model {name!r}; timm.list_models() lists them")
    net = timm.create_model(name, pretrained=False, num_classes=0, in_chans=channels)
    return net, net.num_features


def _only(knobs: dict[str, Any], name: str, *allowed: str) -> dict[str, Any]:
    for key in knobs:
        if key not in allowed:
            has = ", ".join((*allowed, "colors", "pixels"))
            raise ValueError(f"encoder {name!r} has no setting {key!r}; it has: {has}")
    return knobs


class ProjectionHead(nn.Module):
    """From h (b, in_dim) to z (b, out_dim): none, linear, or an MLP of `depth` layers.

    Hidden layers are linear, BatchNorm if `batch_norm`, ReLU. With kind "none" z is h.
    Raises: ValueError for another kind.
    """

    def __init__(
        self,
        kind: str,
        in_dim: int,
        out_dim: int = 128,
        hidden: int = 256,
        depth: int = 2,
        batch_norm: bool = False,
    ) -> None:
        super().__init__()
        if kind not in HEADS:
            raise ValueError(f"head must be one of {', '.join(HEADS)}; got {kind!r}")
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
    """BatchNorm whose statistics are of parts of the batch, as if on so many GPUs (MoCo).

    Shuffling the batch gains nothing without it: the statistics of the whole batch are alike.
    """

    splits = 1

    def forward(self, input: Tensor) -> Tensor:
        n = len(input)
        if not self.training or n < 2 * self.splits:
            return super().forward(input)
        parts = [super(SplitBatchNorm, self).forward(x) for x in input.tensor_split(self.splits)]
        return torch.cat(parts)


def split_norms(module: nn.Module, splits: int) -> nn.Module:
    """Give every 2-d BatchNorm of a module `splits` parts; names and state stay the same."""
    if splits == 1:
        return module
    for name, child in module.named_children():
        if type(child) is nn.BatchNorm2d:
            other = SplitBatchNorm(child.num_features, child.eps, child.momentum)
            other.load_state_dict(child.state_dict())
            other.splits = splits
            setattr(module, name, other)
        else:
            split_norms(child, splits)
    return module
