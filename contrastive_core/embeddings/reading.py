"""Rows and images behind an `EmbeddingRef`: of a run, a recording or loaded vectors; rows that teach and are judged."""

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from contrastive_core.data import datasets
from contrastive_core.data.overrides import ImageRows
from contrastive_core.embeddings.attached_images import dataset_pictures, spread
from contrastive_core.embeddings.tower_columns import picture_tower
from contrastive_core.errors import Damaged
from contrastive_core.messages import N_
from contrastive_core.records import loaded_vectors
from contrastive_core.records.embedding_ref import TOWERS, EmbeddingRef, cached
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.recorded_rows import Recorded
from contrastive_core.records.towers import PAIR, towers_of, with_captions

HELD_OUT = 5  # one in so many rows of a class is judged where no rows are marked as a test


def read_rows(space: EmbeddingRef) -> EmbeddingSet | None:
    """The embedding, or None if it has not been computed. Raises ValueError for what does not exist."""
    if run := space.run:
        if not space.epoch:
            return cached(run, space.split, space.layer)
        arrays = run.snapshot(space.epoch)  # of the run's fixed sample of training images
        if space.layer == TOWERS:
            return towers_of_snapshot(arrays)
        return EmbeddingSet(arrays[space.layer].astype(np.float32), arrays["labels"].astype(np.int64))
    if place := space.recorded:
        return read_recorded(place, space.layer)
    return loaded_vectors.rows(space.key, space.split)


def towers_of_snapshot(arrays: Mapping[str, np.ndarray]) -> EmbeddingSet:
    """Both towers of a run's fixed sample, as `Run.snapshot` reads it. Raises: Damaged."""
    z, of = arrays.get("text_z"), arrays.get("text_of")
    n = len(arrays["z"])
    if z is None or of is None or z.ndim != 2 or of.shape != (len(z),) or of.dtype.kind not in "iu":
        raise Damaged(N_("the snapshot holds no rows of captions"))
    if len(of) and (of.min() < 0 or of.max() >= n or (np.diff(of) < 0).any()):
        raise Damaged(N_("the snapshot's captions are of images that it does not hold"))
    ids = tuple(map(str, arrays["index"].tolist()))
    images = EmbeddingSet(arrays["z"].astype(np.float32), arrays["labels"].astype(np.int64), ids, "train", "z")
    return with_captions(images, z.astype(np.float32), of.astype(np.int64))


def read_recorded(place: Recorded, layer: str = "z") -> EmbeddingSet:
    """Rows of a recording; row numbers of a split become the data set's ids. Raises: UnusableEmbedding; Damaged."""
    rows = place.rows(layer)
    return dataclasses.replace(rows, ids=_dataset_ids(str(rows.provenance.get("dataset") or ""), rows))


def read_images(space: EmbeddingRef) -> Any:
    """Images (n, c, h, w) uint8 of the rows, in their order, an array or `ImageRows`; None where there are none."""
    if run := space.run:
        images = datasets.of_config(run.config, space.split, afresh=False).images
        return images_of_towers(images, read_rows(space)) if space.layer == TOWERS else images
    if place := space.recorded:
        return recorded_pictures(read_recorded(place))
    return loaded_vectors.images(space.key, space.split)


def images_of_towers(images: Any, rows: EmbeddingSet | None) -> Any:
    """Images (n + m, c, h, w) behind the rows of a run's two towers, in their order: behind a caption that of its
    image. Args: images: (n, c, h, w) of the split; rows: None where they have not been computed."""
    return None if rows is None else ImageRows(images, rows.columns[PAIR].astype(np.int64))


def recorded_pictures(rows: EmbeddingSet) -> np.ndarray | None:
    """Images (n, c, h, w) of recorded rows of a data set that is decoded on this computer; of two towers for the rows
    of the tower of images, gray for the others. None where there are none."""
    if (towers := towers_of(rows)) is None:
        return dataset_pictures(rows)
    at = towers.rows_of(picture_tower(towers.names))
    own = dataclasses.replace(rows.take(at), ids=tuple(rows.columns[PAIR][at].tolist()))
    named = dataclasses.replace(own, ids=_dataset_ids(str(rows.provenance.get("dataset") or ""), own))
    images = dataset_pictures(named)
    return None if images is None else spread(images, at, len(rows))


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


def train_test_split(rows: EmbeddingSet) -> tuple[EmbeddingSet | None, EmbeddingSet, np.ndarray, str]:
    """Rows that teach, if any, rows that are judged, where these stand, and a sentence about it. By the column `split`
    where it has train and test; else a fifth of each class, chosen by a hash of the ids, so that files that share rows
    judge (nearly) the same ones."""
    labels = np.zeros(len(rows), np.int64) if rows.labels is None else rows.labels
    train, test, how = split_masks(labels, rows.ids, rows.columns.get("split"))
    taught = rows.take(np.flatnonzero(train)) if train.any() else None
    return taught, rows.take(np.flatnonzero(test)), np.flatnonzero(test), how


def split_masks(
    labels: np.ndarray, ids: Sequence[str], splits: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, str]:
    """Which rows teach (n) and which are judged (n), and a sentence; splits: each row's, if any."""
    names = np.array([]) if splits is None else np.asarray(splits).astype(str)
    if (names == "test").any() and (names == "train").any():
        how = N_("Judged on the rows marked as test, taught by those marked as train.")
        return names == "train", names == "test", how
    mask = np.zeros(len(labels), bool)
    hashed = [hashlib.blake2b(i.encode(), digest_size=8).digest() for i in ids]
    order = np.argsort(np.frombuffer(b"".join(hashed), ">u8"), kind="stable")
    for label in np.unique(labels):
        rows_of_class = order[labels[order] == label]
        mask[rows_of_class[: len(rows_of_class) // HELD_OUT]] = True
    if not mask.any():
        return mask, ~mask, N_("Too few rows for a held-out set.")
    return (~mask, mask, N_("No rows are marked as train and test: a fixed fifth of each class is judged."))
