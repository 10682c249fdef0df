"""Several maps of the same samples in one picture, with one selection in all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from contrastive_lab.components.scatter import scatter

__all__ = ["panels"]

GAP = 1.15  # from one map's middle to the next one's, in widths of the widest


def panels(
    maps: Sequence[np.ndarray],
    titles: Sequence[str],
    color: np.ndarray | None = None,
    names: Sequence[str] = (),
    **options: Any,
) -> list[int]:
    """Draw maps (n, 2) side by side, the first being what the slider moves the others to.

    Args: titles: of the maps; color (n), names and options: as for `scatter`.
    Returns the selected rows.
    """
    n, count = len(maps[0]), len(maps)
    across = count if count <= 3 else math.ceil(count / 2)
    centerd = [xy - (xy.min(0) + xy.max(0)) / 2 for xy in maps]
    cell = GAP * max(float(np.ptp(xy, axis=0).max()) for xy in centerd) or 1.0
    middles = [np.array([q % across, -(q // across)]) * cell for q in range(count)]
    at = [[float(m[0]), float(m[1] + 0.5 * cell)] for m in middles]
    corners = [float(v) * cell for v in (-0.5, across - 0.5, 0.5 - math.ceil(count / across), 0.5)]
    return scatter(
        np.concatenate([xy + m for xy, m in zip(centerd, middles, strict=True)]),
        None if color is None else np.tile(color, count),
        names,
        panels={"rows": n, "names": list(titles), "at": at, "box": corners},
        target=np.concatenate([centerd[0] + m for m in middles]),
        **options,
    )
