"""Several spaces: which is better and how alike they are; the snapshots of one run likewise."""

import numpy as np

from contrastive_core.embeddings.graphs import Graphs
from contrastive_core.embeddings.nearest import nearest_of_all
from contrastive_core.embeddings.reading import read_rows
from contrastive_core.engine import results
from contrastive_core.engine.answers import Values, recorded_of, rows_of, test_rows
from contrastive_core.engine.results import Result
from contrastive_core.evaluation.compare import NEAREST, Entry, common, compare, compare_scored
from contrastive_core.evaluation.representation_similarity import ckas, graphs_of, matrix, overlaps, procrustes
from contrastive_core.evaluation.tower_checkpoints import compare_checkpoints
from contrastive_core.messages import N_, message
from contrastive_core.progress import OnProgress, prefixed
from contrastive_core.records import runs
from contrastive_core.records.comparison import ACCURACIES
from contrastive_core.records.embedding_ref import TOWERS, EmbeddingRef
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.evaluation import OF_SAMPLES
from contrastive_core.records.score import Scores, scores_from_json, scores_to_json
from contrastive_core.records.towers import Towers, towers_of

MOST = 2000  # rows; all against all in NumPy is a moment up to here
SNAPSHOTS = 12  # of a run that are compared at most


def comparison(values: Values, on_progress: OnProgress, device: str) -> Result:
    """Which of some spaces is better, how alike they are, and on which samples they differ."""
    if kept := comparison_of_kept(values):
        return kept
    entries = []
    for number, (space, name, group) in enumerate(_spaces_of(values), 1):
        part = prefixed(on_progress, f"{number} of {len(values['spaces'])}")
        entries.append(Entry(name, *judged(space, part, device), group, recorded_of(space), not space.is_loaded))
    on_progress(N_("the differences and their tests"), None)
    every_score = values.get("every_score", True)
    metrics = tuple(ACCURACIES) if every_score else ("knn",)  # a linear probe takes twenty times as long
    report = compare(entries, metrics, every_score, device, on_progress=on_progress)
    return Result(report.plain(), report.arrays())


def _spaces_of(values: Values) -> list[tuple[EmbeddingRef, str, tuple[str, int]]]:
    spaces = [EmbeddingRef(**plain) for plain in values["spaces"]]
    groups = [(method, int(seed)) for method, seed in values.get("groups", [])] or [("", 0)] * len(spaces)
    return list(zip(spaces, values["names"], groups, strict=True))


def judged(space: EmbeddingRef, on_progress: OnProgress, device: str) -> tuple[EmbeddingSet | None, EmbeddingSet]:
    """Training rows and judged rows of a space; of loaded rows without labels none teaches, and all are judged."""
    rows = rows_of(space, on_progress, device)
    if space.is_loaded and rows.labels is None:
        return None, rows
    train, test, _, _ = test_rows(space, rows, on_progress, device)
    return train, test


def comparison_of_kept(values: Values) -> Result | None:
    """The same in a moment, if every space has its scores and all have the same few samples; None else.

    The slow part of a comparison concerns each space alone: its rows, and every score of each sample. Shipped runs
    come with both. The rest are tests, matrices and nearest rows of a few samples. Raises ValueError for what does
    not exist.
    """
    entries, scores = [], []
    for space, name, group in _spaces_of(values):
        kept = kept_scores(space)
        rows = read_rows(space) if kept else None
        if kept is None or rows is None or not 4 <= len(rows) <= MOST:
            return None
        entries.append(Entry(name, None, rows, group, is_of_run=not space.is_loaded))
        scores.append(kept)
    sets = common([entry.test for entry in entries])
    if any(len(cut) < len(entry.test) for cut, entry in zip(sets, entries, strict=True)):
        return None
    if any(set(one) != set(scores[0]) or not set(ACCURACIES) <= set(one) for one in scores):
        return None  # scored by another version
    ordered = [_in_order_of(cut, entry.test, one) for cut, entry, one in zip(sets, entries, scores, strict=True)]
    graphs = [nearest_of_all(rows, min(NEAREST, len(rows) - 1))[0] for rows in sets]
    report = compare_scored(entries, sets, ordered, graphs, every_score=True)
    return Result(report.plain(), report.arrays())


def kept_scores(space: EmbeddingRef) -> Scores | None:
    """Every score of a space with what it says of each sample, if that is kept."""
    result = results.read("scores", {"space": space.values})
    if result is None:
        return None
    return with_arrays(scores_from_json(result.meta["scores"]["own"]), result)


def with_arrays(scores: Scores, result: Result) -> Scores:
    """The scores with what a result says of each sample."""
    for key, array in result.arrays.items():
        name, _, part = key.partition(":")
        if name in scores:
            scores[name].arrays[part] = array
    return scores


def _in_order_of(cut: EmbeddingSet, rows: EmbeddingSet, scores: Scores) -> Scores:
    """Scores of `rows` as those of the same samples in another order."""
    if cut.ids == rows.ids:
        return scores
    at = {name: row for row, name in enumerate(rows.ids)}
    order = np.array([at[name] for name in cut.ids])
    for score in scores.values():
        for part in set(OF_SAMPLES) & set(score.arrays):
            score.arrays[part] = score.arrays[part][order]
    return scores


def snapshots(values: Values, on_progress: OnProgress, device: str) -> Result:
    """How alike the snapshots of one run are, by CKA, shared neighbors and Procrustes."""
    run, layer = runs.load(values["run"]), values["layer"]
    epochs = run.snapshots()
    if len(epochs) < 2:
        raise ValueError(message("{name} has {count} snapshots; two are needed", name=run.name, count=len(epochs)))
    chosen = np.unique(np.linspace(0, len(epochs) - 1, SNAPSHOTS).round().astype(int))
    epochs = [epochs[q] for q in chosen]
    features = [run.snapshot(epoch)[layer] for epoch in epochs]
    on_progress(N_("how alike the snapshots are"), None)
    k = min(20, len(features[0]) - 1)
    graphs, _ = graphs_of([EmbeddingSet(x) for x in features], k, Graphs(device))
    arrays = {"cka": ckas(features), "overlap": overlaps(graphs), "procrustes": matrix(features, procrustes)}
    return Result({"epochs": epochs, "k": k, "n": len(features[0])}, arrays)


def checkpoints(values: Values, on_progress: OnProgress, device: str) -> Result:
    """Recall and modality gap of two checkpoints of a run with two towers, and the differences."""
    before, after = (_towers_at(values["run"], epoch) for epoch in values["epochs"])
    on_progress(N_("the differences and their intervals"), None)
    changes = compare_checkpoints(before, after)
    scores = {
        "before": scores_to_json({change.name: change.before for change in changes}),
        "after": scores_to_json({change.name: change.after for change in changes}),
    }
    differences = {change.name: [change.value, *change.interval] for change in changes}
    return Result({"scores": scores, "differences": differences, "n": [len(before.a), len(before.b)]})


def _towers_at(name: str, epoch: int) -> Towers:
    rows = read_rows(EmbeddingRef(name, "train", TOWERS, epoch=epoch))
    towers = None if rows is None else towers_of(rows)
    if towers is None:
        raise ValueError(N_("these rows are not of two towers"))
    return towers
