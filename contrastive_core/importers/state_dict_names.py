"""Whose checkpoint is it, and which of its tensors is which of ours? Told from names and shapes.

Formats (the code that writes them was read): MoCo `module.encoder_q.`, SupContrast `encoder.` and
`head.` with `shortcut`, SimCLR by sthalles `backbone.` with `backbone.fc.0`, lightly `backbone.`
often as a numbered Sequential, solo-learn `backbone.` with `projector.`, torchvision and timm
without a prefix.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from contrastive_core.errors import NotRecognized

__all__ = ["Found", "recognize"]

Shapes = Mapping[str, tuple[int, ...]]

OWN = "encoder.body."
PREFIXES = (
    "module.encoder_q.",
    "encoder_q.",
    "encoder.module.",
    "module.encoder.",
    OWN,
    "encoder.",
    "module.backbone.",
    "backbone.",
    "module.",
    "model.",
    "",
)
STEMS = ("conv1.weight", "0.weight", "patch_embed.proj.weight")
DEPTHS: dict[
    tuple[tuple[int, ...], bool], str
] = {  # blocks of each stage, and whether they are bottlenecks
    ((2, 2, 2, 2), False): "resnet18",
    ((3, 4, 6, 3), False): "resnet34",
    ((3, 4, 6, 3), True): "resnet50",
    ((3, 4, 23, 3), True): "timm:resnet101",
    ((3, 8, 36, 3), True): "timm:resnet152",
}
VITS = {192: "tiny", 384: "small", 768: "base", 1024: "large"}


@dataclass(frozen=True)
class Found:
    """A recognized checkpoint. `keys` maps our encoder's and head's keys to the file's."""

    kind: str  # in words
    method: str
    encoder: str
    encoder_knobs: dict[str, Any]
    channels: int
    keys: dict[str, str]
    head: dict[str, Any] = field(default_factory=lambda: {"head": "none"})
    notes: tuple[str, ...] = ()


def recognize(shapes: Shapes, top: Sequence[str] = (), encoder: str | None = None) -> Found:
    """What a checkpoint is.

    Args: shapes: of its tensors by name; top: names at the file's top level; encoder: one of
        `create_encoder`'s names, where it cannot be told from the tensors.
    Raises: NotRecognized.
    """
    prefix = next((p for p in PREFIXES if any(p + s in shapes for s in STEMS)), None)
    if prefix is None and encoder is None:
        raise NotRecognized(f"no encoder is recognized in it; its names: {_some(shapes)}")
    prefix = prefix or ""
    names = _renamed([k.removeprefix(prefix) for k in shapes if k.startswith(prefix)], prefix)
    own = {n: shapes[prefix + k] for n, k in names.items()}
    name, knobs, channels = _architecture(own, encoder, shapes)
    kind, method, heads = _kind(shapes, top, prefix)
    head, head_keys = _head(shapes, heads)
    if head["head"] == "linear" and method == "moco_v2":
        method = "moco_v1"
    keys = {f"encoder.body.{n}": prefix + k for n, k in names.items()} | head_keys
    return Found(kind, method, name, _colors(kind, knobs), channels, keys, head, _notes(kind))


def _renamed(names: list[str], prefix: str) -> dict[str, str]:
    """Names as torchvision's ResNet has them, to the file's (without prefix)."""
    stages = sorted({int(n.split(".")[0]) for n in names if re.match(r"\d+\.\d+\.conv1\.", n)})
    table = {"0": "conv1", "1": "bn1"} | {str(s): f"layer{i}" for i, s in enumerate(stages, 1)}
    found = {}
    for name in names:
        first, dot, rest = name.partition(".")
        first = table.get(first, first) if stages and prefix != OWN else first
        found[f"{first}{dot}{rest}".replace(".shortcut.", ".downsample.")] = name
    return found


def _architecture(
    own: Shapes, encoder: str | None, shapes: Shapes
) -> tuple[str, dict[str, Any], int]:
    """Encoder name, its knobs, and the images' channels."""
    stem = own.get("conv1.weight") or own.get("0.weight") or own.get("patch_embed.proj.weight")
    channels = stem[1] if stem and len(stem) == 4 else 3
    if encoder is not None:
        return encoder, {}, channels
    if not stem or len(stem) != 4:
        raise NotRecognized(
            f"its first layer is no convolution of images; its names: {_some(shapes)}"
        )
    if "patch_embed.proj.weight" in own:
        return _vit(own, stem), {"pixels": _pixels(own, stem)}, channels
    if "conv1.weight" not in own:  # ours
        return "small", {"width": stem[0] / 16}, channels
    counts = tuple(
        len({n.split(".")[1] for n in own if n.startswith(f"layer{i}.")}) for i in (1, 2, 3, 4)
    )
    found = DEPTHS.get((counts, "layer1.0.conv3.weight" in own))
    if found is None or stem[0] != 64 or stem[2] not in (3, 7):
        raise NotRecognized(
            f"its encoder is no ResNet that is known (blocks {counts}, stem {stem}); its names: "
            f"{_some(shapes)}. Name it with --encoder timm:NAME if it is one of timm's"
        )
    knobs = {} if found.startswith("timm:") else {"stem": "small" if stem[2] == 3 else "imagenet"}
    return found, knobs, channels


def _vit(own: Shapes, stem: tuple[int, ...]) -> str:
    size = VITS.get(stem[0])
    if size is None or "pos_embed" not in own:
        raise NotRecognized(f"its vision transformer (stem {stem}) is not known: give --encoder")
    return f"timm:vit_{size}_patch{stem[2]}_{_pixels(own, stem)}"


def _pixels(own: Shapes, stem: tuple[int, ...]) -> int:
    return round((own["pos_embed"][1] - 1) ** 0.5) * stem[2] if "pos_embed" in own else 224


def _kind(shapes: Shapes, top: Sequence[str], prefix: str) -> tuple[str, str, tuple[str, ...]]:
    """Whose it is in words, our method that is nearest, and where its head's tensors lie."""
    starts = {k.removeprefix("module.").split(".")[0] for k in shapes}
    if prefix == OWN:
        return "Contrastive Lab", "simclr", ("head.layers.",)
    if "encoder_q" in starts:
        return "MoCo", "moco_v2", (f"{prefix}fc.",)
    if prefix.endswith(("encoder.", "encoder.module.")) and "head" in starts:
        return "SupContrast", "sup_con", ("head.", "head.module.", "module.head.")
    lightning = "pytorch-lightning_version" in top
    if starts & {"projector", "momentum_projector", "momentum_backbone"}:
        return "solo-learn", _momentum(starts), ("projector.",)
    if "projection_head" in starts:
        return "lightly", _momentum(starts), ("projection_head.layers.",)
    if prefix.endswith("backbone.") and f"{prefix}fc.0.weight" in shapes:
        return "SimCLR by sthalles", "simclr", (f"{prefix}fc.",)
    if lightning:
        return "a Lightning checkpoint", "simclr", ()
    return "a state dict of torchvision or timm", "simclr", ()


def _momentum(starts: set[str]) -> str:
    return "moco_v2" if starts & {"momentum_backbone", "backbone_momentum"} else "simclr"


def _head(shapes: Shapes, heads: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, str]]:
    """Settings of the head, if it is linear or an MLP of two layers, and its keys."""
    for prefix in heads:
        names = {k.removeprefix(prefix) for k in shapes if k.startswith(prefix)}
        one, two = {"weight", "bias"}, {"0.weight", "0.bias", "2.weight", "2.bias"}
        if names in (one, {"0.weight", "0.bias"}):
            first = "" if names == one else "0."
            dim = shapes[f"{prefix}{first}weight"][0]
            keys = {f"head.layers.0.{k}": f"{prefix}{first}{k}" for k in ("weight", "bias")}
            return {"head": "linear", "dim": dim}, keys
        if names == two:
            hidden, dim = shapes[f"{prefix}0.weight"][0], shapes[f"{prefix}2.weight"][0]
            keys = {f"head.layers.{k}": prefix + k for k in sorted(two)}
            return {"head": "nonlinear", "dim": dim, "hidden": hidden}, keys
    return {"head": "none"}, {}


def _colors(kind: str, knobs: dict[str, Any]) -> dict[str, Any]:
    """How the images were scaled where the encoder was trained; ours needs no word."""
    if kind == "Contrastive Lab":
        return knobs
    if kind == "SimCLR by sthalles":
        return {**knobs, "colors": "none"}
    small = knobs.get("stem") == "small" and kind in ("SupContrast", "solo-learn")
    return {**knobs, "colors": "cifar10" if small else "imagenet"}


def _notes(kind: str) -> tuple[str, ...]:
    if kind == "solo-learn":
        return ("solo-learn pads the small stem by 2 pixels; here it is padded by 1",)
    return ()


def _some(shapes: Shapes) -> str:
    return ", ".join(repr(k[:60]) for k in list(shapes)[:4]) + (", …" if len(shapes) > 4 else "")
