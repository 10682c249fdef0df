"""The views of a training to come: what the page asks, what it is told, and the sheet it shows."""

import base64
import io
import re
from itertools import pairwise

import numpy as np
import pytest
from opened_page import opened, queued
from PIL import Image

from contrastive_core.data import datasets
from contrastive_core.data.recipe import Recipe
from contrastive_core.engine import answers, catalog
from contrastive_core.spaces import results
from contrastive_lab.train import augmentations
from contrastive_lab.train.augmentations import view_table


def test_views_are_those_of_the_recipe() -> None:
    plain = [f"recipe.{step}=0" for step in augmentations.STEPS]
    asked = {"method": "simclr", "dataset": "digits", "set": plain}
    found = answers.make("views", asked)
    images, views = found.arrays["images"], found.arrays["views"]
    assert images.shape == (6, 1, 8, 8)
    assert views.shape == (6, 5, 1, 8, 8)
    assert (images[0] == datasets.load("digits", "train").images[0]).all()
    assert (views == images[:, None]).all()
    assert augmentations.said(Recipe(**found.meta["recipe"])) == ["No augmentation is on: every view is the image."]
    other = answers.make("views", {**asked, "set": []})
    assert (other.arrays["views"] != other.arrays["images"][:, None]).any()
    assert "crop 100 %" in augmentations.said(Recipe(**other.meta["recipe"]))[0]
    assert results.read("views", asked) is not None, "kept for the next visit"


def test_views_that_differ_stand_beside_each_other_and_are_said_of_each() -> None:
    off = [f"recipe.{step}=0" for step in augmentations.STEPS]
    asked = {"method": "simclr", "dataset": "digits"}
    asked["set"] = [*off, "recipe.views=solarize=0 | solarize=1"]
    found = answers.make("views", asked)
    images, views = found.arrays["images"], found.arrays["views"]
    assert views.shape[1] == 6
    assert (views[:, :3] == images[:, None]).all()
    assert (views[:, 3:] == np.where(images >= 128, 255 - images, images)[:, None]).all()
    one, two = augmentations.said(Recipe(**found.meta["recipe"]))
    assert one == "View 1: No augmentation is on: every view is the image."
    assert two == "View 2: On: solarize 100 %."


def test_the_picture_holds_each_image_its_two_views_and_views_of_others() -> None:
    images = np.arange(6, dtype=np.uint8)[:, None, None, None] * np.ones((6, 3, 16, 16), np.uint8)
    views = (10 * np.arange(1, 7)[:, None] + np.arange(5))[..., None, None, None] * np.ones((6, 5, 3, 16, 16))
    drawn = view_table(images, views.astype(np.uint8), ["image", "views", "<others>"], is_pushed=True)
    assert "&lt;others&gt;" in drawn
    rows = drawn.partition("<tbody>")[2].split("<tr>")[1:]
    assert [row.count("<img") for row in rows] == [1 + 2 + 8] * 5
    values = [
        int(np.asarray(Image.open(io.BytesIO(base64.b64decode(code)))).max())
        for code in re.findall('base64,([^"]+)', rows[0])
    ]
    assert values[:3] == [0, 10, 12]
    assert {value // 10 for value in values[3:]} == {2, 3, 4, 5, 6}


@pytest.mark.parametrize(
    ("method", "is_pushed", "said"),
    [("simclr", True, "all others"), ("moco_v2", True, "earlier batches"), ("byol", False, "does not push")],
)
def test_what_the_others_do_is_what_the_method_does(method: str, is_pushed: bool, said: str) -> None:
    heads, pushes = augmentations.headings(catalog.read()["methods"][method])
    assert (pushes, said in heads[2]) == (is_pushed, True)


def test_a_chip_switches_an_augmentation_of_the_views_and_of_the_training(monkeypatch: pytest.MonkeyPatch) -> None:
    started = queued(monkeypatch)
    app = opened("train", monkeypatch)
    (chips,) = (g for g in app.button_group if g.label == "Augmentations")
    assert chips.options == ["crop 100 %", "rotate 50 %", "jitter 80 %", "mirror", "blur"]
    chips.set_value(["crop", "jitter", "blur"]).run()
    assert not app.exception
    app.button(key="start").click().run()
    pairs = list(pairwise(started[0]))
    assert ("--set", "recipe.rotation=0") in pairs
    assert ("--set", "recipe.blur=0.5") in pairs
    assert not any("recipe.crop=" in word or "recipe.jitter=" in word for word in started[0])
