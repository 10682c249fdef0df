"""Scores of vectors that come in a file: of one process, or of many with a part of the rows each.

Without a file of training rows the file is split as pages split loaded vectors: by its column
`split`, or a fixed fifth of each class is scored. Nothing is chosen on the scored rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from contrastive_core.device import memory_bytes, pick_device
from contrastive_core.distributed import collectives
from contrastive_core.distributed.sharded_rows import HERE, SPREAD, Rows
from contrastive_core.embeddings import file_formats, label_files
from contrastive_core.embeddings.graphs import Graphs
from contrastive_core.embeddings.splits import split_masks
from contrastive_core.evaluation.evaluate import evaluate_sets, metric_names
from contrastive_core.progress import OnProgress, ignore_progress
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.score import scores_to_json

__all__ = ["evaluate_file"]


def evaluate_file(
    path: Path,
    train: Path | None = None,
    chosen: Sequence[str] | None = None,
    device: str = "auto",
    on_progress: OnProgress = ignore_progress,
    labels: Path | None = None,
) -> dict[str, Any]:
    """Score the vectors of a file; every process calls, and gets the same record.

    Args: train: a file of training rows; chosen: names of metrics, default all; labels: a file of
        labels, one for each row, that count instead of the file's own.
    Raises: UnknownName; UnusableEmbedding, Damaged or FileNotFoundError for the files.
    """
    names = metric_names(chosen)
    world = collectives.world()
    rows = HERE if collectives.is_single_process() else SPREAD
    part = (world.rank, world.size)
    on_progress("reading", None)
    test = collectives.raise_together(lambda: file_formats.read(path, part))
    if labels:
        of = (rows.number(len(test)), rows.start(len(test)))
        test = collectives.raise_together(lambda: label_files.labeled(test, labels, *of))
    if train:
        train_rows: EmbeddingSet | None = collectives.raise_together(lambda: file_formats.read(train, part))
    else:
        train_rows, test = _split(test, rows)
    on_progress("scoring", None)
    graphs = Graphs(device, on_progress=on_progress, rows=rows)
    scores = evaluate_sets(names, train_rows, test, graphs)
    return {
        "file": path.name,
        "train": train.name if train else None,
        "processes": world.size,
        "n_test": rows.number(len(test)),
        "n_train": rows.number(len(train_rows)) if train_rows else 0,
        "rows_per_process": rows.each(len(test) + (len(train_rows) if train_rows else 0)),
        "peak_bytes_per_process": rows.each(memory_bytes(pick_device(device))),
        "scores": scores_to_json(scores),
    }


def _split(vectors: EmbeddingSet, rows: Rows) -> tuple[EmbeddingSet | None, EmbeddingSet]:
    """Training rows and rows to score; without labels all are scored."""
    if not all(rows.each(vectors.labels is not None)):
        return None, vectors
    assert vectors.labels is not None
    splits = vectors.columns.get("split")
    marked = all(rows.each(splits is not None))
    ids = [name for part in rows.each(list(vectors.ids)) for name in part]
    names = np.concatenate(rows.each(np.asarray(splits).astype(str))) if marked else None
    train, test, _ = split_masks(rows.whole(vectors.labels), ids, names)
    first = rows.start(len(vectors))
    here = slice(first, first + len(vectors))  # this part's rows among all
    taught = vectors.take(np.flatnonzero(train[here])) if train.any() else None
    return taught, vectors.take(np.flatnonzero(test[here]))
