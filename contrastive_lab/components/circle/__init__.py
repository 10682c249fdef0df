"""Points on a circle that follow a loss's own gradient, computed in the browser."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from contrastive_lab.components.shared.mount import SliderKnob, pack


@dataclass(frozen=True)
class CircleStart:
    """Initial settings of the circle; each can be changed on the page."""

    groups: int = 2
    points: int = 24
    scatter: int = 0  # another number, other places to begin at
    speed: int = 600  # of the steps, 0 to 1,000, on a logarithmic scale
    towers: int = 0  # 1: half of the points are rows of one tower, half of the other
    at: str = ""  # where points stand that have moved, three letters for each; else empty


@dataclass(frozen=True)
class CircleView:
    """Content of the circle: the loss with its knobs, and the initial settings."""

    kernel: Mapping[str, object]  # the loss's `kernel()`
    score: str  # what the loss compares: dot, distance or squared_distance
    knob: SliderKnob | None = None  # what is dragged
    start: CircleStart = CircleStart()
    lesson: Mapping[str, object] | None = None  # what its panel shows (../shared/lesson.js)
    heard: int | None = None  # the number, `report`, of the last report; answers to older ones move nothing
    more: Sequence[SliderKnob] = ()  # knobs that are dragged below `knob`


def pack_circle(view: CircleView) -> bytes:
    """Return the data of the circle for the browser, in any host."""
    moved = {view.kernel.get("knob"), *(knob.name for knob in view.more)}
    fixed = {k: v for k, v in view.kernel.items() if k not in moved}
    return pack(view, content=repr(sorted(fixed.items(), key=str)))
