"""One anchor image in the center with its other view and its negatives around it, and the pull or push on each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from contrastive_lab.components.shared.mount import mount, reported_state
from contrastive_lab.components.shared.transport import ThumbnailSheet, pack


@dataclass(frozen=True, eq=False)
class StarView:
    """A batch of images for the star."""

    scores: np.ndarray  # (n, n) float32, similarities
    mask: np.ndarray  # (n, n) uint8: 1 positive, 2 negative
    classes: Sequence[str]  # (n) the class of each image
    thumbnails: ThumbnailSheet
    places: np.ndarray  # (n, 2) float32: of each image on a map, from -1 to 1
    anchors: Sequence[int]  # those that it shows by itself, one after the other
    buttons: Sequence[str]  # what they say; the first is the next step
    source: str  # whose batch it is


def draw_star(view: StarView, key: str, on_press: Callable[[], None]) -> None:
    """Draw the star; `on_press` is called before the page is redrawn, when one of its buttons is pressed."""
    mount("star", pack(view), "chosen", key, first={}, on_change=on_press)


def pressed_button(key: str) -> int | None:
    """Return the last pressed button of the star with this key."""
    button = (reported_state(key, "chosen") or {}).get("button")
    return button if isinstance(button, int) else None
