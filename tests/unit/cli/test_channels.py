"""Images of five bands, of which one tells the classes apart and is not among those that a picture shows."""

import json

import numpy as np
import pytest
import torch
from banded_images import folder, trained

from contrastive_core.cli.main import main
from contrastive_core.data import datasets
from contrastive_core.engine import answers
from contrastive_core.models.encoders import create_encoder
from contrastive_lab import cache
from contrastive_lab.components.shared.mount import thumbnail_sheet
from contrastive_lab.train.augmentations import view_table
from contrastive_lab.train.folder import summary

__all__ = ["folder"]


def test_from_arrays_to_lists(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    run = trained(folder)
    data = datasets.of_config(run.config)
    assert (data.images.shape, data.left_out) == ((64, 5, 12, 12), "")
    assert run.config["recipe"]["hue"] == run.config["recipe"]["gray"] == 0
    capsys.readouterr()
    assert main(["evaluate", "bands", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["scores"]["raw"]["linear_probe"]["value"] == 1  # it sees the last band
    assert main(["samples", "bands", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 64
    assert main(["advise", folder, "--look"]) == 0
    assert "12 × 12 pixels" in capsys.readouterr().out
    for setting, why in (
        ("encoder.colors=imagenet", "colors has means of 3 channels; the images have 5"),
        ("encoder.gray_as_color=true", "gray_as_color is for gray images; these have 5 channels"),
    ):
        assert main(["train", "--dataset", folder, "--run", "r", "--set", setting])
        assert why in capsys.readouterr().err


def test_pictures_show_the_first_three(folder: str) -> None:
    images = np.asarray(datasets.load(folder).images[:4])
    assert np.array_equal(cache.picture(images, 1), images[1, :3].transpose(1, 2, 0))
    assert np.array_equal(cache.picture(images[:, :2], 1)[..., 2], images[1, 0])
    assert thumbnail_sheet(images).picture == thumbnail_sheet(images[:, :3]).picture
    views, heads = images[:, None].repeat(2, axis=1), ["image", "views", "others"]
    drawn = view_table(images, views, heads, is_pushed=True)
    assert drawn == view_table(images[:, :3], views[:, :, :3], heads, is_pushed=True)
    card = answers.make("folder", {"path": folder.removeprefix("folder:")})
    assert "16×12 · 5 channels · 64 train, 32 test" in summary(card.meta)
    assert card.arrays["images"].shape[1] == 3
    assert answers.make("views", {"method": "simclr", "dataset": folder, "set": []}).arrays["views"].shape[2] == 5


def test_each_kind_of_encoder_takes_them() -> None:
    for name in ("small", "resnet18", "torchvision:shufflenet_v2_x0_5"):
        assert create_encoder(name, 5, 32).eval()(torch.rand(2, 5, 32, 32)).shape[0] == 2
