"""Wrong labels: the five voters, what they learn from, the noise model, and how many there are."""

import numpy as np
import pytest
from cases import cases
from sklearn.metrics import average_precision_score

from contrastive_core.base import memory
from contrastive_core.samples import label_errors
from contrastive_core.samples.label_errors import LabelErrors, find_label_errors
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.neighbor_graphs import nearest


def overlapping(n: int = 600, spread: float = 1.3, classes: int = 4) -> EmbeddingSet:
    """Classes that overlap: a few right rows look wrong."""
    rng = np.random.default_rng(0)
    labels = np.arange(n) % classes
    x = 3 * np.eye(classes, 8)[labels] + spread * rng.normal(size=(n, 8)) + 2
    return EmbeddingSet(x.astype(np.float32), labels.astype(np.int64))


def flipped(rows: EmbeddingSet, share: float, pairwise: bool) -> tuple[EmbeddingSet, np.ndarray]:
    """The rows with a share of labels wrong: of the next class, or of any other; and which."""
    rng, n, classes = np.random.default_rng(1), len(rows), int(rows.labels.max()) + 1
    at = rng.choice(n, round(share * n), replace=False)
    labels = rows.labels.copy()
    step = 1 if pairwise else rng.integers(1, classes, len(at))
    labels[at] = (labels[at] + step) % classes
    return EmbeddingSet(rows.features, labels), labels != rows.labels


def found_in(rows: EmbeddingSet) -> LabelErrors:
    return find_label_errors(rows, nearest(rows.features, None, min(60, len(rows) - 1)))


@pytest.mark.parametrize("pairwise", [False, True])
def test_the_list_is_better_than_the_voters_first_mean_and_than_most_of_them(pairwise: bool) -> None:
    rows, wrong = flipped(overlapping(), 0.3, pairwise)
    found = found_in(rows)
    every = {n: average_precision_score(wrong, s) for n, s in found.by_voter.items()}
    votes, _ = label_errors.vote(rows, nearest(rows.features, None, 60), np.ones(len(rows), bool))
    first = np.mean(list(votes.values()), 0)
    alone = average_precision_score(wrong, 1 - first[np.arange(len(rows)), rows.labels])
    score = average_precision_score(wrong, found.probability)
    assert score > alone  # what was left out and which classes are taken for each other both help
    assert score > np.mean(list(every.values()))
    assert score > 0.9


def test_what_is_found_does_not_depend_on_where_votes_lie_and_how_many_are_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In memory at once, or mapped from files and block by block; also with rows without label."""
    rows, _ = flipped(overlapping(), 0.2, True)
    labels = np.where(np.arange(len(rows)) % 9 == 4, -1, rows.labels)
    made = []
    for own in (rows, EmbeddingSet(rows.features, labels)):
        in_memory = found_in(own)
        with monkeypatch.context() as patch:
            patch.setattr(memory, "MAPPED", 1)
            patch.setattr(label_errors, "VOTED", 37)
            patch.setattr(label_errors, "BLOCK", 256)
            in_files = found_in(own)
        assert isinstance(in_files.classes, np.memmap)
        assert isinstance(in_files.by_class.losses, np.memmap)
        for name in ("probability", "confidence", "classes"):
            found, expected = getattr(in_files, name), getattr(in_memory, name)
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
        assert np.array_equal(in_files.suggested, in_memory.suggested)
        made.append(in_memory)
    assert np.isnan(made[1].classes[4]).all()
    assert np.isfinite(made[1].classes[labels >= 0]).all()


def test_a_voter_has_not_seen_the_label_of_the_row() -> None:
    """Whatever a row is labeled, all voters say the same of it; other rows may change."""
    rows = overlapping(120)
    graph, learned = nearest(rows.features, None, 60), np.ones(120, bool)
    before, _ = label_errors.vote(rows, graph, learned)
    labels = rows.labels.copy()
    labels[0] = 1
    after, _ = label_errors.vote(EmbeddingSet(rows.features, labels), graph, learned)
    for name in ("loss", "neighbors"):
        np.testing.assert_allclose(before[name][0], after[name][0], atol=1e-6)
    x, classify = rows.features, label_errors.discriminant
    p = label_errors.out_of_fold(x, rows.labels, 4, classify)
    fold = label_errors.folds(rows.labels)
    rest = np.flatnonzero(fold != fold[0])
    np.testing.assert_allclose(p[0], classify(x[rest], rows.labels[rest])(x[:1])[0], atol=1e-6)


@pytest.mark.parametrize("share", [0.05, 0.2])
def test_wrong_labels_have_a_high_probability_and_right_ones_a_low_one(share: float) -> None:
    rows, wrong = flipped(overlapping(800, spread=0.7), share, pairwise=False)
    found = found_in(rows)
    assert found.probability[wrong].mean() > 0.8
    assert found.probability[~wrong].mean() < 0.1


def test_the_share_is_the_likeliest() -> None:
    odds = np.random.default_rng(0).lognormal(-2, 2, 500)
    e = label_errors.share_of(odds)
    shares = np.linspace(0.001, 0.89, 400)
    likelihood = np.log1p(shares[:, None] * (odds - 1)).mean(1)
    assert e == pytest.approx(shares[likelihood.argmax()], abs=0.003)


@cases(
    "labels",
    [
        [0, 1, 0, 1, 0, 1],  # two classes
        [0, 0, 0, 0, 0, 7],  # numbers with gaps, a class of one
        [0, 1, 2, 3, 4, 5],  # each a class of its own
        [0, 1, -1, -1, -1, -1],  # two labels
    ],
)
@cases("same", [False, True])
def test_small_and_odd_sets_have_figures(labels: list[int], same: bool) -> None:
    x = np.ones((6, 3)) if same else np.random.default_rng(0).normal(size=(6, 3))
    rows = EmbeddingSet(x.astype(np.float32), np.array(labels))
    found, labeled = found_in(rows), np.array(labels) >= 0
    for values in (found.probability, found.confidence, *found.by_voter.values()):
        assert np.isfinite(values[labeled]).all()
        assert np.isnan(values[~labeled]).all()
    assert (found.suggested[labeled] != rows.labels[labeled]).all()
    assert (found.suggested[~labeled] == -1).all()


def test_classes_that_are_hard_to_tell_apart_are_not_taken_for_wrong_labels() -> None:
    """Classes 0 and 1 look alike and are labeled right; what is wrong is spread evenly."""
    rng, n = np.random.default_rng(0), 6000
    truth = np.arange(n) % 4
    p = 0.97 * np.eye(4)[truth] + 0.01
    alike = truth < 2
    p[alike, :2] = rng.dirichlet([1, 1], int(alike.sum())) * 0.98
    p[alike, 2:] = 0.01
    truth[alike] = (rng.random(int(alike.sum())) < p[alike, 1] / 0.98).astype(np.int64)
    y, flip = truth.copy(), rng.random(n) < 0.1
    y[flip] = (truth[flip] + rng.integers(1, 4, int(flip.sum()))) % 4
    s = label_errors.confusions(p, y, flip.astype(float))
    doubted = label_errors.confusions(p, y, 1 - p[np.arange(n), y])
    assert s[0, 1] < 0.45  # a third, where all others are alike
    assert doubted[0, 1] > 0.6  # were all counted that the voters doubt
    np.testing.assert_allclose(s.sum(1), 1)
    assert (s.diagonal() == 0).all()


def test_classifiers_of_a_large_set_learn_from_some_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as LEARNED, none of them of the row's own fold; and two folds where half are more."""
    monkeypatch.setattr(label_errors, "LEARNED", 40)
    rows, learned = overlapping(100), []

    def fit(x: np.ndarray, y: np.ndarray) -> label_errors.Vote:
        learned.append(len(x))
        return lambda other: np.array([[(x == row).all(1).any(), *[0] * y.max()] for row in other])

    assert not label_errors.out_of_fold(rows.features, rows.labels, 4, fit).any()
    assert learned == [40, 40]
