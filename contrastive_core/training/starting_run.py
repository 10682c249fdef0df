"""The run that a training starts from: the settings of its encoder, and whether they fit the images."""

import dataclasses
import json
from collections.abc import Iterable, Mapping
from typing import Any

from contrastive_core.errors import BadSetting
from contrastive_core.messages import message
from contrastive_core.records import runs
from contrastive_core.records.run import Run
from contrastive_core.records.train_config import TrainConfig, with_settings

OF_IMAGES = ("colors", "pixels", "gray_as_color")  # settings that are no form of the encoder's own
USUAL = "plain"  # normalization where none is named


def inherit_encoder(name: str, config: TrainConfig, arguments: Iterable[str]) -> TrainConfig:
    """The settings with the encoder of the run `name` and its settings, except those in `arguments`, the `key=value`
    texts of the command line. Raises: NoSuchRun; BadSetting if the arguments name another encoder."""
    run = runs.load(name)
    encoder, knobs = run.config.get("encoder"), dict(run.config.get("encoder_knobs") or {})
    if not encoder:  # a recording: it has no weights, which is said where these are read
        return config
    own = dataclasses.replace(config, encoder=str(encoder), encoder_knobs=knobs)
    wanted = with_settings(own, [s for s in arguments if s.partition("=")[0].strip().startswith("encoder")])
    if wanted.encoder != encoder:
        facts = {"name": name, "encoder": encoder, "wanted_encoder": wanted.encoder}
        raise BadSetting(
            "{name} has the encoder {encoder} and this training asks for {wanted_encoder}: leave the encoder out, "
            "or start from another run",
            **facts,
        )
    for knob, value in wanted.encoder_knobs.items():
        if knob in knobs and knob not in OF_IMAGES and knobs[knob] != value:
            values = {"name": name, "knob": knob, "text": _text(knobs[knob]), "value": _text(value)}
            raise BadSetting(
                "the encoder of {name} has encoder.{knob}={text} and this training asks for {value}: leave "
                "encoder.{knob} out, or start from another run",
                **values,
            )
    return wanted


def misfit(run: Run, channels: int | None, knobs: Mapping[str, Any]) -> str:
    """Describe how images of so many channels (None: unknown), under these settings of the encoder,
    differ from those that the encoder of `run` was trained on; "" if they do not."""
    trained = run.config.get("encoder_knobs") or {}
    shape = run.manifest.get("image_shape")
    own = _input_channels(shape[0] if shape else None, trained)
    these = _input_channels(channels, knobs)
    name = run.name
    if (own, these) == (3, 1):
        return message(
            "{name} learned from color images and these are gray: set encoder.gray_as_color=on, or choose other "
            "images.",
            name=name,
        )
    if (own, these) == (1, 3):
        return message(
            "{name} learned from gray images and these are in color: choose other images, or a new encoder.", name=name
        )
    if own and these and own != these:
        facts = {"name": name, "own": own, "these": these}
        return message(
            "{name} learned from images of {own} channels and these have {these}: choose other images, or a new "
            "encoder.",
            **facts,
        )
    before, now = (k.get("colors") or USUAL for k in (trained, knobs))
    if before != now:
        values = {"name": name, "text": _text(before), "now": _text(now)}
        return message(
            "{name} learned from images normalized in another way: set encoder.colors={text}, not {now}.", **values
        )
    return ""


def _input_channels(channels: Any, knobs: Mapping[str, Any]) -> int | None:
    """The number of channels that enter the encoder's first layer."""
    if not isinstance(channels, int):
        return None
    return 3 if channels == 1 and knobs.get("gray_as_color") else channels


def _text(colors: Any) -> str:
    """The value as it is written in a setting."""
    return colors if isinstance(colors, str) else json.dumps(colors, separators=(",", ":"))
