"""The comparison of two to eight spaces on the same samples: which one is better, and how similar they are.

Samples are matched by their ids. Spaces are compared by two accuracies, the kNN vote and the linear probe. If every
space has two towers, recall@1 and MRR@10 of partners take their place, or, with relevance judgments, metrics of queries
(retrieval.py); these need no classes. McNemar's exact test on correctness, or a permutation test for other
metrics, gives p values, which Holm's method corrects for the number of pairs and metrics. The 95 % interval of a
difference is a paired bootstrap. A difference is significant only if its interval excludes zero and its corrected p is
below 0.05. This holds for these encoders; a statement about methods needs three seeds of each."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypedDict

import numpy as np

from contrastive_core.base.messages import N_, message
from contrastive_core.base.progress import OnProgress, ignore_progress
from contrastive_core.base.score import Scores
from contrastive_core.compare.comparison import Comparison, common
from contrastive_core.compare.evaluate import evaluate_sets, metric_names
from contrastive_core.compare.representation_similarity import ckas, graphs_of, matrix, overlaps, procrustes
from contrastive_core.compare.retrieval import FIGURES, check_documents, figures_of_rows
from contrastive_core.compare.towers import recall_of_rows
from contrastive_core.compare.verdicts import ACCURACIES, compare_methods, compare_runs, paired_tests
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.label_files import Qrels
from contrastive_core.spaces.neighbor_graphs import Graphs
from contrastive_core.spaces.towers import PAIR, Towers, towers_of

NEAREST = 20  # number of neighbors that are compared


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
    seed: int = 0,
    on_progress: OnProgress = ignore_progress,
    qrels: tuple[Qrels, str] | None = None,
    is_scored_only: bool = False,
) -> Comparison:
    """Compare spaces on their common test samples.

    Args: metrics: accuracies to compare; every_score: also compute and test all other scores; seed: of the bootstrap;
        qrels: relevance judgments and the name of their file, for spaces with two towers; is_scored_only: skip the
        similarity of the spaces.
    Raises: ValueError for entries without common samples, unknown accuracies, or judgments of other rows."""
    check_accuracies(metrics)
    if qrels is not None:
        check_documents([entry.name for entry in entries], [entry.test for entry in entries], qrels[0])
    sets = common([entry.test for entry in entries])
    pairs = [one for rows in sets if PAIR in rows.columns and (one := towers_of(rows)) is not None]
    pairs = pairs if len(pairs) == len(sets) else []
    metrics = () if pairs else metrics
    asked = metric_names(None) if every_score else metrics
    kept = Graphs(device, on_progress=on_progress)
    scores = _scores(entries, sets, [name for name in asked if not (pairs and name in ACCURACIES)], kept)
    labels = sets[0].labels
    names, groups = [entry.name for entry in entries], [entry.group for entry in entries]
    taken = [m for m in metrics if all(s[m].value is not None for s in scores)]
    values = {m: np.stack([s[m].arrays["per_sample"] for s in scores]) for m in taken}
    of_queries, titles, shared = _of_queries(pairs, qrels)
    values |= of_queries
    correct = {m: v > 0.5 if m in ACCURACIES or "recall_1_" in m else np.nan_to_num(v) for m, v in values.items()}
    labeled = np.ones(len(sets[0]), bool) if labels is None or pairs else labels >= 0
    is_judged = {m: labeled & ~np.isnan(v).any(0) for m, v in values.items()}
    judged = {m: right[:, is_judged[m]] for m, right in correct.items()}
    grouped = {m: np.unique(of[is_judged[m]], return_inverse=True)[1] for m, of in shared.items()}
    tests = [
        {m: (s.value, s.influence) for m, s in each.items() if s.value is not None and s.influence is not None}
        for each in (scores if every_score else [])
    ]
    with_classes = [m for m in taken if all("predicted" in s[m].arrays for s in scores)]
    return Comparison(
        names=names,
        ids=sets[0].ids,
        labels=labels,
        correct=correct,
        accuracy={m: [float(v) for v in right.mean(1)] for m, right in judged.items()},
        differences=compare_runs(names, judged, seed, ACCURACIES | titles, grouped),
        **_alike(sets, kept, is_scored_only),
        tests=paired_tests(names, tests) if every_score else [],
        scores=scores if every_score else [],
        seeds={m: compare_methods(groups, right) for m, right in judged.items() if m not in grouped},
        made_of={m: made_of for m in taken if any(made_of := [s[m].approximation for s in scores])},
        judged=is_judged,
        groups=shared,
        predicted={m: np.stack([s[m].arrays["predicted"] for s in scores]) for m in with_classes},
    )


def _of_queries(
    pairs: Sequence[Towers], qrels: tuple[Qrels, str] | None
) -> tuple[dict[str, np.ndarray], dict[str, str], dict[str, np.ndarray]]:
    """Return metrics of queries (runs, n) by relevance judgments or by partners, their titles, and the group (n) of
    each row if queries depend on each other."""
    if qrels is not None:
        return figures_of_rows(pairs, *qrels), FIGURES, {}
    found = recall_of_rows(pairs) if pairs else {}
    values, titles = {m: one[1] for m, one in found.items()}, {m: str(one[0]) for m, one in found.items()}
    return values, titles, {m: one[2] for m, one in found.items() if one[2] is not None}


class Alike(TypedDict):
    """The similarity of spaces of the same rows: the fields of `Comparison` of these names."""

    cka: np.ndarray
    overlap: np.ndarray
    procrustes: np.ndarray
    k: int
    graphs: np.ndarray
    recall: float | None


def _alike(sets: Sequence[EmbeddingSet], kept: Graphs, is_left_out: bool) -> Alike:
    """Return the similarity matrices of spaces of the same rows and the nearest rows of each; NaN and empty if
    `is_left_out`."""
    if is_left_out:
        unknown = np.full((len(sets), len(sets)), np.nan)
        empty = np.empty((len(sets), len(sets[0]), 0), np.int64)
        return Alike(cka=unknown, overlap=unknown, procrustes=unknown, k=0, graphs=empty, recall=None)
    kept.on_progress(N_("similarity of the spaces"), None)
    features = [s.features for s in sets]
    graphs, recall = graphs_of(sets, min(NEAREST, len(sets[0]) - 1), kept)
    return Alike(
        cka=ckas(features),
        overlap=overlaps(graphs),
        procrustes=matrix(features, procrustes),
        k=graphs[0].shape[1],
        graphs=np.stack(graphs),
        recall=recall,
    )


def _scores(
    entries: Sequence[Entry], sets: Sequence[EmbeddingSet], names: Sequence[str], graphs: Graphs
) -> list[Scores]:
    """Return the scores of each entry on the common samples; known scores are reused if these are all its samples."""
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
        raise ValueError(
            message(
                "runs are compared by {accuracies}; got {unknown}",
                accuracies=" and ".join(ACCURACIES),
                unknown=", ".join(unknown) or "none",
            )
        )
