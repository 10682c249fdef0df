"""Sentences for what cannot be compared: what was given, what is expected, which builder to use."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

__all__ = ["check_labels", "check_pairs", "check_rows", "describe", "how_to_build"]

BUILDERS = {
    2: "pairs.from_labels(z, labels) takes rows (n, d)",
    3: "pairs.from_views(z) takes views (images, views, d)",
}


def describe(x: Any) -> str:
    """What `x` is, with its shape where it has one."""
    if isinstance(x, Tensor):
        return f"a tensor of shape {tuple(x.shape)}"
    if hasattr(x, "__array__") and hasattr(x, "shape"):
        return f"a {type(x).__module__} array of shape {tuple(x.shape)}"
    return f"a {type(x).__name__}"


def how_to_build(*arguments: Any) -> str:
    """Why these are no pairs, and which builder makes pairs of them."""
    if len(arguments) > 1:
        hint = (
            "two views of the same images: pairs.from_views(torch.stack([a, b], 1)); "
            "a list of pairs: pairs.from_pairs(a, b, same)"
        )
    else:
        ndim = getattr(arguments[0], "ndim", None)
        hint = BUILDERS.get(ndim, "; ".join(BUILDERS.values()))  # type: ignore[arg-type]
    got = " and ".join(describe(x) for x in arguments)
    return f"a loss takes Pairs, which say who is compared with whom; got {got}: {hint}"


def check_rows(name: str, z: Any, shape: str) -> None:
    """Raise when `z` is no floating-point tensor of as many dimensions as `shape` names."""
    if not isinstance(z, Tensor):
        hint = ": torch.from_numpy makes one" if hasattr(z, "__array__") else ""
        raise TypeError(f"{name} must be a torch tensor {shape}; got {describe(z)}{hint}")
    if z.ndim != shape.count(",") + 1:
        hint = f": {BUILDERS[z.ndim]}" if name == "z" and z.ndim in BUILDERS else ""
        raise ValueError(f"{name} must be {shape}; got shape {tuple(z.shape)}{hint}")
    if not z.is_floating_point():
        raise ValueError(f"{name} must hold floating-point numbers; got {z.dtype}")


def check_labels(name: str, labels: Any, n: int, each: str) -> None:
    """Raise when `labels` are not n whole numbers, one for `each`."""
    if not isinstance(labels, Tensor):
        raise TypeError(
            f"{name} must be a torch tensor ({n},); got {describe(labels)}: "
            "torch.as_tensor makes one"
        )
    if labels.shape != (n,):
        raise ValueError(f"{name} must be ({n},), one per {each}; got shape {tuple(labels.shape)}")
    if labels.is_floating_point() or labels.is_complex():
        raise ValueError(f"{name} must be whole numbers, -1 for none; got {labels.dtype}")


def check_pairs(a: Any, c: Any, anchor_ids: list[Tensor], candidate_ids: list[Tensor]) -> None:
    """Raise when anchors and candidates cannot be compared, or an id is missing."""
    if _fit(a, c, anchor_ids, candidate_ids):  # nearly always, and at every step of training
        return
    check_rows("anchors", a, "(n, d)")
    check_rows("candidates", c, "(m, d)")
    if a.shape[1] != c.shape[1]:
        raise ValueError(
            "anchors and candidates must be equally wide; got "
            f"{tuple(a.shape)} and {tuple(c.shape)}"
        )
    if a.dtype != c.dtype and torch.float64 in (a.dtype, c.dtype):
        raise ValueError(
            f"anchors are {a.dtype} and candidates {c.dtype}: make them one, as by z.float()"
        )
    if a.device != c.device:
        raise ValueError(f"anchors are on {a.device} and candidates on {c.device}: move one")
    for name, ids, n in (("anchor", anchor_ids, len(a)), ("candidate", candidate_ids, len(c))):
        for x in ids:
            if x.shape != (n,):
                raise ValueError(f"{name} ids must be ({n},); got shape {tuple(x.shape)}")


def _fit(a: Any, c: Any, anchor_ids: list[Tensor], candidate_ids: list[Tensor]) -> bool:
    if not (isinstance(a, Tensor) and isinstance(c, Tensor) and a.ndim == 2 and c.ndim == 2):
        return False
    (n, d), (m, width) = a.shape, c.shape
    return (
        d == width
        and a.dtype == c.dtype
        and a.device == c.device
        and a.is_floating_point()
        and all(x.shape == (n,) for x in anchor_ids)
        and all(x.shape == (m,) for x in candidate_ids)
    )
