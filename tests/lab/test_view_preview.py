"""The views of a training to come: what the page asks, what it is told, and the sheet it shows."""

from __future__ import annotations

import numpy as np
import pytest

from contrastive_core.data import datasets
from contrastive_core.engine import answers, results
from contrastive_lab.train import augmentations


def test_views_are_those_of_the_recipe() -> None:
    plain = [f"recipe.{step}=0" for step in augmentations.STEPS]
    asked = {"method": "simclr", "dataset": "digits", "set": plain}
    found = answers.make("views", asked)
    images, views = found.arrays["images"], found.arrays["views"]
    assert images.shape == (6, 1, 8, 8)
    assert views.shape == (6, 5, 1, 8, 8)
    assert (images[0] == datasets.load("digits", "train").images[0]).all()
    assert (views == images[:, None]).all()
    assert augmentations.steps(found.meta["recipe"]).startswith("No augmentation")
    other = answers.make("views", {**asked, "set": []})
    assert (other.arrays["views"] != other.arrays["images"][:, None]).any()
    assert "crop 100 %" in augmentations.steps(other.meta["recipe"])
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
    one, two = augmentations.said(found.meta["recipe"], 6)
    assert one == "View 1, columns 1 to 3: No augmentation is on: every view is the image."
    assert two == "View 2, columns 4 to 6: On: solarize 100 %."
    plain = answers.make("views", {**asked, "set": off})
    assert len(augmentations.said(plain.meta["recipe"], 5)) == 1


def test_what_cannot_be_shown_says_why() -> None:
    with pytest.raises(ValueError, match="unknown setting"):
        answers.make("views", {"method": "simclr", "dataset": "digits", "set": ["color=1"]})


def test_the_sheet_holds_every_tile() -> None:
    images = np.arange(2, dtype=np.uint8)[:, None, None, None] * np.ones((2, 3, 32, 32), np.uint8)
    views = 10 + np.arange(3, dtype=np.uint8)[None, :, None, None, None] * np.ones((2, 3, 3, 32, 32), np.uint8)
    shown = augmentations.sheet(images, views)
    assert shown.ndim == 3
    for value in (0, 1, 10, 11, 12):
        assert (shown == value).all(axis=2).sum() >= 64 * 64
