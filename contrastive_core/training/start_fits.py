"""What another run's encoder brings along, and whether it fits the images that it would go on with.
Torch-free, so that a form can say so before a task starts.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from typing import Any

from contrastive_core import runs
from contrastive_core.errors import BadSetting
from contrastive_core.runs import Run
from contrastive_core.training.config import TrainConfig, with_settings

__all__ = ["misfit", "started_from"]

OF_IMAGES = ("colors", "pixels", "gray_as_color")  # settings that are no form of the encoder's own
USUAL = "plain"  # normalization where none is named


def started_from(name: str, config: TrainConfig, given: Iterable[str]) -> TrainConfig:
    """The settings with the encoder of the run `name`, which they start from, and with those of its
    settings that are not given; `given`: `key=value` as they were written.

    Raises: NoSuchRun; BadSetting where the given ones name another form of encoder.
    """
    run = runs.load(name)
    encoder, knobs = run.config.get("encoder"), dict(run.config.get("encoder_knobs") or {})
    if not encoder:  # a recording: it has no weights, which is said where these are read
        return config
    own = dataclasses.replace(config, encoder=str(encoder), encoder_knobs=knobs)
    asked = [s for s in given if s.partition("=")[0].strip().startswith("encoder")]
    wanted = with_settings(own, asked)
    if wanted.encoder != encoder:
        raise BadSetting(
            f"{name} has the encoder {encoder} and this training asks for {wanted.encoder}: leave "
            "the encoder out, or start from another run"
        )
    for knob, value in wanted.encoder_knobs.items():
        if knob in knobs and knob not in OF_IMAGES and knobs[knob] != value:
            raise BadSetting(
                f"the encoder of {name} has encoder.{knob}={_text(knobs[knob])} and this training "
                f"asks for {_text(value)}: leave encoder.{knob} out, or start from another run"
            )
    return wanted


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
