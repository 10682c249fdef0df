"""Backbones and heads: shapes, sizes, split norms, and sentences for what cannot be made."""

import copy
import importlib.util
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from cases import cases
from torch import nn

from contrastive_core.models.encoders import (
    HEADS,
    ProjectionHead,
    SplitBatchNorm,
    create_encoder,
    forward_batch_size,
    split_norms,
)


def count(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


@cases("name", ["small", "resnet18"])
@cases(("channels", "size"), [(1, 8), (3, 32)])
def test_encoders_map_images_to_rows(name: str, channels: int, size: int) -> None:
    encoder = create_encoder(name, channels, size).eval()
    h = encoder(torch.rand(2, channels, size, size))
    assert h.shape == (2, encoder.out_dim)
    assert h.isfinite().all()


def test_the_small_encoder_is_small_and_sees_the_whole_image() -> None:
    encoder = create_encoder("small", 3, 32).eval()
    assert 270_000 < count(encoder) < 290_000
    x = torch.rand(1, 3, 32, 32, requires_grad=True)
    middle = encoder.body[:-2](x)[0, :, 2, 2].sum()  # one place of the last map
    (grad,) = torch.autograd.grad(middle, x)
    seen = grad.abs().sum((0, 1)).gt(0)
    assert seen.any(0).sum() >= 30
    assert seen.any(1).sum() >= 30


def test_tiny_images_are_reduced_less() -> None:
    assert create_encoder("small", 1, 8).body[:-2](torch.rand(1, 1, 8, 8)).shape[-2:] == (2, 2)
    assert create_encoder("small", 3, 32).body[:-2](torch.rand(1, 3, 32, 32)).shape[-2:] == (4, 4)


def test_width_and_stem_are_settings() -> None:
    assert create_encoder("small", 3, 32, width=0.5).out_dim == 64
    small = create_encoder("resnet18", 3, 64, stem="small")
    large = create_encoder("resnet18", 3, 64, stem="imagenet")
    assert small.body.conv1.kernel_size == (3, 3)
    assert large.body.conv1.kernel_size == (7, 7)
    assert create_encoder("resnet18", 3, 32).body.conv1.kernel_size == (3, 3)
    assert create_encoder("resnet18", 1, 96).body.conv1.in_channels == 1


@cases(
    ("name", "size", "knobs", "sentence"),
    [
        ("vgg", 32, {}, "unknown encoder 'vgg'; known: small, resnet18"),
        ("small", 32, {"depth": 3}, "no setting 'depth'; it has: width"),
        ("small", 2, {}, "at least 4"),
        ("resnet18", 32, {"stem": "large"}, "one of small, padded, imagenet; got 'large'"),
        ("timm:no_such_net", 32, {}, "timm"),
    ],
)
def test_what_cannot_be_made_says_so(name: str, size: int, knobs: dict, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        create_encoder(name, 3, size, **knobs)


@pytest.mark.skipif(importlib.util.find_spec("timm") is None, reason="timm is not installed")
def test_a_name_of_timm() -> None:
    encoder = create_encoder("timm:resnet10t", 1, 32).eval()
    assert encoder(torch.rand(2, 1, 32, 32)).shape == (2, encoder.out_dim)
    vit = create_encoder("timm:test_vit", 1, 8).eval()  # takes 160 pixels, unless it is made for others
    assert vit.pixels == 160
    assert vit(torch.rand(2, 1, 8, 8)).shape == (2, vit.out_dim)
    assert create_encoder("timm:test_vit", 3, 8, pixels=64).body.pos_embed.shape[1] == 17


@cases("name", ["squeezenet1_1", "shufflenet_v2_x0_5", "mobilenet_v3_small", "regnet_y_400mf"])
def test_a_name_of_torchvision(name: str) -> None:
    """Whatever its last layer is called, it is left out; gray images enter a color one thrice."""
    for knobs, first in (({}, 1), ({"gray_as_color": True}, 3)):
        encoder = create_encoder(f"torchvision:{name}", 1, 32, **knobs).eval()
        assert encoder(torch.rand(2, 1, 32, 32)).shape == (2, encoder.out_dim)
        convolutions = [m for m in encoder.modules() if isinstance(m, nn.Conv2d)]
        assert convolutions[0].in_channels == first


def test_means_and_deviations_can_be_given() -> None:
    encoder = create_encoder("small", 3, 32, colors=[[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]]).eval()
    x = torch.rand(2, 3, 32, 32)
    mean, deviation = torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0.4, 0.5, 0.6])
    scaled = (x - mean.view(-1, 1, 1)) / deviation.view(-1, 1, 1)
    torch.testing.assert_close(encoder(x), encoder.body(scaled), rtol=1e-4, atol=1e-5)
    for colors in ("pink", [[0.1]], [[0.1], [0.0]], 7):
        with pytest.raises(ValueError, match="colors must be one of plain"):
            create_encoder("small", 3, 32, colors=colors)
    with pytest.raises(ValueError, match="means of 2 channels; the images have 3"):
        create_encoder("small", 3, 32, colors=[[1, 2], [3, 4]])


@cases("batch_norm", [False, True])
@cases("kind", HEADS)
@cases("depth", [2, 3])
def test_heads(kind: str, depth: int, batch_norm: bool) -> None:
    head = ProjectionHead(kind, 10, 6, 12, depth, batch_norm)
    h = torch.randn(5, 10)
    z = head(h)
    assert z.shape == (5, head.out_dim)
    assert head.out_dim == (10 if kind == "none" else 6)
    linear = [m for m in head.modules() if isinstance(m, nn.Linear)]
    assert len(linear) == {"none": 0, "linear": 1, "nonlinear": depth}[kind]
    norms = [m for m in head.modules() if isinstance(m, nn.BatchNorm1d)]
    assert len(norms) == (depth - 1 if batch_norm and kind == "nonlinear" else 0)
    if kind == "none":
        assert torch.equal(z, h)
    with pytest.raises(ValueError, match="head must be one of"):
        ProjectionHead("cubic", 10)


def test_split_norm_is_norm_of_each_part() -> None:
    norm = SplitBatchNorm(3)
    norm.splits = 4
    x = torch.randn(8, 3, 5, 5)
    alone = nn.BatchNorm2d(3)
    expected = torch.cat([copy.deepcopy(alone)(part) for part in x.chunk(4)])
    assert torch.allclose(norm(x), expected, atol=1e-6)
    assert torch.isfinite(norm.running_mean).all()
    norm.eval()
    assert torch.equal(norm(x), nn.functional.batch_norm(x, norm.running_mean, norm.running_var))


def test_split_norms_keep_names_and_values() -> None:
    encoder = create_encoder("small", 3, 32)
    before = {k: v.clone() for k, v in encoder.state_dict().items()}
    split_norms(encoder, 2)
    assert any(isinstance(m, SplitBatchNorm) for m in encoder.modules())
    after = encoder.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(v, after[k]) for k, v in before.items())


@cases(
    ("side", "own", "count"),
    [
        (64, 64, 500),
        (65, 0, 484),
        (224, 0, 40),
        (32, 224, 40),  # the encoder enlarges them
        (512, 224, 7),  # and has them in memory before it makes them smaller
        (8000, 0, 1),
    ],
)
def test_images_of_one_pass(side: int, own: int, count: int) -> None:
    images = np.broadcast_to(np.uint8(0), (2, 3, side, side))
    assert forward_batch_size(500, images, SimpleNamespace(pixels=own)) == count
    if not own:
        assert forward_batch_size(500, images) == count
