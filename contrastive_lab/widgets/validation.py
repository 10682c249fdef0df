"""Plain arrays, tensors and lists as a user gives them, checked: each fault has its sentence."""

from collections.abc import Sequence
from typing import Any

import numpy as np


def rows_of(z: Any, least: int = 2) -> np.ndarray:
    """Rows (n, d), or views (n, v, d), as float32. Raises ValueError with the reason."""
    rows = _array(z, "z")
    if rows.ndim not in (2, 3) or rows.dtype.kind not in "fiub":
        raise ValueError(
            f"z must be numbers: rows (n, d), or views (images, views, d); got {rows.dtype} of shape {rows.shape}"
        )
    if len(rows) < least:
        raise ValueError(f"z needs at least {least} rows; got {len(rows)}")
    if not rows.shape[-1] or not rows.shape[1]:
        raise ValueError(f"z has no columns: its shape is {rows.shape}")
    with np.errstate(over="ignore"):
        rows = np.ascontiguousarray(rows, np.float32)
    bad = np.flatnonzero(~np.isfinite(rows.reshape(len(rows), -1)).all(1))
    if len(bad):
        raise ValueError(
            f"{len(bad)} of the {len(rows)} rows of z hold values that are not finite in "
            f"float32, the first is row {bad[0]}: leave them out"
        )
    return rows


def labels_of(labels: Any, n: int, classes: Sequence[str] | None = None) -> tuple[np.ndarray, tuple[str, ...]]:
    """Class (n) int64 of each row, −1 for none, and the classes' names. Args: labels: whole numbers, −1 for none; or
    names. Raises: ValueError with the reason."""
    if labels is None:
        return np.full(n, -1), ()
    given = _array(labels, "labels")
    if given.shape != (n,):
        raise ValueError(f"labels must be ({n},), one for each row; got shape {given.shape}")
    if given.dtype.kind in "USO":
        distinct, number = np.unique(given.astype(str), return_inverse=True)
        return number.astype(np.int64), tuple(distinct.tolist())
    whole = given.astype(np.int64) if np.isfinite(given).all() else np.empty(0)
    if not np.array_equal(whole, given):
        raise ValueError(f"labels must be whole numbers, -1 for none, or names; got {given.dtype}")
    count = int(whole.max(initial=-1)) + 1
    names = [str(c) for c in classes] if classes is not None else list(map(str, range(count)))
    if len(names) < count:
        raise ValueError(f"labels go up to {count - 1}, but there are {len(names)} classes")
    return whole, tuple(names)


def images_of(images: Any, n: int, views: int = 1) -> np.ndarray | None:
    """Pictures (n · views, c, h, w) uint8, image-major. Raises ValueError with the reason. Args: images: (n, c, h, w)
    or (n, h, w), or as many for each view; uint8, or 0 to 1."""
    if images is None:
        return None
    given = _array(images, "images")
    if given.ndim == 3:
        given = given[:, None]
    if given.ndim != 4 or given.shape[1] not in (1, 3) or len(given) not in (n, n * views):
        raise ValueError(f"images must be ({n}, 1 or 3, h, w), one for each row of z; got shape {given.shape}")
    if given.dtype.kind == "f":
        given = (255 * np.nan_to_num(given).clip(0, 1)).round()
    elif given.dtype != np.uint8:
        given = given.clip(0, 255)
    given = given.astype(np.uint8)
    return given if len(given) == n * views else np.repeat(given, views, axis=0)


def _array(given: Any, name: str) -> np.ndarray:
    """An array of anything that is one, a tensor on any device among them."""
    if hasattr(given, "detach"):
        given = given.detach().cpu()
        given = (given.float() if str(given.dtype) == "torch.bfloat16" else given).numpy()
    try:
        return np.asarray(given)
    except ValueError:
        raise ValueError(f"the rows of {name} are not equally long") from None
