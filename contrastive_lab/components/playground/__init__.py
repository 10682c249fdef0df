"""An encoder that is trained in the browser, shown on a sphere, with a temperature to drag."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from contrastive_lab.components.shared.mount import bundle, mount
from contrastive_lab.components.shared.transport import pack


@dataclass(frozen=True, eq=False)
class PlaygroundView:
    """The training images and the held-out images of the playground."""

    images: np.ndarray  # (n, height, width) uint8
    labels: np.ndarray | None  # (n) int16
    classes: Sequence[str]  # their names
    shape: tuple[int, int]  # height and width; a height of 1: rows of numbers
    learned: int  # the first so many are learned from
    kernels: Mapping[str, Mapping[str, object]]  # each loss's `kernel()`
    settings: str = ""  # what an address holds of it (setting.js)


def pack_playground(view: PlaygroundView, **more: Any) -> bytes:
    """Return the data of the playground for the browser, in any host, including the training worker."""
    worker = bundle("playground/worker.js").rpartition("export default")[0]  # file:// refuses workers that are modules
    return pack(view, worker=worker, **more)


def draw_playground(view: PlaygroundView, key: str = "playground") -> str:
    """Draw the playground; return the last chosen setting, in the format of the URL."""
    return str(mount("playground", pack_playground(view), "setting", key, first=view.settings))
