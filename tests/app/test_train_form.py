"""The form of Train: defaults with reasons, errors beside their field and no Start while there is one; optimizer,
recipe, a library's encoder, another run's weights; and what outlasts another page."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from opened_page import field, page_at, queued, revisit
from PIL import Image

from contrastive_core import runs
from contrastive_core.data import datasets
from contrastive_core.data.folder_selection import values_of
from contrastive_core.engine import answers, catalog
from contrastive_lab.train import form


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    for name in ("cats", "dogs"):
        (tmp_path / "pets" / name).mkdir(parents=True)
        for i in range(5):
            Image.new("RGB", (20, 12)).save(tmp_path / "pets" / name / f"{i}.png")
    return tmp_path / "pets"


def test_fields_have_the_methods_defaults_and_their_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    app = page_at("train", monkeypatch, data="digits", method="simclr")
    described = catalog.read()
    usual = described["methods"]["simclr"]["defaults"]["digits"]
    for label, value, why in (
        ("Temperature τ", usual["loss_knobs"]["value"]["temperature"], usual["loss_knobs"]["why"]),
        ("Batch size", usual["batch_size"]["value"], usual["batch_size"]["why"]),
        ("Learning rate", usual["lr"]["value"], usual["lr"]["why"]),
    ):
        found = field(app, label)
        assert (found.value, found.placeholder, found.help) == (None, f"{value:g} (default)", why)
    without = next(
        name
        for name, card in described["methods"].items()
        if "temperature" not in described["losses"][card["default_loss"]]["knobs"]
    )
    app = page_at("train", monkeypatch, method=without)
    assert "Temperature τ" not in [field.label for field in app.number_input]


@pytest.mark.parametrize("asked", ["nan", "1e400"])
def test_an_address_with_no_number_is_the_default(asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    app = page_at("train", monkeypatch, temperature=asked, batch=asked, lr=asked)
    assert not app.exception
    assert [field(app, label).value for label in ("Temperature τ", "Batch size")] == [None, None]


FURTHER = {  # lines of further settings, and what is said of them
    "lr": "key=value",
    "lr=-1": "at least 0",
    "batch_size=abc": "must be a whole number",
    "loss.tau=1": "loss 'nt_xent' has no setting 'tau'",
    "method.predictor=on": "has no setting 'predictor', which belongs to byol",
    "recipe.views=blurr=1": "no setting of a view",
    "batch_size=1": "between 2 and the 1437 training images",
    "batch_size=5000": "between 2 and the 1437 training images",
    "loss=vicreg\nloss.variance=0\nloss.covariance=0\nloss.invariance=0": "covariance, invariance, variance are all 0",
    "loss.temperature=1e6": "temperature must be at most",
    "method=moco_v1": "chosen above",
}


def test_an_error_stands_there_and_nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    runs.create("taken", {"method": "simclr"})
    app = page_at("train", monkeypatch)
    cases = [("Name", "../up", "letters, digits, dots"), ("Name", "taken", "There is a run 'taken' already")]
    cases += [("Further settings, one per line", text, why) for text, why in FURTHER.items()]
    for label, text, why in cases:
        assert not app.button(key="start").disabled
        field(app, label).input(text).run()
        assert any(why in e.value.replace("\\", "") for e in app.error), text
        assert app.button(key="start").disabled
        field(app, label).input("").run()
        assert not app.error


def test_data_that_are_not_here_are_fetched_first(monkeypatch: pytest.MonkeyPatch) -> None:
    app = page_at("train", monkeypatch, data="cifar10")
    assert app.button(key="start").disabled
    next(c for c in app.checkbox if c.label.startswith("Fetch")).check().run()
    assert not app.button(key="start").disabled


def test_a_folder_is_browsed_to_and_used(pets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "home", lambda: pets.parent)
    app = page_at("train", monkeypatch, data="folder")
    assert app.button(key="start").disabled  # no folder yet
    app.button(key="browse").click().run()
    next(b for b in app.button if b.label == "pets · 10 images").click().run()
    assert [b.label for b in app.button if "5 images" in b.label] == ["cats · 5 images", "dogs · 5 images"]
    app.button(key="browse-up").click().run()
    next(b for b in app.button if b.label == "pets · 10 images").click().run()
    app.button(key="browse-use").click().run()
    assert not app.exception
    assert app.text_input(key="path-folder").value == str(pets)
    assert app.button(key="browse").label == "Browse…"  # it closed
    app.text_input(key="path-folder").set_value("").run()
    app.button(key="browse").click().run()
    next(b for b in app.button if b.label == "pets").click().run()  # used before
    assert app.button(key="browse-use").label == "Use this folder: 10 images"


def test_a_folder_that_cannot_be_trained_on_says_why(pets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = page_at("train", monkeypatch, data="folder", method="sup_con")
    path = app.text_input(key="path-folder")
    path.set_value(str(pets / "nothing")).run()
    assert any("There is no folder or list" in e.value for e in app.error)
    assert app.button(key="start").disabled
    path.set_value(str(pets / "cats" / "0.png")).run()  # it is there, and no folder
    assert any("is neither a folder of images" in e.value for e in app.error)
    assert app.button(key="start").disabled
    answers.make("folder", values_of(str(pets / "cats")))
    app.text_input(key="path-folder").set_value(str(pets / "cats")).run()
    assert any("needs at least two classes" in e.value for e in app.error)
    assert app.button(key="start").disabled
    answers.make("folder", values_of(str(pets)))
    app.text_input(key="path-folder").set_value(f'"{pets}"').run()  # as file managers copy it
    assert not app.error
    assert not app.button(key="start").disabled


def test_the_time_is_that_of_a_similar_training_here(monkeypatch: pytest.MonkeyPatch) -> None:
    config = {"method": "simclr", "dataset": "digits", "encoder": "small", "batch_size": 128}
    runs.create("larger", {**config, "image_size": 128}).append_metrics(
        [{"epoch": 1, "step": 11, "loss": 1.0, "seconds": 170.0}]
    )
    run = runs.create("before", config)
    app = page_at("train", monkeypatch)

    def is_said(text: str) -> bool:
        return any(text in c.value.replace("\\", "") for c in app.caption)

    assert is_said("No time estimate yet")
    monkeypatch.setattr(form.training, "starting", lambda: ["first"])
    app.run()
    assert is_said("It starts after first.")
    run.append_metrics([{"epoch": 4, "step": 44, "loss": 1.0, "seconds": 6.0}])
    field(app, "Epochs").set_value(200).run()
    assert is_said("About 5 min, estimated from 1.5 s per epoch of before")
    field(app, "Batch size").set_value(64).run()
    assert is_said("No time estimate yet")


NUMBERS = {  # label: the setting, its bounds, and a number that it takes
    "Epochs": ("--epochs ", (1, 10_000), 300),
    "Temperature τ": ("loss.temperature=", (0.001, 100), 0.07),
    "Batch size": ("batch_size=", (2, 65_536), 64),
    "Learning rate": ("lr=", (0, 100), 1e-6),
    "Seed": ("--seed ", (0, 2**31 - 1), 2**31 - 1),
}


def test_the_number_in_a_box_is_what_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    started, app = queued(monkeypatch), page_at("train", monkeypatch)
    for label, (setting, bounds, value) in NUMBERS.items():
        for outside in (bounds[0] - 1, 10**12):  # it stands there, and nothing else starts
            field(app, label).set_value(outside).run()
            assert field(app, label).value == outside
            assert app.error[0].value.replace("\\", "").startswith(f"{label} must be at ")
            assert app.button(key="start").disabled
        field(app, label).set_value(value).run()
        app.button(key="start").click().run()
        assert not app.exception
        words = " ".join(started.pop()) + " "
        assert f"{setting}{value:g} " in words or f"{setting}{value} " in words
        app.button(key="new-run").click().run()
    field(app, "Learning rate").set_value(0).run()
    assert app.error[0].value.replace("\\", "") == "At a learning rate of 0 nothing is learned."
    assert app.button(key="start").disabled


def test_a_folders_batch_size_is_the_one_that_is_used(pets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = page_at("train", monkeypatch, data="folder", method="simclr")
    app.text_input(key="path-folder").set_value(str(pets)).run()
    assert field(app, "Batch size").placeholder == "default"  # nobody has counted them
    assert app.button(key="start").disabled
    answers.make("folder", values_of(str(pets)))
    app.run()
    n = len(datasets.load(f"folder:{pets}", "train"))
    assert n < 4 * 128
    assert field(app, "Batch size").placeholder == f"{max(2, n // 4)} (default)"
    assert f"of the {n} training images" in field(app, "Batch size").help
    for method, least in (("metric", 4), ("cpc", 2)):
        app.selectbox(key="train-method").set_value(method).run()
        assert field(app, "Batch size").placeholder == f"{max(least, n // 4)} (default)"


def test_epochs_follow_the_method_and_too_few_are_said_before_start(monkeypatch: pytest.MonkeyPatch) -> None:
    app = page_at("train", monkeypatch, data="digits", method="simclr")
    assert field(app, "Epochs").value == 20
    app.selectbox(key="train-method").set_value("byol").run()
    assert field(app, "Epochs").value == 100
    assert not any("untrained" in note.value for note in app.info)
    field(app, "Epochs").set_value(20).run()
    assert any("after 20 epochs, the small encoder" in note.value for note in app.info)
    assert not app.button(key="start").disabled


# --- recipe, optimizer and encoder ---


def looked_up(monkeypatch: pytest.MonkeyPatch, *answers: Any) -> list[tuple[str, ...]]:
    """Answers of the process that opens models, one after the other."""
    asked: list[tuple[str, ...]] = []

    def answer(*words: str, **_: Any) -> Any:
        asked.append(("import", *words, "--dry-run"))
        found = answers[len(asked) - 1]
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(form, "preview_import", answer)
    return asked


def test_what_is_chosen_is_trained_with_and_outlasts_another_page(monkeypatch: pytest.MonkeyPatch) -> None:
    started, app = queued(monkeypatch), page_at("train", monkeypatch, data="digits")
    for name in ("adamw", "sgd", "lars"):
        app.selectbox(key="train-optimizer").set_value(name).run()
        assert not app.exception
        assert app.selectbox(key="train-optimizer").value == name
    for label, value in (
        ("Micro-batch", 32),
        ("Batch size", 64),
        ("Temperature τ", 0.07),
        ("Name", "mine"),
        ("Further settings, one per line", "layer_decay=0.65\nrecipe.views=byol"),
    ):
        field(app, label).set_value(value).run()
    app.selectbox(key="train-loss").set_value("nt_xent").run()
    rate = field(app, "Learning rate")
    assert rate.placeholder == "0.075 (default)"
    assert "LARS" in rate.help
    revisit(app, "train")
    assert app.selectbox(key="train-optimizer").value == "lars"
    assert field(app, "Further settings, one per line").value == "layer_decay=0.65\nrecipe.views=byol"
    app.button(key="start").click().run()
    assert not app.exception
    assert app.session_state["watched"] == "mine"
    for pair in (("--method", "simclr"), ("--dataset", "digits"), ("--epochs", "20"), ("--seed", "0")):
        assert pair in list(pairwise(started[0]))
    for setting in ("optimizer=lars", "layer_decay=0.65", "batch_size=64", "loss.temperature=0.07"):
        assert ("--set", setting) in list(pairwise(started[0]))
    for pair in (("--micro-batch", "32"), ("--loss", "nt_xent"), ("--set", "recipe.views=byol")):
        assert pair in list(pairwise(started[0]))


def test_a_recipe_suits_the_encoder_and_the_epochs_unless_one_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    started = queued(monkeypatch)
    app = page_at("train", monkeypatch, data="shapes", encoder="resnet18", epochs="200")

    def shown() -> tuple[str, str]:
        assert not app.exception
        return field(app, "Batch size").placeholder, field(app, "Learning rate").placeholder

    assert shown() == ("512 (default)", "0.24 (default)")
    assert any("resnet18 at 32 pixels for 200 epochs" in c.value for c in app.caption)
    for recipe, usual in (
        ("short", ("128 (default)", "0.003 (default)")),
        ("imagenet", ("256 (default)", "0.3 (default)")),
        ("cifar", ("512 (default)", "0.24 (default)")),
    ):
        field(app, "Recipe").set_value(recipe).run()
        assert shown() == usual
    field(app, "Batch size").set_value(64).run()
    assert shown()[1] == "0.03 (default)"
    revisit(app, "train")
    assert field(app, "Recipe").value == "cifar"
    app.button(key="start").click().run()
    assert ("--recipe", "cifar") in list(pairwise(started[0]))
    app = page_at("train", monkeypatch, data="shapes", encoder="resnet18", recipe="other", method="cpc", epochs="200")
    assert field(app, "Recipe").value == ""
    assert any("No such recipe was published" in c.value for c in app.caption)


def test_an_unknown_model_is_said_beside_its_field(monkeypatch: pytest.MonkeyPatch) -> None:
    unknown, unreadable = ValueError("timm has no model 'nope'"), PermissionError("the cache cannot be read")
    asked = looked_up(monkeypatch, unknown, unreadable, {"encoder": "torchvision:vit_b_16", "pixels": 224})
    app = page_at("train", monkeypatch, data="digits")
    app.selectbox(key="train-encoder").set_value(form.LIBRARY).run()
    assert app.button(key="start").disabled
    field(app, "Model").input("nope").run()
    assert any("timm has no model" in e.value for e in app.error)
    assert app.button(key="start").disabled
    app.run()
    assert len(asked) == 1  # it is looked up once
    field(app, "Model").input("torchvision:vit_b_16").run()
    assert any("the cache cannot be read" in e.value for e in app.error)
    app.run()  # after the user has mended it
    assert not app.error
    assert any("224 pixels" in c.value for c in app.caption)
    started = queued(monkeypatch)
    app.button(key="start").click().run()
    assert ("--encoder", "torchvision:vit_b_16") in list(pairwise(started[0]))
    assert asked[-1] == ("import", "torchvision:vit_b_16", "--dry-run")


def test_a_training_starts_from_another_runs_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    started, app = queued(monkeypatch), page_at("train", monkeypatch, data="digits")
    for name in ("simclr-digits", "sup_con-digits", "simclr-digits"):
        app.selectbox(key="train-start").set_value(name).run()
        assert not app.exception
        assert app.selectbox(key="train-start").value == name
    assert "Encoder" not in [s.label for s in app.selectbox]  # it is that run's
    revisit(app, "train")
    app.button(key="start").click().run()
    pairs = list(pairwise(started[0]))
    assert ("--start", "simclr-digits") in pairs
    assert ("--encoder", "small") in pairs


def test_a_start_that_does_not_fit_is_said_beside_its_field(monkeypatch: pytest.MonkeyPatch) -> None:
    app = page_at("train", monkeypatch, data="digits", start="simclr-shapes")
    assert any("was trained on images with 3 channels, but these have 1" in e.value for e in app.error)
    assert app.button(key="start").disabled
    field(app, "Further settings, one per line").set_value("encoder.gray_as_color=on").run()
    assert not app.error
    assert not app.button(key="start").disabled
    app = page_at("train", monkeypatch, data="shapes", start="simclr-digits")
    assert any("was trained on images with 1 channels, but these have 3" in e.value for e in app.error)
    app = page_at("train", monkeypatch, data="shapes", start="simclr-shapes")
    assert not app.error
    field(app, "Further settings, one per line").set_value("encoder.colors=imagenet").run()
    assert any("normalized differently" in e.value for e in app.error)
