"""Recipes: which suits a run, what was published, and how rates follow the batch."""

import dataclasses

import pytest
from cases import cases

from contrastive_core import losses, methods
from contrastive_core.base.errors import BadSetting
from contrastive_core.data.dataset import KNOWN
from contrastive_core.data.recipe import Recipe
from contrastive_core.methods import DatasetInfo
from contrastive_core.runs.train_config import RECIPES, TrainConfig, settings_of, usual_epochs, with_settings
from contrastive_core.train.optim import OPTIMIZERS, SCHEDULES
from contrastive_core.train.settings import SET, defaults_of, resolve, suggested

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
