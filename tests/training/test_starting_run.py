"""What a training takes from the run it starts from, and what contradicts it."""

from __future__ import annotations

import pytest

from contrastive_core.cli.main import parser
from contrastive_core.cli.train import config_of
from contrastive_core.errors import BadSetting, NoSuchRun
from contrastive_core.records import runs
from contrastive_core.records.train_config import TrainConfig

KNOBS = {"stem": "padded", "colors": "cifar10", "pixels": 48}


@pytest.fixture(autouse=True)
def first() -> None:
    config = {"method": "simclr", "dataset": "shapes", "encoder": "resnet18"}
    runs.create("first", {**config, "encoder_knobs": KNOBS})


def asked(*words: str) -> TrainConfig:
    return config_of(parser().parse_args(["train", "--start", "first", *words]))


def test_the_encoder_and_its_settings_are_those_of_the_run() -> None:
    config = asked("--set", "lr=1")
    assert (config.encoder, config.encoder_knobs, config.lr) == ("resnet18", KNOBS, 1)
    assert asked("--encoder", "resnet18", "--set", "encoder.stem=padded") == asked()
    changed = asked("--set", "encoder.pixels=64", "--set", "encoder.gray_as_color=on")
    assert changed.encoder_knobs == {**KNOBS, "pixels": 64, "gray_as_color": True}
    assert config_of(parser().parse_args(["train"])).encoder == "small"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--encoder", "small"], "first has the encoder resnet18 and this training asks for small"),
        (["--set", "encoder=small"], "leave the encoder out"),
        (["--set", "encoder.stem=small"], "encoder.stem=padded and this training asks for small"),
    ],
)
def test_a_contradiction_is_said(words: list[str], sentence: str) -> None:
    with pytest.raises(BadSetting, match=sentence):
        asked(*words)


def test_a_run_that_is_not_there_is_said() -> None:
    with pytest.raises(NoSuchRun, match="no run 'nobody'"):
        asked("--start", "nobody")
