"""Two to eight spaces of the same samples: which is better, and how alike they are.

Samples are matched by their ids. Which is better is asked of two accuracies, the kNN vote and the linear probe:
McNemar's exact test on who is right gives p values, corrected by Holm for the number of pairs and accuracies; the 95 %
interval of a difference is a paired bootstrap. A difference is claimed only if its interval excludes zero and its
corrected p is below 0.05. That is said of these encoders; of methods, only if it holds for each of three seeds.
"""

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from contrastive_core.data import datasets
from contrastive_core.embeddings.graphs import Graphs
from contrastive_core.evaluation.embed import embed_run
from contrastive_core.evaluation.evaluate import evaluate_sets, metric_names
from contrastive_core.evaluation.paired_tests import paired_tests
from contrastive_core.evaluation.representation_similarity import ckas, graphs_of, matrix, overlaps, procrustes
from contrastive_core.evaluation.verdicts import compare_methods, compare_runs
from contrastive_core.messages import N_, message
from contrastive_core.progress import OnProgress, fraction_of, ignore_progress, prefixed
from contrastive_core.records.comparison import ACCURACIES, EMBEDDINGS, NOTHING_IN_COMMON, RUNS, Comparison
from contrastive_core.records.embedding_ref import cached
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.evaluation import read_evaluation
from contrastive_core.records.run import Run
from contrastive_core.records.score import Scores

__all__ = ["Entry", "check_accuracies", "common", "compare", "compare_scored", "entry_of_run"]

MOST = 8
NEAREST = 20  # rows by which neighborhoods are compared


@dataclass(frozen=True, eq=False)
class Entry:
    """A space to compare: its test rows, training rows that teach, if there are any, method and seed of its run, the
    scores that are recorded of these very rows, and whether a run embeds them."""

    name: str
    train: EmbeddingSet | None
    test: EmbeddingSet
    group: tuple[str, int] = ("", 0)
    recorded: Scores = field(default_factory=dict)
    is_of_run: bool = True


def entry_of_run(
    run: Run, split: str, layer: str, device: str = "auto", on_progress: OnProgress = ignore_progress
) -> Entry:
    """A run's split as it is compared; training rows are not judged by themselves."""
    train = None if split == "train" else _embedded(run, "train", layer, device, on_progress)
    test = _embedded(run, split, layer, device, on_progress)
    return Entry(run.name, train, test, recorded=recorded_scores(run, split, layer))


def _embedded(run: Run, split: str, layer: str, device: str, on_progress: OnProgress) -> EmbeddingSet:
    if cached(run, split, layer) is None:  # else it decodes without a word
        run.weights_hash()  # without weights it is refused before anything is decoded
        datasets.of_config(run.config, split, on_progress=prefixed(on_progress, run.name))
    stage = message("{name}: embedding {split}", name=run.name, split=split)
    return embed_run(run, split, layer, device, fraction_of(on_progress, stage))


def recorded_scores(run: Run, split: str, layer: str) -> Scores:
    """Return the stored scores of an embedding: one value for every page."""
    evaluation = read_evaluation(run, split)
    return {} if evaluation is None else evaluation.scores.get(layer, {})


def common(sets: Sequence[EmbeddingSet]) -> list[EmbeddingSet]:
    """The sets, cut to the samples that all have, in the order of the first.

    Raises: ValueError for fewer than two or more than eight sets, or nothing in common.
    """
    if not 2 <= len(sets) <= MOST:
        raise ValueError(message("two to {most} runs can be compared; got {sets}", most=MOST, sets=len(sets)))
    shared = set.intersection(*(set(s.ids) for s in sets))
    if len(shared) < 2:
        raise ValueError(NOTHING_IN_COMMON)
    order = tuple(i for i in sets[0].ids if i in shared)
    places = [{name: row for row, name in enumerate(s.ids)} for s in sets]
    return [s if s.ids == order else s.take([at[i] for i in order]) for s, at in zip(sets, places, strict=True)]


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
    check_accuracies(metrics)
    sets = common([entry.test for entry in entries])
    kept, names = Graphs(device, on_progress=on_progress), metric_names(None) if every_score else metrics
    scores = [  # recorded ones where the common samples are all that the entry has
        evaluate_sets(names, entry.train, rows, kept, entry.recorded if rows is entry.test else None)
        for entry, rows in zip(entries, sets, strict=True)
    ]
    on_progress(N_("how alike they are"), None)
    graphs, recall = graphs_of(sets, min(NEAREST, len(sets[0]) - 1), kept)
    made = compare_scored(entries, sets, scores, graphs, metrics, every_score, seed)
    return dataclasses.replace(made, recall=recall)


def compare_scored(
    entries: Sequence[Entry],
    sets: Sequence[EmbeddingSet],
    scores: Sequence[Scores],
    graphs: Sequence[np.ndarray],
    metrics: Sequence[str] = tuple(ACCURACIES),
    every_score: bool = False,
    seed: int = 0,
) -> Comparison:
    """Compare scored spaces. Args: sets: the common rows of each; graphs: their nearest rows (n, k)."""
    labels = sets[0].labels
    names, groups = [entry.name for entry in entries], [entry.group for entry in entries]
    taken = [m for m in metrics if all(s[m].value is not None for s in scores)]
    values = {m: np.stack([s[m].arrays["per_sample"] for s in scores]) for m in taken}
    correct = {m: v == 1 for m, v in values.items()}
    labeled = np.ones(len(sets[0]), bool) if labels is None else labels >= 0
    is_judged = {m: labeled & ~np.isnan(v).any(0) for m, v in values.items()}
    judged = {m: right[:, is_judged[m]] for m, right in correct.items()}
    features = [s.features for s in sets]
    return Comparison(
        names,
        sets[0].ids,
        labels,
        correct,
        {m: [float(v) for v in right.mean(1)] for m, right in judged.items()},
        compare_runs(names, judged, seed),
        ckas(features),
        overlaps(graphs),
        matrix(features, procrustes),
        graphs[0].shape[1],
        np.stack(graphs),
        paired_tests(names, [_tested(s) for s in scores]) if every_score else [],
        list(scores) if every_score else [],
        {m: compare_methods(groups, right) for m, right in judged.items()},
        {m: made_of for m in correct if any(made_of := [s[m].approximation for s in scores])},
        judged=is_judged,
        predicted=_predictions(correct, scores),
        spaces=RUNS if all(entry.is_of_run for entry in entries) else EMBEDDINGS,
    )


def _predictions(metrics: Iterable[str], scores: Sequence[Scores]) -> dict[str, np.ndarray]:
    """The class that each space predicts for each row (spaces, n), of the metrics that keep it."""
    kept = [m for m in metrics if all("predicted" in s[m].arrays for s in scores)]
    return {m: np.stack([s[m].arrays["predicted"] for s in scores]) for m in kept}


def _tested(scores: Scores) -> dict[str, tuple[float, np.ndarray]]:
    """The scores of a space that each sample has a part in."""
    return {
        name: (s.value, s.influence) for name, s in scores.items() if s.value is not None and s.influence is not None
    }


def check_accuracies(metrics: Sequence[str]) -> None:
    """Raises ValueError for names that are no accuracies."""
    unknown = [m for m in metrics if m not in ACCURACIES]
    if unknown or not metrics:
        raise ValueError(
            message(
                "runs are compared by {accuracies}; got {unknown}",
                accuracies=" and ".join(ACCURACIES),
                unknown=", ".join(unknown) or "none",
            )
        )
