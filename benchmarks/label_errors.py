"""Wrong labels of several kinds and rates: the list of likely wrong ones beside its peers.

    python -m benchmarks.label_errors [--data digits shapes] [--rows 2000] [--full] [--train]
                                      [--keep FILE] [--archive FILE]

Data: digits and shapes; with `cifar` also a subset of CIFAR-10 images from an archive. The first
`--rows` are judged. Labels: three kinds at rates of 3, 8, 18 and 40 %, one seed for each kind and rate
in turn; with `--full` all of 0 to 2. Encoders: SimCLR and MoCo v2 that saw no label (on CIFAR SimCLR
alone, 10 epochs), and of digits a random one and pixels, of CIFAR the first 128 principal components of
pixels (on shapes, where pixels say no class, a random one finds little more than chance). With
`--train`, at the rates of `TRAINED`, also SupCon and metric trained on the wrong labels for few and for
many epochs (on CIFAR SupCon alone, 10 epochs).
`--keep` continues from a file of what was judged before.

Peers on the same h (wrong_label_peers.py): cleanlab's self-confidence, normalized margin and
find_label_issues, each by a logistic regression on plain and on standardized columns, and the share
of 20 neighbors with another label. "Best" is the best of these seven on that very set, which nobody
knows beforehand. Chance is the share of wrong labels.

Nothing is tuned on what is printed: the list's settings were chosen on labels of another seed, and
on other encoders of CIFAR-10 images at 18 %.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import _timing as timing
from benchmarks import wrong_label_encoders as encoders
from benchmarks.wrong_label_peers import interval_of_difference, judged, peers_of
from benchmarks.wrong_label_report import report
from benchmarks.wrong_label_sets import KINDS, weak_classifier, wrong_labels
from contrastive_core.samples.label_errors import LabelErrors, find_label_errors
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.neighbor_graphs import nearest

RATES = (0.03, 0.08, 0.18, 0.4)
TRAINED = {"digits": (0.08, 0.18), "shapes": (0.18,), "cifar": (0.18,)}  # rates, see --train
SEEDS = (0, 1, 2)
CUT = 0.5  # of the score: more likely wrong than right
Figures = dict[str, Any]


def compare(features: np.ndarray, given: np.ndarray, truth: np.ndarray) -> Figures:
    """All figures of one set of rows: (n, d), their labels, and the right ones."""
    wrong = given != truth
    rows = EmbeddingSet(features.astype(np.float32), given)
    graph = nearest(rows.features, None, min(60, len(rows) - 1))
    result = find_label_errors(rows, graph)
    peers, counts = peers_of(features, given, graph.index[:, :20])
    lists = {"list": result.probability, **result.by_voter, **peers}
    by_list = {name: judged(score, wrong) for name, score in lists.items()}
    best = max(peers, key=lambda name: by_list[name]["ap"])
    low, high = interval_of_difference(lists["list"], lists[best], wrong)
    return {
        "wrong": int(wrong.sum()),
        "n": len(rows),
        "lists": by_list,
        "best": best,
        "low": low,
        "high": high,
        "weights": result.weights,
        "cleanlab": counts,
        **counted(result, truth, wrong),
    }


def counted(result: LabelErrors, truth: np.ndarray, wrong: np.ndarray) -> Figures:
    """What is above the cut-off."""
    above = result.probability > CUT
    none = float("nan")
    return {
        "above": int(above.sum()),
        "expected": float(result.probability[above].mean()) if above.any() else none,
        "precision": float(wrong[above].mean()) if above.any() else none,
        "suggested": float((result.suggested == truth)[above & wrong].mean()) if (above & wrong).any() else none,
    }


def labelings(full: bool) -> list[tuple[str, float, int]]:
    """Kind, rate and seed of each set of labels."""
    if full:
        return [(k, r, s) for k in KINDS for r in RATES for s in SEEDS]
    return [(kind, rate, SEEDS[(i + j) % len(SEEDS)]) for i, kind in enumerate(KINDS) for j, rate in enumerate(RATES)]


def judge_all(data: str, name: str, args: argparse.Namespace, known: dict[str, Figures]) -> None:
    """All sets of one data set; adds to `known`, and to the file of `--keep`."""
    dataset = encoders.load(name)
    rows = np.random.default_rng(0).permutation(len(dataset))[: args.rows]
    weak, unlabeled = weak_classifier(dataset), list(encoders.without_labels(name, dataset))
    for kind, rate, seed in labelings(args.full):
        given = wrong_labels(dataset, kind, rate, seed, weak)
        key = f"{data}-{kind}-{rate:g}-{seed}"
        every = list(unlabeled)
        if args.train and rate in TRAINED[data]:
            every += encoders.trained_on(name, dataset, given, key)
        for encoder, features in every:
            place = f"{key} {encoder}"
            if place not in known:
                known[place] = compare(features[rows], given[rows], dataset.labels[rows])
                if args.keep:
                    with args.keep.open("a") as file:
                        file.write(json.dumps({place: known[place]}) + "\n")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--data", nargs="+", default=["digits", "shapes"])
    options.add_argument("--rows", type=int, default=2000)
    options.add_argument("--full", action="store_true", help="every seed of every rate")
    options.add_argument("--train", action="store_true", help="encoders of the wrong labels too")
    options.add_argument("--keep", type=Path, help="a file to continue from")
    options.add_argument("--archive", type=Path, default=encoders.ARCHIVE)
    args = options.parse_args()
    warnings.filterwarnings("ignore")
    known: dict[str, Figures] = {}
    if args.keep and args.keep.exists():
        for line in args.keep.read_text().splitlines():
            known |= json.loads(line)
    for data in args.data:
        name = encoders.cifar_folder(args.archive) if data == "cifar" else data
        judge_all(data, name, args, known)
    timing.summary("label_errors", report(known))


if __name__ == "__main__":
    main()
