"""A run has its images in a size of its own, wherever they are read again."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from contrastive_core import runs
from contrastive_core.cli.main import main
from contrastive_core.compare.embed import embed_run
from contrastive_core.engine import jobs
from contrastive_core.spaces.attached_images import dataset_pictures
from contrastive_core.spaces.space import Space


@pytest.fixture
def photos(tmp_path: Path) -> str:
    rng = np.random.default_rng(0)
    for kind in ("cats", "dogs"):
        (tmp_path / "photos" / kind).mkdir(parents=True)
        for i in range(10):
            pixels = rng.integers(0, 256, (30, 40, 3), np.uint8)
            Image.fromarray(pixels).save(tmp_path / "photos" / kind / f"{i}.png")
    return f"folder:{tmp_path / 'photos'}"


def train(photos: str, name: str, *options: str) -> runs.Run:
    settings = ["--dataset", photos, "--epochs", "1", "--set", "batch_size=8", "--device", "cpu"]
    assert main(["train", *settings, "--run", name, *options]) == 0
    return runs.load(name)


def test_a_run_reads_its_images_in_its_own_size(photos: str) -> None:
    run = train(photos, "padded", "--image-size", "20", "--resize", "pad")
    assert run.manifest["image_shape"] == [3, 20, 20]
    assert (run.config["image_size"], run.config["resize"]) == (20, "pad")
    rows = embed_run(run, "test", "h", "cpu")
    images = Space.of_run(run, "test").images()
    assert images is not None
    assert images.shape == (4, 3, 20, 20)
    assert not images[:, :, 0].any()  # padded
    assert np.array_equal(dataset_pictures(rows), images)
    job = jobs.decoding(run.config, "test")
    assert job.has_result()
    assert (job.values["size"], job.values["resize"]) == (20, "pad")


def test_without_a_size_it_keeps_the_one_that_was_chosen(photos: str) -> None:
    run = train(photos, "usual")
    assert run.config["image_size"] == 30  # the median of the shorter sides
    assert embed_run(run, "test", "h", "cpu").features.shape[0] == 4


def test_a_run_without_the_setting_goes_on_as_it_was(photos: str) -> None:
    config = {"method": "simclr", "dataset": photos, "epochs": 1, "seed": 0}
    old = runs.create("old", config)
    assert old.config.get("image_size") is None
    assert main(["train", "--run", "old", "--resume", "--set", "batch_size=8"]) == 0
    assert "image_size" not in runs.load("old").config
    images = Space.of_run(runs.load("old"), "train").images()
    assert images is not None
    assert images.shape == (16, 3, 30, 30)
    assert "size" not in jobs.decoding({"dataset": "digits"}, "test").values
    assert "size" not in jobs.decoding(config, "test").values
