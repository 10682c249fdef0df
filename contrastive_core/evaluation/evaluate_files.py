"""Scores of vectors that come in a file: of one process, or of many with a part of the rows each.

Without a file of training rows a fixed fifth of each class is scored, and the rest trains. Nothing
is chosen on the scored rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from contrastive_core import metrics
from contrastive_core.device import memory_bytes
from contrastive_core.distributed import collectives
from contrastive_core.distributed.sharded_rows import HERE, SPREAD, Rows
from contrastive_core.embeddings import file_formats
from contrastive_core.embeddings.embedding_set import EmbeddingSet
from contrastive_core.embeddings.graphs import Graphs
from contrastive_core.evaluation.evaluate import Tell, evaluate_sets
from contrastive_core.metrics.linear_probe import held_out
from contrastive_core.ops.neighbors import pick_device

__all__ = ["evaluate_file"]


def evaluate_file(
    path: Path,
    train: Path | None = None,
    chosen: Sequence[str] | None = None,
    device: str = "auto",
    tell: Tell = lambda what: None,
) -> dict[str, Any]:
    """Score the vectors of a file; every process calls, and gets the same record.

    Args: train: a file of training rows; chosen: names of metrics, default all.
    Raises: UnknownName; UnusableEmbedding, Damaged or FileNotFoundError for the files.
    """
    names = list(chosen) if chosen else metrics.names()
    for name in names:
        metrics.get(name)
    world = collectives.world()
    rows = HERE if collectives.is_single_process() else SPREAD
    part = (world.rank, world.size)
    tell("reading")
    test = collectives.raise_together(lambda: file_formats.read(path, part))
    if train:
        known: EmbeddingSet | None = collectives.raise_together(
            lambda: file_formats.read(train, part)
        )
    else:
        known, test = _halves(test, rows)
    tell("scoring")
    graphs = Graphs(device, rows=rows)
    scores = evaluate_sets(names, known, test, graphs)
    return {
        "file": path.name,
        "train": train.name if train else None,
        "processes": world.size,
        "n_test": rows.number(len(test)),
        "n_train": rows.number(len(known)) if known else 0,
        "rows_per_process": rows.each(len(test) + (len(known) if known else 0)),
        "peak_bytes_per_process": rows.each(memory_bytes(pick_device(device))),
        "scores": scores,
    }


def _halves(found: EmbeddingSet, rows: Rows) -> tuple[EmbeddingSet | None, EmbeddingSet]:
    """Training rows and rows to score: a fixed fifth of each class; all rows without labels."""
    if not all(rows.each(found.labels is not None)):
        return None, found
    assert found.labels is not None
    first = rows.start(len(found))
    mask = held_out(rows.whole(found.labels))[first : first + len(found)]
    return found.take(np.flatnonzero(~mask)), found.take(np.flatnonzero(mask))
