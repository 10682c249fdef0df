"""Settings from the command line: typed, checked, and kept as plain values."""

from __future__ import annotations

import json

import pytest

from contrastive_core.config import BadSetting, TrainConfig, from_dict, with_settings


def test_settings_reach_fields_and_knobs() -> None:
    made = with_settings(
        TrainConfig(loss_knobs={"form": "in"}),
        "lr=0.01 epochs=3 channels-last=off clip=1 batch_size=none root=/a=b amp=on "
        "encoder.stem=small loss.temperature=0.2 method.head=none method.steps=2 "
        "recipe.crop_low=0.4".split(),
    )
    assert made.lr == 0.01
    assert made.epochs == 3
    assert isinstance(made.clip, float)
    assert made.channels_last is False
    assert made.amp is True
    assert made.batch_size is None
    assert made.root == "/a=b"
    assert made.loss_knobs == {"form": "in", "temperature": 0.2}
    assert made.method_knobs == {"head": "none", "steps": 2}
    assert made.recipe == {"crop_low": 0.4}
    assert made.encoder_knobs == {"stem": "small"}


def test_json_and_back() -> None:
    made = with_settings(TrainConfig(), ["loss.temperature=0.2", "seed=3"])
    assert from_dict(json.loads(json.dumps(made.to_dict()))) == made


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("lr", "key=value"),
        ("=3", "key=value"),
        ("speed=3", "unknown setting 'speed'; known: method"),
        ("head.width=3", "unknown setting"),
        ("loss_knobs=3", "unknown setting"),
        ("epochs=2.5", "whole number"),
        ("epochs=many", "whole number"),
        ("epochs=true", "whole number"),
        ("lr=fast", "must be a number"),
        ("compile=maybe", "on or off"),
        ("epochs=0", "at least 1"),
        ("lr=nan", "number"),
        ("lr=NaN", "at least 0"),
        ("lr=-1", "at least 0"),
        ("seed=-1", "seed must lie"),
        ("sample=5000", "2..2000"),
    ],
)
def test_what_is_refused(setting: str, sentence: str) -> None:
    with pytest.raises(BadSetting, match=sentence):
        with_settings(TrainConfig(), [setting])


def test_unknown_keys_of_a_record() -> None:
    with pytest.raises(BadSetting, match="unknown setting 'colour'"):
        from_dict({"colour": 3})
