"""Which rows of vectors teach and which are judged."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from contrastive_core.messages import N_
from contrastive_core.records.embedding_set import EmbeddingSet

HELD_OUT = 5  # one in so many rows of a class is judged where no rows are marked as a test


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
        return mask, ~mask, N_("Too few rows to hold any out.")
    return (~mask, mask, N_("No rows are marked as train and test: a fixed fifth of each class is judged."))
