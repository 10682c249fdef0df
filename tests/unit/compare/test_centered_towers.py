"""The means of towers subtracted: figures are those of the towers, intervals cover what is planted."""

import numpy as np
import pytest

from contrastive_core.compare.towers import compare_centered, tower_scores
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.towers import Towers, towers_of, with_captions
from contrastive_core.train import monitor


def planted(noise: float, n: int = 60, per_image: int = 2, shift: float = 0.0, seed: int = 0) -> Towers:
    """Images, and captions that are the same rows with noise, moved by `shift` along one axis."""
    rng = np.random.default_rng([seed, 1])
    images = rng.normal(size=(n, 8)).astype(np.float32)
    of = np.repeat(np.arange(n), per_image)
    texts = images[of] + noise * rng.normal(size=(len(of), 8))
    texts[:, 0] += shift
    both = towers_of(with_captions(EmbeddingSet(images), texts.astype(np.float32), of))
    assert both is not None
    return both


def test_less_the_means_of_the_towers_the_gap_closes_and_partners_are_found() -> None:
    apart = planted(0.3, shift=30.0)
    before, after, differences = compare_centered(apart)
    own = tower_scores(apart)[0]
    assert [before[name].value for name in differences] == [own[name].value for name in differences]
    assert len(differences) == 7
    for name, (value, low, high) in differences.items():
        assert value == pytest.approx(after[name].value - before[name].value)
        assert low <= value <= high
    assert differences["modality_gap"][2] < -0.3
    assert after["modality_gap"].value < 0.1
    assert differences["recall_1_forth"][1] > 0


def test_captions_of_one_image_are_drawn_together() -> None:
    """Five equal captions of an image say no more than one: the interval stays as wide."""
    widths = []
    for per_image in (1, 5):
        one, of = planted(0.8, 50, 1, shift=3.0), np.repeat(np.arange(50), per_image)
        both = towers_of(with_captions(one.rows.take(one.a), one.rows.features[one.b][of], of))
        assert both is not None
        _value, low, high = compare_centered(both)[2]["recall_1_back"]
        widths.append(high - low)
    assert widths[1] == pytest.approx(widths[0], rel=0.1)


def test_the_scores_of_a_training_are_those_of_an_evaluation() -> None:
    both = planted(0.8)
    of = np.repeat(np.arange(60), 2)  # the image of each caption
    found = monitor.tower_scores(both.rows.features[both.a], both.rows.features[both.b], of)
    own = tower_scores(both)[0]
    assert found == {name: pytest.approx(own[name].value, abs=1e-3) for name in found}  # rows in float16
