"""BYOL and SimSiam on a circle, trained in the browser: main.js mounts the component, training.js computes the
steps."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from contrastive_lab.components.shared.mount import mount
from contrastive_lab.components.shared.transport import SliderKnob, pack


@dataclass(frozen=True)
class SiameseStart:
    """Initial settings of the BYOL or SimSiam training; each can be changed on the page."""

    method: str = "simsiam"  # or byol
    predictor: bool = True
    stop_gradient: bool = True
    seed: int = 0
    speed: int = 600  # of the steps, 0 to 1,000, on a logarithmic scale


@dataclass(frozen=True)
class SiameseView:
    """Content of the BYOL and SimSiam component."""

    start: SiameseStart
    knobs: Sequence[SliderKnob]  # rate, predictor_rate, momentum
    lesson: Mapping[str, object] | None = None  # what its panel shows (../shared/lesson.js)
    heard: int | None = None  # the number, `report`, of the last report; answers to older ones move nothing


def draw_siamese(view: SiameseView, key: str, on_change: Callable[[], None] | None = None) -> None:
    """Draw the component; it reports the last choices as `chosen`: fields of SiameseStart, `more`, `report`."""
    mount("siamese", pack(view), "chosen", key, first={}, on_change=on_change)
