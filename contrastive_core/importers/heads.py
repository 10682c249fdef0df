"""Projection heads of checkpoints from elsewhere, brought to the form of ours.

Ours is linear, or linear, ReLU, linear, all with biases. Others put batch norm behind a linear
layer, or leave its bias out. In evaluation a batch norm is a scale and a shift of each number, so
that it and the linear layer before it are one linear layer: it is folded in, exactly.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from contrastive_core.messages import N_, message

Shapes = Mapping[str, tuple[int, ...]]
Knobs = dict[str, Any]  # settings of an encoder or a head, by name
EPS = 1e-5  # of PyTorch's batch norm, which none of the projects changes
FORM = re.compile(r"LB?(\.LB?)?")  # linear, batch norm, and an activation, which has no tensors, before the second
LARGEST = 9  # number of a layer


@dataclass(frozen=True)
class Fold:
    """A linear layer without a bias, or with a batch norm behind it ('' for none), by the starts of tensor names."""

    linear: str
    norm: str = ""


@dataclass(frozen=True)
class Head:
    """`settings` of our head, `keys` from ours to the file's (also of folds), and a note on what was done."""

    settings: Knobs
    keys: dict[str, str]
    folds: tuple[Fold, ...] = ()
    note: str = ""


NONE = Head({"head": "none"}, {})


def match_head(shapes: Shapes, prefixes: Sequence[str]) -> Head:
    """Return the head of the first of `prefixes` that has tensors."""
    for prefix in prefixes:
        names = {k.removeprefix(prefix) for k in shapes if k.startswith(prefix)}
        if not names:
            continue
        layers = [Fold(prefix)] if names <= {"weight", "bias"} else _layers(names, prefix, shapes)
        if layers and _fit(layers, shapes):
            return _head(layers, shapes)
        note = message(
            "its projection head ({prefix}: {some}, …) has an unknown structure and is left out: z is h",
            prefix=prefix,
            some=", ".join(sorted(names)[:4]),
        )
        return replace(NONE, note=note)
    return NONE


def _layers(names: set[str], prefix: str, shapes: Shapes) -> list[Fold]:
    """Each linear layer with its batch norm, in order; [] for any other sequence."""
    numbered = [re.fullmatch(r"(\d{1,3})\.\w+", name) for name in names]
    numbers = {int(match[1]) for match in numbered if match}
    if not all(numbered) or max(numbers) > LARGEST:
        return []

    def letter(number: int) -> str:
        if f"{number}.running_mean" in names:
            return "B"
        is_linear = len(shapes.get(f"{prefix}{number}.weight", ())) == 2
        return "L" if is_linear else "?" if number in numbers else "."

    form = "".join(map(letter, range(max(numbers) + 1)))
    if not FORM.fullmatch(form):
        return []
    found = re.finditer("L(B?)", form)
    return [Fold(f"{prefix}{m.start()}.", f"{prefix}{m.start() + 1}." if m[1] else "") for m in found]


def _fit(layers: Sequence[Fold], shapes: Shapes) -> bool:
    """Whether every tensor has the shape that its place asks for."""
    width = None
    for layer in layers:
        weight = shapes.get(f"{layer.linear}weight", ())
        if len(weight) != 2 or width not in (None, weight[1]):
            return False
        width = weight[0]
        sides = [f"{layer.linear}bias"]
        sides += [f"{layer.norm}{k}" for k in ("weight", "bias", "running_mean", "running_var") if layer.norm]
        if any(shapes.get(side, (width,)) != (width,) for side in sides):
            return False
        if layer.norm and f"{layer.norm}running_var" not in shapes:
            return False
    return True


def _head(layers: Sequence[Fold], shapes: Shapes) -> Head:
    keys = {
        f"head.layers.{2 * i}.{k}": f"{layer.linear}{k}" for i, layer in enumerate(layers) for k in ("weight", "bias")
    }
    folds = tuple(layer for layer in layers if layer.norm or f"{layer.linear}bias" not in shapes)
    widths = [shapes[f"{layer.linear}weight"][0] for layer in layers]
    settings: Knobs = {"head": "linear", "dim": widths[-1]}
    if len(layers) == 2:
        settings = {"head": "nonlinear", "dim": widths[-1], "hidden": widths[0]}
    note = N_("the batch norm of its head is folded into the linear layers, as in evaluation mode")
    return Head(settings, keys, folds, note if any(layer.norm for layer in layers) else "")


def fold(tensors: dict[str, Tensor], folds: Sequence[Fold]) -> dict[str, Tensor]:
    """The tensors with every fold's weight and bias replaced by those of the two layers in one."""
    folded = dict(tensors)
    for layer in folds:
        weight = tensors[f"{layer.linear}weight"].double()  # (out, in)
        bias = tensors.get(f"{layer.linear}bias", torch.zeros(len(weight))).double()  # (out)
        if layer.norm:
            mean, variance = (tensors[f"{layer.norm}running_{k}"].double() for k in ("mean", "var"))  # (out)
            scale = tensors.get(f"{layer.norm}weight", torch.ones(len(weight))).double()
            shift = tensors.get(f"{layer.norm}bias", torch.zeros(len(weight))).double()
            scale = (variance + EPS).rsqrt() * scale
            weight, bias = weight * scale[:, None], (bias - mean) * scale + shift
        folded[f"{layer.linear}weight"], folded[f"{layer.linear}bias"] = weight, bias
    return folded
