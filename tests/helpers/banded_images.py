"""Images of five bands, of which the last tells the classes apart, and a run that was trained on them."""

from pathlib import Path

import numpy as np
import pytest

from contrastive_core import runs
from contrastive_core.cli.main import main

__all__ = ["folder", "trained"]


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """Two classes, which differ in the last of five bands of 12 × 16 pixels."""
    rng = np.random.default_rng(0)
    for split, count in (("train", 64), ("test", 32)):
        for number in range(count):
            path = tmp_path / "images" / split / "ab"[number % 2] / f"{number}.npy"
            path.parent.mkdir(parents=True, exist_ok=True)
            bands = rng.integers(0, 256, (5, 12, 16)).astype(np.uint16)
            bands[4] = 40 + 160 * (number % 2) + bands[4] // 8
            np.save(path, bands * 257 if number % 4 else np.moveaxis(bands * 257, 0, -1))
    return f"folder:{tmp_path / 'images'}"


def trained(folder: str) -> runs.Run:
    settings = "--set batch_size=16 --set sample=16 --set encoder.width=0.25 --set recipe.crop=0".split()
    assert main(["train", "--dataset", folder, "--run", "bands", "--epochs", "2", "--device", "cpu", *settings]) == 0
    return runs.load("bands")
