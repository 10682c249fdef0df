"""A new training of a library's model scales its images as the library says; a run that was begun
without that goes on as it was."""

import dataclasses
import importlib.util
from typing import Any

import numpy as np
import pytest
import torch

from contrastive_core import runs
from contrastive_core.data import datasets
from contrastive_core.models.libraries import pretrained
from contrastive_core.runs.train_config import TrainConfig
from contrastive_core.train.settings import facts_of, resolve

pytestmark = pytest.mark.skipif(importlib.util.find_spec("timm") is None, reason="timm is not installed")
CPU = torch.device("cpu")
VIT, RESNET = "timm:test_vit", "timm:test_resnet"  # timm's smallest, made for tests
IMAGENET = [[0.485, 0.456, 0.406], [0.229, 0.224, 0.225]]


@pytest.fixture
def colored() -> datasets.Dataset:
    """The digits in color, at 32 pixels."""
    digits = datasets.load("digits")
    images = np.broadcast_to(np.uint8(7), (len(digits), 3, 32, 32))
    return dataclasses.replace(digits, images=images)


def knobs_of(encoder: str, dataset: datasets.Dataset, **settings: Any) -> dict[str, Any]:
    config = TrainConfig(encoder=encoder, device="cpu", **settings)
    return resolve(config, facts_of(dataset)).config.encoder_knobs


def test_a_librarys_model_has_its_own_scale_and_the_size_it_needs(colored: datasets.Dataset) -> None:
    own = pretrained(VIT)[0]
    assert knobs_of(VIT, colored) == {"pixels": own.pixels, "colors": own.colors}
    assert knobs_of(RESNET, colored) == {"colors": pretrained(RESNET)[0].colors}  # 32 pixels
    assert knobs_of("torchvision:resnet18", colored) == {"colors": IMAGENET}
    assert knobs_of("small", colored) == knobs_of("resnet18", colored) == {}


def test_what_is_set_stays(colored: datasets.Dataset) -> None:
    mine = {"pixels": 64, "colors": "none"}
    assert knobs_of(VIT, colored, encoder_knobs=mine) == mine
    gray = datasets.load("digits")
    assert knobs_of(RESNET, gray) == {}  # nothing is known of gray images
    as_color = {"gray_as_color": True}
    assert "colors" in knobs_of(RESNET, gray, encoder_knobs=as_color)


def test_what_starts_from_a_run_has_its_scale(colored: datasets.Dataset) -> None:
    for name, own in (("old", {}), ("new", {"colors": IMAGENET})):
        runs.create(name, {"method": "simclr", "encoder": RESNET, "encoder_knobs": own})
        assert knobs_of(RESNET, colored, start=name)["colors"] == own.get("colors", "plain")
