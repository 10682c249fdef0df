"""How often the interval of a random check contains the number of wrong labels that were planted.

    python -m benchmarks.random_check [--data digits shapes] [--draws 10]

Labels of `digits` and `shapes` are made wrong in three ways at rates of 0 to 40 % (wrong_label_sets.py). The shipped
encoders, which saw no label, give each label its probability to be wrong. Someone who knows the right labels decides on
the first rows of a random draw: in half of the draws after the 50 likeliest suspects, some of them all at once, which
must not move the estimate. A decision is kept and read as the page does it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np

from benchmarks.wrong_label_encoders import without_labels
from benchmarks.wrong_label_sets import KINDS, weak_classifier, wrong_labels
from contrastive_core.base.score import wilson
from contrastive_core.data import datasets
from contrastive_core.samples.annotations import Mark, Marks
from contrastive_core.samples.label_audit import audit_table, draw
from contrastive_core.samples.label_errors import find_label_errors
from contrastive_core.samples.sample_lists import RANDOM
from contrastive_core.samples.sample_table import SampleTable
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.neighbor_graphs import nearest

RATES = (0.0, 0.01, 0.03, 0.08, 0.18, 0.4)
ROWS, CHECKS, SUSPECTS = 2000, (40, 120), 50


def labelings(name: str) -> Iterator[tuple[float, np.ndarray, np.ndarray]]:
    """The rate of each set, the probability (n) of each label to be wrong, and whether it is."""
    dataset = datasets.load(name, "train")
    rows, weak = np.random.default_rng(0).permutation(len(dataset))[:ROWS], weak_classifier(dataset)
    for _encoder, features in list(without_labels(name, dataset))[:2]:
        for number, rate in enumerate(RATES):
            for kind in KINDS if rate else KINDS[:1]:
                given = wrong_labels(dataset, kind, rate, number, weak)[rows]
                some = EmbeddingSet(features[rows].astype(np.float32), given)
                p = find_label_errors(some, nearest(some.features, None, 60)).probability
                yield rate, p, given != dataset.labels[rows]


def check(p: np.ndarray, wrong: np.ndarray, seed: int, checks: int) -> tuple[bool, float]:
    """Whether the interval after so many checks contains the truth, and its width as a share of the labels."""
    names = np.array([f"{seed}/{i}" for i in range(len(p))])

    def mark(row: int, where: str, many: bool = False) -> Mark:
        return {"what": "drop" if wrong[row] else "keep", "list": where, "many": many, "time": 1.0}

    suspects = np.argsort(-p, kind="stable")[: SUSPECTS * (seed % 2)].tolist()
    marks: Marks = {names[row]: mark(row, "mislabeled", many=place % 3 == 0) for place, row in enumerate(suspects)}
    drawn = draw(names, np.isfinite(p))[:checks].tolist()
    marks |= {names[row]: mark(row, RANDOM) for row in drawn}
    audit = audit_table(SampleTable({"id": names, "mislabeled": p}, (), ""), marks)
    assert audit is not None
    low, high = audit.found.interval
    return low <= wrong.sum() <= high, (high - low) / len(p)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--data", nargs="+", default=["digits", "shapes"])
    options.add_argument("--draws", type=int, default=10)
    asked = options.parse_args()
    print("| data | wrong | checks | intervals | contain the truth | 95 % CI | mean width, % of labels |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    tries: dict[tuple[str, float, int], list[tuple[bool, float]]] = {}
    for name in asked.data:
        for rate, p, wrong in labelings(name):
            for checks in CHECKS:
                found = [check(p, wrong, seed, checks) for seed in range(asked.draws)]
                tries.setdefault((name, rate, checks), []).extend(found)
    for (name, rate, checks), found in tries.items():
        _print(f"| {name} | {100 * rate:g} % | {checks} |", found)
    _print("| all | | |", [one for found in tries.values() for one in found])


def _print(head: str, found: list[tuple[bool, float]]) -> None:
    inside, width = np.mean(found, 0)
    low, high = wilson(sum(held for held, _width in found), len(found))
    print(f"{head} {len(found):,} | {inside:.1%} | {low:.1%} to {high:.1%} | {100 * width:.1f} |", flush=True)


if __name__ == "__main__":
    main()
