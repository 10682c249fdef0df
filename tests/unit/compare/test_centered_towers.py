"""The means of towers subtracted: figures are those of the towers, intervals cover what is planted; and towers of a
run's snapshots."""

import numpy as np
import pytest
from cases import cases

from contrastive_core.base.errors import Damaged
from contrastive_core.compare.towers import compare_centered, tower_scores
from contrastive_core.runs.run import Run
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.space import TOWERS, Space, towers_of_snapshot
from contrastive_core.spaces.towers import Towers, towers_of, with_captions


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


def test_a_run_keeps_both_towers_at_each_checkpoint(clip_run: Run) -> None:
    rows = [Space(clip_run.name, "train", TOWERS, epoch=epoch).rows() for epoch in (1, 2)]
    assert [len(each) for each in rows] == [len(rows[0])] * 2
    assert rows[0].ids == rows[1].ids
    epochs = [line for line in clip_run.metrics() if "modality_gap" in line]
    assert [line["epoch"] for line in epochs] == [1, 2]
    for each, line in zip(rows, epochs, strict=True):
        own = tower_scores(towers_of(each))[0]
        assert own["modality_gap"].value == pytest.approx(line["modality_gap"], abs=1e-3)  # kept in float16
        assert own["recall_1_back"].value == pytest.approx(line["recall_1_back"], abs=0.2)


@cases(
    ("changed", "sentence"),
    [
        ({"text_z": None}, "has no embeddings of captions"),
        ({"text_of": np.zeros(3)}, "has no embeddings of captions"),
        ({"text_of": np.array([0, 1])}, "has no embeddings of captions"),
        ({"text_of": np.array([0, 1, 9])}, "of images that it does not contain"),
        ({"text_of": np.array([1, 0, 2])}, "of images that it does not contain"),
        ({"text_of": np.array([-1, 0, 2])}, "of images that it does not contain"),
    ],
)
def test_a_snapshot_that_lies_is_one_sentence(changed: dict, sentence: str) -> None:
    arrays = {"index": np.arange(3), "labels": np.zeros(3, int), "z": np.eye(3), "text_z": np.eye(3)}
    arrays |= {"text_of": np.arange(3)}
    assert len(towers_of_snapshot(arrays)) == 6
    arrays |= changed
    with pytest.raises(Damaged, match=sentence):
        towers_of_snapshot({k: v for k, v in arrays.items() if v is not None})
