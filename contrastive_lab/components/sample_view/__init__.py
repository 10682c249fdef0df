"""One sample's loss taken apart, live: the share of each pair, its rank as a knob is dragged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from contrastive_lab.components.shared.knob import SliderKnob
from contrastive_lab.components.shared.mount import mount
from contrastive_lab.components.shared.thumbnails import thumbnail_sheet
from contrastive_lab.components.shared.transport import float_bytes, mask_bytes, pack


@dataclass(frozen=True)
class ShownPair:
    """A pair that is shown, at its column of the scores."""

    name: str
    column: int
    positive: bool


@dataclass(frozen=True, eq=False)
class LossesOverKnob:
    """The losses of all samples at some values of the knob; ranks between are interpolated."""

    grid: np.ndarray  # (g) values of the knob, rising, at least two
    losses: np.ndarray  # (n, g)
    row: int  # which of the n this sample is


@dataclass(frozen=True, eq=False)
class SampleView:
    """One sample's scores and the loss that is computed on them in the browser."""

    content: str  # changes when the arrays change
    scores: np.ndarray  # (m), what the loss compares
    mask: np.ndarray  # (m): 0 not comparable, 1 positive, 2 negative, 3 self
    kernel: dict[str, Any]  # the loss's `kernel()`
    pairs: Sequence[ShownPair]
    images: np.ndarray | None = None  # (pairs, c, h, w) uint8
    knob: SliderKnob | None = None
    over_knob: LossesOverKnob | None = None


def draw_sample_view(view: SampleView, key: str = "sample") -> None:
    """Draw the view; everything in it is computed in the browser."""
    sheet, over = thumbnail_sheet(view.images), view.over_knob
    meta = {
        "key": view.content,
        "m": len(view.scores),
        "kernel": view.kernel,
        "knob": view.knob and asdict(view.knob),
        "pairs": [asdict(p) for p in view.pairs],
        "grid": [] if over is None else [float(v) for v in over.grid],
        "row": 0 if over is None else int(over.row),
        "n": 0 if over is None else len(over.losses),
        "across": sheet.across,
        "tile": sheet.tile,
    }
    blob = pack(
        meta,
        scores=float_bytes(view.scores),
        mask=mask_bytes(view.mask),
        losses=float_bytes([] if over is None else over.losses),
        sprite=sheet.picture,
    )
    mount("sample_view", blob, None, style="lab", key=key)
