"""Errors planted in a known set: does each list of the Samples page find what was planted?

    python -m benchmarks.planted_errors [--data digits shapes] [--seeds 0 1 2]

5 % of the labels are flipped; 1 % of the training images become copies of test images, every second
one darker and less sharp; 1 % pure noise; 5 % are mixed with an image of another class, 60 to
40, and keep their label: hard, but right. The encoder is the shipped SimCLR run, which never saw a
label. Average precision of a list is against what was planted for it; a random list has 0.05, 0.01,
0.01 and 0.05.

The peers (planted_peers.py) are cleanlab, perceptual hashes, cosine on other features,
scikit-learn's LocalOutlierFactor and the distance to the nearest rows; of each list the best by the
mean over seeds counts. Beside them: how often one of two lists mistakes what was planted for the
other, and how many of the likely false negatives share the class of what they are pushed away from.
"""

from __future__ import annotations

import argparse
import dataclasses
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score

from benchmarks import _timing as timing
from benchmarks._machine import cores
from benchmarks.wrong_label_sets import out_of_fold
from contrastive_core import runs
from contrastive_core.compare import embed
from contrastive_core.data import datasets
from contrastive_core.data.augmentations import to_float
from contrastive_core.runs.train_config import from_dict
from contrastive_core.samples import issues as sample_issues
from contrastive_core.samples import run_samples as sample_build
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.neighbor_graphs import nearest

SHARES = {"mislabeled": 0.05, "duplicate": 0.01, "outlier": 0.01, "ambiguous": 0.05}
OWN = 0.6  # what a mixed image keeps of itself
FLIPS_ON_DIGITS = 0.8  # average precision at least
SLACK = 0.01  # by which the mean may stay below the peer's, on each data set


@dataclasses.dataclass(frozen=True, eq=False)
class Planted:
    """A training split with errors, the test split, and which rows each list should name."""

    train: datasets.Dataset
    test: datasets.Dataset
    rows: dict[str, np.ndarray]


def plant(name: str, seed: int, hard: bool = True) -> Planted:
    """Plant flips, copies of test images and noise in a data set's training split."""
    train, test = datasets.load(name, "train"), datasets.load(name, "test")
    rng, n = np.random.default_rng(seed), len(train)
    images, labels = np.array(train.images), np.array(train.labels)
    counts = [round(share * n) for share in SHARES.values()]
    flip, copy, noise, mixed, rest = np.split(rng.permutation(n), np.cumsum(counts))
    classes = len(train.classes)
    labels[flip] = (labels[flip] + rng.integers(1, classes, len(flip))) % classes
    source = rng.choice(len(test), len(copy), replace=False)
    images[copy], labels[copy] = test.images[source], test.labels[source]
    if hard:
        images[copy[::2]] = altered(images[copy[::2]])
    for i in mixed if hard else ():
        other = rng.choice(rest[train.labels[rest] != train.labels[i]])
        images[i] = OWN * images[i] + (1 - OWN) * train.images[other]
    images[noise] = rng.integers(0, 256, images[noise].shape, dtype=np.uint8)
    rows = dict(zip(SHARES, (flip, copy, noise, mixed), strict=True))
    return Planted(dataclasses.replace(train, images=images, labels=labels), test, rows)


def altered(images: np.ndarray) -> np.ndarray:
    """Images (n, h, w, c) uint8 as a screenshot may have them: darker, and a little less sharp."""
    near = np.concatenate([images[:, :, :1], images[:, :, :-1]], 2)
    return np.asarray((0.85 * (0.8 * images + 0.2 * near)).astype(np.uint8))


def encode(method: Any, dataset: datasets.Dataset) -> EmbeddingSet:
    """h of a split, in evaluation mode."""
    with torch.no_grad():
        parts = [
            method.features(to_float(torch.from_numpy(np.array(dataset.images[i : i + 500]))))
            for i in range(0, len(dataset), 500)
        ]
    labels = np.asarray(dataset.labels, np.int64)
    return EmbeddingSet(torch.cat(parts).numpy(), labels, tuple(dataset.ids))


@dataclasses.dataclass(frozen=True)
class Outcome:
    """Of one seed: average precision by list, of ours and of each peer; shares of mistakes."""

    precision: dict[str, dict[str, float]]
    mistaken: dict[str, float]


def outcome(name: str, seed: int, method: Any, random: Any, hard: bool = True) -> Outcome:
    """All lists on one planted set; `random` is the method before training; not hard: copies are
    exact, and no images are mixed."""
    from benchmarks import planted_peers as others

    planted = plant(name, seed, hard)
    train, test = encode(method, planted.train), encode(method, planted.test)
    pixels = sample_build.pixel_rows(planted.train.images, planted.test.images)
    issues = sample_issues.find_issues(train, test, pixels)
    p = out_of_fold(LogisticRegression(max_iter=1000), train.features, train.labels)
    untrained = [encode(random, d).features for d in (planted.train, planted.test)]
    images = [np.asarray(d.images) for d in (planted.train, planted.test)]
    peers = {
        "mislabeled": others.label_peers(train.labels, p),
        "outlier": others.outlier_peers(train.features, pixels[0]),
        "duplicate": others.duplicate_peers([train.features, test.features], untrained, list(pixels), images),
    }
    precision, truth = {}, {}
    for list_, rows in planted.rows.items():
        truth[list_] = np.isin(np.arange(len(train)), rows)
        if list_ not in peers:
            continue
        scores = {"ours": issues.scores[list_], **peers[list_]}
        precision[list_] = {k: float(average_precision_score(truth[list_], s)) for k, s in scores.items()}
    mistaken = mistakes(issues.scores, peers, truth) if hard else {}
    return Outcome(precision, mistaken | same_class(train, pixels[0]))


def mistakes(
    ours: dict[str, np.ndarray], peers: dict[str, dict[str, np.ndarray]], truth: dict[str, np.ndarray]
) -> dict[str, float]:
    """Of the first n of the list of wrong labels (n were planted), the share of mixed images."""
    shares, n = {}, int(truth["mislabeled"].sum())
    for name, score in {"ours": ours["mislabeled"], **peers["mislabeled"]}.items():
        first = np.argsort(-score, kind="stable")[:n]
        shares[f"mislabeled, {name}: ambiguous"] = float(truth["ambiguous"][first].mean())
    return shares


def same_class(train: EmbeddingSet, pixels: np.ndarray) -> dict[str, float]:
    """Of the 5 % likeliest false negatives, the share whose nearest row has their label."""
    assert train.labels is not None
    shares = {"false negatives, any two": float((np.bincount(train.labels) / len(train)).max())}
    for name, x in (("ours", train.features), ("pixels", pixels)):
        near = nearest(x, None, 1)
        top = np.argsort(-near.score[:, 0])[: len(train) // 20]
        same = train.labels[near.index[top, 0]] == train.labels[top]
        shares[f"false negatives, {name}"] = float(same.mean())
    return shares


def best_of(by_seed: Sequence[dict[str, dict[str, float]]]) -> dict[str, tuple[float, float, str]]:
    """Of each list: mean over seeds of ours, of cleanlab's best variant, and its name."""
    best_by_list = {}
    for name in by_seed[0]:
        means = {k: float(np.mean([one[name][k] for one in by_seed])) for k in by_seed[0][name]}
        mine = means.pop("ours")
        best = max(means, key=lambda k: means[k])
        best_by_list[name] = (mine, means[best], best)
    return best_by_list


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--data", nargs="+", default=["digits", "shapes"])
    options.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    args = options.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(cores())
    lines = []
    for name in args.data:
        run = runs.load(f"simclr-{name}")
        dataset = datasets.load(name, "train")
        method, random = (embed.load_model(run, dataset, "cpu"), embed.untrained(from_dict(run.config), dataset))
        outcomes = [outcome(name, seed, method, random) for seed in args.seeds]
        by_seed = [one.precision for one in outcomes]
        print(f"\n{name}, {run.name}, average precision, mean over seeds {args.seeds}:")
        print(f"{'':<14}{'ours':>8}{'by seed':>24}{'best peer':>10}")
        table = best_of(by_seed)
        for k, (mine, theirs, best) in table.items():
            seeds = " ".join(f"{one[k]['ours']:.3f}" for one in by_seed)
            print(f"{k:<14}{mine:8.3f}{seeds:>24}{theirs:10.3f}  {best}")
        a, b = (float(np.mean([row[i] for row in table.values()])) for i in (0, 1))
        print(f"{'mean':<14}{a:8.3f}{'':>24}{b:10.3f}")
        for k in table:
            every = {p: np.mean([one[k][p] for one in by_seed]) for p in by_seed[0][k]}
            print(f"{k}: " + ", ".join(f"{p} {v:.3f}" for p, v in every.items()))
        print(
            "shares: "
            + ", ".join(f"{k} {np.mean([one.mistaken[k] for one in outcomes]):.3f}" for k in outcomes[0].mistaken)
        )
        lines.append(line(f"planted errors, {name}: mean of the lists", a, b, 1 - SLACK / b))
        if name == "digits":
            flips = table["mislabeled"][0]
            about = f"planted errors, {name}: flips"
            lines.append(line(about, flips, FLIPS_ON_DIGITS, 1.0, "the least that counts"))
    timing.summary("planted_errors", lines)


def line(name: str, value: float, other: float, goal: float, peer: str = "best peer") -> dict[str, Any]:
    """A line of the table: `ratio` is how many times the peer's average precision."""
    ratio = value / other
    return {
        "name": name,
        "value": value,
        "unit": "average precision",
        "peer": peer,
        "peer_value": other,
        "ratio": ratio,
        "goal": goal,
        "met": ratio >= goal,
    }


if __name__ == "__main__":
    main()
