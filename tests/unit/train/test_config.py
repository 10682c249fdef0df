"""Settings from the command line: typed, checked, and kept as plain values."""

import json
import shlex

import pytest
from cases import cases

from contrastive_core import methods, runs
from contrastive_core.base.errors import BadSetting, NoSuchRun
from contrastive_core.cli.main import parser
from contrastive_core.cli.train import config_of
from contrastive_core.data.dataset import KNOWN
from contrastive_core.engine import training
from contrastive_core.runs.run import Run
from contrastive_core.runs.train_config import TrainConfig, from_dict, settings_of, with_settings
from contrastive_core.train.settings import resolve
from contrastive_core.train.setup import of_page


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


@cases(
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


@cases(
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


@cases("run", [r for r in runs.list_runs() if r.shipped])
def test_every_shipped_run_can_be_made_again_from_its_command(run: Run) -> None:
    words = shlex.split(training.command_of(run))
    args = parser().parse_args(words[1:])
    assert config_of(args).to_dict()["recipe"] == run.config["recipe"]


@cases(
    ("method", "lines", "says"),
    [
        ("vicreg", "loss.variance=0", "loss.variance is 0: nothing keeps the embedding from shrinking"),
        ("lejepa", "loss.trade_off=1", "loss.trade_off is 1: nothing brings the two views"),
        ("barlow_twins", "loss.off_diagonal=0", "nothing keeps dimensions apart"),
        (
            "barlow_twins",
            "batch_size=64",
            "256 dimensions and a batch 64 images: their correlation and covariance matrix has",
        ),
        ("vicreg", "method.dim=512", "a batch 128 images: their correlation and covariance matrix has rank 127"),
        ("vicreg", "batch_size=512", ""),
        ("lejepa", "method.dim=512", ""),
        ("simclr", "method.dim=512", ""),
    ],
)
def test_a_weight_of_zero_or_a_low_rank_has_a_note(method: str, lines: str, says: str) -> None:
    found = resolve(with_settings(TrainConfig(method, "digits"), lines.split()), KNOWN["digits"])
    assert not found.refusal
    assert len(found.notes) == bool(says)
    assert says in " ".join(found.notes)


def test_only_a_method_that_starts_slowly_has_a_note_on_few_epochs() -> None:
    for method, epochs, has_note in (
        ("byol", 20, True),
        ("byol", 100, False),
        ("simclr", 1, False),
        ("clip", 2, False),
    ):
        notes = resolve(TrainConfig(method, "digits", epochs=epochs), KNOWN["digits"]).notes
        assert any("starts slowly" in note for note in notes) == has_note, (method, epochs)


def test_the_defaults_of_every_method_can_be_trained() -> None:
    for method in methods.names():
        found = of_page(TrainConfig(method, "shapes"), KNOWN["shapes"])
        assert (found.refusal, found.notes) == ("", ()), method
        assert resolve(found.config, KNOWN["shapes"]).config == found.config


KNOBS = {"stem": "padded", "colors": "cifar10", "pixels": 48}


@pytest.fixture
def first() -> None:
    config = {"method": "simclr", "dataset": "shapes", "encoder": "resnet18"}
    runs.create("first", {**config, "encoder_knobs": KNOBS})


def asked(*words: str) -> TrainConfig:
    return config_of(parser().parse_args(["train", "--start", "first", *words]))


def test_the_encoder_and_its_settings_are_those_of_the_run(first: None) -> None:
    config = asked("--set", "lr=1")
    assert (config.encoder, config.encoder_knobs, config.lr) == ("resnet18", KNOBS, 1)
    assert asked("--encoder", "resnet18", "--set", "encoder.stem=padded") == asked()
    changed = asked("--set", "encoder.pixels=64", "--set", "encoder.gray_as_color=on")
    assert changed.encoder_knobs == {**KNOBS, "pixels": 64, "gray_as_color": True}
    assert config_of(parser().parse_args(["train"])).encoder == "small"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--encoder", "small"], "first has encoder=resnet18 and this training asks for small"),
        (["--set", "encoder=small"], "leave encoder out"),
        (["--set", "encoder.stem=small"], "encoder.stem=padded and this training asks for small"),
    ],
)
def test_a_contradiction_is_said(words: list[str], sentence: str, first: None) -> None:
    with pytest.raises(BadSetting, match=sentence):
        asked(*words)


def test_a_run_that_is_not_there_is_said() -> None:
    with pytest.raises(NoSuchRun, match="no run 'nobody'"):
        asked("--start", "nobody")


def test_the_command_line_trains_for_as_long_as_its_method_needs() -> None:
    def epochs(*words: str) -> int:
        return config_of(parser().parse_args(["train", *words])).epochs

    assert epochs("--method", "byol") == 100
    assert epochs("--method", "byol", "--epochs", "7") == epochs("--method", "byol", "--set", "epochs=7") == 7
    assert epochs("--method", "byol", "--encoder", "resnet18") == epochs("--method", "simclr") == 20
