"""A run reads its images in a size of its own; decoding them on the fly trains the same weights."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import load_file

from contrastive_core import runs
from contrastive_core.cli.main import main
from contrastive_core.compare.embed import embed_run
from contrastive_core.data.image_cache import LIMIT
from contrastive_core.engine import jobs
from contrastive_core.spaces.attached_files import dataset_pictures
from contrastive_core.spaces.space import Space
from contrastive_core.train import loop


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
    assert job.result_path.exists()
    assert (job.values["size"], job.values["resize"]) == (20, "pad")


SMALL = ["encoder.width=0.25", "batch_size=8", "threads=1", "save_seconds=0", "sample=20"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    for i in range(40):
        path = tmp_path / "set" / "ab"[i % 2] / f"{i:02d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (20, 24, 3), np.uint8)).save(path)
    return tmp_path / "set"


def weights_of(folder: Path, name: str, *more: str, epochs: int = 2) -> dict[str, np.ndarray]:
    settings = [word for setting in SMALL for word in ("--set", setting)]
    of_folder = ["--dataset", f"folder:{folder}", "--image-size", "16", "--epochs", str(epochs), "--device", "cpu"]
    assert main(["train", "--run", name, *of_folder, *settings, *more]) == 0
    return load_file(runs.load(name).weights)


def test_views_and_weights_are_those_of_the_cache_and_a_resume_is_bit_equal(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cached = weights_of(folder, "cached")
    assert runs.load("cached").config["cache"] == "memory-map"
    streamed = weights_of(folder, "streamed", "--cache", "stream")
    assert cached.keys() == streamed.keys()
    assert all((cached[k] == streamed[k]).all() for k in cached)
    with monkeypatch.context() as patch:
        stops = iter([False, True])
        patch.setattr(loop, "should_stop", lambda *_: next(stops, False))
        weights_of(folder, "parts", "--cache", "stream")
    assert runs.load("parts").status()["status"] == "stopped"
    assert main(["train", "--run", "parts", "--resume"]) == 0
    parts = load_file(runs.load("parts").weights)
    assert all((parts[k] == streamed[k]).all() for k in streamed)


def test_auto_streams_what_the_disk_may_not_take_and_the_run_is_evaluated(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LIMIT, "0")
    for path in sorted((folder / "a").iterdir())[:5]:  # four of them at most are for the test
        path.write_bytes(b"no picture")
    weights_of(folder, "auto", epochs=1)
    assert runs.load("auto").config["cache"] == "stream"
    assert "black images in training" in runs.load("auto").status()["note"]
    assert main(["evaluate", "auto", "--metrics", "knn", "--device", "cpu"]) == 0
    assert main(["train", "--cache", "disk", "--dataset", f"folder:{folder}"]) == 2
