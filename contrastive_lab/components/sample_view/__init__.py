"""One sample's loss taken apart, live: the share of each pair, its rank as a knob is dragged."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from contrastive_lab.components.shared.thumbnails import TILE, sprite
from contrastive_lab.components.shared.transport import SHARED, mount, pack

__all__ = ["why_view"]


@cache
def _mount() -> Any:
    return mount(
        "sample_view", (*SHARED, "shared/kernels", "sample_view/sample_view"), "loss_view/loss_view"
    )


def why_view(
    scores: np.ndarray,
    mask: np.ndarray,
    kernel: dict[str, Any],
    pairs: Sequence[dict[str, Any]],
    *,
    content: str,
    knob: dict[str, Any] | None = None,
    grid: np.ndarray | None = None,
    losses: np.ndarray | None = None,
    row: int = 0,
    images: np.ndarray | None = None,
    key: str = "why",
) -> None:
    """Draw the view; everything in it is computed in the browser.

    Args:
        scores: (m) what the loss compares; mask: (m) 0 not comparable, 1 positive, 2 negative,
            3 self; kernel: the loss's `kernel()`.
        pairs: `name`, `column` and `positive` of the pairs that are shown, with `images`
            (pairs, c, h, w) uint8 of them.
        content: changes when the arrays change.
        knob: `label`, `low`, `high`, `log`, `value` of what is dragged.
        grid, losses: values (g) of the knob, and the losses (n, g) of all samples there: their
            rank between two values is interpolated. row: which of the n this is.
    """
    sheet, across = sprite(images) if images is not None and len(images) else (b"", 1)
    known = losses is not None and grid is not None and len(grid) > 1
    meta = {
        "key": content, "m": len(scores), "kernel": kernel, "knob": knob, "pairs": list(pairs),
        "grid": [float(v) for v in grid] if known and grid is not None else [], "row": int(row),
        "n": len(losses) if known and losses is not None else 0, "across": across, "tile": TILE,
    }  # fmt: skip
    _mount()(
        key=key,
        data=pack(
            meta,
            scores=np.ascontiguousarray(scores, np.float32).tobytes(),
            mask=np.ascontiguousarray(mask, np.uint8).tobytes(),
            losses=np.ascontiguousarray(losses if known else [], np.float32).tobytes(),
            sprite=sheet,
        ),
    )
