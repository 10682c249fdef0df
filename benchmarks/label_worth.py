"""What the list of wrong labels is worth: training again without what it suspects.

    python -m benchmarks.label_worth [--data digits] [--kind instance] [--rate 0.18]
                                     [--seeds 0 1 2] [--epochs 12]

SupCon is trained on wrong labels (as given), without the suspects (probability above 0.5, by the
shipped SimCLR encoder, which saw no label), with the suspects relabeled as suggested, without as
many samples at random, and with the right labels. Accuracy of the test images by kNN on h, k = 20,
whose votes are the labels that were trained with. A gain counts where its interval over the test
images excludes zero for every seed.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import _timing as timing
from benchmarks._training import trained
from benchmarks.wrong_label_sets import KINDS, weak_classifier, wrong_labels
from contrastive_core import runs
from contrastive_core.data import datasets
from contrastive_core.data.datasets import Dataset
from contrastive_core.embeddings.embedding_set import EmbeddingSet
from contrastive_core.evaluation.embed import embed_run
from contrastive_core.metrics import create
from contrastive_core.ops.neighbors import nearest_together
from contrastive_core.samples.wrong_labels import find_wrong_labels

CUT, RESAMPLES = 0.5, 1000
WAYS = ("as given", "suspects dropped", "suspects relabeled", "as many dropped at random",
        "right labels")  # fmt: skip


def changes(
    dataset: Dataset, given: np.ndarray, name: str, seed: int
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """By way of training: the rows that are left out (n) bool, and the labels (n)."""
    h = embed_run(runs.load(f"simclr-{name}"), "train", "h", "cpu").features
    graph = nearest_together(h, None, 60)
    result = find_wrong_labels(EmbeddingSet(h, given), graph)
    suspect = result.probability > CUT
    wrong = given != dataset.labels
    print(f"seed {seed}: {wrong.sum()} of {len(given)} labels wrong, {suspect.sum()} suspects, "
          f"{wrong[suspect].mean():.1%} of them wrong; the suggested class is right for "
          f"{(result.suggested == dataset.labels)[suspect].mean():.1%}")  # fmt: skip
    random = np.zeros(len(given), bool)
    random[np.random.default_rng(seed).permutation(len(given))[: suspect.sum()]] = True
    none = np.zeros(len(given), bool)
    values = ((none, given), (suspect, given), (none, np.where(suspect, result.suggested, given)),
              (random, given), (none, dataset.labels))  # fmt: skip
    return dict(zip(WAYS, values, strict=True))


def right(name: str, way: str, left_out: np.ndarray, labels: np.ndarray, seed: int,
          epochs: int) -> np.ndarray:  # fmt: skip
    """Which test images (m) the kNN vote of the trained encoder gets right, 0 or 1."""
    dataset = datasets.load(name, "train")
    with tempfile.TemporaryDirectory() as folder:
        relabel, exclude = Path(folder) / "relabel.json", Path(folder) / "exclude.json"
        changed = np.flatnonzero((labels != dataset.labels) & ~left_out)
        relabel.write_text(
            json.dumps({dataset.ids[i]: dataset.classes[labels[i]] for i in changed})
        )
        exclude.write_text(json.dumps([dataset.ids[i] for i in np.flatnonzero(left_out)]))
        argv = ["--method", "sup_con", "--dataset", name, "--epochs", str(epochs),
                "--seed", str(seed), "--relabel", str(relabel)]  # fmt: skip
        argv += ["--exclude", str(exclude)] if left_out.any() else []
        run = trained(f"label-worth-{name}-{way.replace(' ', '-')}-{seed}", *argv)
        train, test = (embed_run(run, split, "h", "cpu") for split in ("train", "test"))
    return np.asarray(create("knn", k=20)(train, test).per_sample, np.float64)


def gain(after: np.ndarray, before: np.ndarray) -> tuple[float, float, float]:
    """Points of accuracy that were won, with the 95 % interval over the test images, paired."""
    rng, won = np.random.default_rng(0), after - before
    means = [won[rng.integers(0, len(won), len(won))].mean() for _ in range(RESAMPLES)]
    return 100 * float(won.mean()), *(100 * float(q) for q in np.quantile(means, [0.025, 0.975]))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--data", nargs="+", default=["digits"], choices=["digits", "shapes"])
    options.add_argument("--kind", choices=KINDS, default="instance")
    options.add_argument("--rate", type=float, default=0.18)
    options.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    options.add_argument("--epochs", type=int, default=12)
    args = options.parse_args()
    lines: list[dict[str, Any]] = []
    for name in args.data:
        dataset = datasets.load(name, "train")
        weak, by_way = weak_classifier(dataset), {way: [] for way in WAYS}  # type: ignore[var-annotated]
        for seed in args.seeds:
            given = wrong_labels(dataset, args.kind, args.rate, seed, weak)
            for way, (left_out, labels) in changes(dataset, given, name, seed).items():
                by_way[way].append(right(name, way, left_out, labels, seed, args.epochs))
        print(f"{name}, {args.kind}, {args.rate:.0%} wrong: accuracy of the test images, %")
        for way, values in by_way.items():
            gains = [gain(v, b) for v, b in zip(values, by_way[WAYS[0]], strict=True)]
            gains_text = "; ".join(
                f"{g:+.1f} ({low:+.1f} to {high:+.1f})" for g, low, high in gains
            )
            print(f"{way:<28}{100 * np.mean(values):.1f}  {gains_text}")
        drop, random = (100 * float(np.mean(by_way[w])) for w in (WAYS[1], WAYS[3]))
        lines.append({
            "name": f"{name}: test accuracy without the suspects", "value": drop, "unit": "%",
            "peer": "as many dropped at random", "peer_value": random, "ratio": drop / random,
            "goal": 1.0, "met": drop > random,
        })  # fmt: skip
    timing.summary("label_worth", lines)


if __name__ == "__main__":
    main()
