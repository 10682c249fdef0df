"""Train: optimizer, layer-wise decay, a library's encoder, another run's weights; what survives."""

from itertools import pairwise
from typing import Any

import pytest
from opened_page import revisit
from streamlit.testing.v1 import AppTest
from test_named_files import page_at

from contrastive_lab.train import fields as encoders


def queued(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    started: list[list[str]] = []
    monkeypatch.setattr("contrastive_core.engine.queue.enqueue", lambda name, words, **_: started.append(words))
    return started


def looked_up(monkeypatch: pytest.MonkeyPatch, *answers: Any) -> list[tuple[str, ...]]:
    """Answers of the process that opens models, one after the other."""
    asked: list[tuple[str, ...]] = []

    def answer(*words: str, **_: Any) -> Any:
        asked.append(("import", *words, "--dry-run"))
        found = answers[len(asked) - 1]
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(encoders, "preview_import", answer)
    return asked


def field(app: AppTest, label: str) -> Any:
    every = [*app.text_input, *app.text_area, *app.number_input, *app.selectbox]
    return next(f for f in every if f.label == label)


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
    app.selectbox(key="train-encoder").set_value(encoders.LIBRARY).run()
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
