"""The live loss view: matrix, one anchor's softmax, panels, and a knob that is dragged.

What the drag does is computed in the browser: main.js mounts the view, drag.js follows the knob,
../shared/kernels computes the loss, matrix.js paints it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from contrastive_lab.components.shared.knob import SliderKnob
from contrastive_lab.components.shared.mount import mount
from contrastive_lab.components.shared.thumbnails import NO_THUMBNAILS, ThumbnailSheet
from contrastive_lab.components.shared.transport import float_bytes, mask_bytes, pack
from contrastive_lab.locale import _


@dataclass(frozen=True, eq=False)
class ComputedLoss:
    """What the library computed, for a loss that the browser has no kernel for."""

    pair: np.ndarray  # (n, w) weight on pairs
    grad: np.ndarray  # (n, w)
    loss: np.ndarray  # (n)


@dataclass(frozen=True, eq=False)
class LossSetting:
    """A loss with its knobs on one batch of pairs."""

    content: str  # changes when the arrays change (a content hash)
    scores: np.ndarray | None = None  # (n, w), what the loss compares; None: `reason` says why
    mask: np.ndarray | None = None  # (n, w): 0 not comparable, 1 positive, 2 negative, 3 self
    kernel: Mapping[str, Any] | None = None  # the loss's `kernel()`; None: drawn as `computed`
    computed: ComputedLoss | None = None
    knob: SliderKnob | None = None
    loss: float | None = None  # of the batch, as the library has it
    score_name: str = "similarity"
    reason: str = ""  # why the batch cannot be compared, in a sentence


@dataclass(frozen=True, eq=False)
class PairAxes:
    """Names of anchors and candidates, and which thumbnail each of them has (-1: none)."""

    names: Sequence[str]
    column_names: Sequence[str]
    thumbnails: ThumbnailSheet = NO_THUMBNAILS
    row_thumbs: Sequence[int] = ()
    column_thumbs: Sequence[int] = ()


@dataclass(frozen=True)
class Alternatives:
    """Second settings that the caller can compute, each as (choice, text)."""

    losses: Sequence[tuple[str, str]] = ()
    rows: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, eq=False)
class LossView:
    """All that the view shows. `second` is the alternative that `choice` names."""

    first: LossSetting
    axes: PairAxes
    name: str = ""  # of the loss; comes back as `of`
    title: str = ""  # what a saved picture calls the loss
    anchor: int = 0
    start: Mapping[str, Any] = field(default_factory=dict)  # to begin with, of what is reported
    alternatives: Alternatives = Alternatives()
    choice: str = ""
    second: LossSetting | None = None
    lesson: Mapping[str, Any] | None = None  # what its panel shows (../shared/lesson.js)
    heard: int | None = None  # the number, `report`, of the last report; answers to older ones
    # move nothing


def draw_loss_view(view: LossView, key: str = "live", on_change: Callable[[], None] | None = None) -> dict[str, Any]:
    """Draw the view; `on_change` hears of each report. Returns what was last let go: `value`,
    `anchor`, `view`, `panel`, `order`, `masks`, `second`, `second_value`, and `of`, the `name` that
    it was chosen for."""
    blob = pack_loss_view(view)
    reported = mount("loss_view", blob, "chosen", style="lab", key=key, first={}, on_change=on_change)
    return dict(reported or {})


def pack_loss_view(view: LossView) -> bytes:
    """The view as the browser gets it, in any host. Raises ValueError without scores."""
    first, axes, sheet = view.first, view.axes, view.axes.thumbnails
    if first.scores is None:
        raise ValueError(_("the first setting of a loss view needs scores"))
    n, w = first.scores.shape
    meta = _meta(first) | {
        "n": n,
        "w": w,
        "names": list(axes.names),
        "columnNames": list(axes.column_names),
        "across": sheet.across,
        "tile": sheet.tile,
        "rowThumb": list(axes.row_thumbs),
        "columnThumb": list(axes.column_thumbs),
        "anchor": view.anchor,
        "name": view.name,
        "title": view.title,
        "start": dict(view.start),
        "others": asdict(view.alternatives),
        "second": view.second and _meta(view.second) | {"choice": view.choice},
        "lesson": view.lesson and dict(view.lesson),
        "heard": view.heard,
    }
    arrays = _arrays(first) | ({} if view.second is None else _arrays(view.second, "2"))
    return pack(meta, sprite=sheet.picture, **arrays)


def _meta(setting: LossSetting) -> dict[str, Any]:
    return {
        "key": setting.content,
        "kernel": setting.kernel,
        "loss": setting.loss,
        "knob": setting.knob and asdict(setting.knob),
        "scoreName": setting.score_name,
        "reason": setting.reason,
    }


def _arrays(setting: LossSetting, suffix: str = "") -> dict[str, bytes]:
    if setting.scores is None or setting.mask is None:
        return {}
    arrays = {"scores": float_bytes(setting.scores), "mask": mask_bytes(setting.mask)}
    if setting.kernel is None and setting.computed is not None:
        arrays |= {name: float_bytes(v) for name, v in vars(setting.computed).items()}
    return {f"{name}{suffix}": data for name, data in arrays.items()}
