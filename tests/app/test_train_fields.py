"""Train's fields: defaults with reasons, errors beside their field, no Start while there is one."""

from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest
from test_named_files import page_at

from contrastive_core import runs
from contrastive_core.data import datasets
from contrastive_core.data.folder_selection import values_of
from contrastive_core.engine import answers, catalog


def number(app: AppTest, label: str) -> Any:
    return next(field for field in app.number_input if field.label == label)


def start(app: AppTest) -> Any:
    return app.button(key="start")


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
        field = number(app, label)
        assert field.value is None
        assert field.placeholder == f"{value:g} (default)"
        assert field.help == why
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
    assert [number(app, label).value for label in ("Temperature τ", "Batch size")] == [None, None]


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
    cases = [("Name", "../up", "letters, digits, dots"), ("Name", "taken", "there is a run 'taken' already")]
    cases += [("Further settings, one per line", text, why) for text, why in FURTHER.items()]
    for label, text, why in cases:
        assert not start(app).disabled
        {f.label: f for f in [*app.text_input, *app.text_area]}[label].input(text).run()
        assert any(why in e.value.replace("\\", "") for e in app.error), text
        assert start(app).disabled
        {f.label: f for f in [*app.text_input, *app.text_area]}[label].input("").run()
        assert not app.error


def test_data_that_are_not_here_are_fetched_first(monkeypatch: pytest.MonkeyPatch) -> None:
    app = page_at("train", monkeypatch, data="cifar10")
    assert start(app).disabled
    next(c for c in app.checkbox if c.label.startswith("Fetch")).check().run()
    assert not start(app).disabled


def test_a_folder_is_browsed_to_and_used(pets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "home", lambda: pets.parent)
    app = page_at("train", monkeypatch, data="folder")
    assert start(app).disabled  # no folder yet
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
    field = app.text_input(key="path-folder")
    field.set_value(str(pets / "nothing")).run()
    assert any("There is no folder or list" in e.value for e in app.error)
    assert start(app).disabled
    field.set_value(str(pets / "cats" / "0.png")).run()  # it is there, and no folder
    assert any("is neither a folder of images" in e.value for e in app.error)
    assert start(app).disabled
    answers.make("folder", values_of(str(pets / "cats")))
    app.text_input(key="path-folder").set_value(str(pets / "cats")).run()
    assert any("needs at least two classes" in e.value for e in app.error)
    assert start(app).disabled
    answers.make("folder", values_of(str(pets)))
    app.text_input(key="path-folder").set_value(str(pets)).run()
    assert not app.error
    assert not start(app).disabled


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
    run.append_metrics([{"epoch": 4, "step": 44, "loss": 1.0, "seconds": 6.0}])
    number(app, "Epochs").set_value(200).run()
    assert is_said("About 5 min, estimated from 1.5 s per epoch of before")
    number(app, "Batch size").set_value(64).run()
    assert is_said("No time estimate yet")


NUMBERS = {  # label: the setting, its bounds, and a number that it takes
    "Epochs": ("--epochs ", (1, 10_000), 300),
    "Temperature τ": ("loss.temperature=", (0.001, 100), 0.07),
    "Batch size": ("batch_size=", (2, 65_536), 64),
    "Learning rate": ("lr=", (0, 100), 1e-6),
    "Seed": ("--seed ", (0, 2**31 - 1), 2**31 - 1),
}


def test_the_number_in_a_box_is_what_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr("contrastive_core.engine.queue.enqueue", lambda name, words, **_: started.append(words))
    app = page_at("train", monkeypatch)
    for label, (setting, bounds, value) in NUMBERS.items():
        assert (number(app, label).min, number(app, label).max) == bounds
        number(app, label).set_value(value).run()
        start(app).click().run()
        assert not app.exception
        words = " ".join(started.pop()) + " "
        assert f"{setting}{value:g} " in words or f"{setting}{value} " in words
        app.button(key="new-run").click().run()
    number(app, "Learning rate").set_value(0).run()
    assert app.error[0].value.replace("\\", "") == "At a learning rate of 0 nothing is learned."
    assert start(app).disabled


def test_a_folders_batch_size_is_the_one_that_is_used(pets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = page_at("train", monkeypatch, data="folder", method="simclr")
    app.text_input(key="path-folder").set_value(str(pets)).run()
    assert number(app, "Batch size").placeholder == "default"  # nobody has counted them
    answers.make("folder", values_of(str(pets)))
    app.run()
    n = len(datasets.load(f"folder:{pets}", "train"))
    assert n < 4 * 128
    assert number(app, "Batch size").placeholder == f"{max(2, n // 4)} (default)"
    assert f"of the {n} training images" in number(app, "Batch size").help
    for method, least in (("metric", 4), ("cpc", 2)):
        app.selectbox(key="train-method").set_value(method).run()
        assert number(app, "Batch size").placeholder == f"{max(least, n // 4)} (default)"


def test_epochs_follow_the_method_and_too_few_are_said_before_start(monkeypatch: pytest.MonkeyPatch) -> None:
    app = page_at("train", monkeypatch, data="digits", method="simclr")
    assert number(app, "Epochs").value == 20
    app.selectbox(key="train-method").set_value("byol").run()
    assert number(app, "Epochs").value == 100
    assert not any("untrained" in note.value for note in app.info)
    number(app, "Epochs").set_value(20).run()
    assert any("after 20 epochs, the small encoder" in note.value for note in app.info)
    assert not start(app).disabled
