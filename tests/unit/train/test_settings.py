"""Settings of a training: from the command line typed, checked and kept as plain values; which recipe suits a run, what
was published, and how rates follow the batch."""

import dataclasses
import json
import shlex

import pytest
from cases import cases

from contrastive_core import losses, methods, runs
from contrastive_core.base.errors import BadSetting, NoSuchRun
from contrastive_core.cli.main import parser
from contrastive_core.cli.train import config_of
from contrastive_core.data.dataset import KNOWN
from contrastive_core.data.recipe import Recipe
from contrastive_core.engine import training
from contrastive_core.methods import DatasetInfo
from contrastive_core.runs.run import Run
from contrastive_core.runs.train_config import RECIPES, TrainConfig, from_dict, settings_of, usual_epochs, with_settings
from contrastive_core.train.optim import OPTIMIZERS, SCHEDULES
from contrastive_core.train.settings import SET, defaults_of, resolve, suggested
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


# --- recipes ---


CIFAR = DatasetInfo((3, 32, 32), 50_000, 10, True)
IMAGENET = DatasetInfo((3, 224, 224), 1_281_167, 1000, True)


def long_run(method: str, **settings: object) -> TrainConfig:
    return TrainConfig(method, encoder="resnet18", epochs=200, **settings)  # type: ignore[arg-type]


@cases(
    ("encoder", "pixels", "epochs", "is_start", "name", "reason"),
    [
        ("small", 32, 800, False, "short", "small encoder"),
        ("resnet18", 32, 20, False, "short", "this run has 20"),
        ("resnet18", 32, 99, False, "short", "this run has 99"),
        ("resnet18", 32, 100, False, "cifar", "resnet18 at 32 pixels"),
        ("resnet50", 224, 200, False, "imagenet", "224 pixels"),
        ("timm:resnet50", 96, 200, False, "imagenet", "96 pixels"),
        ("timm:vit_small_patch16_224", 224, 300, False, "short", "AdamW"),
        ("resnet50", 224, 200, True, "short", "trained weights"),
    ],
)
def test_a_recipe_suits_encoder_size_and_epochs(
    encoder: str, pixels: int, epochs: int, is_start: bool, name: str, reason: str
) -> None:
    found, why = suggested(encoder, pixels, epochs, is_start)
    assert (found, reason in why) == (name, True), why


@cases("facts", [CIFAR, IMAGENET, DatasetInfo((1, 28, 28), 3000, 10, True), DatasetInfo((1, 8, 8), 1437, 10, True)])
@cases("name", methods.names())
def test_every_recipe_can_be_trained_with_and_says_why(name: str, facts: DatasetInfo) -> None:
    cls = methods.get(name)
    for recipe in RECIPES:
        found = defaults_of(long_run(name, training_recipe=recipe), facts)
        assert all(isinstance(reason, str) and reason for _, reason in found.values()), found
        value = {k: v for k, (v, _) in found.items()}
        assert value["optimizer"] in OPTIMIZERS
        assert value["schedule"] in SCHEDULES
        assert value["batch_size"] <= facts.n_train // 4
        assert value["warmup"] <= 20
        knobs = methods.knobs(name)
        own = {k: knobs[k].check(k, v) for k, v in value.get("method_knobs", {}).items()}
        assert 2 * own.get("queue", 0) <= facts.n_train
        assert cls.incompatibility(facts, value["batch_size"], own) is None
        losses.create(value.get("loss", cls.card.default_loss), **value.get("loss_knobs", {}))
        if facts.image_shape[0] == 1:
            assert all(view.hue == view.saturation == view.gray == view.flip == 0 for view in value["recipe"].each)


def test_published_values_of_simclr_and_moco() -> None:
    found = {k: v for k, (v, _) in defaults_of(long_run("simclr"), CIFAR).items()}
    assert found["training_recipe"] == "cifar"
    assert (found["optimizer"], found["lr"], found["weight_decay"]) == ("sgd", pytest.approx(0.24), 5e-4)
    assert (found["batch_size"], found["schedule"], found["loss_knobs"]) == (512, "cosine", {"temperature": 0.5})
    assert found["recipe"] == dataclasses.replace(Recipe(), crop_low=0.08, hue=0.1)
    assert found["method_knobs"] == {"hidden": 512, "dim": 128, "head_bn": True}
    found = {k: v for k, (v, _) in defaults_of(long_run("simclr"), IMAGENET).items()}
    assert (found["optimizer"], found["lr"], found["warmup"]) == ("lars", pytest.approx(0.3), 10)
    assert (found["recipe"].blur, found["recipe"].crop_low, found["recipe"].hue) == (0.5, 0.08, 0.2)
    found = {k: v for k, (v, _) in defaults_of(long_run("moco_v2"), IMAGENET).items()}
    assert found["method_knobs"] == {"hidden": 2048, "dim": 128, "queue": 65536, "momentum": 0.999}
    found = {k: v for k, (v, _) in defaults_of(long_run("moco_v1"), CIFAR).items()}
    assert (found["recipe"].crop_low, found["loss_knobs"]) == (0.08, {"temperature": 0.1})
    assert found["method_knobs"] == {"dim": 128, "queue": 4096, "momentum": 0.99, "bn_splits": 8}

    found = {k: v for k, (v, _) in defaults_of(long_run("moco_v3"), IMAGENET).items()}
    assert (found["weight_decay"], found["loss_knobs"]) == (1e-6, {"temperature": 1.0})
    for facts, temperature in ((CIFAR, 0.1), (IMAGENET, 0.07)):
        assert defaults_of(long_run("inst_disc"), facts)["loss_knobs"][0]["temperature"] == temperature
    swav = methods.get("swav").card.published
    assert (swav["imagenet"].epochs, swav["imagenet"].views["crop_low"]) == (400, 0.08)  # two crops
    assert (swav["cifar"].lr, swav["cifar"].per, swav["cifar"].views["hue"]) == (4e-3, 512, 0.2)


def test_a_method_without_a_published_recipe_says_so() -> None:
    found = defaults_of(long_run("cpc"), CIFAR)
    assert found["training_recipe"][0] == "cifar"
    assert "no such recipe was published for cpc" in found["training_recipe"][1]
    assert found["optimizer"] == methods.get("cpc").defaults(CIFAR)["optimizer"]


@cases(
    ("method", "settings", "lr"),
    [
        ("simclr", {"batch_size": 256}, 0.12),  # linear with SGD
        ("simclr", {"batch_size": 1024, "optimizer": "lars"}, 1.2),
        ("simclr", {"batch_size": 512, "optimizer": "adamw"}, 6e-3),  # the square root
        ("swav", {"batch_size": 128}, 2e-3),
        ("simsiam", {"batch_size": 256}, 0.03),
        ("cpc", {"batch_size": 16}, 1.5e-3),
        ("simclr", {"training_recipe": "short"}, 3e-3),
    ],
)
def test_rates_follow_the_batch(method: str, settings: dict, lr: float) -> None:
    value, why = defaults_of(long_run(method, **settings), CIFAR)["lr"]
    assert value == pytest.approx(lr)
    if "batch_size" in settings:
        assert "batch /" in why


def test_a_choice_wins_and_is_recorded() -> None:
    facts = KNOWN["digits"]
    config = with_settings(TrainConfig("simclr"), ["recipe=cifar", "method.dim=32", "recipe.flip=0.5", "lr=0.5"])
    found = resolve(config, facts)
    resolved, reasons = found.config, found.reasons
    assert (resolved.training_recipe, reasons["training_recipe"]) == ("cifar", SET)
    assert resolved.method_knobs == {"hidden": 512, "dim": 32, "head_bn": True}
    assert (resolved.recipe["flip"], resolved.optimizer, resolved.lr) == (0.5, "sgd", 0.5)
    assert reasons["recipe"].endswith(f"; {SET}: flip")
    assert (reasons["lr"], SET in reasons["batch_size"]) == (SET, False)
    assert settings_of({"training_recipe": "cifar"}) == ["--recipe", "cifar"]
    assert resolve(resolved, facts).config == resolved
    assert resolve(TrainConfig("simclr", loss="n_pair"), facts).reasons["loss_knobs"] == "the defaults of n_pair"
    with pytest.raises(BadSetting, match="short, cifar, imagenet; got 'cifar10'"):
        TrainConfig(training_recipe="cifar10")
    with pytest.raises(BadSetting, match="recipe must be one of"):
        TrainConfig(training_recipe="")


@pytest.mark.parametrize(
    ("method", "dataset", "encoder", "is_start", "epochs"),
    [
        ("byol", "digits", "small", False, 100),
        ("simsiam", "digits", "small", False, 60),
        ("simclr", "digits", "small", False, 20),
        ("byol", "shapes", "small", False, 20),
        ("byol", "digits", "resnet18", False, 20),
        ("byol", "digits", "small", True, 20),
    ],
)
def test_a_method_that_starts_slowly_is_trained_for_longer_where_that_was_measured(
    method: str, dataset: str, encoder: str, is_start: bool, epochs: int
) -> None:
    assert usual_epochs(method, dataset, encoder, is_start) == epochs


def test_the_reason_for_more_epochs_stands_beside_them_and_before_a_shorter_training() -> None:
    enough, short = (resolve(TrainConfig("byol", "digits", epochs=n), KNOWN["digits"]) for n in (100, 20))
    assert "after 100, it was above in all three" in enough.reasons["epochs"]
    assert "epochs" not in short.reasons
    assert not enough.notes
    assert short.notes == (enough.reasons["epochs"],)
