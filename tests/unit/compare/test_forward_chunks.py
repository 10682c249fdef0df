"""Large images pass an encoder a few at a time; where even they do not fit, a sentence says so."""

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch

from contrastive_core import methods, runs
from contrastive_core.base.errors import CannotGoOn
from contrastive_core.compare import embed
from contrastive_core.data import datasets
from contrastive_core.data.recipe import Recipe
from contrastive_core.lab.batch import load_batch
from contrastive_core.lab.lab_view import BatchRequest
from contrastive_core.methods import Method
from contrastive_core.samples import run_samples
from contrastive_core.samples.sample_table import request_of
from contrastive_core.train import monitor


class Mean(torch.nn.Module):
    """An encoder whose h is the mean of an image; it keeps how many it was given at once, and has
    no room for more than `most`."""

    out_dim = 2

    def __init__(self, most: int = 1000) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(2))
        self.most, self.given = most, []

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        self.given.append(len(images))
        if len(images) > self.most:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 9 GiB")
        return images.mean((1, 2, 3))[:, None] * self.weight


def of(encoder: Mean) -> Method:
    """A method whose z is h."""
    return methods.create(
        "simclr", encoder=encoder, image_shape=(1, 128, 128), n_train=60, recipe=Recipe(), head="none"
    ).eval()


@pytest.fixture
def large() -> datasets.Dataset:
    """60 images of 128 pixels, of which an eighth is taken at a time: 128² = 4 · 64²."""
    digits = datasets.load("digits", "test")
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (60, 1, 128, 128), np.uint8)
    return dataclasses.replace(digits, images=images, labels=digits.labels[:60], ids=digits.ids[:60])


def test_embedding(large: datasets.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    run, encoder = runs.load("simclr-digits"), Mean()
    monkeypatch.setattr(embed, "load_model", lambda *_: of(encoder))
    monkeypatch.setattr(embed, "CHUNK", 100)
    rows = embed.from_weights(run, large, "cpu")
    assert encoder.given == [25, 25, 10]
    whole = large.images.reshape(60, -1).mean(1) / 255
    np.testing.assert_allclose(rows["h"].features[:, 0], whole, rtol=1e-5)
    np.testing.assert_allclose(rows["z"].features[:, 0], whole, rtol=1e-5)
    raw = embed.raw_pixels(large)
    monkeypatch.setattr(embed, "CHUNK", 1000)
    assert np.array_equal(embed.raw_pixels(large).features, raw.features)


def test_the_fixed_sample_of_a_training(large: datasets.Dataset) -> None:
    encoder, images = Mean(), torch.from_numpy(large.images)
    method = of(encoder)
    monitor.embed(method, torch.cat([images, images, images]))
    assert encoder.given == [125, 55]
    sample = monitor.fixed_sample(large.images, large.labels, 60, torch.device("cpu"))
    rows = monitor.embed_sample(method, sample)
    scores = monitor.sample_scores(method, sample, rows)
    assert scores == monitor.sample_scores(method, sample, rows)
    assert {"alignment", "uniformity"} <= scores.keys()


def test_augmented_views(large: datasets.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, made = Mean(), list[Any]()
    for module in (embed, run_samples):
        monkeypatch.setattr(module, "load_model", lambda *_: of(encoder))
        monkeypatch.setattr(module, "data_of", lambda *_: large)
    monkeypatch.setattr(run_samples, "CHUNK", 100)

    def stop(inputs: Any, on_progress: object) -> None:
        made.append(inputs)
        raise InterruptedError

    monkeypatch.setattr(run_samples, "build_table", stop)
    with pytest.raises(InterruptedError):
        run_samples.make_table(request_of("simclr-digits", "test"), device="cpu")
    assert encoder.given[:3] == [4 * 25, 4 * 25, 4 * 10]  # two draws of two views
    assert made[0].views[0].shape == (60, 2, 2)


def test_the_loss_lab(large: datasets.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    run, encoder = runs.load("simclr-digits"), Mean()
    monkeypatch.setattr("contrastive_core.lab.batch.load_model", lambda *_, **__: of(encoder))
    monkeypatch.setattr("contrastive_core.lab.batch.data_of", lambda *_: large)
    monkeypatch.setattr("contrastive_core.lab.batch.AT_ONCE", 100)
    batch = load_batch(run, BatchRequest("z", 32, 2, 0))
    assert encoder.given == [25, 25, 14]
    assert batch.rows.shape == (32, 2, 2)


def test_too_little_memory_is_said_in_a_sentence(large: datasets.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    run, encoder = runs.load("simclr-digits"), Mean(most=20)
    monkeypatch.setattr(embed, "load_model", lambda *_: of(encoder))
    said = "cpu has too little memory for 60 images of 128 × 128 pixels; close other programs on it"
    with pytest.raises(CannotGoOn, match=said):
        embed.from_weights(run, large, "cpu")
