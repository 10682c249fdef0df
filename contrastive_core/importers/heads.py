"""Projection heads of checkpoints from elsewhere, brought to the form of ours.

Ours is linear, or linear, ReLU, linear, all with biases. Others put batch norm behind a linear
layer, or leave its bias out. In evaluation a batch norm is a scale and a shift of each number, so
that it and the linear layer before it are one linear layer: it is folded in, exactly.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from contrastive_core.messages import N_, message

__all__ = ["Fold", "Head", "fold", "match_head"]

Shapes = Mapping[str, tuple[int, ...]]
Knobs = dict[str, Any]  # settings of an encoder or a head, by name
EPS = 1e-5  # of PyTorch's batch norm, which none of the projects changes


@dataclass(frozen=True)
class Fold:
    """A linear layer without a bias, or with a batch norm behind it ("" for none), by the starts of
    their tensors' names."""

    linear: str
    norm: str = ""


@dataclass(frozen=True)
class Head:
    """`settings` of our head, `keys` from ours to the file's (those of a fold included), and a
    sentence about what was done or left out."""

    settings: Knobs
    keys: dict[str, str]
    folds: tuple[Fold, ...] = ()
    note: str = ""


NONE = Head({"head": "none"}, {})


def match_head(shapes: Shapes, prefixes: Sequence[str]) -> Head:
    """The head whose tensors lie under the first of `prefixes` that has any."""
    for prefix in prefixes:
        names = {k.removeprefix(prefix) for k in shapes if k.startswith(prefix)}
        if not names:
            continue
        if names <= {"weight", "bias"}:
            layers: list[tuple[str, str]] | None = [(prefix, "")]
        else:
            layers = _layers(names, prefix, shapes)
        if layers is None or not _fit(layers, shapes):
            some = ", ".join(sorted(names)[:4])
            note = message(
                "its projection head ({prefix}: {some}, …) is of a form that is not known here and is left out: z is h",
                prefix=prefix,
                some=some,
            )
            return replace(NONE, note=note)
        return _head(layers, shapes)
    return NONE


def _layers(names: set[str], prefix: str, shapes: Shapes) -> list[tuple[str, str]] | None:
    """Starts of each linear layer's and its batch norm's names, in order, with an activation, which
    has no tensors, before the second; None for any other sequence."""
    numbers = sorted({int(n.split(".")[0]) for n in names if re.match(r"\d+\.\w+$", n)})
    if any(not re.match(r"\d+\.\w+$", n) for n in names) or not numbers:
        return None
    layers: list[tuple[str, str]] = []
    for number in numbers:
        start = f"{number}."
        is_norm = f"{start}running_mean" in names
        if not is_norm and len(shapes.get(f"{prefix}{start}weight", ())) == 2:
            layers.append((prefix + start, ""))
        elif is_norm and layers and not layers[-1][1] and number - 1 in numbers:
            layers[-1] = (layers[-1][0], prefix + start)
        else:
            return None
    expected: list[int] = []
    for i, (_, norm) in enumerate(layers):
        at = expected[-1] + 2 if i else numbers[0]
        expected += [at, at + 1] if norm else [at]
    return layers if expected == numbers and numbers[0] == 0 and len(layers) <= 2 else None


def _fit(layers: list[tuple[str, str]], shapes: Shapes) -> bool:
    """Whether every tensor has the shape that its place asks for."""
    width = None
    for linear, norm in layers:
        weight = shapes.get(f"{linear}weight", ())
        if len(weight) != 2 or width not in (None, weight[1]):
            return False
        width = weight[0]
        sides = [f"{linear}bias"]
        sides += [f"{norm}{k}" for k in ("weight", "bias", "running_mean", "running_var") if norm]
        if any(shapes.get(side, (width,)) != (width,) for side in sides):
            return False
        if norm and f"{norm}running_var" not in shapes:
            return False
    return True


def _head(layers: list[tuple[str, str]], shapes: Shapes) -> Head:
    keys: dict[str, str] = {}
    folds = []
    for i, (linear, norm) in enumerate(layers):
        keys |= {f"head.layers.{2 * i}.{k}": f"{linear}{k}" for k in ("weight", "bias")}
        if norm or f"{linear}bias" not in shapes:
            folds.append(Fold(linear, norm))
    dim = shapes[f"{layers[-1][0]}weight"][0]
    settings: Knobs = {"head": "linear", "dim": dim}
    if len(layers) == 2:
        hidden = shapes[f"{layers[0][0]}weight"][0]
        settings = {"head": "nonlinear", "dim": dim, "hidden": hidden}
    note = N_("the batch norm of its head is folded into the linear layers, as it is in evaluation")
    return Head(settings, keys, tuple(folds), note if any(f.norm for f in folds) else "")


def fold(tensors: dict[str, Tensor], folds: Sequence[Fold]) -> dict[str, Tensor]:
    """The tensors with every fold's weight and bias replaced by those of the two layers in one."""
    folded = dict(tensors)
    for layer in folds:
        weight = tensors[f"{layer.linear}weight"].double()  # (out, in)
        bias = tensors.get(f"{layer.linear}bias", torch.zeros(len(weight))).double()  # (out)
        if layer.norm:
            about = {k: tensors.get(f"{layer.norm}{k}") for k in ("weight", "bias")}
            scale = (tensors[f"{layer.norm}running_var"].double() + EPS).rsqrt()  # (out)
            scale = scale if about["weight"] is None else scale * about["weight"].double()
            weight = weight * scale[:, None]
            bias = (bias - tensors[f"{layer.norm}running_mean"].double()) * scale
            bias = bias if about["bias"] is None else bias + about["bias"].double()
        folded[f"{layer.linear}weight"], folded[f"{layer.linear}bias"] = weight, bias
    return folded
