"""A small clip run on a folder of images with captions, trained in a moment."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from contrastive_core import runs
from contrastive_core.__main__ import main
from contrastive_core.runs.run import Run

COLORS = {"red": (220, 30, 30), "green": (30, 200, 30), "blue": (30, 30, 220)}
SHORT = ["batch_size=8", "sample=12", "encoder.width=0.25", "snapshot_every=1", "lr=0.01"]


def captioned_folder(folder: Path, per_class: int = 8, test: int = 4) -> Path:
    """Images of one color a class, in train/ and test/; every second image has two captions."""
    lines, rng = ["file,caption"], np.random.default_rng(0)
    for split, count in (("train", per_class), ("test", test)):
        for name, color in COLORS.items():
            (folder / split / name).mkdir(parents=True)
            for i in range(count):
                file = f"{split}/{name}/{i}.png"
                pixels = np.clip(np.array(color) + rng.normal(0, 20, (8, 8, 3)), 0, 255).astype(np.uint8)
                Image.fromarray(pixels).save(folder / file)
                lines += [f"{file},a {name} square"] + [f"{file},number {i} is {name}"] * (i % 2)
    (folder / "captions.csv").write_text("\n".join(lines) + "\n")
    return folder


def trained_clip(folder: Path, name: str = "small-clip", epochs: int = 2, settings: tuple[str, ...] = ()) -> Run:
    """A run on such a folder, made by the command line."""
    words: list[Any] = ["train", "--method", "clip", "--dataset", f"folder:{folder}", "--epochs", epochs, "--run", name]
    for setting in (*SHORT, *settings):
        words += ["--set", setting]
    assert main([*map(str, words)]) == 0
    return runs.load(name)


@pytest.fixture(scope="session")
def clip_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the data and the homes of a run that was trained once."""
    home = tmp_path_factory.mktemp("clip")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONTRASTIVE_LAB_HOME", str(home / "home"))
        patch.setenv("CONTRASTIVE_LAB_RUNS", str(home / "runs"))
        trained_clip(captioned_folder(home / "data"))
    return home


@pytest.fixture
def clip_run(clip_home: Path, homes: Path) -> Run:
    """That run, in the homes of a test of its own; its data is shared."""
    for name in ("home", "runs"):
        shutil.copytree(clip_home / name, homes / name, dirs_exist_ok=True)
    return runs.load("small-clip")
