"""Two to eight spaces of the same samples: which is better, and how alike they are.

Samples are matched by their ids. Which is better is asked of two accuracies, the kNN vote and the
linear probe: McNemar's exact test on who is right gives p values, corrected by Holm for the number
of pairs and accuracies; the 95 % interval of a difference is a paired bootstrap. A difference is
claimed only if its interval excludes zero and its corrected p is below 0.05. That is said of these
encoders; of methods, only if it holds for each of three seeds.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from contrastive_core.embeddings.embedding_set import EmbeddingSet
from contrastive_core.evaluation.comparison import ACCURACIES, Comparison, Difference
from contrastive_core.evaluation.evaluate import evaluate_sets
from contrastive_core.evaluation.paired_tests import TESTED, difference, holm, mcnemar, paired_tests
from contrastive_core.evaluation.representation_similarity import (
    ckas,
    graphs_of,
    matrix,
    overlaps,
    procrustes,
)
from contrastive_core.evaluation.score import Scores
from contrastive_core.ops.intervals import SEEDS
from contrastive_core.progress import OnProgress, ignore_progress

if TYPE_CHECKING:
    from contrastive_core.embeddings.graphs import Graphs

__all__ = [
    "Entry",
    "check_accuracies",
    "common",
    "compare",
    "of_scores",
    "seeds_verdict",
]

MOST = 8
NEAREST = 20  # rows by which neighborhoods are compared


@dataclass(frozen=True, eq=False)
class Entry:
    """A space to compare: its test rows, training rows that teach, if there are any, method and
    seed of its run, and the scores that are recorded of these very rows."""

    name: str
    train: EmbeddingSet | None
    test: EmbeddingSet
    group: tuple[str, int] = ("", 0)
    recorded: Scores = field(default_factory=dict)


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
    cut = []
    for s in sets:
        at = {name: row for row, name in enumerate(s.ids)}
        cut.append(s if s.ids == tuple(order) else s.take([at[i] for i in order]))
    return cut


def compare(
    entries: Sequence[Entry],
    metrics: Sequence[str] = tuple(ACCURACIES),
    every_score: bool = False,
    device: str = "auto",
    seed: int = 0,
    on_progress: OnProgress = ignore_progress,
) -> Comparison:
    """Compare spaces on their common test samples.

    Args: metrics: the accuracies that are compared; every_score: take and test all scores; seed: of
        the bootstrap. Raises: ValueError for entries with nothing in common, unknown accuracies.
    """
    from contrastive_core.embeddings.graphs import Graphs

    check_accuracies(metrics)
    sets = common([entry.test for entry in entries])
    kept = Graphs(device, on_progress=on_progress)
    scores = _scores(entries, sets, metrics, every_score, kept)
    on_progress("how alike they are", None)
    graphs, recall = graphs_of(sets, min(NEAREST, len(sets[0]) - 1), kept)
    made = of_scores(entries, sets, scores, graphs, metrics, every_score, seed)
    return dataclasses.replace(made, recall=recall)


def of_scores(
    entries: Sequence[Entry],
    sets: Sequence[EmbeddingSet],
    scores: Sequence[Scores],
    graphs: Sequence[np.ndarray],
    metrics: Sequence[str] = tuple(ACCURACIES),
    every_score: bool = False,
    seed: int = 0,
) -> Comparison:
    """The comparison of spaces that have been scored. Torch-free.

    Args: sets: the common rows of each; graphs: their nearest rows (n, k); others as of `compare`.
    """
    labels = sets[0].labels
    values = {m: np.stack([s[m].arrays["per_sample"] for s in scores])
              for m in metrics if all(s[m].value is not None for s in scores)}  # fmt: skip
    correct = {m: v == 1 for m, v in values.items()}
    labeled = np.ones(len(sets[0]), bool) if labels is None else labels >= 0
    judged = {m: v[:, labeled & ~np.isnan(v).any(0)] == 1 for m, v in values.items()}
    names = [entry.name for entry in entries]
    features = [s.features for s in sets]
    groups = [entry.group for entry in entries]
    return Comparison(
        names, sets[0].ids, labels, correct,
        {m: [float(v) for v in right.mean(1)] for m, right in judged.items()},
        _differences(names, judged, seed),
        ckas(features), overlaps(graphs), matrix(features, procrustes),
        graphs[0].shape[1], np.stack(graphs),
        _tests(names, scores) if every_score else [], list(scores) if every_score else [],
        {m: seeds_verdict(groups, right) for m, right in judged.items()},
        {m: made_of for m in correct if any(made_of := [s[m].approximation for s in scores])},
    )  # fmt: skip


def check_accuracies(metrics: Sequence[str]) -> None:
    """Raises ValueError for names that are no accuracies."""
    unknown = [m for m in metrics if m not in ACCURACIES]
    if unknown or not metrics:
        raise ValueError(
            f"runs are compared by {' and '.join(ACCURACIES)}; got {', '.join(unknown) or 'none'}"
        )


def _scores(
    entries: Sequence[Entry],
    sets: Sequence[EmbeddingSet],
    names: Sequence[str],
    every_score: bool,
    graphs: Graphs,
) -> list[Scores]:
    """The scores of each entry on the common samples; recorded ones where these are all it has."""
    from contrastive_core import metrics

    metric_names = metrics.names() if every_score else names
    scores = []
    for entry, rows in zip(entries, sets, strict=True):
        recorded = entry.recorded if rows is entry.test else None
        scores.append(evaluate_sets(metric_names, entry.train, rows, graphs, recorded))
    return scores


def _tests(names: Sequence[str], scores: Sequence[Scores]) -> list[dict[str, Any]]:
    """Paired tests of all scores that have a value per sample."""
    samples = [
        {
            name: (score.value, score.per_sample)
            for name in TESTED
            if (score := of_run.get(name)) is not None
            and score.value is not None
            and score.per_sample is not None
        }
        for of_run in scores
    ]
    return paired_tests(names, samples)


def seeds_verdict(groups: Sequence[tuple[str, int]], right: np.ndarray) -> str:
    """What two methods of three seeds or more show together; "" where there are not so many.

    Args: groups: method and seed of each run; right: (runs, n), who is right.
    """
    methods = sorted({name for name, _ in groups})
    at = {group: row for row, group in enumerate(groups)}
    if len(methods) != 2:
        return ""
    a, b = methods
    seeds = sorted(s for name, s in groups if name == a and (b, s) in at)
    if len(seeds) < SEEDS:
        return ""
    differences = [difference(right[at[a, s]], right[at[b, s]]) for s in seeds]
    values = [100 * value for value, _ in differences]
    span = f"{min(map(abs, values)):.1f} to {max(map(abs, values)):.1f} points"
    if all(low > 0 for _, (low, _) in differences):
        return f"{a} is better than {b} with each of {len(seeds)} seeds, by {span}."
    if all(high < 0 for _, (_, high) in differences):
        return f"{b} is better than {a} with each of {len(seeds)} seeds, by {span}."
    return f"Between {a} and {b} the {len(seeds)} seeds do not all show a difference."


def _differences(
    names: Sequence[str], correct: Mapping[str, np.ndarray], seed: int
) -> list[Difference]:
    """All pairs by all accuracies (runs, n), their p values corrected together."""
    differences = []
    for metric, right in correct.items():
        for i, j in itertools.combinations(range(len(names)), 2):
            only_a, only_b = int((right[i] & ~right[j]).sum()), int((right[j] & ~right[i]).sum())
            value, interval = difference(right[i], right[j], seed)
            p = mcnemar(right[i], right[j])
            differences.append(
                Difference(metric, names[i], names[j], value, interval, p, p, only_a, only_b)
            )
    corrected = holm([d.p for d in differences])
    return [
        dataclasses.replace(d, p_corrected=p) for d, p in zip(differences, corrected, strict=True)
    ]
