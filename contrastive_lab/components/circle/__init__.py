"""Points on a circle that follow a loss's own gradient, computed in the browser."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from contrastive_lab.components.shared.knob import SliderKnob
from contrastive_lab.components.shared.mount import mount
from contrastive_lab.components.shared.transport import pack
from contrastive_lab.locale import _

SCORES = ("dot", "distance", "squared_distance")


@dataclass(frozen=True)
class CircleStart:
    """What the circle begins with; all of it can be changed on the page."""

    groups: int = 2
    points: int = 24
    scatter: int = 0  # another number, other places to begin at
    speed: int = 600  # of the steps, 0 to 1,000, on a logarithmic scale
    at: str = ""  # where points stand that have moved, three letters for each; else empty


def draw_circle(
    kernel: dict[str, Any] | None,
    score: str,
    knob: SliderKnob | None = None,
    start: CircleStart = CircleStart(),
    bare: bool = False,
    key: str = "circle",
    lesson: Mapping[str, Any] | None = None,
    on_change: Callable[[], None] | None = None,
    heard: int | None = None,
) -> dict[str, Any]:
    """Draw the circle; returns what was last let go: `value` of the knob, the fields of
    CircleStart, and `report`, the number of the report.

    Args:
        kernel: the loss's `kernel()`; None: a sentence says that the browser cannot compute it.
        score: what the loss compares: dot, distance or squared_distance.
        knob: what is dragged.
        bare: the circle alone, at work by itself for a while; it reports nothing.
        lesson: what its panel shows (../shared/lesson.js). on_change: hears of each report.
        heard: the number of the last report; an answer to an older one moves nothing.
    """
    import streamlit as st

    if kernel is None:
        st.info(_("The browser has no kernel for this loss; choose one of the softmax or hinge kind."))
        return {}
    blob = pack_circle(kernel, score, knob, start, bare, lesson, heard)
    state = None if bare else "chosen"
    reported = mount("circle", blob, state, style="lab", key=key, first={}, on_change=on_change)
    return dict(reported or {})


def pack_circle(
    kernel: dict[str, Any],
    score: str,
    knob: SliderKnob | None = None,
    start: CircleStart = CircleStart(),
    bare: bool = False,
    lesson: Mapping[str, Any] | None = None,
    heard: int | None = None,
) -> bytes:
    """The circle as the browser gets it, in any host. Raises ValueError for an unknown score."""
    if score not in SCORES:
        raise ValueError(
            _("a score is one of {scores}; got {score}").format(scores=", ".join(SCORES), score=f"{score!r}")
        )
    fixed = {k: v for k, v in kernel.items() if k != kernel.get("knob")}
    meta = {
        "kernel": kernel,
        "score": score,
        "knob": knob and asdict(knob),
        "bare": bare,
        "lesson": lesson and dict(lesson),
        "heard": heard,
        **asdict(start),
        "content": repr(sorted(fixed.items(), key=str)),
    }
    return pack(meta)
