"""Images of other than one channel or three, from arrays to lists: five bands, of which one tells
the classes apart and is not among those that a picture shows."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from banded_images import SMALL, folder, trained
from streamlit.testing.v1 import AppTest

from contrastive_core import runs
from contrastive_core.base.storage import ROOT
from contrastive_core.cli.main import main
from contrastive_core.compare import embed
from contrastive_core.data import datasets
from contrastive_core.engine import answers
from contrastive_lab import cache
from contrastive_lab.components.shared.transport import thumbnail_sheet
from contrastive_lab.train.augmentations import view_table

__all__ = ["folder"]


def test_from_arrays_to_lists(folder: str, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    run = trained(folder)
    data = datasets.of_config(run.config)
    assert data.images.shape == (64, 5, 12, 12)
    assert (data.skipped, data.notes) == ([], [])
    assert run.config["recipe"]["hue"] == run.config["recipe"]["gray"] == 0
    capsys.readouterr()
    assert main(["evaluate", "bands", "--json"]) == 0
    scores = json.loads(capsys.readouterr().out)["scores"]
    assert scores["raw"]["linear_probe"]["value"] == 1  # it sees the last band
    assert main(["samples", "bands", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 64
    for page in ("explore", "samples", "loss_lab"):
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=90)
        app.query_params["run"] = "bands"
        app.switch_page(f"pages/{page}.py").run()
        assert not app.exception


def test_pictures_show_the_first_three(folder: str, tmp_path: Path) -> None:
    images = np.asarray(datasets.load(folder).images[:4])
    assert np.array_equal(cache.picture(images, 1), images[1, :3].transpose(1, 2, 0))
    assert np.array_equal(cache.picture(images[:, :2], 1)[..., 2], images[1, 0])
    assert thumbnail_sheet(images).picture == thumbnail_sheet(images[:, :3]).picture
    views, heads = images[:, None].repeat(2, axis=1), ["image", "views", "others"]
    drawn = view_table(images, views, heads, is_pushed=True)
    assert drawn == view_table(images[:, :3], views[:, :, :3], heads, is_pushed=True)
    card = answers.make("folder", {"path": folder.removeprefix("folder:")})
    assert card.meta["channels"] == 5
    assert card.arrays["images"].shape[1] == 3
    seen = answers.make("views", {"method": "simclr", "dataset": folder, "set": []})
    assert seen.arrays["views"].shape[2] == 5


@pytest.mark.parametrize("encoder", ["small", "resnet18", "torchvision:shufflenet_v2_x0_5"])
def test_any_encoder_takes_them(folder: str, encoder: str) -> None:
    more = ["--encoder", encoder, *(["--set", "encoder.width=0.25"] * (encoder == "small"))]
    setting = [part for value in SMALL[:2] for part in ("--set", value)]
    train = ["train", "--dataset", folder, "--run", "bands", "--epochs", "1", "--device", "cpu"]
    assert main([*train, *more, *setting]) == 0
    run, data = runs.load("bands"), datasets.load(folder, "test")
    images = torch.from_numpy(np.array(data.images[:5])).float() / 255
    found = embed.load_model(run, device="cpu").features(images)
    rows = embed.from_weights(run, data, "cpu")["h"].features[:5]
    np.testing.assert_allclose(found.detach(), rows, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ("encoder.colors=imagenet", "colors has means of 3 channels; the images have 5"),
        ("encoder.gray_as_color=true", "gray_as_color is for gray images; these have 5 channels"),
    ],
)
def test_a_model_of_other_channels_is_refused_in_a_sentence(folder: str, setting: str, why: str, capsys) -> None:
    assert main(["train", "--dataset", folder, "--run", "r", "--set", setting])
    assert why in capsys.readouterr().err
