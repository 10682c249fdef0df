"""Settings from the command line: typed, checked, and kept as plain values."""

from __future__ import annotations

import json
import shlex

import pytest

from contrastive_core.cli.main import parser
from contrastive_core.cli.train import config_of
from contrastive_core.engine import training
from contrastive_core.errors import BadSetting
from contrastive_core.records import runs
from contrastive_core.records.run import Run
from contrastive_core.records.train_config import TrainConfig, from_dict, settings_of, with_settings


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
        ("weight_decay=-1", "weight_decay must be at least 0"),
        ("momentum=2", "momentum must be below 1"),
        ("epochs=0", "at least 1"),
        ("lr=nan", "number"),
        ("lr=NaN", "at least 0"),
        ("lr=-1", "at least 0"),
        ("seed=-1", "seed must lie"),
        ("sample=5000", "2..2000"),
        ("threads=100000", r"threads must lie in 1\.\.1024"),
        ("threads=1e400", "whole number"),
    ],
)
def test_what_is_refused(setting: str, sentence: str) -> None:
    with pytest.raises(BadSetting, match=sentence):
        with_settings(TrainConfig(), [setting])


def test_unknown_keys_of_a_record() -> None:
    with pytest.raises(BadSetting, match="unknown setting 'color'"):
        from_dict({"color": 3})


@pytest.mark.parametrize(
    "settings",
    [
        [],
        ["lr=0.01", "amp=off", "threads=3", "clip=1.5", "schedule=cosine", "freeze=on"],
        ["recipe.order=blur crop", "recipe.crop=0", "loss.form=none", "method.x=null"],
        ['loss.a="1"', "loss.b=true", 'method.c=[1, "two"]', "encoder.stem=small", "root=/a b"],
    ],
)
def test_arguments_give_the_same_settings_again(settings: list[str]) -> None:
    """What a page shows as the command line is exactly the run."""
    made = with_settings(TrainConfig(device="cpu", epochs=7, exclude="/x y.txt"), settings)
    args = parser().parse_args(["train", *settings_of(made.to_dict())])
    assert config_of(args) == made


@pytest.mark.parametrize("run", [r for r in runs.list_runs() if r.shipped], ids=lambda r: r.name)
def test_every_shipped_run_can_be_made_again_from_its_command(run: Run) -> None:
    words = shlex.split(training.command_of(run))
    args = parser().parse_args(words[3:])
    assert config_of(args).to_dict()["recipe"] == run.config["recipe"]


def test_many_machines_leave_out_what_belongs_to_one() -> None:
    run = next(r for r in runs.list_runs() if r.shipped)
    line = training.command_of(run, 4, 2)
    assert line.startswith("torchrun --nproc-per-node 4 --nnodes 2 --node-rank $RANK")
    assert "threads=" not in line
    assert "--device" not in line
    assert "--nnodes" not in training.command_of(run, 4)
