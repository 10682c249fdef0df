"""The result of a comparison: correct samples, differences, matrices and a verdict in words."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from contrastive_core.messages import N_, join, message
from contrastive_core.records.score import Z95, Scores, scores_from_json, scores_to_json
from contrastive_core.storage.json_files import JsonObject

RUNS, EMBEDDINGS = N_("runs"), N_("embeddings")  # the noun of a verdict: embeddings where one is of a file
NOTHING_IN_COMMON = N_(
    "these runs have no samples in common: they are of different data sets (samples are matched by their ids)"
)
MOST_CLASSES = 3  # that a verdict names
ACCURACIES = {"knn": N_("kNN accuracy"), "linear_probe": N_("linear probe accuracy")}


@dataclass(frozen=True)
class Difference:
    """Accuracy of `a` less that of `b` on the same samples, with interval and p values."""

    metric: str
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


@dataclass(frozen=True)
class ClassDifference:
    """Accuracies of two runs on the samples of one class, and their difference."""

    label: int
    n: int
    accuracies: tuple[float, float]
    value: float
    interval: tuple[float, float]


@dataclass(frozen=True, eq=False)
class Comparison:
    """Everything that the Compare page draws. Matrices are (runs, runs)."""

    names: list[str]
    ids: tuple[str, ...]
    labels: np.ndarray | None
    correct: dict[str, np.ndarray]  # by accuracy: (runs, n), who is right
    accuracy: dict[str, list[float]]  # by accuracy: of each run
    differences: list[Difference]  # of each accuracy and pair of runs
    cka: np.ndarray
    overlap: np.ndarray
    procrustes: np.ndarray
    k: int
    graphs: np.ndarray  # (runs, n, k): the nearest rows of each sample
    tests: list[JsonObject]  # paired tests of every score, corrected together
    scores: list[Scores]  # every score of each run, if they were asked for
    seeds: dict[str, str] = field(default_factory=dict)  # what the seeds say of two methods
    made_of: dict[str, list[str]] = field(default_factory=dict)  # by accuracy: what each run's is
    # made of, where some are of a sample or of approximate neighbors (Score.approximation)
    recall: float | None = None  # of the graphs, where they are approximate
    judged: dict[str, np.ndarray] = field(default_factory=dict)  # by accuracy: (n), whether all runs are judged on it
    predicted: dict[str, np.ndarray] = field(default_factory=dict)  # by accuracy: (runs, n) classes, where known
    spaces: str = RUNS  # what the sentences call them

    @property
    def right(self) -> np.ndarray | None:
        """(runs, n): who is right by the first accuracy; None without labels."""
        return next(iter(self.correct.values()), None)

    @property
    def verdict(self) -> str:
        """One sentence: the winner by the first accuracy, or that there is none."""
        return next(iter(self.verdicts.values()), "") or (
            N_("Without labels, accuracy cannot tell which space is better. Below is how alike they are.")
        )

    @property
    def verdicts(self) -> dict[str, str]:
        """By accuracy: the winner, the difference and its interval, or that there is none."""
        return {
            metric: _verdict(self.names, accuracy, [d for d in self.differences if d.metric == metric], self.spaces)
            for metric, accuracy in self.accuracy.items()
        }

    @property
    def n_judged(self) -> int:
        """How many samples the verdict rests on; all where none is judged."""
        judged = next(iter(self.judged.values()), None)
        return len(self.ids) if judged is None else int(judged.sum())

    def by_class(self, metric: str, a: int, b: int) -> list[ClassDifference]:
        """The difference of an accuracy between runs a and b for each class, with its own 95 % interval by Agresti and
        Min (2005, Stat. Med. 24, 729): half a sample is added to each of the four outcomes."""
        assert self.labels is not None
        right, found = self.correct[metric], []
        labels = np.where(self.judged[metric], self.labels, -1)
        for label in np.unique(labels[labels >= 0]).tolist():
            first, second = right[a][labels == label], right[b][labels == label]
            n, only_a, only_b = len(first) + 2, (first & ~second).sum() + 0.5, (second & ~first).sum() + 0.5
            middle = (only_a - only_b) / n
            half = Z95 * np.sqrt(((only_a + only_b) / n - middle**2) / n)
            accuracies = float(first.mean()), float(second.mean())
            interval = max(-1.0, float(middle - half)), min(1.0, float(middle + half))
            found.append(ClassDifference(label, len(first), accuracies, accuracies[0] - accuracies[1], interval))
        return sorted(found, key=lambda d: -abs(d.value))

    def largest_by_class(self, class_name: Callable[[int], str]) -> str:
        """One sentence: up to three classes in which two runs differ most; "" where no interval excludes zero."""
        if len(self.names) != 2 or self.right is None or not self.differences:
            return ""
        best = self.differences[0]
        a, b = (0, 1) if best.value >= 0 else (1, 0)
        found = [d for d in self.by_class(best.metric, a, b) if d.interval[0] > 0 or d.interval[1] < 0]
        listed = []
        for d in found[:MOST_CLASSES]:
            value, low, high = (f"{100 * v:.1f}".replace("-", "−") for v in (d.value, *d.interval))
            figures = {"name": class_name(d.label), "points": value, "low": low, "high": high}
            listed.append(message("{points} points for {name} ({low} to {high})", **figures))
        if not listed:
            return ""
        values = {"first": self.names[a], "second": self.names[b], "listed": join(", ", listed)}
        return message("Largest by class, {first} − {second}: {listed}.", **values)

    def arrays(self) -> dict[str, np.ndarray]:
        """What is not plain values, by name."""
        names = ("labels", "cka", "overlap", "procrustes", "graphs")
        arrays = {k: v for k in names if (v := getattr(self, k)) is not None}
        by_accuracy = {"correct": self.correct, "judged": self.judged, "predicted": self.predicted}
        return arrays | {f"{name}:{m}": v for name, found in by_accuracy.items() for m, v in found.items()}

    def plain(self) -> JsonObject:
        """The rest, as plain values."""
        names = ("names", "ids", "accuracy", "k", "tests", "seeds", "made_of", "recall", "spaces")
        return {
            **{k: getattr(self, k) for k in names},
            "scores": [scores_to_json(scores) for scores in self.scores],
            "differences": [dataclasses.asdict(d) for d in self.differences],
        }

    @classmethod
    def of(cls, plain: JsonObject, arrays: Mapping[str, Any]) -> Comparison:
        """The comparison that gave `plain()` and `arrays()`."""
        fields = {
            **plain,
            "ids": tuple(plain["ids"]),
            "scores": [scores_from_json(scores) for scores in plain["scores"]],
            "differences": [Difference(**{**d, "interval": tuple(d["interval"])}) for d in plain["differences"]],
        }
        names = ("correct", "judged", "predicted")
        found: dict[str, Any] = {
            k: {m: arrays[f"{k}:{m}"] for m in plain["accuracy"] if f"{k}:{m}" in arrays} for k in names
        }
        matrices = {k: arrays[k] for k in ("cka", "overlap", "procrustes", "graphs")}
        return cls(labels=arrays.get("labels"), **found, **fields, **matrices)


def _verdict(names: Sequence[str], accuracy: Sequence[float], differences: list[Difference], spaces: str) -> str:
    best = names[int(np.argmax(accuracy))]
    claimed, of_best = [d for d in differences if d.claimed], [d for d in differences if best in (d.a, d.b)]
    if not claimed:
        return _no_difference(max(differences, key=lambda d: abs(d.value)), len(names), spaces)
    beaten = sorted((d for d in of_best if d.claimed), key=lambda d: abs(d.value))
    if not beaten:
        none = message("None of these {n} {spaces} is significantly the best. ", n=len(names), spaces=spaces)
        return none + _better(max(claimed, key=lambda d: abs(d.value)), len(names), spaces)
    text = _better(beaten[0], len(names), spaces)
    if more := [d.b if d.a == best else d.a for d in beaten[1:]]:
        text += message(" It is also better than {listed}.", listed=", ".join(more))
    if undecided := [d.b if d.a == best else d.a for d in of_best if not d.claimed]:
        text += message(" It does not differ significantly from {listed}.", listed=", ".join(undecided))
    return text


def _better(d: Difference, n: int, spaces: str) -> str:
    """The better one of n runs or embeddings, the difference and its interval."""
    two = N_(
        "Of these two {spaces}, {first} is better than {second} by {points} points of {accuracy} (95 % CI over "
        "samples: {low} to {high})."
    )
    several = N_(
        "Of these {n} {spaces}, {first} is better than {second} by {points} points of {accuracy} (95 % CI over "
        "samples: {low} to {high})."
    )
    return message(two if n == 2 else several, n=n, spaces=spaces, **_figures(d))


def _no_difference(d: Difference, n: int, spaces: str) -> str:
    """That n runs or embeddings show no difference, with the largest."""
    two = N_(
        "These two {spaces} show no significant difference in {accuracy}: {first} − {second} = {points} points "
        "(95 % CI over samples: {low} to {high})."
    )
    several = N_(
        "These {n} {spaces} show no significant difference in {accuracy}. The largest: {first} − {second} = {points} "
        "points (95 % CI over samples: {low} to {high})."
    )
    return message(two if n == 2 else several, n=n, spaces=spaces, **_figures(d))


def _figures(d: Difference) -> dict[str, str]:
    """The higher run, the lower run, the difference and its interval, in points."""
    first, second, sign = (d.a, d.b, 1) if d.value >= 0 else (d.b, d.a, -1)
    low, high = sorted(100 * sign * v for v in d.interval)
    points = {"points": 100 * sign * d.value, "low": low, "high": high}
    values = {name: f"{value:.1f}".replace("-", "−") for name, value in points.items()}
    return {"first": first, "second": second, "accuracy": ACCURACIES[d.metric], **values}
