"""The similarity of two images by patches: an exact sum, and the parts that matter when covered."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from contrastive_core import runs
from contrastive_core.base.errors import CannotScore
from contrastive_core.cli.main import main
from contrastive_core.compare.embed import data_of, load_model
from contrastive_core.compare.likeness import explain_pair, figure
from contrastive_core.models.encoders import create_encoder


def images(n: int = 2, channels: int = 3, side: int = 32) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (n, channels, side, side)).astype(np.uint8)


@pytest.mark.parametrize(
    ("name", "side", "grid"), [("small", 32, (4, 4)), ("resnet18", 32, (4, 4)), ("small", 8, (2, 2))]
)
def test_the_parts_sum_to_the_cosine(name: str, side: int, grid: tuple[int, int]) -> None:
    torch.manual_seed(0)
    encoder, two = create_encoder(name, 3, side).eval(), images(side=side)
    found = explain_pair(encoder, two)
    with torch.no_grad():
        h = encoder(torch.from_numpy(two).float() / 255)
    assert found.grid == grid
    assert found.similarity == pytest.approx(float(nn.functional.cosine_similarity(h[:1], h[1:])), abs=1e-5)
    assert found.maps.sum((1, 2)) == pytest.approx([found.similarity] * 2, abs=1e-9)


class Bright(nn.Module):
    """An encoder whose output counts bright pixels: what two images share is where they are bright."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.bias = nn.Parameter(torch.full((2, 1, 1), 0.05))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        bright = nn.functional.avg_pool2d((x.mean(1, keepdim=True) > 0.5).float(), 4)
        return self.pool(torch.cat([bright, 0 * bright], 1) + self.bias).flatten(1)


def test_the_patch_that_both_have_gets_the_largest_part_and_covering_it_matters() -> None:
    two = np.zeros((2, 3, 16, 16), np.uint8)
    two[0, :, :4, :4] = two[1, :, 8:12, 12:] = 255
    found = explain_pair(Bright(), two)
    assert (found.maps[0].argmax(), found.maps[1].argmax()) == (0, 11)
    assert found.gap > 0
    assert found.interval[0] > 0


@pytest.mark.parametrize(
    ("encoder", "side", "said"),
    [
        (nn.Sequential(nn.Flatten(), nn.Linear(12, 4)), 2, "ends with average pooling"),
        (nn.Sequential(nn.Conv2d(3, 4, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten()), 2, "one patch"),
        (nn.Sequential(nn.Conv2d(3, 4, 1), nn.Threshold(1e9, 0), nn.AdaptiveAvgPool2d(1), nn.Flatten()), 2, "zeros"),
    ],
)
def test_what_has_no_patches_is_refused(encoder: nn.Module, side: int, said: str) -> None:
    with pytest.raises(CannotScore, match=said):
        explain_pair(encoder, images(side=side))


def test_a_shipped_pair_has_a_picture_and_the_command_says_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = runs.load("simclr-shapes")
    dataset = data_of(run, "test")
    two = np.stack([dataset.images[i] for i in (3, 384)])
    found = explain_pair(load_model(run, device="cpu").encoder, two)
    assert found.interval[0] > 0
    assert figure(two, found.maps).shape == (240, 984, 3)

    out = tmp_path / "why.png"
    ids = [dataset.ids[3], dataset.ids[384]]
    assert main(["explain", run.name, *ids, "--device", "cpu", "--json", "--out", str(out)]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["similarity"] == pytest.approx(found.similarity)
    assert np.sum(said["maps"][0]) == pytest.approx(found.similarity)
    assert Image.open(out).size == (984, 240)
    assert main(["explain", run.name, ids[0], "test/none"]) != 0
    assert "no sample test/none" in capsys.readouterr().err
