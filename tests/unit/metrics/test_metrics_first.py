"""kNN, linear probe, alignment, uniformity, RankMe: closed forms, peers and sentences."""

import functools
import math

import numpy as np
import pytest
import torch
from cases import cases
from sample_sets import spread_blobs

from benchmarks.probe import objective
from contrastive_core import metrics
from contrastive_core.base.errors import CannotScore
from contrastive_core.base.score import Score, wilson
from contrastive_core.metrics._base import mean_interval
from contrastive_core.metrics.linear_probe import GRID, Logistic, _preconditioner, choose_strength, stratified_folds
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.towers import joined


def circle(degrees: list[float], labels: list[int] | None = None, **more) -> EmbeddingSet:
    angle = np.radians(degrees)
    features = np.stack([np.cos(angle), np.sin(angle)], 1).astype(np.float32)
    return EmbeddingSet(features, None if labels is None else np.array(labels), **more)


def test_knn_votes_by_hand() -> None:
    train = circle([0, 50, 55], [0, 1, 1])
    test = circle([20], [0])
    for temperature, expected in ((0.07, 0), (100.0, 1)):
        w = [math.exp(math.cos(math.radians(a)) / temperature) for a in (20, 30, 35)]
        assert (w[0] < w[1] + w[2]) == bool(expected)
        result = metrics.create("knn", k=3, temperature=temperature)(train, circle([20, 1], [0, 1]))
        assert result.arrays["predicted"][0] == expected
    assert metrics.create("knn", k=3, temperature=0.07)(train, circle([20, 60], [0, 1])).value == 1
    with pytest.raises(CannotScore, match="at least two classes"):
        metrics.create("knn", k=3)(train, test)


def test_knn_survives_small_temperatures_and_counts_only_labeled_rows() -> None:
    train, test = spread_blobs(60, 0.3), spread_blobs(30, 0.3, seed=1)
    assert test.labels is not None
    test.labels[:5] = -1
    result = metrics.create("knn", temperature=0.001)(train, test)
    assert result.value == 1
    assert {"k": 20, "temperature": 0.001, "n": 25}.items() <= result.extras.items()
    assert result.per_sample is not None
    assert np.isnan(result.per_sample[:5]).all()
    with pytest.raises(CannotScore, match="k is 200, but there are only 60"):
        metrics.create("knn", k=200)(train, test)


@pytest.mark.parametrize("c", [0.01, 1.0, 100.0])
def test_probe_reaches_scikit_learns_objective(c: float) -> None:
    from sklearn.linear_model import LogisticRegression

    rows = spread_blobs(150, 1.5)
    peer = LogisticRegression(C=c, tol=1e-8, max_iter=5000)
    peer.fit(rows.features.astype(np.float64), rows.labels)
    x = torch.from_numpy(rows.features).double()
    y = torch.from_numpy(rows.labels)
    theirs = torch.from_numpy(np.vstack([peer.coef_.T, peer.intercept_]))
    ours = Logistic(x, y, 3).fit(c)
    assert float(objective(ours, x, y, c) - objective(theirs, x, y, c)) < 1e-8
    start = Logistic(x, y, 3).fit(c / 10)
    warm = Logistic(x, y, 3).fit(c, start)
    assert torch.allclose(warm[:-1], ours[:-1], atol=1e-3)


def test_probe_is_right_on_separable_rows_and_chooses_on_train_only() -> None:
    train, test = spread_blobs(90, 0.2), spread_blobs(30, 0.2, seed=1)
    result = metrics.create("linear_probe")(train, test)
    assert result.value == 1
    assert result.interval == wilson(30, 30)
    assert test.labels is not None
    wrong = EmbeddingSet(test.features, (test.labels + 1) % 3)
    assert metrics.create("linear_probe")(train, wrong).extras["c"] == result.extras["c"]


def test_folds_hold_every_row_out_once_but_leave_a_row_of_every_class() -> None:
    labels = np.array([0] * 90 + [1] * 2 + [2])
    masks = stratified_folds(labels)
    assert [mask[:90].sum() for mask in masks] == [30, 30, 30]
    assert np.array_equal(np.sum(masks, 0), [1] * 92 + [0])
    for mask in masks:
        assert set(labels[~mask]) == {0, 1, 2}
    assert np.array_equal(masks, stratified_folds(labels))
    with pytest.raises(CannotScore, match="one training row"):
        metrics.create("linear_probe")(circle([0, 90], [0, 1]), circle([1, 91], [0, 1]))


def overlapping(n: int, seed: int) -> EmbeddingSet:
    """Eight classes that overlap, so that accuracies lie well between chance and 1."""
    draw = np.random.default_rng(seed)
    labels = draw.integers(0, 8, n)
    turn = np.linalg.qr(np.random.default_rng(9).normal(size=(24, 24)))[0]
    x = (np.eye(8, 24)[labels] * 2.2 + draw.normal(size=(n, 24))) * np.logspace(0, -2, 24) @ turn
    return EmbeddingSet(x.astype(np.float32), labels)


@functools.cache
def unshaken(name: str) -> tuple[EmbeddingSet, EmbeddingSet, Score]:
    train, test = overlapping(800, 0), overlapping(1000, 1)
    return train, test, metrics.create(name)(train, test)


@cases("name", ["linear_probe", "knn"])
@cases("seed", range(3))
def test_a_figure_does_not_hang_on_the_last_digits_of_the_features(name: str, seed: int) -> None:
    """What another processor changes is a millionth; a thousandth must not show either."""
    train, test, before = unshaken(name)
    assert before.interval is not None
    draw = np.random.default_rng(100 + seed)

    def shaken(rows: EmbeddingSet) -> EmbeddingSet:
        factor = 1 + 1e-3 * draw.normal(size=rows.features.shape)
        return EmbeddingSet((rows.features * factor).astype(np.float32), rows.labels)

    after = metrics.create(name)(shaken(train), shaken(test))
    width = before.interval[1] - before.interval[0]
    assert 0.3 < before.value < 0.95
    assert abs(after.value - before.value) < width / 10
    if name == "linear_probe":
        assert after.extras["c"] == pytest.approx(before.extras["c"], rel=0.02)


def test_strength_is_where_the_cross_validated_log_loss_is_least() -> None:
    """Beside scikit-learn's own search by log-loss, on a grid ten times as fine."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import log_loss

    rows = overlapping(400, 3)
    x, y = rows.features / rows.features.std(0), rows.labels
    chosen = choose_strength(torch.from_numpy(x), y)
    fine = chosen.c * 10 ** np.linspace(-0.5, 0.5, 11)
    losses = []
    for c in fine:
        total = 0.0
        for mask in stratified_folds(y):
            peer = LogisticRegression(C=c, tol=1e-6, max_iter=2000).fit(x[~mask], y[~mask])
            total += log_loss(y[mask], peer.predict_proba(x[mask]), normalize=False)
        losses.append(total / len(y))
    assert abs(int(np.argmin(losses)) - 5) <= 1  # within a tenth of a decade of ours
    near = {f"{c:.3g}": c for c in GRID}
    for name, loss in chosen.log_loss.items():
        at = np.interp(np.log(near[name]), np.log(fine), losses, np.nan, np.nan)
        assert np.isnan(at) or loss == pytest.approx(at, rel=1e-3)


def test_probe_takes_constant_and_zero_columns() -> None:
    train, test = spread_blobs(60, 0.2), spread_blobs(30, 0.2, seed=1)
    train.features[:, -1], test.features[:, -1] = 1e6, 1e6
    assert metrics.create("linear_probe")(train, test).value == 1


def test_probe_takes_products_that_rounding_has_left_indefinite() -> None:
    """As of an encoder that has nearly collapsed: float32 products, one direction above all."""
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(20, 20)))[0]
    sizes = np.r_[100.0, np.full(18, 1e-4), -3e-5]
    factor = _preconditioner(torch.from_numpy(turn * sizes @ turn.T), 8, 2e-6)
    assert torch.isfinite(factor).all()


def test_alignment_of_two_towers_is_that_of_their_partners() -> None:
    """Against a plain loop; labels and rows without a partner change nothing."""
    a, b = spread_blobs(6, 1.0), spread_blobs(9, 1.0, seed=1)
    rows = joined(a, b, ("image", "caption"), [0, 1, 2, 3, 4, -1], [0, 0, 0, 1, 2, 3, 3, 4, 9])
    unit = rows.features / np.linalg.norm(rows.features, axis=1, keepdims=True)
    pairs = rows.columns["pair"]
    squares = {(i, j): ((unit[i] - unit[j]) ** 2).sum() for i in range(6) for j in range(6, 15) if pairs[i] == pairs[j]}
    result = metrics.create("alignment")(None, rows)
    assert result.value == pytest.approx(np.mean([*squares.values()]), abs=1e-6)
    assert result.per_sample is not None
    assert result.per_sample[0] == pytest.approx(np.mean([s for (i, _), s in squares.items() if i == 0]), abs=1e-6)
    assert np.isnan(result.per_sample[[5, 14]]).all()
    assert result.interval == pytest.approx(mean_interval(np.array([*squares.values()])), abs=1e-6)


def test_alignment_of_classes_and_of_views() -> None:
    rows = circle([0, 60, 180, 270], [0, 0, 1, 1])
    result = metrics.create("alignment")(None, rows)
    assert result.value == pytest.approx(((2 - 2 * 0.5) + 2) / 2, abs=1e-6)
    assert result.per_sample == pytest.approx([1, 1, 2, 2], abs=1e-6)
    views = np.stack([rows.features, np.roll(rows.features, 1, axis=0)], 1)
    seen = metrics.create("alignment")(None, circle([0, 1, 2, 3], None, views=views))
    wanted = np.mean([2 - 2 * math.cos(math.radians(a)) for a in (90, 60, 120, 90)])
    assert seen.value == pytest.approx(wanted, abs=1e-6)
    with pytest.raises(CannotScore, match="needs augmented views or labels"):
        metrics.create("alignment")(None, circle([0, 1]))


def test_uniformity_of_a_square_and_of_a_point() -> None:
    square = metrics.create("uniformity", t=2)(None, circle([0, 90, 180, 270]))
    assert square.value == pytest.approx(math.log((2 * math.exp(-4) + math.exp(-8)) / 3), abs=1e-5)
    point = metrics.create("uniformity")(None, circle([30, 30, 30]))
    assert point.value == pytest.approx(0, abs=1e-6)
    with pytest.raises(CannotScore, match="two rows"):
        metrics.create("uniformity")(None, circle([1]))


def test_uniformity_interval_holds_the_value_of_the_population() -> None:
    draw, held = np.random.default_rng(0), 0
    truth = math.log(np.mean(np.exp(-2 * (2 - 2 * np.cos(np.linspace(0, 2 * np.pi, 100_000))))))
    for _ in range(60):
        rows = circle(list(draw.uniform(0, 360, 80)))
        interval = metrics.create("uniformity")(None, rows).interval
        assert interval is not None
        held += interval[0] <= truth <= interval[1]
    assert held >= 50


def test_rankme_of_planted_spectra() -> None:
    base, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(50, 6)))
    even = EmbeddingSet((base * [1, 1, 1, 1, 0, 0]).astype(np.float32))
    assert metrics.create("rankme")(None, even).value == pytest.approx(4, abs=1e-4)
    share = np.array([0.5, 0.25, 0.125, 0.125])
    skewed = EmbeddingSet((base[:, :4] * share).astype(np.float32))
    result = metrics.create("rankme")(None, skewed)
    assert result.value == pytest.approx(math.exp(-(share * np.log(share)).sum()), abs=1e-4)
    assert np.allclose(result.arrays["spectrum"], share, atol=1e-6)
    with pytest.raises(CannotScore, match="not zero"):
        metrics.create("rankme")(None, EmbeddingSet(np.zeros((3, 2), np.float32)))
