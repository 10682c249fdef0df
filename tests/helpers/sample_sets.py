"""Small sets of vectors that several tests score or look for odd samples in."""

from typing import Any

import numpy as np

from contrastive_core.base.progress import OnProgress, ignore_progress
from contrastive_core.samples import issues, sample_table
from contrastive_core.spaces.embedding_set import EmbeddingSet


def blobs(n: int = 300, seed: int = 0) -> EmbeddingSet:
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 3
    centers = 4 * np.eye(3, 8, dtype=np.float32)
    x = centers[labels] + 0.6 * rng.normal(size=(n, 8))
    return EmbeddingSet(x.astype(np.float32), labels.astype(np.int64), classes=("a", "b", "c"))


def table_of(
    rows: EmbeddingSet,
    loss: str,
    knobs: dict[str, float] | None = None,
    on_progress: OnProgress = ignore_progress,
    **more: Any,
) -> sample_table.SampleTable:
    return issues.build_table(issues.SampleInputs(rows, loss, knobs, **more), on_progress)


def spread_blobs(n: int, spread: float, seed: int = 0, classes: int = 3, d: int = 8, **more) -> EmbeddingSet:
    draw = np.random.default_rng(seed)
    labels = np.arange(n) % classes
    features = np.eye(classes, d)[labels] * 3 + draw.normal(scale=spread, size=(n, d))
    return EmbeddingSet(features.astype(np.float32), labels, **more)
