"""Train's fields: defaults with reasons, errors beside their field, no Start while there is one."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest
from test_named_files import page_at

from contrastive_core.data import datasets
from contrastive_core.data.folder_preview import values_of
from contrastive_core.engine import answers, catalog
from contrastive_core.records import runs
from contrastive_core.records.train_config import TrainConfig, with_settings
from contrastive_core.training import validate
from contrastive_core.training.setup import prepare
from contrastive_lab import command_files
from contrastive_lab.train import setting_notes
from contrastive_lab.train.fields import TrainChoice, wrong_settings


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


def test_what_is_chosen_is_trained_and_outlives_a_refresh(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr("contrastive_core.engine.queue.enqueue", lambda name, words: started.append(words))
    app = page_at("train", monkeypatch)
    for label, value in (("Temperature τ", 0.07), ("Batch size", 64), ("Learning rate", 0.001)):
        number(app, label).set_value(value).run()
    app.selectbox(key="train-loss").set_value("nt_xent").run()
    query = {k: v if isinstance(v, str) else v[0] for k, v in app.query_params.items()}
    app = page_at("train", monkeypatch, **query)
    assert number(app, "Temperature τ").value == 0.07
    assert app.selectbox(key="train-loss").value == "nt_xent"
    start(app).click().run()
    assert not app.exception
    pairs = list(pairwise(started[0]))
    for setting in ("loss.temperature=0.07", "batch_size=64", "lr=0.001"):
        assert ("--set", setting) in pairs
    assert ("--loss", "nt_xent") in pairs


@pytest.mark.parametrize("asked", ["nan", "-1", "1e400", "x"])
def test_an_address_with_no_number_is_the_default(asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    app = page_at("train", monkeypatch, temperature=asked, batch=asked, lr=asked)
    assert not app.exception
    assert [number(app, label).value for label in ("Temperature τ", "Batch size")] == [None, None]


@pytest.mark.parametrize(
    ("field", "text", "why"),
    [
        ("Name", "../up", "letters, digits, dots"),
        ("Name", "taken", "there is a run 'taken' already"),
        ("Further settings, one a line", "lr", "key=value"),
        ("Further settings, one a line", "lr=-1", "at least 0"),
        ("Further settings, one a line", "batch_size=abc", "must be a whole number"),
        ("Further settings, one a line", "loss.tau=1", "loss.tau is no setting here"),
        ("Further settings, one a line", "method.speed=1", "method.speed is no setting here"),
        ("Further settings, one a line", "method.predictor=on", "method.predictor is a setting of byol, moco_v3"),
        ("Further settings, one a line", "batch_size=1", "one image has nothing to compare with"),
        (
            "Further settings, one a line",
            "loss=vicreg\nloss.variance=0\nloss.covariance=0\nloss.invariance=0",
            "covariance, invariance, variance are all 0",
        ),
        ("Further settings, one a line", "loss.temperature=1e6", "must lie in"),
        ("Further settings, one a line", "method=moco_v1", "chosen above"),
    ],
)
def test_an_error_stands_there_and_nothing_starts(
    field: str, text: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs.create("taken", {"method": "simclr"})
    app = page_at("train", monkeypatch)
    assert not start(app).disabled
    fields = {f.label: f for f in [*app.text_input, *app.text_area]}
    fields[field].input(text).run()
    assert any(why in e.value.replace("\\", "") for e in app.error)
    assert start(app).disabled
    {f.label: f for f in [*app.text_input, *app.text_area]}[field].input("").run()
    assert not app.error
    assert not start(app).disabled


@pytest.mark.parametrize(
    ("method", "lines", "says"),
    [
        ("vicreg", "loss.variance=0", "loss.variance is 0: nothing keeps the embedding from shrinking"),
        ("lejepa", "loss.trade_off=1", "loss.trade_off is 1: nothing brings the two views"),
        ("barlow_twins", "loss.off_diagonal=0", "nothing keeps dimensions apart"),
        ("barlow_twins", "batch_size=64", "256 dimensions and a batch 64 images: the correlation matrix has rank 63"),
        ("vicreg", "method.dim=512", "512 dimensions and a batch 128 images: the covariance matrix has rank 127"),
        ("vicreg", "batch_size=512", ""),
        ("lejepa", "method.dim=512", ""),
        ("simclr", "method.dim=512", ""),
    ],
)
def test_what_a_weight_of_zero_or_a_low_rank_leads_to_is_said(method: str, lines: str, says: str) -> None:
    described = catalog.read()
    choice = TrainChoice(described, method, described["methods"][method]["default_loss"], "digits")
    assert not setting_notes.refusal(choice, lines.split())
    notes = " ".join(setting_notes.notes(choice, lines.split()))
    assert says in notes
    assert bool(notes) is bool(says)
    assert not setting_notes.notes(choice, [])
    setup = prepare(with_settings(TrainConfig(method, "digits", device="cpu"), [*lines.split(), "encoder.width=0.25"]))
    assert " ".join(validate.setting_notes(setup.config, setup.dataset)) == notes  # the command line says the same


def test_every_default_is_a_setting_that_is_taken() -> None:
    """What stands in a field is never called wrong."""
    described = catalog.read()
    for method, card in described["methods"].items():
        choice = TrainChoice(described, method, card["default_loss"], "digits")
        usual = choice.temperature()
        lines = [f"loss.temperature={usual[0]}"] if usual else []
        batch, lr = choice.usual("batch_size")[0], choice.usual("lr")[0]
        assert wrong_settings(choice, [*lines, f"batch_size={batch}", f"lr={lr}"]) == ""


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
    assert not app.exception
    next(b for b in app.button if b.label == "pets · 10 images").click().run()
    assert [b.label for b in app.button if "5 images" in b.label] == ["cats · 5 images", "dogs · 5 images"]
    app.button(key="browse-up").click().run()
    next(b for b in app.button if b.label == "pets · 10 images").click().run()
    app.button(key="browse-use").click().run()
    assert not app.exception
    assert app.text_input(key="path-folder").value == str(pets)
    assert "browse-use" not in [b.key for b in app.button]
    assert command_files.folders() == [pets]
    app.text_input(key="path-folder").set_value("").run()
    app.button(key="browse").click().run()
    app.button(key="browse-home").click().run()
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


def test_the_time_is_said_where_it_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    config = {"method": "simclr", "dataset": "digits", "encoder": "small", "batch_size": 128}
    run = runs.create("before", config)
    app = page_at("train", monkeypatch)
    assert any("No time estimate yet" in c.value for c in app.caption)
    run.append_metrics([{"epoch": 4, "step": 44, "loss": 1.0, "seconds": 6.0}])
    number(app, "Epochs").set_value(200).run()
    assert any("About 5 min" in c.value.replace("\\", "") for c in app.caption)
    number(app, "Batch size").set_value(64).run()
    assert any("No time estimate yet" in c.value for c in app.caption)


def test_the_time_is_that_of_images_of_the_same_size(pets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = {"method": "simclr", "dataset": f"folder:{pets}", "encoder": "small"}
    run = runs.create("large", {**data, "batch_size": 128, "image_size": 128})
    run.append_metrics([{"epoch": 1, "step": 2, "loss": 1.0, "seconds": 170.0}])
    answers.make("folder", values_of(str(pets)))
    app = page_at("train", monkeypatch, data="folder", method="simclr")
    app.text_input(key="path-folder").set_value(str(pets)).run()
    assert any("No time estimate yet" in c.value for c in app.caption)
    for pixels, said in ((64, "No time estimate yet"), (128, "from 3 min per epoch"), (96, "No time")):
        number(app, "Image size in pixels").set_value(pixels).run()
        assert any(said in c.value.replace("\\", "") for c in app.caption)


BAD = {  # label: numbers that a field cannot take, and numbers that it can
    "Epochs": ((0, -3, 2.5), (1, 5, 300)),
    "Temperature τ": ((-1, 0, 101), (0.07, 0.5, 100)),
    "Batch size": ((100_000, 1, -64), (2, 64, 65_536)),
    "Learning rate": ((-0.1, 0, 101), (1e-6, 0.003, 100)),
    "Seed": ((-1, 2**31, 0.5), (0, 7, 2**31 - 1)),
}


@pytest.mark.parametrize("label", BAD)
def test_a_number_that_stands_in_the_box_starts_or_nothing_does(label: str, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr("contrastive_core.engine.queue.enqueue", lambda name, words: started.append(words))
    app = page_at("train", monkeypatch)
    for bad, good in zip(*BAD[label], strict=True):
        number(app, label).set_value(bad)
        start(app).click().run()  # both at once, before the page knew
        assert not started
        assert number(app, label).value == bad  # the box is left to whoever writes in it
        assert any(label.lower() in e.value.lower() for e in app.error)
        assert start(app).disabled
        assert app.button(key="see-views").disabled
        number(app, label).set_value(good).run()
        assert not app.error
        start(app).click().run()
        assert not app.exception
        words = " ".join(started.pop())
        name = {
            "Epochs": "--epochs ",
            "Seed": "--seed ",
            "Temperature τ": "loss.temperature=",
            "Batch size": "batch_size=",
            "Learning rate": "lr=",
        }[label]
        assert f"{name}{good:g} " in f"{words} " or f"{name}{good} " in f"{words} "


def test_a_wrong_number_goes_with_its_field(monkeypatch: pytest.MonkeyPatch) -> None:
    app = page_at("train", monkeypatch, loss="nt_xent")
    number(app, "Temperature τ").set_value(-1).run()
    assert start(app).disabled
    app.selectbox(key="train-loss").set_value("triplet").run()  # which has none
    assert not app.error
    assert not start(app).disabled


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
