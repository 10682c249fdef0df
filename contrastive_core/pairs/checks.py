"""Sentences for what cannot be compared: what was given, what is expected, which builder to use."""

from typing import Any

import torch
from torch import Tensor

from contrastive_core.messages import N_, message

__all__ = ["check_labels", "check_pairs", "check_rows", "check_towers", "describe", "how_to_build"]

BUILDERS = {
    2: N_("pairs.from_labels(z, labels) takes rows (n, d)"),
    3: N_("pairs.from_views(z) takes views (images, views, d)"),
}


def describe(x: Any) -> str:
    """What `x` is, with its shape where it has one."""
    if isinstance(x, Tensor):
        return message("a tensor of shape {shape}", shape=tuple(x.shape))
    if hasattr(x, "__array__") and hasattr(x, "shape"):
        return message("a {module} array of shape {shape}", module=type(x).__module__, shape=tuple(x.shape))
    return f"a {type(x).__name__}"


def how_to_build(*arguments: Any) -> str:
    """Why these are no pairs, and which builder makes pairs of them."""
    if len(arguments) > 1:
        hint = N_(
            "two views of the same images: pairs.from_views(torch.stack([a, b], 1)); a list of "
            "pairs: pairs.from_pairs(a, b, same); two encoders: pairs.from_towers(a, b)"
        )
    else:
        ndim = getattr(arguments[0], "ndim", None)
        hint = BUILDERS.get(ndim, "; ".join(BUILDERS.values()))  # type: ignore[arg-type]
    got = " and ".join(describe(x) for x in arguments)
    return message("a loss takes Pairs; got {got}: {hint}", got=got, hint=hint)


def check_rows(name: str, z: Any, shape: str) -> None:
    """Raise when `z` is no floating-point tensor of as many dimensions as `shape` names."""
    if not isinstance(z, Tensor):
        hint = N_(": torch.from_numpy makes one") if hasattr(z, "__array__") else ""
        values: dict[str, object] = {"name": name, "shape": shape, "z": describe(z), "hint": hint}
        raise TypeError(message("{name} must be a torch tensor {shape}; got {z}{hint}", **values))
    if z.ndim != shape.count(",") + 1:
        hint = f": {BUILDERS[z.ndim]}" if name == "z" and z.ndim in BUILDERS else ""
        raise ValueError(
            message(
                "{name} must be {shape}; got shape {z_shape}{hint}",
                name=name,
                shape=shape,
                z_shape=tuple(z.shape),
                hint=hint,
            )
        )
    if not z.is_floating_point():
        raise ValueError(message("{name} must hold floating-point numbers; got {dtype}", name=name, dtype=z.dtype))


def check_labels(name: str, labels: Any, n: int, each: str) -> None:
    """Raise when `labels` are not n whole numbers, one for `each`."""
    if not isinstance(labels, Tensor):
        values = {"name": name, "n": n, "labels": describe(labels)}
        raise TypeError(
            message("{name} must be a torch tensor ({n},); got {labels}: torch.as_tensor makes one", **values)
        )
    if labels.shape != (n,):
        values = {"name": name, "n": n, "each": each, "shape": tuple(labels.shape)}
        raise ValueError(message("{name} must be ({n},), one per {each}; got shape {shape}", **values))
    if labels.is_floating_point() or labels.is_complex():
        values = {"name": name, "dtype": labels.dtype}
        raise ValueError(message("{name} must be whole numbers, -1 for none; got {dtype}", **values))


def check_towers(a: Any, b: Any, groups_a: Any, groups_b: Any) -> None:
    """Raise when the rows of two towers cannot be compared, or nothing says which belong together."""
    check_rows("a", a, "(n, d)")
    check_rows("b", b, "(m, d)")
    shapes = {"a": tuple(a.shape), "b": tuple(b.shape)}
    if a.shape[1] != b.shape[1]:
        raise ValueError(message("the two towers must be equally wide; got {a} and {b}", **shapes))
    if a.dtype != b.dtype:
        types = {"a": a.dtype, "b": b.dtype}
        raise ValueError(message("the two towers are {a} and {b}: make them one, as by z.float()", **types))
    if a.device != b.device:
        devices = {"a": a.device, "b": b.device}
        raise ValueError(message("the two towers are on {a} and {b}: move one", **devices))
    if (groups_a is None) != (groups_b is None):
        raise ValueError(N_("groups_a and groups_b must be given together"))
    if groups_a is None and len(a) != len(b):
        raise ValueError(
            message("towers of {a} and {b} rows need groups_a and groups_b: which rows belong together", **shapes)
        )


def check_pairs(a: Any, c: Any, anchor_ids: list[Tensor], candidate_ids: list[Tensor]) -> None:
    """Raise when anchors and candidates cannot be compared, or an id is missing."""
    check_rows("anchors", a, "(n, d)")
    check_rows("candidates", c, "(m, d)")
    if a.shape[1] != c.shape[1]:
        shapes = {"shape": tuple(a.shape), "c_shape": tuple(c.shape)}
        raise ValueError(message("anchors and candidates must be equally wide; got {shape} and {c_shape}", **shapes))
    if a.dtype != c.dtype and torch.float64 in (a.dtype, c.dtype):
        types = {"dtype": a.dtype, "c_dtype": c.dtype}
        raise ValueError(
            message("anchors are {dtype} and candidates {c_dtype}: make them one, as by z.float()", **types)
        )
    if a.device != c.device:
        devices = {"device": a.device, "c_device": c.device}
        raise ValueError(message("anchors are on {device} and candidates on {c_device}: move one", **devices))
    for name, ids, n in (("anchor", anchor_ids, len(a)), ("candidate", candidate_ids, len(c))):
        for x in ids:
            if x.shape != (n,):
                values = {"name": name, "n": n, "shape": tuple(x.shape)}
                raise ValueError(message("{name} ids must be ({n},); got shape {shape}", **values))
