"""Several spaces: which is better and how alike they are; the snapshots of one run likewise."""

from __future__ import annotations

import numpy as np

from contrastive_core.embeddings.graphs import Graphs
from contrastive_core.engine.answers.inputs import Values, recorded_of, rows_of, test_rows
from contrastive_core.engine.answers.kept_scores import comparison_of_kept
from contrastive_core.engine.results import Result
from contrastive_core.evaluation.compare import Entry, compare
from contrastive_core.evaluation.representation_similarity import ckas, graphs_of, matrix, overlaps, procrustes
from contrastive_core.messages import N_, message
from contrastive_core.progress import OnProgress, prefixed
from contrastive_core.records import runs
from contrastive_core.records.embedding_ref import EmbeddingRef
from contrastive_core.records.embedding_set import EmbeddingSet

SNAPSHOTS = 12  # of a run that are compared at most


def comparison(values: Values, on_progress: OnProgress, device: str) -> Result:
    """Which of some spaces is better, how alike they are, and on which samples they differ."""

    if kept := comparison_of_kept(values):
        return kept
    spaces = [EmbeddingRef(**v) for v in values["spaces"]]
    groups = [(g, int(s)) for g, s in values.get("groups", [])] or [("", 0)] * len(spaces)
    entries = []
    for number, (space, name, group) in enumerate(zip(spaces, values["names"], groups, strict=True), 1):
        part = prefixed(on_progress, f"{number} of {len(spaces)}")
        sets = _judged(space, part, device)
        entries.append(Entry(name, *sets, group, recorded_of(space)))
    on_progress(N_("the differences and their tests"), None)
    report = compare(entries, every_score=True, device=device, on_progress=on_progress)
    return Result(report.plain(), report.arrays())


def _judged(space: EmbeddingRef, on_progress: OnProgress, device: str) -> tuple[EmbeddingSet | None, EmbeddingSet]:
    """Training rows and judged rows of a space; the file they are copies of is let go."""
    rows = rows_of(space, on_progress, device)
    train, test, _, _ = test_rows(space, rows, on_progress, device)
    return train, test


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
