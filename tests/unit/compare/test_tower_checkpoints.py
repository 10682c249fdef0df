"""Two checkpoints of one run: each figure is that of the towers, and intervals cover what is planted."""

import numpy as np
import pytest
from cases import cases

from contrastive_core.base.errors import Damaged
from contrastive_core.compare import towers
from contrastive_core.compare.towers import compare_checkpoints, tower_scores
from contrastive_core.engine import answers
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


def test_figures_are_those_of_the_towers_and_a_gain_is_found() -> None:
    before, after = planted(2.0, shift=3.0), planted(0.3)
    changes = {change.name: change for change in compare_checkpoints(before, after)}
    assert len(changes) == 7
    one, two = tower_scores(before)[0], tower_scores(after)[0]
    for name, change in changes.items():
        assert (change.before.value, change.after.value) == (one[name].value, two[name].value)
        assert change.value == pytest.approx(two[name].value - one[name].value)
        low, high = change.interval
        assert low <= change.value <= high
    assert changes["recall_1_back"].interval[0] > 0.3
    assert changes["modality_gap"].interval[1] < 0


def test_less_the_means_of_the_towers_the_gap_closes_and_partners_are_found() -> None:
    apart = planted(0.3, shift=30.0)
    changes = {change.name: change for change in compare_checkpoints(apart, towers.centered(apart))}
    assert changes["modality_gap"].interval[1] < -0.3
    assert changes["recall_1_forth"].interval[0] > 0
    unit = towers.centered(apart).rows.features
    for at, _ in apart.usable_sides():
        np.testing.assert_allclose(unit[at].mean(0), 0, atol=1e-6)


def test_equal_checkpoints_differ_by_nothing() -> None:
    both = planted(0.5)
    assert all(change.value == 0 and change.interval == (0, 0) for change in compare_checkpoints(both, both))


def test_an_interval_of_nothing_holds_zero_about_as_often_as_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(towers, "DRAWS", 500)
    held = 0
    for seed in range(40):
        one, two = planted(1.0, 40, seed=2 * seed), planted(1.0, 40, seed=2 * seed)
        noise = np.random.default_rng(seed).normal(size=two.rows.features.shape)
        two.rows.features[40:] += noise[40:].astype(np.float32)
        one.rows.features[40:] += noise[40:][::-1].astype(np.float32)  # as much noise, another draw
        (change,) = [c for c in compare_checkpoints(one, two) if c.name == "recall_5_back"]
        held += change.interval[0] <= 0 <= change.interval[1]
    assert held >= 34


def test_captions_of_one_image_are_drawn_together() -> None:
    """Five equal captions of an image say no more than one: the interval stays as wide."""
    widths = []
    for per_image in (1, 5):
        one, two = (planted(noise, 50, 1) for noise in (2.0, 0.8))
        of = np.repeat(np.arange(50), per_image)
        parts = [towers_of(with_captions(t.rows.take(t.a), t.rows.features[t.b][of], of)) for t in (one, two)]
        (change,) = [c for c in compare_checkpoints(*parts) if c.name == "recall_1_back"]
        widths.append(change.interval[1] - change.interval[0])
    assert widths[1] == pytest.approx(widths[0], rel=0.1)


def test_other_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="different images or captions"):
        compare_checkpoints(planted(0.5, 20), planted(0.5, 21))


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
    made = answers.make("checkpoints", {"run": clip_run.name, "epochs": [1, 2], "weights": ""}).meta
    assert list(made["differences"]) == list(made["scores"]["before"]) == list(made["scores"]["after"])
    assert made["n"] == [12, len(rows[0]) - 12]


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
