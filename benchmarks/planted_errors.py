"""Errors planted in a known set: does each list of the Samples page find what was planted?

    python -m benchmarks.planted_errors [--data digits shapes] [--seeds 0 1 2]

5 % of the labels are flipped, 1 % of the training images become copies of test images, 1 % pure
noise. The encoder is the shipped SimCLR run, which never saw a label. Average precision of a list
is against what was planted for it; a random list has 0.05, 0.01 and 0.01.

The peer is cleanlab, on the same features and a five-fold logistic regression: its best of
three label scores (by the mean over seeds), its outlier score on features or on pixels, whichever
is better, and its near-duplicate score over both splits.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score

from benchmarks import _timing as timing
from benchmarks.wrong_label_sets import out_of_fold
from contrastive_core import runs
from contrastive_core.data import datasets
from contrastive_core.data.augmentations import to_float
from contrastive_core.embeddings.embedding_set import EmbeddingSet
from contrastive_core.evaluation import embed
from contrastive_core.samples import build as sample_build
from contrastive_core.samples import issues as sample_issues

SHARES = {"mislabeled": 0.05, "duplicate": 0.01, "outlier": 0.01}
LABEL_SCORES = ("self_confidence", "normalized_margin", "confidence_weighted_entropy")
FLIPS_ON_DIGITS = 0.8  # average precision at least
SLACK = 0.01  # by which the mean may stay below the peer's, on each data set


@dataclasses.dataclass(frozen=True, eq=False)
class Planted:
    """A training split with errors, the test split, and which rows each list should name."""

    train: datasets.Dataset
    test: datasets.Dataset
    rows: dict[str, np.ndarray]


def plant(name: str, seed: int) -> Planted:
    """Plant flips, copies of test images and noise in a data set's training split."""
    train, test = datasets.load(name, "train"), datasets.load(name, "test")
    rng, n = np.random.default_rng(seed), len(train)
    images, labels = np.array(train.images), np.array(train.labels)
    counts = [round(share * n) for share in SHARES.values()]
    flip, copy, noise, _ = np.split(rng.permutation(n), np.cumsum(counts))
    classes = len(train.classes)
    labels[flip] = (labels[flip] + rng.integers(1, classes, len(flip))) % classes
    source = rng.choice(len(test), len(copy), replace=False)
    images[copy], labels[copy] = test.images[source], test.labels[source]
    images[noise] = rng.integers(0, 256, images[noise].shape, dtype=np.uint8)
    rows = dict(zip(SHARES, (flip, copy, noise), strict=True))
    return Planted(dataclasses.replace(train, images=images, labels=labels), test, rows)


def encode(method: Any, dataset: datasets.Dataset) -> EmbeddingSet:
    """h of a split, in evaluation mode."""
    with torch.no_grad():
        parts = [
            method.features(to_float(torch.from_numpy(np.array(dataset.images[i : i + 500]))))
            for i in range(0, len(dataset), 500)
        ]
    labels = np.asarray(dataset.labels, np.int64)
    return EmbeddingSet(torch.cat(parts).numpy(), labels, tuple(dataset.ids))


def cleanlabs(
    train: EmbeddingSet, test: EmbeddingSet, pixels: np.ndarray, p: np.ndarray
) -> dict[str, dict[str, np.ndarray]]:
    """cleanlab's scores (n), higher where the suspicion is stronger, by list and variant."""
    from cleanlab.internal.neighbor.knn_graph import create_knn_graph_and_index
    from cleanlab.outlier import OutOfDistribution
    from cleanlab.rank import get_label_quality_scores

    both = np.concatenate([train.features, test.features])
    graph, _ = create_knn_graph_and_index(both)  # its near-duplicate score falls with distance
    near = np.asarray(graph.min(1, explicit=True).todense()).ravel()[: len(train)]
    return {
        "mislabeled": {
            m: -get_label_quality_scores(train.labels, p, method=m) for m in LABEL_SCORES
        },
        "duplicate": {"nearest": -near},
        "outlier": {
            name: -OutOfDistribution().fit_score(features=x, verbose=False)
            for name, x in (("features", train.features), ("pixels", pixels))
        },
    }


def precisions(name: str, seed: int, method: Any) -> dict[str, dict[str, float]]:
    """Average precision by list, of ours and of cleanlab's variants."""
    planted = plant(name, seed)
    train, test = encode(method, planted.train), encode(method, planted.test)
    pixels = sample_build.pixel_rows(planted.train.images)
    found = sample_issues.find_issues(train, other=test, pixels=pixels)
    model = LogisticRegression(max_iter=1000)
    p = out_of_fold(model, train.features, train.labels)
    peers = cleanlabs(train, test, pixels, p)
    result = {}
    for name_, rows in planted.rows.items():
        truth = np.isin(np.arange(len(train)), rows)
        scores = {"ours": found.scores[name_], **peers[name_]}
        result[name_] = {k: float(average_precision_score(truth, s)) for k, s in scores.items()}
    return result


def best_of(by_seed: Sequence[dict[str, dict[str, float]]]) -> dict[str, tuple[float, float, str]]:
    """Of each list: mean over seeds of ours, of cleanlab's best variant, and its name."""
    found = {}
    for name in SHARES:
        means = {k: float(np.mean([one[name][k] for one in by_seed])) for k in by_seed[0][name]}
        mine = means.pop("ours")
        best = max(means, key=lambda k: means[k])
        found[name] = (mine, means[best], best)
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--data", nargs="+", default=["digits", "shapes"])
    options.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    args = options.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "4")))
    lines = []
    for name in args.data:
        run = runs.load(f"simclr-{name}")
        method = embed.load_model(run, datasets.load(name, "train"), "cpu")
        by_seed = [precisions(name, seed, method) for seed in args.seeds]
        print(f"\n{name}, {run.name}, average precision, mean over seeds {args.seeds}:")
        print(f"{'':<14}{'ours':>8}{'by seed':>24}{'cleanlab':>10}")
        table = best_of(by_seed)
        for k, (mine, theirs, best) in table.items():
            seeds = " ".join(f"{one[k]['ours']:.3f}" for one in by_seed)
            print(f"{k:<14}{mine:8.3f}{seeds:>24}{theirs:10.3f}  {best}")
        a, b = (float(np.mean([row[i] for row in table.values()])) for i in (0, 1))
        print(f"{'mean':<14}{a:8.3f}{'':>24}{b:10.3f}")
        lines.append(line(f"planted errors, {name}: mean of the lists", a, b, 1 - SLACK / b))
        if name == "digits":
            flips = table["mislabeled"][0]
            told = f"planted errors, {name}: flips"
            lines.append(line(told, flips, FLIPS_ON_DIGITS, 1.0, "the least that counts"))
    timing.summary("planted_errors", lines)


def line(
    name: str, value: float, other: float, goal: float, peer: str = "cleanlab"
) -> dict[str, Any]:
    """A line of the table: `ratio` is how many times the peer's average precision."""
    ratio = value / other
    return {
        "name": name, "value": value, "unit": "average precision", "peer": peer,
        "peer_value": other, "ratio": ratio, "goal": goal, "met": ratio >= goal,
    }  # fmt: skip


if __name__ == "__main__":
    main()
