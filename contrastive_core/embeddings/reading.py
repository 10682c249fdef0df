"""Rows and images behind an `EmbeddingRef`: read from a run, a snapshot, a recording, or loaded vectors."""

from __future__ import annotations

import dataclasses

import numpy as np

from contrastive_core.data import datasets
from contrastive_core.embeddings.attached_images import dataset_pictures
from contrastive_core.records import loaded_vectors
from contrastive_core.records.embedding_ref import EmbeddingRef, cached
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.recorded_rows import Recorded


def read_rows(space: EmbeddingRef) -> EmbeddingSet | None:
    """The embedding, or None if it has not been computed. Raises ValueError for what does not exist."""
    if run := space.run:
        if not space.epoch:
            return cached(run, space.split, space.layer)
        arrays = run.snapshot(space.epoch)  # of the run's fixed sample of training images
        return EmbeddingSet(arrays[space.layer].astype(np.float32), arrays["labels"].astype(np.int64))
    if place := space.recorded:
        return read_recorded(place, space.layer)
    return loaded_vectors.rows(space.key, space.split)


def read_recorded(place: Recorded, layer: str = "z") -> EmbeddingSet:
    """Rows of a recording, with the data set's ids where the recording has row numbers of a split. Raises:
    UnusableEmbedding; Damaged."""
    rows = place.rows(layer)
    return dataclasses.replace(rows, ids=_dataset_ids(str(rows.provenance.get("dataset") or ""), rows))


def read_images(space: EmbeddingRef) -> np.ndarray | None:
    """Images (n, c, h, w) uint8 of the rows, in their order; None where there are none."""
    if run := space.run:
        return datasets.of_config(run.config, space.split, afresh=False).images
    if place := space.recorded:
        return dataset_pictures(read_recorded(place))
    return loaded_vectors.images(space.key, space.split)


def _dataset_ids(dataset: str, rows: EmbeddingSet) -> tuple[str, ...]:
    names = rows.ids
    if not dataset or not all(name.isascii() and name.isdigit() for name in names):
        return names
    try:
        if not datasets.is_made(dataset, rows.split):
            return names
        known = datasets.load(dataset, rows.split, afresh=False).ids
    except (ValueError, OSError):
        return names
    numbers = [int(name) for name in names]
    return tuple(str(known[number]) for number in numbers) if max(numbers) < len(known) else names
