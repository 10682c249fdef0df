"""A training on images that are decoded on the fly is that on decoded ones, and goes on where it stopped."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import load_file

from contrastive_core import runs
from contrastive_core.cli.main import main
from contrastive_core.data.image_sets import LIMIT
from contrastive_core.train import loop

SMALL = ["encoder.width=0.25", "batch_size=8", "threads=1", "save_seconds=0", "sample=20"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    for i in range(40):
        path = tmp_path / "set" / "ab"[i % 2] / f"{i:02d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (20, 24, 3), np.uint8)).save(path)
    return tmp_path / "set"


def train(folder: Path, name: str, *more: str, epochs: int = 2) -> dict[str, np.ndarray]:
    settings = [word for setting in SMALL for word in ("--set", setting)]
    of_folder = ["--dataset", f"folder:{folder}", "--image-size", "16", "--epochs", str(epochs), "--device", "cpu"]
    assert main(["train", "--run", name, *of_folder, *settings, *more]) == 0
    return load_file(runs.load(name).weights)


def test_views_and_weights_are_those_of_the_cache_and_a_resume_is_bit_equal(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cached = train(folder, "cached")
    assert runs.load("cached").config["cache"] == "memory-map"
    streamed = train(folder, "streamed", "--cache", "stream")
    assert cached.keys() == streamed.keys()
    assert all((cached[k] == streamed[k]).all() for k in cached)
    with monkeypatch.context() as patch:
        stops = iter([False, True])
        patch.setattr(loop, "should_stop", lambda *_: next(stops, False))
        train(folder, "parts", "--cache", "stream")
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
    train(folder, "auto", epochs=1)
    assert runs.load("auto").config["cache"] == "stream"
    assert "black images in training" in runs.load("auto").status()["note"]
    assert main(["evaluate", "auto", "--metrics", "knn", "--device", "cpu"]) == 0
    assert main(["train", "--cache", "disk", "--dataset", f"folder:{folder}"]) == 2
