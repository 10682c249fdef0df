"""The similarity of two images by patches: an exact sum, and the parts that matter when covered; images near one."""

import copy
import io
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from contrastive_core import runs
from contrastive_core.base.errors import BadSetting, CannotScore
from contrastive_core.cli.main import main
from contrastive_core.compare.embed import data_of, load_model
from contrastive_core.compare.likeness import Likeness, Picture, Words, explain, figure, nearest_to_picture
from contrastive_core.data import datasets
from contrastive_core.models.encoders import create_encoder


def images(n: int = 2, channels: int = 3, side: int = 32) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (n, channels, side, side)).astype(np.uint8)


def explain_pair(encoder: nn.Module, two: np.ndarray) -> Likeness:
    return explain((Picture(encoder, two[0]), Picture(encoder, two[1])))


@pytest.mark.parametrize(("name", "side", "grid"), [("resnet18", 32, (4, 4)), ("small", 8, (2, 2))])
def test_the_parts_sum_to_the_cosine(name: str, side: int, grid: tuple[int, int]) -> None:
    torch.manual_seed(0)
    encoder, two = create_encoder(name, 3, side).eval(), images(side=side)
    found = explain_pair(encoder, two)
    with torch.no_grad():
        h = encoder(torch.from_numpy(two).float() / 255)
    assert found.shapes == (grid, grid)
    assert found.similarity == pytest.approx(float(nn.functional.cosine_similarity(h[:1], h[1:])), abs=1e-5)
    assert [part.sum() for part in found.maps] == pytest.approx([found.similarity] * 2, abs=1e-6)


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


def head_over(encoder: nn.Module, *layers: nn.Module) -> nn.Module:
    return nn.Sequential(encoder, *layers).eval().requires_grad_(False)


def test_behind_a_linear_head_the_parts_are_exact() -> None:
    torch.manual_seed(0)
    encoder, two = create_encoder("small", 3, 32).eval(), images()
    linear = nn.Linear(encoder.out_dim, 5, bias=False)  # type: ignore[arg-type]
    found = explain_pair(head_over(encoder, linear), two)
    with torch.no_grad():
        x = torch.from_numpy(two).float() / 255
        rows = encoder.body[:-2]((x - 0.5) / 0.25).flatten(2).transpose(1, 2) @ linear.weight.T / 16  # type: ignore[index]
    expected = rows[0] @ rows[1].T / rows.sum(1).norm(dim=1).prod()
    assert found.patches == pytest.approx(expected.numpy(), abs=1e-5)
    assert not found.is_exact
    assert found.patches.sum() == pytest.approx(found.similarity, abs=1e-5)


@pytest.mark.parametrize("outputs", [8, 200])
def test_the_parts_sum_to_the_similarity_without_the_terms_of_the_reference(outputs: int) -> None:
    """With 200 outputs the pairs are compared in 64 directions, which leaves the sum."""
    torch.manual_seed(0)
    body = nn.Sequential(nn.Conv2d(3, 6, 8, 8), nn.Tanh(), nn.AdaptiveMaxPool2d(1), nn.Flatten())
    two, tail = images(), [nn.Linear(6, 40), nn.Tanh(), nn.Linear(40, outputs)]
    encoder = head_over(body, *tail)
    found = explain_pair(encoder, two)
    with torch.no_grad():
        e = encoder(torch.from_numpy(two).float() / 255)
        change = e - nn.Sequential(*tail)(torch.zeros(1, 6))
    wanted = float(change[0] @ change[1] / e.norm(dim=1).prod())
    assert found.patches.sum() == pytest.approx(wanted, abs=0.02)  # of 32 points of the integral
    assert found.similarity == pytest.approx(float(torch.cosine_similarity(e[:1], e[1:])), abs=1e-5)


class Tokens(nn.Module):
    """A transformer with a class token."""

    def __init__(self) -> None:
        super().__init__()
        self.patches, self.cls = nn.Conv2d(3, 16, 8, 8), nn.Parameter(torch.randn(1, 1, 16))
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True, norm_first=True)
        self.blocks = nn.ModuleList([copy.deepcopy(layer) for _ in range(3)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.cat([self.cls.expand(len(x), -1, -1), self.patches(x).flatten(2).transpose(1, 2)], 1)
        for block in self.blocks:
            x = block(x)
        return x[:, 0]


def test_a_class_token_is_explained_by_the_patches_of_a_layer_below() -> None:
    torch.manual_seed(0)
    found = explain_pair(Tokens().eval().requires_grad_(False), images())
    assert found.shapes == ((4, 4), (4, 4))
    assert not found.is_exact
    assert np.abs(found.patches).max() > 0


class Aside(nn.Module):
    """An encoder whose only layer with patches is not what its output is made of."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Conv2d(3, 4, 8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.layer(x)
        return x.mean((2, 3))


@pytest.mark.parametrize(
    ("encoder", "side", "said"),
    [
        (nn.Sequential(nn.Flatten(), nn.Linear(12, 4)), 2, "no layer of this encoder keeps the places"),
        (nn.Sequential(nn.Conv2d(3, 4, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten()), 2, "one patch"),
        (nn.Sequential(nn.Conv2d(3, 4, 1), nn.Threshold(1e9, 0), nn.AdaptiveAvgPool2d(1), nn.Flatten()), 2, "zeros"),
        (Aside(), 16, "cannot be replaced while the encoder runs"),
    ],
)
def test_what_has_no_patches_is_refused(encoder: nn.Module, side: int, said: str) -> None:
    with pytest.raises(CannotScore, match=said):
        explain_pair(encoder, images(side=side))


def test_the_words_of_a_caption_are_explained_and_those_of_a_pretrained_tower_are_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = runs.load("clip-shapes")
    ids = data_of(run, "test").ids[3], f"{data_of(run, 'test').ids[3]}#1"
    assert main(["explain", run.name, *ids, "--device", "cpu", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["words"] == [[], "a large dotted blue ring on cyan".split()]
    assert np.sum(said["maps"][1]) == pytest.approx(said["explained"])
    assert said["explained"] == pytest.approx(said["similarity"], abs=0.1)
    assert said["interval"][0] > 0
    with pytest.raises(CannotScore, match="tokens of its own"):
        Words(SimpleNamespace(text_tower=nn.Identity()), "a ring")


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


def as_png(image: np.ndarray) -> bytes:
    file = io.BytesIO()
    Image.fromarray(image.transpose(1, 2, 0).squeeze()).save(file, "PNG")
    return file.getvalue()


@pytest.mark.parametrize("name", ["digits", "shapes"])
def test_an_image_of_the_split_finds_itself_first(name: str) -> None:
    data = datasets.load(name, "test")
    picture = as_png(np.asarray(data.images[7]))
    near = nearest_to_picture(runs.load(f"simclr-{name}"), "test", picture, 5)
    assert near[0] == (data.ids[7], pytest.approx(1.0, abs=1e-5))
    assert len({sample for sample, _cosine in near}) == 5
    assert [cosine for _sample, cosine in near] == sorted((cosine for _sample, cosine in near), reverse=True)


@pytest.mark.parametrize(
    "content", [b"", b"no image at all", as_png(np.zeros((3, 8, 8), np.uint8))[:45]], ids=["empty", "text", "cut"]
)
def test_what_is_no_image_gets_one_sentence(content: bytes) -> None:
    with pytest.raises(BadSetting, match=r"^This file cannot be read as an image: [^\n]+$"):
        nearest_to_picture(runs.load("simclr-digits"), "test", content, 5)
