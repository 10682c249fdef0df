"""Mutated files of a run, and pictures, of which the test knows what was written.

Each is cut, flipped, doubled or filled. What is raised is an error that the command line shows as
one line, never a crash, and never other numbers where the file carries a hash.
"""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mutation import mutated
from PIL import Image

from contrastive_core import runs
from contrastive_core.base.storage import data_home
from contrastive_core.data import datasets
from contrastive_core.runs import checkpoints
from contrastive_core.spaces import attached_files
from contrastive_core.spaces.embedding_set import EmbeddingSet

CONFIG = {"method": "simclr", "dataset": "digits", "seed": 0}
SENTENCES = (ValueError, OSError)  # Damaged, BadSetting, CannotImport and such are ValueErrors


def fuzz(path: Path, read: Callable[[], Any], times: int, also: tuple[type, ...] = ()) -> int:
    """Mutate the file so often; returns how often it was refused."""
    whole, rng, refused = path.read_bytes(), random.Random(path.name), 0
    for _ in range(times):
        path.write_bytes(mutated(whole, rng))
        try:
            read()
        except (*SENTENCES, *also):
            refused += 1
    path.write_bytes(whole)
    return refused


def test_manifests_and_states() -> None:
    run = runs.create("fuzzed", CONFIG)
    checkpoints.save_state(run, {"x": torch.randn(9)}, {"place": {"epoch": 1}})
    checkpoints.save_state(run, {"x": torch.randn(9)}, {"place": {"epoch": 2}})
    checkpoints.save_weights(run, {"encoder.body.0.weight": torch.randn(4, 1, 3, 3)})

    def state() -> None:
        assert checkpoints.load_state(run)[1]["place"]["epoch"] in (1, 2)

    newest = checkpoints.state_manifests(run)[-1]
    for ending in (".sha256", ".json", ".safetensors"):
        assert fuzz(newest.with_suffix(ending), state, 60) == 0  # the one before is there
    held = checkpoints.load_weights(run)["encoder.body.0.weight"]

    def weights() -> None:
        found = checkpoints.load_weights(run)
        assert torch.equal(found["encoder.body.0.weight"], held)

    assert fuzz(run.weights, weights, 100) > 70


def test_images(tmp_path: Path) -> None:
    """A damaged image is left out with its reason; the others are read."""
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (8, 8, 3), np.uint8)
    for ending in ("png", "jpg", "gif", "bmp", "webp", "tif"):
        Image.fromarray(pixels).save(tmp_path / f"bad.{ending}")
        Image.fromarray(pixels).save(tmp_path / f"good.{ending}")
    for path in sorted(tmp_path.glob("bad.*")):
        whole, chance = path.read_bytes(), random.Random(path.name)
        for _ in range(25):
            path.write_bytes(mutated(whole, chance))
            _, make = datasets.plan(f"folder:{tmp_path}", "train")
            data_home().mkdir(parents=True, exist_ok=True)
            found = make()
            assert len(found["images"]) + len(found.get("skipped", [])) == 10
            rows = EmbeddingSet(np.zeros((1, 2), np.float32), columns={"path": np.array([path.name])})
            attached_files.pictures_of(tmp_path / "v.csv", rows)
        path.write_bytes(whole)
