"""Points on a circle that follow a loss's own gradient."""

from __future__ import annotations

from typing import Any

from contrastive_lab.components.circle import CircleStart, CircleView, pack_circle
from contrastive_lab.loss_setting import knob_of
from contrastive_lab.widgets.host import KnobWidget

LIMITS = {"groups": (1, 20), "points": (2, 400)}


def circle(loss: str = "nt_xent", *, points: int = 24, groups: int = 2, scatter: int = 0, **knobs: Any) -> CircleWidget:
    """Points on a circle under a loss: run them, drag one, turn the knob.

    Args:
        points: 2 to 400. groups: of positives, 1 to 20. scatter: another number begins elsewhere.
        knobs: of the loss, as `losses.knobs` lists them.
    Raises: ValueError with the reason, for a loss that the browser has no kernel for among them."""
    for name, value in {"points": points, "groups": groups}.items():
        low, high = LIMITS[name]
        if not low <= value <= high:
            raise ValueError(f"{name} must be from {low} to {high}; got {value!r}")
    return CircleWidget(loss, knobs, CircleStart(int(groups), int(points), int(scatter)))


class CircleWidget(KnobWidget):
    """`temperature` or `margin` is what was last let go, and can be set."""

    def __init__(self, loss: str, knobs: dict[str, Any], start: CircleStart) -> None:
        super().__init__("circle", loss, knobs)
        if self.about["kernel"] is None:
            raise ValueError(
                f"the browser has no kernel for {self.about['title']} with these knobs: choose a "
                "loss of the softmax or hinge kind"
            )
        self._start = start
        self.draw()

    def draw(self) -> None:
        """Send the loss with its knob; where the points stand is the browser's."""
        kernel, knob = self.about["kernel"], None
        if self.live:
            kernel = kernel | {self.live: self.knobs[self.live]}
            knob = knob_of(self.about, self.live, self.knobs[self.live])
        self.data = pack_circle(CircleView(kernel, self.about["score"], knob, self._start))
