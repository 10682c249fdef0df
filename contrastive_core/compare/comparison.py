"""The comparison of two to eight spaces on the same samples: which one is better, and how similar they are.

Samples are matched by their ids. Spaces are compared by two accuracies, the kNN vote and the linear probe. If every
space has two towers, recall@1 and MRR@10 of partners take their place, or, with relevance judgments, metrics of queries
(retrieval.py); these need no classes. McNemar's exact test on correctness, or a permutation test for other
metrics, gives p values, which Holm's method corrects for the number of pairs and metrics. The 95 % interval of a
difference is a paired bootstrap. A difference is significant only if its interval excludes zero and its corrected p is
below 0.05. This holds for these encoders; a statement about methods needs three seeds of each."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from contrastive_core.base.json_files import JsonObject
from contrastive_core.base.messages import N_, message
from contrastive_core.base.progress import OnProgress, ignore_progress
from contrastive_core.base.score import (
    Scores,
    difference,
    holm,
    paired_interval,
    paired_p,
    scores_from_json,
    scores_to_json,
)
from contrastive_core.base.storage import read_regular
from contrastive_core.compare.representation_similarity import similarities
from contrastive_core.compare.retrieval import FIGURES, check_documents, figures_of_rows
from contrastive_core.compare.towers import recall_of_rows
from contrastive_core.compare.verdicts import (
    ACCURACIES,
    Difference,
    compare_methods,
    compare_runs,
    paired_tests,
    say_best,
)
from contrastive_core.spaces.attached_files import LIMIT, Qrels, judgments_file
from contrastive_core.spaces.embedding_set import EmbeddingSet, check_unique
from contrastive_core.spaces.recorded_rows import numbered
from contrastive_core.spaces.results import Values
from contrastive_core.spaces.space import Space
from contrastive_core.spaces.towers import PAIR, towers_of

if TYPE_CHECKING:
    from contrastive_core.spaces.neighbor_graphs import Graphs

NOTHING_IN_COMMON = N_(
    "these runs have no samples in common: they are of different data sets (samples are matched by their ids)"
)
MOST = 8  # spaces
MARGIN = 0.005  # smallest relevant difference between metrics of queries
BY_ACCURACY = ("correct", "judged", "predicted", "groups")  # arrays of a comparison for each accuracy
CLAIMED = N_(
    "A difference counts as significant if its 95 % interval excludes zero and its p value, "
    "corrected for the number of pairs and accuracies, is below 0.05. A run trained with another "
    "seed may give a different result."
)


def comparison_request(spaces: Sequence[Space], every_score: bool = True, qrels: str | Path = "") -> Values:
    """Build the request for the analysis "comparison". A space's group is its method with all settings, and its seed.

    Args: every_score: compute all scores, which takes much longer; False: only the kNN accuracy for the first verdict;
        qrels: a file of relevance judgments or a BEIR folder, "" for none. Raises OSError if it cannot be read."""
    groups: list[list[Any]] = [[space.title, 0] for space in spaces]
    for group, run in zip(groups, (space.run for space in spaces), strict=True):
        if run:
            config = without_seed(run.config)
            digest = hashlib.sha256(repr((sorted(config.items(), key=str),)).encode()).hexdigest()
            group[:] = f"{config.get('method')} {digest[:4]}", int(run.config.get("seed") or 0)
    return {
        "names": [s.title for s in spaces],
        "spaces": [s.values for s in spaces],
        "groups": groups,
        "every_score": every_score,
        **judgments_request(qrels),
    }


def judgments_request(qrels: str | Path) -> Values:
    """Return the part of a request that names a file of relevance judgments; {} for "". Raises: NotRegular; OSError."""
    return {"qrels": {"file": str(judgments_file(qrels).absolute()), "content": hash_of(qrels)}} if qrels else {}


def without_seed(config: Mapping[str, object]) -> dict[str, object]:
    """Return the settings of a run in which it agrees with a repetition: all but seed, device and threads."""
    return {k: v for k, v in config.items() if k not in ("seed", "device", "threads")}


def hash_of(qrels: str | Path) -> str:
    """Return the SHA-256 of a file of relevance judgments. Raises: NotRegular; OSError."""
    return hashlib.sha256(read_regular(judgments_file(qrels), LIMIT)).hexdigest()


def common(sets: Sequence[EmbeddingSet]) -> list[EmbeddingSet]:
    """Reduce the sets to their common samples, in the order of the first set.

    Raises: ValueError for fewer than two or more than eight sets, no common samples, or duplicate ids."""
    if not 2 <= len(sets) <= MOST:
        raise ValueError(message("two to {most} runs can be compared; got {sets}", most=MOST, sets=len(sets)))
    numbers = [numbered(np.array(rows.ids)).tolist() if "view" in rows.columns else rows.ids for rows in sets]
    keys = [tuple(own) for own in numbers]  # views of an image, which share its id, are numbered
    for rows, own in zip(sets, keys, strict=True):
        check_unique(own, str(rows.provenance.get("file") or N_("A space")))
    shared = set.intersection(*map(set, keys))
    if len(shared) < 2:
        raise ValueError(NOTHING_IN_COMMON)
    order = tuple(i for i in keys[0] if i in shared)
    places = [{name: row for row, name in enumerate(own)} for own in keys]
    return [
        s if own == order else s.take([at[i] for i in order]) for s, own, at in zip(sets, keys, places, strict=True)
    ]


@dataclass(frozen=True)
class ClassDifference:
    """Accuracies of two runs on the samples of one class, with the difference, its 95 % interval and p."""

    label: int
    n: int
    accuracies: tuple[float, float]
    value: float
    interval: tuple[float, float]
    p: float  # corrected for the number of classes


@dataclass(frozen=True, eq=False)
class Comparison:
    """All results of the Compare page. Matrices are (runs, runs)."""

    names: list[str]
    ids: tuple[str, ...]
    correct: dict[str, np.ndarray]  # by accuracy: (runs, n) correctness; values for metrics of queries
    accuracy: dict[str, list[float]]  # by accuracy: one value per run
    differences: list[Difference]  # of each accuracy and pair of runs
    cka: np.ndarray
    overlap: np.ndarray
    procrustes: np.ndarray
    k: int
    graphs: np.ndarray  # (runs, n, k): the nearest rows of each sample
    tests: list[Difference]  # of every score, corrected together
    scores: list[Scores]  # all scores of each run, if requested
    labels: np.ndarray | None = None
    seeds: dict[str, str] = field(default_factory=dict)  # comparison of two methods over seeds, by accuracy
    made_of: dict[str, list[str]] = field(default_factory=dict)  # by accuracy: a note per run
    # if some use a sample or approximate neighbors (Score.approximation)
    recall: float | None = None  # of the graphs, if they are approximate
    judged: dict[str, np.ndarray] = field(default_factory=dict)  # by accuracy: (n), whether all runs have a value
    predicted: dict[str, np.ndarray] = field(default_factory=dict)  # by accuracy: (runs, n) predicted classes, if known
    groups: dict[str, np.ndarray] = field(default_factory=dict)  # by accuracy: (n), of samples that are not independent

    @property
    def right(self) -> np.ndarray | None:
        """Correctness (runs, n) of each run on each sample by the first accuracy; None without labels."""
        return next(iter(self.correct.values()), None)

    @property
    def verdict(self) -> str:
        """A sentence on the winner by the first accuracy, or on the lack of one."""
        return next(iter(self.verdicts.values()), "") or (
            N_("Without labels, accuracy cannot tell which space is better. Below is how alike they are.")
        )

    @property
    def verdicts(self) -> dict[str, str]:
        """The verdict for each accuracy: the winner, the difference and its interval, or no winner."""
        verdicts: dict[str, str] = {}
        for metric, accuracy in self.accuracy.items():
            best = self.names[int(np.argmax(accuracy))]
            found = [d.contrast.of(best) for d in self.differences if d.metric == metric and best in (d.a, d.b)]
            verdicts[metric] = say_best(sorted(found, key=lambda one: one.difference))
        return verdicts

    @property
    def titles(self) -> dict[str, str]:
        """The title of each accuracy."""
        return {d.metric: d.title for d in self.differences}

    @property
    def n_judged(self) -> int:
        """The number of samples behind the verdict; all if none is judged."""
        judged = next(iter(self.judged.values()), None)
        return len(self.ids) if judged is None else int(judged.sum())

    def by_class(self, metric: str) -> list[ClassDifference]:
        """Compare an accuracy of the first two runs within each class, with interval and p; [] without labels."""
        found = list[ClassDifference]()
        if self.labels is None:
            return found
        labels = np.where(self.judged[metric], self.labels, -1)
        for label in np.unique(labels[labels >= 0]).tolist():
            members, of = labels == label, self.groups.get(metric)
            first, second = self.correct[metric][:2, members]
            accuracies = float(first.mean()), float(second.mean())
            if of is None:
                interval = paired_interval(first.astype(float) - second)
            else:
                of = np.unique(of[members], return_inverse=True)[1]
                interval = difference(first, second, groups=of)[1]
            p = paired_p(first, second, of)
            found.append(ClassDifference(label, len(first), accuracies, accuracies[0] - accuracies[1], interval, p))
        found = [replace(d, p=p) for d, p in zip(found, holm([d.p for d in found]), strict=True)]
        return sorted(found, key=lambda d: -abs(d.value))

    def changed(self, metric: str) -> np.ndarray:
        """Return the indices (m) of judged samples on which the first two runs differ, the largest difference first."""
        a, b = self.correct[metric][:2]
        lead = np.abs(a.astype(np.float64) - b) * self.judged[metric]
        return np.argsort(-lead, kind="stable")[: np.count_nonzero(lead)]

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays of the comparison, by name."""
        names = ("labels", "cka", "overlap", "procrustes", "graphs")
        arrays = {name: array for name in names if (array := getattr(self, name)) is not None}
        return arrays | {f"{name}:{m}": v for name in BY_ACCURACY for m, v in getattr(self, name).items()}

    def plain(self) -> dict[str, object]:
        """Return the comparison without its arrays as plain values."""
        return {
            **{name: getattr(self, name) for name in ("names", "ids", "accuracy", "k", "seeds", "made_of", "recall")},
            "scores": [scores_to_json(scores) for scores in self.scores],
            **{name: list(map(vars, getattr(self, name))) for name in ("differences", "tests")},
        }

    @classmethod
    def of(cls, plain: JsonObject, arrays: Mapping[str, np.ndarray]) -> Comparison:
        """Rebuild a comparison from the results of `plain` and `arrays`."""
        fields: JsonObject = {**plain, **{name: {} for name in BY_ACCURACY}}
        for key, array in arrays.items():
            name, _, metric = key.partition(":")
            if metric:
                fields[name][metric] = array
            else:
                fields[name] = array
        fields["ids"], fields["scores"] = tuple(plain["ids"]), [scores_from_json(scores) for scores in plain["scores"]]
        for name in ("differences", "tests"):
            fields[name] = [Difference(**{**d, "interval": tuple(d["interval"])}) for d in plain[name]]
        return cls(**fields)


@dataclass(frozen=True, eq=False)
class Entry:
    """A space to compare: its test rows, its training rows if any, the method and seed of its run, and known scores of
    these rows."""

    name: str
    train: EmbeddingSet | None
    test: EmbeddingSet
    group: tuple[str, int] = ("", 0)
    scores: Scores = field(default_factory=dict)


def compare(
    entries: Sequence[Entry],
    metrics: Sequence[str] = tuple(ACCURACIES),
    every_score: bool = False,
    device: str = "auto",
    on_progress: OnProgress = ignore_progress,
    qrels: tuple[Qrels, str] | None = None,
    is_scored_only: bool = False,
) -> Comparison:
    """Compare spaces on their common test samples.

    Args: metrics: accuracies to compare; every_score: also compute and test all other scores; qrels: relevance
        judgments and the name of their file, for two towers; is_scored_only: skip the similarity of the spaces.
    Raises: ValueError for entries without common samples, unknown accuracies, or judgments of other rows."""
    from contrastive_core.spaces.neighbor_graphs import Graphs  # torch, which pages with a comparison spare

    check_accuracies(metrics)
    if qrels is not None:
        check_documents([entry.name for entry in entries], [entry.test for entry in entries], qrels[0])
    sets = common([entry.test for entry in entries])
    pairs = [one for rows in sets if PAIR in rows.columns and (one := towers_of(rows)) is not None]
    pairs = pairs if len(pairs) == len(sets) else []
    metrics = () if pairs else metrics
    kept = Graphs(device, on_progress=on_progress)
    scores = _scores(entries, sets, metrics, every_score, kept)
    labels, names = sets[0].labels, [entry.name for entry in entries]
    taken = [m for m in metrics if all(s[m].value is not None for s in scores)]
    values = {m: np.stack([s[m].arrays["per_sample"] for s in scores]) for m in taken}
    titles, shared = ACCURACIES | FIGURES, dict[str, np.ndarray]()
    if qrels is not None:
        values |= figures_of_rows(pairs, *qrels)
    elif pairs:
        for metric, (title, of_rows, groups) in recall_of_rows(pairs).items():
            values[metric], titles[metric] = of_rows, str(title)
            shared |= {} if groups is None else {metric: groups}
    by_seed = [entry.group for entry in entries]
    correct = {m: v > 0.5 if m in ACCURACIES or "recall_1_" in m else np.nan_to_num(v) for m, v in values.items()}
    labeled = np.ones(len(sets[0]), bool) if labels is None or pairs else labels >= 0
    is_judged = {m: labeled & ~np.isnan(v).any(0) for m, v in values.items()}
    judged = {m: right[:, is_judged[m]] for m, right in correct.items()}
    grouped = {m: np.unique(of[is_judged[m]], return_inverse=True)[1] for m, of in shared.items()}
    with_classes = [m for m in taken if all("predicted" in s[m].arrays for s in scores)]
    return Comparison(
        names=names,
        ids=sets[0].ids,
        labels=labels,
        correct=correct,
        accuracy={m: [float(v) for v in right.mean(1)] for m, right in judged.items()},
        differences=compare_runs(names, judged, titles=titles, groups=grouped),
        **similarities(sets, kept, is_scored_only),
        tests=paired_tests(names, scores) if every_score else [],
        scores=scores if every_score else [],
        seeds={m: compare_methods(by_seed, right) for m, right in judged.items() if m not in grouped},
        made_of={m: made_of for m in taken if any(made_of := [s[m].approximation for s in scores])},
        judged=is_judged,
        groups=shared,
        predicted={m: np.stack([s[m].arrays["predicted"] for s in scores]) for m in with_classes},
    )


def _scores(
    entries: Sequence[Entry], sets: Sequence[EmbeddingSet], metrics: Sequence[str], every_score: bool, graphs: Graphs
) -> list[Scores]:
    """Return the scores of each entry on the common samples, or only `metrics` (none: of two towers, which have no
    accuracies); known scores are reused if these are all its samples."""
    from contrastive_core.compare.evaluate import evaluate_sets, metric_names  # also with torch

    names = [name for name in metric_names(None) if metrics or name not in ACCURACIES] if every_score else metrics
    return [
        {name: entry.scores[name] for name in names}
        if rows is entry.test and entry.scores.keys() >= {*names}
        else evaluate_sets(names, entry.train, rows, graphs)
        for entry, rows in zip(entries, sets, strict=True)
    ]


def check_accuracies(metrics: Sequence[str]) -> None:
    """Raise ValueError for names that are not accuracies."""
    unknown = [m for m in metrics if m not in ACCURACIES]
    if unknown or not metrics:
        values = {"accuracies": " and ".join(ACCURACIES), "unknown": ", ".join(unknown) or "none"}
        raise ValueError(message("runs are compared by {accuracies}; got {unknown}", **values))
