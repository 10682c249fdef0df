"""Whether another run's encoder fits the images that it would go on with. Torch-free, so that a
form can say so before a task starts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from contrastive_core.runs import Run

__all__ = ["misfit"]

USUAL = "plain"  # normalization where none is named


def misfit(run: Run, channels: int | None, knobs: Mapping[str, Any]) -> str:
    """Why images of so many channels (None: not known), brought in by these settings of the
    encoder, are not what the encoder of `run` was trained on; "" where they are."""
    trained = run.config.get("encoder_knobs") or {}
    own = _entering((run.manifest.get("image_shape") or [None])[0], trained)
    these = _entering(channels, knobs)
    name = run.name
    if (own, these) == (3, 1):
        return (
            f"{name} learned from color images and these are gray: set encoder.gray_as_color=on, "
            "or choose other images."
        )
    if (own, these) == (1, 3):
        return (
            f"{name} learned from gray images and these are in color: choose other images, or a "
            "new encoder."
        )
    if own and these and own != these:
        return (
            f"{name} learned from images of {own} channels and these have {these}: choose other "
            "images, or a new encoder."
        )
    before, now = (k.get("colors") or USUAL for k in (trained, knobs))
    if before != now:
        return (
            f"{name} learned from images normalized in another way: set "
            f"encoder.colors={_text(before)}, not {_text(now)}."
        )
    return ""


def _entering(channels: Any, knobs: Mapping[str, Any]) -> int | None:
    """Channels as they enter the encoder's first layer."""
    if not isinstance(channels, int):
        return None
    return 3 if channels == 1 and knobs.get("gray_as_color") else channels


def _text(colors: Any) -> str:
    """As a setting is written."""
    return colors if isinstance(colors, str) else json.dumps(colors, separators=(",", ":"))
