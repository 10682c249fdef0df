"""A small data set of color images."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image


@pytest.fixture
def photos(tmp_path: Path) -> str:
    rng, folder = np.random.default_rng(0), tmp_path / "photos"
    folder.mkdir()
    for i in range(10):
        Image.fromarray(rng.integers(0, 256, (32, 32, 3), np.uint8)).save(folder / f"{i}.png")
    return f"folder:{folder}"
