"""Two to eight embedding spaces of the same samples: which is better, and on which samples.

Differences are paired: McNemar's exact test on kNN correctness gives p values, corrected by Holm
for the number of pairs; the 95 % interval of a difference is a paired bootstrap. A difference is
claimed only if its interval excludes zero and its corrected p is below 0.05. That is said of these
encoders; of methods, only if it holds for each of three seeds.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from contrastive_core.embeddings.embedding_set import EmbeddingSet
from contrastive_core.evaluation.paired_tests import TESTED, holm, mcnemar, paired_tests
from contrastive_core.evaluation.representation_similarity import (
    ckas,
    graphs_of,
    matrix,
    overlaps,
    procrustes,
)

__all__ = [
    "Comparison",
    "Difference",
    "common",
    "compare",
    "correctness",
    "difference",
    "seeds_verdict",
]

DRAWS = 2000
MOST = 8
SEEDS = 3  # so many must agree before a method is called better


@dataclass(frozen=True)
class Difference:
    """Accuracy of `a` less that of `b` on the same samples, with interval and p values."""

    a: str
    b: str
    value: float
    interval: tuple[float, float]
    p: float
    p_corrected: float
    only_a: int  # samples that a has right and b wrong
    only_b: int

    @property
    def claimed(self) -> bool:
        """Whether the data show a difference."""
        low, high = self.interval
        return (low > 0 or high < 0) and self.p_corrected < 0.05


@dataclass(frozen=True, eq=False)
class Comparison:
    """Everything that the Compare page draws. Matrices are (runs, runs)."""

    names: list[str]
    ids: tuple[str, ...]
    labels: np.ndarray | None
    right: np.ndarray | None  # (runs, n): kNN correctness
    accuracy: list[float]
    differences: list[Difference]
    cka: np.ndarray
    overlap: np.ndarray
    procrustes: np.ndarray
    k: int
    graphs: np.ndarray  # (runs, n, k): the nearest rows of each sample
    tests: list[dict[str, Any]]  # paired tests of every score, corrected together
    scores: list[dict[str, Any]]  # every score of each run, if they were asked for
    seeds: str = ""  # what the seeds say of two methods

    @property
    def verdict(self) -> str:
        """One sentence: the winner, the difference and its interval, or that there is none."""
        if self.right is None:
            return "Without labels no space is better than another; below is how alike they are."
        best = self.names[int(np.argmax(self.accuracy))]
        claimed = [d for d in self.differences if d.claimed]
        if not claimed:
            return "No difference that these data can show."
        own = [d for d in self.differences if best in (d.a, d.b)]
        beaten = [d for d in own if d.claimed]
        if not beaten:
            first = max(claimed, key=lambda d: abs(d.value))
            return f"No winner that these data can show, but {_told(first)}"
        text = _told(min(beaten, key=lambda d: abs(d.value)))
        if len(beaten) > 1:
            others = len(beaten) - 1
            text += f" It is better than {f'{others} others' if others > 1 else 'the other'} too."
        rest = [d.b if d.a == best else d.a for d in own if not d.claimed]
        if rest:
            who = f"{rest[0]}" if len(rest) == 1 else f"{len(rest)} others ({', '.join(rest)})"
            text += f" Between it and {who} there is no difference that these data can show."
        return text

    def arrays(self) -> dict[str, np.ndarray]:
        """What is not plain values, by name."""
        names = ("labels", "right", "cka", "overlap", "procrustes", "graphs")
        return {k: v for k in names if (v := getattr(self, k)) is not None}

    def plain(self) -> dict[str, Any]:
        """The rest, as plain values."""
        plain = ("names", "ids", "accuracy", "k", "tests", "scores", "seeds")
        own = {k: getattr(self, k) for k in plain}
        return {**own, "differences": [dataclasses.asdict(d) for d in self.differences]}

    @classmethod
    def of(cls, plain: dict[str, Any], arrays: Mapping[str, Any]) -> Comparison:
        """The comparison that gave `plain()` and `arrays()`."""
        found = [
            Difference(**{**d, "interval": tuple(d["interval"])}) for d in plain["differences"]
        ]
        given = {**plain, "differences": found, "ids": tuple(plain["ids"])}
        return cls(labels=arrays.get("labels"), right=arrays.get("right"), **given, **{
            k: arrays[k] for k in ("cka", "overlap", "procrustes", "graphs")
        })  # fmt: skip


def _told(d: Difference) -> str:
    """The better one, the difference and its interval."""
    better, worse, sign = (d.a, d.b, 1) if d.value > 0 else (d.b, d.a, -1)
    low, high = sorted(100 * sign * v for v in d.interval)
    return (
        f"{better} is better than {worse} by {100 * sign * d.value:.1f} points of kNN accuracy "
        f"(95 %: {low:.1f} to {high:.1f})."
    )


def common(sets: Sequence[EmbeddingSet]) -> list[EmbeddingSet]:
    """The sets, cut to the samples that all have, in the order of the first.

    Raises: ValueError for fewer than two or more than eight sets, or nothing in common.
    """
    if not 2 <= len(sets) <= MOST:
        raise ValueError(f"two to {MOST} runs can be compared; got {len(sets)}")
    shared = set.intersection(*(set(s.ids) for s in sets))
    if len(shared) < 2:
        raise ValueError(
            "these runs have no samples in common: they are of different data sets "
            "(samples are matched by their ids)"
        )
    order = [i for i in sets[0].ids if i in shared]
    found = []
    for s in sets:
        at = {name: row for row, name in enumerate(s.ids)}
        found.append(s if s.ids == tuple(order) else s.take([at[i] for i in order]))
    return found


def compare(
    names: Sequence[str],
    train: Sequence[EmbeddingSet | None],
    test: Sequence[EmbeddingSet],
    k: int | None = None,
    seed: int = 0,
    groups: Sequence[tuple[str, int]] = (),
    scored: bool = False,
) -> Comparison:
    """Compare spaces on their common test samples; `train` rows vote for the accuracies.

    Args: groups: method and seed of each run; scored: test all scores, not kNN alone.
    """
    sets = common(test)
    labels = sets[0].labels
    right = None
    if labels is not None and all(t is not None and t.labels is not None for t in train):
        pairs = zip(train, sets, strict=True)
        right = np.stack([correctness(t, s, k) for t, s in pairs if t is not None])
    accuracy = [] if right is None else right.mean(1).tolist()
    differences = [] if right is None else _differences(names, right, seed)
    near = min(k or 20, len(sets[0]) - 1)
    features = [s.features for s in sets]
    graphs = graphs_of(sets, near)
    records, samples = _scores(train, sets) if scored else ([], [])
    return Comparison(
        list(names), sets[0].ids, labels, right, accuracy, differences,
        ckas(features), overlaps(graphs), matrix(features, procrustes), near, np.stack(graphs),
        paired_tests(names, samples), records,
        "" if right is None else seeds_verdict(groups, right),
    )  # fmt: skip


def _scores(
    train: Sequence[EmbeddingSet | None], test: Sequence[EmbeddingSet]
) -> tuple[list[dict[str, Any]], list[dict[str, tuple[float, np.ndarray]]]]:
    """For each run every score as a record, and value and values per sample of tested ones."""
    from contrastive_core import metrics
    from contrastive_core.embeddings.graphs import Graphs
    from contrastive_core.evaluation.evaluate import evaluate_sets

    records, samples, graphs = [], [], Graphs()
    for t, s in zip(train, test, strict=True):
        kept: dict[str, dict[str, np.ndarray]] = {}
        record = evaluate_sets(metrics.names(), t, s, graphs, kept)
        records.append(record)
        own = {k: kept[k]["per_sample"] for k in TESTED if "per_sample" in kept.get(k, {})}
        samples.append({k: (float(record[k]["value"]), v) for k, v in own.items()})
    return records, samples


def correctness(train: EmbeddingSet, test: EmbeddingSet, k: int | None = None) -> np.ndarray:
    """Whether weighted kNN (τ 0.07) gives each test row its own label (n) bool."""
    from contrastive_core.metrics.knn import default_k, vote
    from contrastive_core.ops.neighbors import nearest

    assert train.labels is not None
    assert test.labels is not None
    k = min(k or default_k(len(train)), len(train))
    found = nearest(test.features, train.features, k)
    return np.asarray(vote(found, train.labels, 0.07) == test.labels)


def difference(a: np.ndarray, b: np.ndarray, seed: int = 0) -> tuple[float, tuple[float, float]]:
    """Mean of a − b over paired samples (n), with its 95 % bootstrap interval."""
    d = a.astype(np.float64) - b.astype(np.float64)
    counts = np.array([(d == v).sum() for v in (-1, 0, 1)])
    if counts.sum() == len(d):  # correctness: resample the three outcomes
        drawn = np.random.default_rng(seed).multinomial(len(d), counts / len(d), DRAWS)
        means = (drawn[:, 2] - drawn[:, 0]) / len(d)
    else:
        rng = np.random.default_rng(seed)
        means = np.array([d[rng.integers(0, len(d), len(d))].mean() for _ in range(DRAWS)])
    low, high = np.quantile(means, [0.025, 0.975])
    return float(d.mean()), (float(low), float(high))


def seeds_verdict(groups: Sequence[tuple[str, int]], right: np.ndarray) -> str:
    """What two methods of three seeds or more show together; "" where there are not so many.

    Args: groups: method and seed of each run; right: (runs, n) kNN correctness.
    """
    methods = sorted({name for name, _ in groups})
    at = {group: row for row, group in enumerate(groups)}
    if len(methods) != 2:
        return ""
    a, b = methods
    seeds = sorted(s for name, s in groups if name == a and (b, s) in at)
    if len(seeds) < SEEDS:
        return ""
    found = [difference(right[at[a, s]], right[at[b, s]]) for s in seeds]
    values = [100 * value for value, _ in found]
    span = f"{min(map(abs, values)):.1f} to {max(map(abs, values)):.1f} points"
    if all(low > 0 for _, (low, _) in found):
        return f"{a} is better than {b} with each of {len(seeds)} seeds, by {span}."
    if all(high < 0 for _, (_, high) in found):
        return f"{b} is better than {a} with each of {len(seeds)} seeds, by {span}."
    return f"Between {a} and {b} the {len(seeds)} seeds do not all show a difference."


def _differences(names: Sequence[str], right: np.ndarray, seed: int) -> list[Difference]:
    found = []
    for i, j in itertools.combinations(range(len(names)), 2):
        only_a, only_b = int((right[i] & ~right[j]).sum()), int((right[j] & ~right[i]).sum())
        value, interval = difference(right[i], right[j], seed)
        p = mcnemar(right[i], right[j])
        found.append(Difference(names[i], names[j], value, interval, p, p, only_a, only_b))
    corrected = holm([d.p for d in found])
    return [dataclasses.replace(d, p_corrected=p) for d, p in zip(found, corrected, strict=True)]
