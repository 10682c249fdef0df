"""Labels made wrong in three ways, for `benchmarks.label_errors`.

- uniform: any other class, alike.
- class: a look-alike class (of CIFAR-10: cat and dog, truck and automobile, deer and horse, ship
  and airplane, bird and airplane, frog and bird; else the next class).
- instance: the likeliest wrong class of a weak classifier, a logistic regression on 50 principal
  components of the pixels, out of fold; the more it doubts the right class, the likelier.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from contrastive_core.data.datasets import Dataset

__all__ = ["KINDS", "out_of_fold", "weak_classifier", "wrong_labels"]

KINDS = ("uniform", "class", "instance")
LOOK_ALIKE = (
    ("cat", "dog"),
    ("truck", "automobile"),
    ("deer", "horse"),
    ("ship", "airplane"),
    ("bird", "airplane"),
    ("frog", "bird"),
)


def weak_classifier(dataset: Dataset) -> np.ndarray:
    """Out-of-fold class probabilities (n, classes) from 50 components of the pixels."""
    x = np.asarray(dataset.images).reshape(len(dataset), -1) / 255.0
    thin = PCA(min(50, *x.shape), random_state=0).fit_transform(x)
    return out_of_fold(LogisticRegression(C=0.01, max_iter=300), thin, dataset.labels)


def out_of_fold(model: Any, x: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Class probabilities (n, classes) by a classifier of scikit-learn, in five folds.

    The rows are shuffled: images of a folder lie class by class, and folds in that order would have
    all wrong labels of one kind in one fold, where the classifier cannot learn them.
    """
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    return np.asarray(cross_val_predict(model, x, labels, cv=folds, method="predict_proba"))


def wrong_labels(dataset: Dataset, kind: str, rate: float, seed: int, weak: np.ndarray) -> np.ndarray:
    """Labels (n) of which a share `rate` is wrong."""
    rng = np.random.default_rng([seed, round(1000 * rate), KINDS.index(kind)])
    given = np.asarray(dataset.labels, np.int64).copy()
    n, classes = len(given), len(dataset.classes)
    count, row = round(rate * n), np.arange(n)
    if kind == "instance":
        doubt = np.maximum(1 - weak[row, given], 1e-9)
        at = np.argsort(-(rng.random(n) ** (1 / doubt)))[:count]  # without replacement
        others = weak.copy()
        others[row, given] = 0
        given[at] = others.argmax(1)[at]
        return given
    at = rng.permutation(n)[:count]
    if kind == "uniform":
        given[at] = (given[at] + rng.integers(1, classes, count)) % classes
        return given
    confused = look_alikes(dataset.classes)
    for i in at:
        given[i] = rng.choice(np.flatnonzero(confused[given[i]]))
    return given


def look_alikes(classes: tuple[str, ...]) -> np.ndarray:
    """Which classes (classes, classes) bool are taken for each other."""
    number, taken = {c: i for i, c in enumerate(classes)}, np.zeros((len(classes),) * 2, bool)
    for a, b in LOOK_ALIKE:
        if a in number and b in number:
            taken[number[a], number[b]] = taken[number[b], number[a]] = True
    for c in np.flatnonzero(~taken.any(1)):
        taken[c, (c + 1) % len(classes)] = True
    return taken
