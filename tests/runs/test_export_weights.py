"""An exported encoder runs without this project and gives the same features."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from contrastive_core import runs
from contrastive_core.data import datasets
from contrastive_core.errors import Damaged
from contrastive_core.evaluation import embed
from contrastive_core.models import encoders
from contrastive_core.runs import Run, checkpoints, export_weights
from contrastive_core.training.config import TrainConfig
from contrastive_core.training.setup import model, resolve


def test_colors_are_those_of_the_encoders() -> None:
    assert export_weights.COLORS == encoders.COLORS


def made(config: TrainConfig) -> Run:
    """An untrained run with weights; BatchNorm has seen something."""
    images = datasets.load(config.dataset, "train")
    config, _ = resolve(config, images, torch.device("cpu"))
    torch.manual_seed(0)
    method = model(config, images)
    with torch.no_grad():
        method.train().features(torch.rand(16, *images.images.shape[1:]))
    shape = list(images.images.shape[1:])
    run = runs.create("given-away", config.to_dict(), image_shape=shape)
    checkpoints.save_weights(run, method.state_dict())
    return run


@pytest.mark.parametrize(
    ("encoder", "knobs"),
    [
        ("small", {}),
        ("small", {"width": 0.5, "colors": "none"}),
        ("resnet18", {"stem": "small"}),
        ("resnet18", {"stem": "imagenet", "pixels": 32}),
    ],
)
def test_the_snippet_gives_the_same_features(
    tmp_path: Path, encoder: str, knobs: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = made(TrainConfig(dataset="digits", encoder=encoder, encoder_knobs=knobs))
    (tmp_path / f"{run.name}.safetensors").write_bytes(run.weights.read_bytes())
    dataset = datasets.load("digits", "test")
    images = torch.from_numpy(np.array(dataset.images[:5])).float() / 255
    text = export_weights.snippet(run, export_weights.shapes_of(run))
    monkeypatch.chdir(tmp_path)
    there: dict = {}
    exec(text, there)
    found = there["encode"](images)
    wanted = embed.load_model(run, dataset, "cpu").features(images)
    torch.testing.assert_close(found, wanted.detach(), rtol=1e-4, atol=1e-5)


def test_it_needs_nothing_of_this_project(tmp_path: Path) -> None:
    run = made(TrainConfig(dataset="digits"))
    (tmp_path / f"{run.name}.safetensors").write_bytes(run.weights.read_bytes())
    text = (
        export_weights.snippet(run, export_weights.shapes_of(run))
        + "\nprint(encode(torch.rand(2, 1, 8, 8)).shape)\n"
    )
    (tmp_path / "use.py").write_text(text)
    command = [sys.executable, "-I", "use.py"]  # -I: the folder of the project is not looked into
    said = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert said.strip() == "torch.Size([2, 128])"


def test_damaged_weights_are_named(tmp_path: Path) -> None:
    run = runs.create("bad", {})
    run.weights.write_bytes(b"\xff" * 100)
    with pytest.raises(Damaged, match=r"weights\.safetensors"):
        export_weights.shapes_of(run)
