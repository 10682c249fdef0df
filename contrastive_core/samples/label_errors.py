"""Detect labels that are probably wrong, with a suggestion for each.

1. Five voters that have not seen a row's label assign each class a probability; p is their mixture.
   - loss: the supervised contrastive loss of the row under each class in turn, e^{−L} (`losses.by_class`): the log of
     a mean of softmax probabilities, so e^{−L}, normalized to sum 1, is a vote for the class.
   - neighbors: the K nearest other rows, weighted e^{s/0.07} as in kNN.
   - probe: a logistic regression on unit rows, strength C = 10, fitted without the row's fold.
   - scaled_probe: the same on standardized columns, C = 0.1; which of the two is better depends on the encoder.
   - discriminant: linear discriminant analysis with a shrunk covariance (Ledoit & Wolf 2004, J. Multivariate Analysis
     88), fitted without the row's fold.
   All rows get votes, also those that the voters do not learn from. The classifiers are trained on at most `LEARNED`
   random rows of the other folds; two folds are enough for sets twice as large.
2. Rows for which p gives another class more than half are removed from the voters' training rows, and they vote again:
   the training classes are cleaner, and if an embedding cannot separate classes hardly a row is removed. (Removing
   more, as confident learning does, is much worse in that case.)
3. In each round, the mixture's weights maximize the likelihood of the training labels (a linear opinion pool, by
   expectation–maximization), and so does the temperature that sharpens p (Guo et al. 2017, arXiv 1706.04599). The p of
   both rounds are multiplied: the first is better for evenly spread wrong labels, the second for pairs of confused
   classes.
4. A label y is wrong with odds e/(1 − e) · Σ_{c≠y} p_c S_cy / p_y. S_cy is the probability that a mislabeled row of
   class c has the label y. It is counted from the most likely other class of each row, weighted by the probability of
   an error, and mixed with a uniform matrix by maximum likelihood. For evenly spread wrong labels the list is that of
   self-confidence, 1 − p_y; for confused classes it compares the two. (The noise model of Natarajan et al. 2013, NIPS
   26.) The share of wrong labels, e, maximizes the likelihood of the given labels.

The probabilities rank samples. They do not estimate the number of wrong labels, because wrong labels and ambiguous
classes look alike to a model. Only a person's random checks do (label_audit.py). The voters' weights and the
temperature, a few numbers, are fitted on at most `FITTED` rows, the latter on fewer for more than 335 classes. Large
arrays of rows × classes, five votes and their mixtures, are stored in files (base/memory.py). Compared with
cleanlab by `benchmarks/label_errors.py`."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from contrastive_core.base.device import pick_device
from contrastive_core.base.memory import mapped_zeros, rows_of_sample
from contrastive_core.base.progress import OnFraction, ignore_fraction
from contrastive_core.metrics.linear_probe import Logistic
from contrastive_core.samples.losses import TEMPERATURE, ByClass, by_class, sums_by_class
from contrastive_core.samples.sample_table import K
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.neighbor_graphs import Neighbors

DOUBT = 0.5  # of another class: from there a row is not learned from
LEAST = 0.3  # of every class that is learned from, the likeliest
EVENLY = 0.3  # how strongly S is pulled towards all alike, in wrong labels of the usual kind
ROUNDS = 2  # of counting S by what is wrong, and what is wrong by S
FLOOR = 1e-12
FITTED, FEWEST = 100_000, 10_000
BLOCK, CELLS = 1 << 16, 1 << 25  # rows, and rows × classes, that are looked at together
MOST_WRONG = 0.9  # of all labels

FOLDS = 5
LEARNED = 50_000
VOTED = 1 << 14  # rows that are voted on at a time
C = 10.0  # strength of the probe
SCALED_C = 0.1  # of that on standardized columns

Vote = Callable[[np.ndarray], np.ndarray]  # of rows (q, d) the probabilities (q, classes)
Fit = Callable[[np.ndarray, np.ndarray], Vote]  # to rows (m, d) and their labels, all of 0 … there
Votes = dict[str, np.ndarray]  # probabilities (n, classes) float32 by voter


@dataclass(frozen=True, eq=False)
class LabelErrors:
    """Probable label errors of n rows; rows without a label have NaN and −1."""

    probability: np.ndarray  # (n) that the label is wrong
    suggested: np.ndarray  # (n) the likeliest other class
    confidence: np.ndarray  # (n) probability of that class
    classes: np.ndarray  # (n, classes) the voters' probability together
    by_voter: dict[str, np.ndarray]  # (n) each: 1 − its probability of the label
    weights: dict[str, float]  # of the voters, sum 1
    by_class: ByClass  # of all rows
    predicted: dict[str, np.ndarray]  # (n) the likeliest class by voter


def find_label_errors(
    rows: EmbeddingSet, graph: Neighbors, device: str = "auto", on_fraction: OnFraction = ignore_fraction
) -> LabelErrors:
    """Find probable label errors among all labeled rows. `graph`: the nearest other rows of each, several times as many
    as vote. An exception from `on_fraction` stops the work."""
    assert rows.labels is not None
    labeled = rows.labels >= 0
    at, y = np.flatnonzero(labeled), rows.labels[labeled]
    votes, classes = vote(rows, graph, labeled, device)
    on_fraction(0.5)
    p, _ = mixture(votes, rows.labels, labeled, at)
    evenly = dict.fromkeys(votes, 1 / len(votes))
    learned = labeled & ~doubtful(mixed(votes, evenly), rows.labels)
    if learned.sum() < labeled.sum():
        del votes  # n × classes by five: not twice
        votes, _ = vote(rows, graph, learned, device)
    on_fraction(0.9)
    again, weight = mixture(votes, rows.labels, learned, at)
    np.sqrt(np.multiply(p, again, out=p), out=p)
    del again
    p /= p.sum(1, keepdims=True)
    p = _sharpened(p, y, learned[at])
    suggested, odds = _others(p, y)
    place = np.where(labeled, labeled.cumsum() - 1, -1)
    on_fraction(1.0)
    return LabelErrors(
        probability=_rows(_posterior(odds), place),
        suggested=_rows(suggested, place, -1),
        confidence=_rows(p[np.arange(len(y)), suggested], place),
        classes=_rows(p, place),
        by_voter={name: _rows(1 - v[at, y], place) for name, v in votes.items()},
        weights=weight,
        by_class=classes,
        predicted={name: v.argmax(1) for name, v in votes.items()},
    )


def mixture(
    votes: Votes, labels: np.ndarray, learned: np.ndarray, at: np.ndarray
) -> tuple[np.ndarray, dict[str, float]]:
    """Return the sharpened mixture of the voters (m, classes) on the rows `at`, and their weights, which maximize the
    likelihood of the training labels."""
    some = np.flatnonzero(learned)
    weights = _likeliest(np.stack([v[some, labels[some]] for v in votes.values()], 1))
    weight = dict(zip(votes, weights.tolist(), strict=True))
    return _sharpened(_rows(mixed(votes, weight), at), labels[at], learned[at]), weight


def mixed(votes: Votes, weights: dict[str, float]) -> np.ndarray:
    """Return the weighted mean of the voters' probabilities (n, classes)."""
    total = mapped_zeros(next(iter(votes.values())).shape)
    for start in range(0, len(total), VOTED):
        part = slice(start, start + VOTED)
        for name, weight in weights.items():
            total[part] += np.float32(weight) * votes[name][part]
    return total


def _others(p: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the most likely other class (m) by p_c S_cy, and the sum of p_c S_cy over p_y (m): the odds without the
    factor e/(1 − e)."""
    p_y = np.maximum(p[np.arange(len(y)), y].astype(np.float64), FLOOR)
    even = np.asarray((1 - p_y) / (p.shape[1] - 1) / p_y)  # S all alike
    odds = even
    for _ in range(ROUNDS):
        s = confusions(p, y, _posterior(odds))
        shaped = np.concatenate([(p[b] * s[:, y[b]].T).sum(1) for b in _blocks(p)]) / p_y
        part = _likeliest(np.stack([np.ones(len(y)), even, shaped], 1))
        evenly = part[1] / max(part[1] + part[2], FLOOR)
        odds = evenly * even + (1 - evenly) * shaped
    s = (1 - evenly) * s + evenly / (p.shape[1] - 1) * ~np.eye(p.shape[1], dtype=bool)
    return np.concatenate([(p[b] * s[:, y[b]].T).argmax(1) for b in _blocks(p)]), odds


def _blocks(p: np.ndarray) -> list[slice]:
    """Return blocks of rows of p (m, classes) as slices."""
    rows = max(256, min(BLOCK, CELLS // p.shape[1]))
    return [slice(start, start + rows) for start in range(0, len(p), rows)]


def _rows(values: np.ndarray, at: np.ndarray, missing: float = np.nan) -> np.ndarray:
    """Return the rows `at` of values (m, …), `missing` for −1; the values themselves if `at` covers all in order."""
    if len(at) == len(values):
        return values
    if values.ndim == 1:
        some = np.full(len(at), missing)
        some[at >= 0] = values[at[at >= 0]]
        return some
    some = mapped_zeros((len(at), values.shape[1]))
    for b in _blocks(some):
        some[b] = np.where(at[b, None] >= 0, values[at[b]], missing)
    return some


def doubtful(p: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return a mask (n) of rows to exclude from training. Some rows of each class always stay."""
    label_probability = p[np.arange(len(p)), np.maximum(labels, 0)]
    highest, likeliest = p.max(1), p.argmax(1)
    doubtful = (highest > DOUBT) & (likeliest != np.maximum(labels, 0))
    for c in np.unique(labels[labels >= 0]):
        at = np.flatnonzero(labels == c)
        least = max(1, min(len(at), round(LEAST * len(at))))
        doubtful[at[np.argsort(-label_probability[at], kind="stable")[:least]]] = False
    return np.asarray(doubtful)


def _likeliest(likelihood: np.ndarray) -> np.ndarray:
    """Return the weights (k), sum 1, of a mixture from the likelihoods (m, k) of its parts, by EM."""
    likelihood = likelihood[rows_of_sample(len(likelihood), FITTED)].astype(np.float64) + FLOOR
    part = np.full(likelihood.shape[1], 1 / likelihood.shape[1])
    for _ in range(200):
        share = likelihood * part
        part = (share / share.sum(1, keepdims=True)).mean(0)
    return np.asarray(part)


def _sharpened(p: np.ndarray, y: np.ndarray, learned: np.ndarray) -> np.ndarray:
    """Replace p by p^(1/t) in place, normalized to sum 1. t maximizes the likelihood on the training rows."""
    at = np.flatnonzero(learned)
    at = at[rows_of_sample(len(at), max(FEWEST, min(FITTED, CELLS // p.shape[1])))]
    log_p, truth, row = np.log(np.maximum(p[at], FLOOR)), y[at], np.arange(len(at))

    def cost(log_t: float) -> float:
        return -float(log_softmax(log_p / np.exp(log_t), axis=1)[row, truth].mean())

    t = np.exp(minimize_scalar(cost, bounds=(-3, 3), method="bounded").x)
    for b in _blocks(p):
        p[b] = softmax(np.log(np.maximum(p[b], FLOOR)) / t, axis=1)
    return p


def confusions(p: np.ndarray, y: np.ndarray, wrong: np.ndarray) -> np.ndarray:
    """Return S (classes, classes): the probability of each label for a mislabeled row of class c. Rows sum to 1, the
    diagonal is 0. wrong: (m) the probability that each label is wrong."""
    classes = p.shape[1]
    counts = np.zeros((classes, classes))
    for b in _blocks(p):
        others = p[b].copy()
        others[np.arange(len(others)), y[b]] = -1
        np.add.at(counts, (others.argmax(1), y[b]), wrong[b])
    off = ~np.eye(classes, dtype=bool)
    counts += (EVENLY * counts.sum() / max(1, off.sum()) + FLOOR) * off
    return np.asarray(counts / counts.sum(1, keepdims=True))


def share_of(odds: np.ndarray) -> float:
    """Return the share e of wrong labels that maximizes the likelihood of the given labels, Π (1 − e) p_y + e Σ p_c
    S_cy; its logarithm is concave in e."""
    best = minimize_scalar(lambda e: -np.log1p(e * (odds - 1)).sum(), bounds=(0, MOST_WRONG), method="bounded")
    return float(best.x)


def _posterior(odds: np.ndarray) -> np.ndarray:
    """Return the probability (m) that a label is wrong. e is at least that of one wrong label, to keep an order."""
    e = max(share_of(odds), 1 / (len(odds) + 1))
    scaled = odds * e / (1 - e)
    return np.asarray(scaled / (1 + scaled))


# --- the voters -----------------------------------------------------------------------------------


def vote(rows: EmbeddingSet, graph: Neighbors, learned: np.ndarray, device: str = "auto") -> tuple[Votes, ByClass]:
    """Run all voters on all rows; also return the loss of each row under each class. `graph`: the nearest other rows of
    each, more than K, because some have no usable label. `learned`: (n) bool, the rows whose labels the voters may use;
    −1 labels are never used."""
    assert rows.labels is not None
    labels, classes = np.where(learned, rows.labels, -1), int(rows.labels.max()) + 1
    losses = by_class(EmbeddingSet(rows.features, labels), device, None if graph.recall is None else graph)
    of_loss, of_neighbors = mapped_zeros((len(rows), classes)), mapped_zeros((len(rows), classes))
    for start in range(0, len(rows), VOTED):
        block = slice(start, start + VOTED)
        loss = losses.losses[block]  # of no class beyond those with a label
        weight = np.exp(loss.min(1, keepdims=True) - loss)
        of_loss[block, : loss.shape[1]] = weight / weight.sum(1, keepdims=True)
        near, score = labels[graph.index[block]], graph.score[block]  # (r, k)
        counted = (near >= 0) & ((near >= 0).cumsum(1) <= K)
        weight = np.exp((score - score[:, :1]) / TEMPERATURE) * counted
        of_each = sums_by_class(np.maximum(near, 0), weight, classes) + 1e-12  # uniform without such a row
        of_neighbors[block] = of_each / of_each.sum(1, keepdims=True)
    fits = {
        "probe": _probe(device, lambda x: _unit, C),
        "scaled_probe": _probe(device, _standardized, SCALED_C),
        "discriminant": discriminant,
    }
    votes = {name: out_of_fold(rows.features, labels, classes, fit) for name, fit in fits.items()}
    return {"loss": of_loss, "neighbors": of_neighbors, **votes}, losses


def out_of_fold(x: np.ndarray, labels: np.ndarray, classes: int, fit: Fit) -> np.ndarray:
    """Return class probabilities (n, classes) float32 of each row by a classifier trained without it. `x`: (n, d).
    `labels`: (n), −1: not for training. `fit`: trains on (m, d) rows and their labels 0 … classes − 1."""
    labeled = np.flatnonzero(labels >= 0)
    number = 2 if len(labeled) >= 2 * LEARNED else FOLDS
    fold = np.arange(len(x)) % number  # of rows that nobody learns from
    fold[labeled] = folds(labels[labeled], number)
    p = mapped_zeros((len(x), classes))
    for f in range(number):
        test = np.flatnonzero(fold == f)
        others = labeled[fold[labeled] != f]
        train = others[rows_of_sample(len(others), LEARNED)]
        present, y = np.unique(labels[train], return_inverse=True)
        vote = fit(x[train], y) if len(test) and len(present) > 1 else None
        for part in np.split(test, range(VOTED, len(test), VOTED)):
            if len(present):
                p[np.ix_(part, present)] = 1 if vote is None else vote(x[part])
    return p


def folds(y: np.ndarray, number: int = FOLDS) -> np.ndarray:
    """Assign a fold to each row (n), with every class, even a small one, spread evenly over the folds."""
    rng, fold = np.random.default_rng(0), np.empty(len(y), np.int64)
    start = 0
    for label in np.unique(y):
        at = rng.permutation(np.flatnonzero(y == label))
        fold[at] = (start + np.arange(len(at))) % number
        start += len(at)
    return fold


def _unit(x: np.ndarray) -> np.ndarray:
    return x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)


def _standardized(x: np.ndarray) -> Vote:
    """Return a function that standardizes columns with the training rows' mean and deviation (constant column: 0)."""
    x = x.astype(np.float64)
    mean, deviation = x.mean(0), x.std(0)
    scale = np.where(deviation > 1e-12 * (1 + np.abs(mean)), deviation, np.inf)
    return lambda other: (other.astype(np.float64) - mean) / scale


def _probe(device: str, scaling: Callable[[np.ndarray], Vote], c: float) -> Fit:
    """Return a logistic regression that uses the solver of the linear probe, on rows as `scaling` of the training rows
    scales them."""
    where = pick_device(device)

    def fit(x: np.ndarray, y: np.ndarray) -> Vote:
        scale = scaling(x)
        train, target = torch.from_numpy(scale(x)).to(where).double(), torch.from_numpy(y).to(where)
        w = Logistic(train, target, int(y.max()) + 1).fit(c, tolerance=1e-5)

        def vote(other: np.ndarray) -> np.ndarray:
            test = torch.from_numpy(scale(other)).to(where).double()
            return np.asarray((test @ w[:-1] + w[-1]).softmax(1).cpu().numpy())

        return vote

    return fit


def discriminant(x: np.ndarray, y: np.ndarray) -> Vote:
    """Fit a linear discriminant analysis on unit rows with one shrunk covariance for all classes, which suits small
    classes."""
    from sklearn.covariance import ledoit_wolf  # more than a second, also for commands that need no such vote

    x, counts = _unit(x).astype(np.float64), np.bincount(y)
    means = np.stack([x[y == c].mean(0) for c in range(len(counts))])
    covariance = ledoit_wolf(x - means[y], assume_centered=True)[0]
    ridge = 1e-6 * (np.trace(covariance) / len(covariance) + np.finfo(np.float64).tiny ** 0.25)
    solved = np.linalg.solve(covariance + ridge * np.eye(len(covariance)), means.T)  # (d, classes)
    level = np.log(counts / len(y)) - 0.5 * (means.T * solved).sum(0)
    return lambda other: np.asarray(softmax(_unit(other).astype(np.float64) @ solved + level, axis=1))
