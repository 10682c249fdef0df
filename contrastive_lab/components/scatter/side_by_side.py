"""Several maps of the same samples in one picture, with one selection in all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from contrastive_lab.components.scatter import Panels, ScatterData

GAP = 1.15  # from one map's middle to the next one's, in widths of the widest


def side_by_side(data: ScatterData, maps: Sequence[np.ndarray], titles: Sequence[str]) -> ScatterData:
    """Maps (n, 2) of the rows of `data` in one scatter; a slider moves all to the first one.

    Args: titles: of the maps. The places in `data` are not read.
    """
    n, count = len(maps[0]), len(maps)
    across = count if count <= 3 else math.ceil(count / 2)
    centered = [xy - (xy.min(0) + xy.max(0)) / 2 for xy in maps]
    cell = GAP * max(float(np.ptp(xy, axis=0).max()) for xy in centered) or 1.0
    middles = [np.array([q % across, -(q // across)]) * cell for q in range(count)]
    at = [[float(m[0]), float(m[1] + 0.5 * cell)] for m in middles]
    corners = [float(v) * cell for v in (-0.5, across - 0.5, 0.5 - math.ceil(count / across), 0.5)]
    return replace(
        data,
        xy=np.concatenate([xy + m for xy, m in zip(centered, middles, strict=True)]),
        color=None if data.color is None else np.tile(data.color, count),
        panels=Panels(n, list(titles), at, corners),
        target=np.concatenate([centered[0] + m for m in middles]),
    )
