"""Where an embedding comes from: a run, one of its snapshots, a recording, or loaded vectors.
Torch-free.

It is named by plain values, so that an address can hold it and another process can find it.
Loaded vectors are kept under their content in `data_home()/spaces/<key>/`: `rows.npz`,
`about.json` and, where pictures came along, `images.npy`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from contrastive_core.data import datasets
from contrastive_core.embeddings import recorded
from contrastive_core.embeddings.cache import cached
from contrastive_core.embeddings.embedding_set import EmbeddingSet
from contrastive_core.errors import UnusableEmbedding
from contrastive_core.paths import data_home
from contrastive_core.runs import Run, load
from contrastive_core.storage import atomic, records

__all__ = [
    "PREFIX",
    "EmbeddingRef",
    "about",
    "dataset_pictures",
    "forget",
    "loaded",
    "of_name",
    "of_recording",
    "of_run",
    "of_vectors",
    "pictures",
    "save_vectors",
    "split_masks",
    "train_test_split",
]  # fmt: skip

PREFIX = "vectors:"
KEY = re.compile(r"[0-9a-f]{16}")
GONE = "there are no such vectors; open the file again"
SIDE = 64  # pixels along the side of a kept picture, at most
HELD_OUT = 5  # one in so many rows of a class is judged where no rows are marked as a test


@dataclass(frozen=True)
class EmbeddingRef:
    """Rows of a run, of one of its snapshots, or of loaded vectors, named by plain values.

    `name` is a run's, `vectors:KEY`, or `recording:RUN@probe-STEP` and the like (recorded.py);
    `layer` h or z ("loaded" for vectors); `epoch` that of a snapshot; `content` the hash of the
    run's weights or of the vectors.
    """

    name: str
    split: str = "test"
    layer: str = "h"
    content: str = ""
    epoch: int | None = None

    @property
    def is_loaded(self) -> bool:
        """Whether these rows are all there is: no encoder made them here, or can make others."""
        return self.name.startswith((PREFIX, recorded.PREFIX))

    @property
    def key(self) -> str:
        return self.name.removeprefix(PREFIX).removeprefix(recorded.PREFIX)

    @property
    def recorded(self) -> recorded.Recorded | None:
        """The place in a recording; None for all else. Raises ValueError when there is none."""
        return recorded.of_key(self.key) if self.name.startswith(recorded.PREFIX) else None

    @property
    def run(self) -> Run | None:
        """The run that embeds them; None for loaded vectors and recorded rows. Raises ValueError
        when it does not exist."""
        return None if self.is_loaded else load(self.name)

    @property
    def title(self) -> str:
        """The run's name, or that of the file the vectors came from."""
        if place := self.recorded:
            return place.title
        return str(about(self.key)["name"]) if self.is_loaded else self.name

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits it has; none where loaded vectors are not marked as train and test."""
        if self.recorded or (self.is_loaded and about(self.key).get("splits") != ["test", "train"]):
            return ()
        return ("test", "train")

    @property
    def values(self) -> dict[str, Any]:
        """The same as plain values; `EmbeddingRef(**values)` is the inverse."""
        return {k: v for k, v in asdict(self).items() if v is not None}

    def rows(self) -> EmbeddingSet | None:
        """The embedding, if it has been made. Raises ValueError for what does not exist."""
        if run := self.run:
            return _of_snapshot(run, self) if self.epoch else cached(run, self.split, self.layer)
        if place := self.recorded:
            return place.rows(self.layer)
        rows = EmbeddingSet.from_arrays(records.read_npz(_folder(self.key) / "rows.npz"))
        return _of_split(rows, self.split)

    def images(self) -> np.ndarray | None:
        """Images (n, c, h, w) uint8 of the rows, in their order: of the run's data set, or those
        that came along with the vectors; None where there are none."""
        if run := self.run:
            name, root = str(run.config.get("dataset")), run.config.get("root")
            return datasets.load(name, self.split, root).images
        return pictures(self)

    def with_split(self, split: str) -> EmbeddingRef:
        return replace(self, split=split)


def of_run(run: Run, split: str = "test", layer: str = "h") -> EmbeddingRef:
    """A run's embedding. Raises ValueError when it has no weights."""
    return EmbeddingRef(run.name, split, layer, run.weights_hash())


def of_vectors(key: str, split: str = "") -> EmbeddingRef:
    """Loaded vectors: all rows, or those of one split."""
    return EmbeddingRef(PREFIX + key, split, "loaded", key)


def of_recording(place: recorded.Recorded, layer: str = "z") -> EmbeddingRef:
    """Rows of a recording: a snapshot of its probe set, or a step's."""
    return EmbeddingRef(recorded.PREFIX + place.key, "", layer, place.content)


def of_name(name: str, split: str = "test", layer: str = "h") -> EmbeddingRef:
    """By the name of a run, of a recording (its newest rows, or those named), or of loaded
    vectors, whose rows may be of no split and have no layers.

    Raises: ValueError for what does not exist, or a run that has no weights.
    """
    if name.startswith(recorded.PREFIX):
        return of_recording(recorded.of_key(name.removeprefix(recorded.PREFIX)), layer)
    if not name.startswith(PREFIX):
        run = load(name)
        if run.is_recording:
            return of_recording(recorded.newest(run), layer)
        return of_run(run, split, layer)
    every = of_vectors(name.removeprefix(PREFIX))
    return every.with_split(split) if every.splits else every


# --- vectors that were loaded --------------------------------------------------------------------


def save_vectors(
    rows: EmbeddingSet, name: str, images: np.ndarray | None = None, note: str = ""
) -> str:
    """Keep vectors under their content; returns the key. Rows without a direction are left out.

    Args: images: (n, c, h, w) uint8 of all rows; note: a sentence about pictures, kept too.
    Raises: UnusableEmbedding.
    """
    bad = rows.problems
    usable = np.setdiff1d(np.arange(len(rows)), np.concatenate([*bad.values()]))
    if len(usable) < 2:
        raise UnusableEmbedding(
            f"{name} has {len(usable)} rows that can be used: {len(bad['not_finite'])} hold values "
            f"that are not finite, {len(bad['zero'])} are all zeros"
        )
    usable_rows = rows if len(usable) == len(rows) else rows.take(usable)
    key = usable_rows.content_hash[:16]
    about = {
        "name": name, "rows": len(usable_rows), "width": usable_rows.width,
        "labels": usable_rows.labels is not None,
        "left_out": {k: len(v) for k, v in bad.items() if len(v)}, "splits": _splits(usable_rows),
        "images": images is not None, "dataset": usable_rows.provenance.get("dataset"),
        "split": usable_rows.split, "note": note,
    }  # fmt: skip
    folder = _folder(key)
    if images is not None:
        with atomic.writing(folder / "images.npy") as file:
            np.save(file, np.ascontiguousarray(images[usable], np.uint8))
    records.write_npz(folder / "rows.npz", **usable_rows.arrays())
    records.write_json(folder / "about.json", about)
    return key


def dataset_pictures(rows: EmbeddingSet) -> np.ndarray | None:
    """Images (n, c, h, w) of rows that came from a data set of this computer, found by their ids;
    None where they did not, or it has not been decoded here."""
    name = str(rows.provenance.get("dataset") or "")
    splits = {rows.split} if rows.split else set(map(str, rows.columns.get("split", ())))
    if not name or len(splits) != 1:
        return None
    try:
        (split,) = splits
        if not datasets.is_made(name, split):
            return None
        dataset = datasets.load(name, split)
    except ValueError:
        return None
    at = {str(sample): row for row, sample in enumerate(dataset.ids)}
    if not all(sample in at for sample in rows.ids):
        return None
    step = max(1, -(-max(dataset.images.shape[2:]) // SIDE))
    chosen = [at[sample] for sample in rows.ids]
    return np.asarray(dataset.images[chosen][:, :, ::step, ::step])


def loaded() -> dict[str, dict[str, Any]]:
    """What is known of all vectors that were loaded, by key, newest first."""
    files = (data_home() / "spaces").glob("*/about.json")
    by_key = {}
    for path in sorted(files, key=lambda p: p.stat().st_mtime, reverse=True):
        if KEY.fullmatch(path.parent.name):
            by_key[path.parent.name] = dict(records.read_json(path))
    return by_key


def about(key: str) -> dict[str, Any]:
    """What is known of loaded vectors. Raises: UnusableEmbedding when they are gone."""
    try:
        return dict(records.read_json(_folder(key) / "about.json"))
    except FileNotFoundError:
        raise UnusableEmbedding(GONE) from None


def forget(key: str) -> None:
    """Remove loaded vectors; the file they came from is not touched."""
    import shutil

    shutil.rmtree(_folder(key), ignore_errors=True)


def pictures(loaded: EmbeddingRef) -> np.ndarray | None:
    """Images (n, c, h, w) uint8 of the rows of loaded vectors, in their order, if there are; of
    recorded rows, those of the data set that their ids are of."""
    if place := loaded.recorded:
        return dataset_pictures(place.rows())
    path = _folder(loaded.key) / "images.npy"
    if not path.exists():
        return None
    images = np.load(path, mmap_mode="r", allow_pickle=False)
    rows = EmbeddingSet.from_arrays(records.read_npz(_folder(loaded.key) / "rows.npz"))
    at = _rows_of_split(rows, loaded.split)
    return images if at is None else images[at]


def train_test_split(
    rows: EmbeddingSet,
) -> tuple[EmbeddingSet | None, EmbeddingSet, np.ndarray, str]:
    """Rows that teach, if any, rows that are judged, where these stand, and a sentence about it.

    By the column `split` where it has train and test; else a fifth of each class, chosen by a hash
    of the ids, so that files that share rows judge (nearly) the same ones.
    """
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
        how = "Judged on the rows marked as test, taught by those marked as train."
        return names == "train", names == "test", how
    mask = np.zeros(len(labels), bool)
    hashed = [hashlib.blake2b(i.encode(), digest_size=8).digest() for i in ids]
    order = np.argsort(np.frombuffer(b"".join(hashed), ">u8"), kind="stable")
    for label in np.unique(labels):
        rows_of_class = order[labels[order] == label]
        mask[rows_of_class[: len(rows_of_class) // HELD_OUT]] = True
    if not mask.any():
        return mask, ~mask, "Too few rows to hold any out."
    return (
        ~mask,
        mask,
        "No rows are marked as train and test: a fixed fifth of each class is judged.",
    )


def _splits(rows: EmbeddingSet) -> list[str]:
    return sorted(set(map(str, rows.columns.get("split", ()))) & {"train", "test"})


def _rows_of_split(rows: EmbeddingSet, split: str) -> np.ndarray | None:
    return np.flatnonzero(rows.columns["split"] == split) if split in _splits(rows) else None


def _of_snapshot(run: Run, ref: EmbeddingRef) -> EmbeddingSet:
    """The run's fixed sample of training images, as it was embedded after an epoch."""
    assert ref.epoch is not None
    arrays = run.snapshot(ref.epoch)
    return EmbeddingSet(arrays[ref.layer].astype(np.float32), arrays["labels"].astype(np.int64))


def _of_split(rows: EmbeddingSet, split: str) -> EmbeddingSet:
    at = _rows_of_split(rows, split)
    return rows if at is None else rows.take(at)


def _folder(key: str) -> Path:
    if not KEY.fullmatch(key):
        raise UnusableEmbedding(GONE)
    return data_home() / "spaces" / key
