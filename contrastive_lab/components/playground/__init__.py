"""An encoder that learns in the browser, on a sphere, while its temperature is dragged."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from contrastive_lab.components.shared.bundle import bundle
from contrastive_lab.components.shared.mount import mount
from contrastive_lab.components.shared.transport import pack


@dataclass(frozen=True, eq=False)
class PlaygroundView:
    """The training images of the playground, and its held-out images."""

    images: np.ndarray  # (n, height, width) uint8
    labels: np.ndarray | None  # (n) int16
    classes: Sequence[str]  # their names
    shape: tuple[int, int]  # height and width; a height of 1: rows of numbers
    learned: int  # the first so many are learned from
    kernels: Mapping[str, Mapping[str, Any]]  # each loss's `kernel()`
    settings: str = ""  # what an address holds of it (setting.js)


def pack_playground(view: PlaygroundView, **more: Any) -> bytes:
    """The playground as the browser gets it, in any host; the training's worker comes with it."""
    worker = bundle("playground/worker.js").rpartition("export default")[0]  # file:// refuses workers that are modules
    return pack(view, worker=worker, **more)


def draw_playground(view: PlaygroundView, key: str = "playground", on_change: Callable[[], None] | None = None) -> str:
    """Draw the playground; returns the setting that was last let go, as an address holds it."""
    return str(mount("playground", pack_playground(view), "setting", key, first=view.settings, on_change=on_change))
