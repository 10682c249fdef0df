"""What stands beside an encoder: of all images, or of a sample that is said with each figure."""

import dataclasses

import numpy as np
import pytest

from contrastive_core import runs
from contrastive_core.base.memory import rows_of_sample
from contrastive_core.cli.command_io import score_text
from contrastive_core.compare import embed
from contrastive_core.compare.evaluate import evaluate_sets
from contrastive_core.data import datasets

IMAGE = 4 * 64  # bytes of the pixels of a digit in float32


@pytest.fixture
def digits() -> datasets.Dataset:
    """300 images."""
    whole = datasets.load("digits", "train")
    return dataclasses.replace(whole, images=whole.images[:300], labels=whole.labels[:300], ids=whole.ids[:300])


def test_references_of_many_images_are_of_the_same_sample_and_their_figures_say_so(
    digits: datasets.Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = runs.load("simclr-digits")
    raw, (h, z) = embed.raw_pixels(digits), embed.random_encoder(run, digits, "cpu")
    assert np.array_equal(raw.features, np.asarray(digits.images, np.float32).reshape(300, -1) / 255 - 0.5)
    assert "sample" not in raw.provenance
    monkeypatch.setattr(embed, "REFERENCE_BYTES", 100 * IMAGE)
    monkeypatch.setattr(embed, "CHUNK", 30)
    chosen = rows_of_sample(300, 100)
    some, (some_h, some_z) = embed.raw_pixels(digits), embed.random_encoder(run, digits, "cpu")
    for whole, part in ((raw, some), (h, some_h), (z, some_z)):
        assert np.allclose(part.features, whole.features[chosen], atol=1e-5)
        assert part.ids == tuple(np.array(whole.ids)[chosen])
        assert np.array_equal(part.labels, whole.labels[chosen])
        assert part.provenance["sample"] == "100 of 300 train images"
    scores = evaluate_sets(["knn", "rankme"], some, some)
    assert scores["rankme"].extras["sample"] == "100 of 300 train images"
    assert score_text(scores["rankme"]).endswith("(100 of 300 train images)")
    assert scores["knn"].extras["sample"].count("100 of 300") == 2


def test_large_images_are_averaged_and_say_so(digits: datasets.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embed, "PIXELS", 4)
    monkeypatch.setattr(embed, "CHUNK", 70)
    rows = embed.raw_pixels(digits)
    means = np.asarray(digits.images, np.float32).reshape(300, -1, 4, 2, 4, 2).mean((3, 5))
    assert np.allclose(rows.features, means.reshape(300, -1) / 255 - 0.5, atol=1e-6)
    assert rows.provenance["sample"] == "pixels averaged to 4 × 4"
    monkeypatch.setattr(embed, "REFERENCE_BYTES", 100 * 4 * 16)  # of what is kept, not of the images
    assert embed.raw_pixels(digits).provenance["sample"].startswith("100 of 300 train images, ")
