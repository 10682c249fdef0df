"""The live loss view: matrix, one anchor's softmax, panels, and a knob that is dragged."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from contrastive_lab.components.shared.transport import SHARED, mount, pack

__all__ = ["live_view", "second_setting"]

PARTS = ("order", "draw", "panels", "curves", "two", "formula", "loss_view")
SCRIPTS = (*SHARED, "shared/kernels", *(f"loss_view/{part}" for part in PARTS))


@cache
def _mount() -> Any:
    return mount("loss_view", SCRIPTS, "loss_view/loss_view")


def live_view(
    scores: np.ndarray,
    mask: np.ndarray,
    kernel: dict[str, Any] | None,
    *,
    content: str,
    fixed: dict[str, np.ndarray] | None = None,
    names: Sequence[str],
    column_names: Sequence[str] | None = None,
    knob: dict[str, Any] | None = None,
    score_name: str = "similarity",
    sprite: bytes = b"",
    across: int = 1,
    tile: int = 32,
    row_thumbs: Sequence[int] = (),
    column_thumbs: Sequence[int] = (),
    anchor: int = 0,
    loss: float | None = None,
    reason: str = "",
    name: str = "",
    title: str = "",
    start: dict[str, Any] | None = None,
    others: dict[str, list[tuple[str, str]]] | None = None,
    second: dict[str, Any] | None = None,
    key: str = "live",
) -> dict[str, Any]:
    """Draw the view; returns what was last let go: `value`, `anchor`, `view`, `panel`, `order`,
    `masks`, `second`, `second_value`, and `of`, the `name` that it was chosen for.

    Args:
        scores: (n, w) float32, what the loss compares; mask: (n, w) uint8, 0 not comparable,
            1 positive, 2 negative, 3 self; kernel: the loss's `kernel()`, None: drawn as it is.
        fixed: `pair`, `grad` (n, w) and `loss` (n) of a loss that the browser has no kernel for.
        content: changes when the arrays change (a content hash).
        knob: `label`, `low`, `high`, `log`, `value` of what is dragged.
        sprite: a PNG of thumbnails; row_thumbs, column_thumbs: which thumbnail each row has.
        reason: a sentence shown where the batch cannot be compared.
        title: what a saved picture calls the loss.
        start: what to begin with, of what is returned.
        others: second settings that the caller can compute: `losses` and `rows`, each a list of
            (choice, text); second: the chosen one as `second_setting` gives it, or None.
    """
    n, w = scores.shape
    names = [str(v) for v in names]
    columns = names if column_names is None else [str(v) for v in column_names]
    meta = {
        "key": content, "n": n, "w": w, "kernel": kernel, "knob": knob, "names": names,
        "columnNames": columns, "scoreName": score_name, "across": across, "tile": tile,
        "rowThumb": list(row_thumbs), "columnThumb": list(column_thumbs), "anchor": anchor,
        "loss": loss, "reason": reason, "name": name, "title": title,
        "start": start or {}, "others": others or {},
        "second": None if second is None else second["meta"],
    }  # fmt: skip
    found = _mount()(
        key=key,
        data=pack(
            meta,
            scores=np.ascontiguousarray(scores, np.float32).tobytes(),
            mask=np.ascontiguousarray(mask, np.uint8).tobytes(),
            sprite=sprite,
            **({} if kernel or fixed is None else {k: _bytes(v) for k, v in fixed.items()}),
            **({} if second is None else second["arrays"]),
        ),
        default={"chosen": {}},
        on_chosen_change=lambda: None,
    )
    return dict(found.chosen or {})


def second_setting(
    choice: str,
    content: str,
    *,
    scores: np.ndarray | None = None,
    mask: np.ndarray | None = None,
    kernel: dict[str, Any] | None = None,
    fixed: dict[str, np.ndarray] | None = None,
    **meta: Any,
) -> dict[str, Any]:
    """A second setting for `live_view`, its arrays as there; without scores `reason` says why."""
    arrays = {}
    if scores is not None and mask is not None:
        arrays = {
            "scores2": _bytes(scores),
            "mask2": np.ascontiguousarray(mask, np.uint8).tobytes(),
        }
        if kernel is None and fixed is not None:
            arrays |= {f"{k}2": _bytes(v) for k, v in fixed.items()}
    return {"meta": {"choice": choice, "key": content, "kernel": kernel, **meta}, "arrays": arrays}


def _bytes(array: np.ndarray) -> bytes:
    return np.ascontiguousarray(array, np.float32).tobytes()
