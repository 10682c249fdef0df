"""Which labels are wrong, how sure that is, and how many there are.

1. Four voters that have not seen a row's label give each class a probability (label_voters.py);
   p is their mixture.
2. Rows for which p gives another class more than half are left out of what the voters learn from,
   and they vote again: the classes they learn are cleaner, and where an embedding cannot tell
   classes apart hardly a row is left out. (To leave out more, as confident learning does,
   costs much there.)
3. The mixture's weights, alike at first, are now those under which the labels that were learned
   from are likeliest (a linear opinion pool, by expectation–maximization); likewise the
   temperature that sharpens p (Guo et al. 2017, arXiv 1706.04599).
4. A label y is wrong with odds e/(1 − e) · Σ_{c≠y} p_c S_cy / p_y. S_cy says how often a row of
   class c that is labeled otherwise is labeled y, counted from the voters' first choices and
   pulled towards all alike: where wrong labels are spread evenly the list is that of
   self-confidence, 1 − p_y; where two classes are taken for each other it compares these. (The
   noise model of Natarajan et al. 2013, NIPS 26.) e, the share of wrong labels, is the one under
   which the given labels are likeliest.

What the embedding cannot see is not counted: e is low where classes overlap in it.
Measured beside cleanlab by `benchmarks/label_errors.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from contrastive_core.embeddings.embedding_set import EmbeddingSet
from contrastive_core.ops.neighbors import Neighbors
from contrastive_core.progress import OnFraction, ignore_fraction
from contrastive_core.samples.class_losses import ByClass
from contrastive_core.samples.label_voters import vote

__all__ = ["WrongLabels", "doubtful", "find_wrong_labels", "share_of", "weights_of"]

DOUBT = 0.5  # of another class: from there a row is not learned from
LEAST = 0.3  # of every class that is learned from, the likeliest
EVENLY = 10.0  # how strongly S is pulled towards all alike, in wrong labels of the usual kind
RESAMPLES = 100  # of the rows, for the interval of their number
FLOOR = 1e-12
MOST_WRONG = 0.9  # of all labels


@dataclass(frozen=True, eq=False)
class WrongLabels:
    """What n rows with labels are suspected of; rows without a label have NaN and −1.

    `number` and its 95 % interval count rows by their probabilities: other rows of the same kind
    would give another number in this interval; a better embedding may find more.
    """

    probability: np.ndarray  # (n) that the label is wrong
    suggested: np.ndarray  # (n) the likeliest other class
    confidence: np.ndarray  # (n) probability of that class
    classes: np.ndarray  # (n, classes) the voters' mean probability, sharpened
    by_voter: dict[str, np.ndarray]  # (n) each: 1 − its probability of the label
    weights: dict[str, float]  # of the voters, sum 1
    by_class: ByClass  # of all rows
    votes: dict[str, np.ndarray]  # (n, classes) by voter
    number: float
    interval: tuple[float, float]


def find_wrong_labels(
    rows: EmbeddingSet,
    graph: Neighbors,
    seed: int = 0,
    device: str = "auto",
    on_fraction: OnFraction = ignore_fraction,
) -> WrongLabels:
    """Suspicions of all labeled rows. Of many processes (torchrun) each does a share of the work.

    Args: graph: the nearest other rows of each, a few times as many as vote.
    Raises: ValueError without labels; what `on_fraction` raises stops it.
    """
    assert rows.labels is not None
    labeled = rows.labels >= 0
    first = vote(rows, graph, labeled, seed, device)
    on_fraction(0.5)
    learned = labeled & ~doubtful(first.mean(), rows.labels)
    votes = first if learned.sum() == labeled.sum() else vote(rows, graph, learned, seed, device)
    on_fraction(0.9)
    at, y = np.flatnonzero(labeled), rows.labels[labeled]
    weight = weights_of(votes.by_voter, rows.labels, learned)
    p = sum(w * votes.by_voter[name][at] for name, w in weight.items())
    p = _sharpened(np.asarray(p), y, learned[at])
    joint = p * _confusions(p, y)[:, y].T  # (m, classes): p_c S_cy
    odds = joint.sum(1) / np.maximum(p[np.arange(len(y)), y], FLOOR)
    share = share_of(odds)
    low, high = _interval(odds, np.random.default_rng(seed))
    on_fraction(1.0)
    n = len(rows)
    return WrongLabels(
        probability=_full(n, at, _posterior(odds, share)),
        suggested=_full(n, at, joint.argmax(1), -1).astype(np.int64),
        confidence=_full(n, at, p[np.arange(len(y)), joint.argmax(1)]),
        classes=_full(n, at, p),
        by_voter={
            name: _full(n, at, 1 - v[at, y]) for name, v in votes.by_voter.items()
        },
        weights=weight,
        by_class=first.by_class,
        votes=votes.by_voter,
        number=len(y) * share,
        interval=(low, high),
    )  # fmt: skip


def doubtful(p: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Rows (n) bool that are not learned from; of each class some are, however doubtful."""
    label_probability = p[np.arange(len(p)), np.maximum(labels, 0)]
    others = p.copy()
    others[np.arange(len(p)), np.maximum(labels, 0)] = 0
    doubtful = others.max(1) > DOUBT
    for c in np.unique(labels[labels >= 0]):
        at = np.flatnonzero(labels == c)
        least = max(1, min(len(at), round(LEAST * len(at))))
        doubtful[at[np.argsort(-label_probability[at], kind="stable")[:least]]] = False
    return np.asarray(doubtful)


def weights_of(
    votes: dict[str, np.ndarray], labels: np.ndarray, learned: np.ndarray, rounds: int = 200
) -> dict[str, float]:
    """The weights of the voters under which the labels learned from are likeliest."""
    at = np.flatnonzero(learned)
    label_probability = (
        np.stack([v[at, labels[at]] for v in votes.values()], 1) + FLOOR
    )  # (m, voters)
    weight = np.full(len(votes), 1 / len(votes))
    for _ in range(rounds):
        share = label_probability * weight
        weight = (share / share.sum(1, keepdims=True)).mean(0)
    return dict(zip(votes, weight.tolist(), strict=True))


def _sharpened(p: np.ndarray, y: np.ndarray, learned: np.ndarray) -> np.ndarray:
    """p^(1/t), made to sum to 1, with the t of the highest likelihood on what was learned from."""
    from scipy.optimize import minimize_scalar
    from scipy.special import log_softmax, softmax

    log_p, row_index = np.log(np.maximum(p, FLOOR)), np.arange(int(learned.sum()))

    def cost(log_t: float) -> float:
        z = log_softmax(log_p[learned] / np.exp(log_t), axis=1)
        return -float(z[row_index, y[learned]].mean())

    t = np.exp(minimize_scalar(cost, bounds=(-3, 3), method="bounded").x)
    return np.asarray(softmax(log_p / t, axis=1))


def _confusions(p: np.ndarray, y: np.ndarray) -> np.ndarray:
    """S (classes, classes): how often a row of class c that is labeled otherwise has each label;
    rows sum to 1, the diagonal is 0."""
    classes, first = p.shape[1], p.argmax(1)
    counts = np.zeros((classes, classes))
    np.add.at(counts, (first, y), p[np.arange(len(y)), first])
    np.fill_diagonal(counts, 0)
    off = ~np.eye(classes, dtype=bool)
    usual = counts.sum() / max(1, off.sum())
    counts += (EVENLY * usual + FLOOR) * off
    return np.asarray(counts / counts.sum(1, keepdims=True))


def share_of(odds: np.ndarray) -> float:
    """The share e of wrong labels under which the given labels are likeliest: each has likelihood
    (1 − e) p_y + e Σ p_c S_cy, which is concave in e once its logarithm is taken."""
    from scipy.optimize import minimize_scalar

    def cost(e: float) -> float:
        return -float(np.log1p(e * (odds - 1)).mean())

    return float(minimize_scalar(cost, bounds=(0, MOST_WRONG), method="bounded").x)


def _interval(odds: np.ndarray, rng: np.random.Generator) -> tuple[float, float]:
    """95 % interval of the number of wrong labels, by resampling the rows."""
    n = len(odds)
    counts = [n * share_of(odds[rng.integers(0, n, n)]) for _ in range(RESAMPLES)]
    low, high = np.quantile(counts, [0.025, 0.975])
    return float(low), float(high)


def _posterior(odds: np.ndarray, e: float) -> np.ndarray:
    """Probability (n) that a label is wrong; e is kept off 0 so that the order stays."""
    scaled = odds * max(e, 1e-4) / max(1 - e, 1e-4)
    return np.asarray(scaled / (1 + scaled))


def _full(n: int, at: np.ndarray, values: np.ndarray, missing: float = np.nan) -> np.ndarray:
    """Values of some of n rows, in their places."""
    whole = np.full((n, *values.shape[1:]), missing)
    whole[at] = values
    return whole
