"""An epoch's plan depends on seed and epoch alone and uses every image fairly."""

import numpy as np
import pytest
from cases import cases

from contrastive_core.data.batch_loader import PLANS, plan

LABELS = np.repeat(np.arange(10), [40, 40, 40, 40, 40, 40, 40, 40, 30, 1])


@cases("kind", PLANS)
def test_a_plan_is_reproducible_and_changes_by_epoch(kind: str) -> None:
    one, two = (plan(kind, LABELS, 32, seed=1, epoch=3) for _ in range(2))
    other = plan(kind, LABELS, 32, seed=1, epoch=4)
    assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))
    assert not np.array_equal(one[0], other[0])
    for batch in one:
        assert len(np.unique(batch)) == len(batch)


def test_shuffled_uses_every_image_once() -> None:
    batches = plan("shuffled", LABELS, 50, 0, 0)
    assert [len(b) for b in batches] == [50] * 7  # the last single image is left out
    whole = plan("shuffled", LABELS, 117, 0, 0)
    assert np.array_equal(np.sort(np.concatenate(whole)), np.arange(351))


def test_a_small_set_is_one_batch() -> None:
    assert [len(b) for b in plan("shuffled", np.zeros(5), 64, 0, 0)] == [5]


def test_class_balanced_batches() -> None:
    for batch in plan("class_balanced", LABELS, 36, 0, 0):
        classes, counts = np.unique(LABELS[batch], return_counts=True)
        assert len(classes) == 6
        assert set(counts) == {6}
        assert 9 not in classes  # one image makes no pair


def test_n_pair_batches() -> None:
    for batch in plan("n_pair", LABELS, 16, 0, 0):
        classes, counts = np.unique(LABELS[batch], return_counts=True)
        assert len(classes) == 8
        assert set(counts) == {2}


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="known: shuffled"):
        plan("sorted", LABELS, 8, 0, 0)
    with pytest.raises(ValueError, match="two classes"):
        plan("class_balanced", np.full(20, -1), 8, 0, 0)
    with pytest.raises(ValueError, match="two classes"):
        plan("n_pair", np.zeros(20, int), 8, 0, 0)


def test_lifted_batches_hold_pairs_of_a_class_in_every_four() -> None:
    labels = np.arange(200) % 7
    batches = plan("lifted", labels, 32, 0, 0)
    assert len(batches) == 6
    for batch in batches:
        assert len(batch) == 32
        assert (labels[batch[0::4]] == labels[batch[1::4]]).all()
        assert (batch[0::4] != batch[1::4]).all()
