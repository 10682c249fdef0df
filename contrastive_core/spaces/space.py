"""A space: vectors for a page or a command, from a run, a recording or a file of vectors; their nearest rows and
principal components. Torch-free.

URLs and commands name it by a text: a run's name, `recording:NAME@probe-100` (recorded_rows.py), or `vectors:KEY`
(loaded_vectors.py). `Space.of_name` parses it; everything else passes the record."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from contrastive_core.base.errors import UnusableEmbedding
from contrastive_core.base.memory import read_npz
from contrastive_core.base.messages import N_
from contrastive_core.base.storage import SHIPPED, data_home
from contrastive_core.data import datasets
from contrastive_core.data.overrides import ImageRows
from contrastive_core.runs import load
from contrastive_core.runs.run import Run
from contrastive_core.spaces import loaded_vectors, recorded_rows
from contrastive_core.spaces.attached_files import dataset_pictures, spread
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.towers import PAIR, picture_tower, towers_of

VERSION = 1
LAYERS, TOWERS = ("h", "z"), "towers"
HELD_OUT = 5  # one in so many rows of a class is judged where no rows are marked as a test
BLOCK = 1024  # rows that are compared with all at a time
COLUMNS = 1 << 16  # rows that these are compared with at a time: of a million, all would be a copy
MAPPED = 1 << 20  # bytes of a kept graph's array that are read only where they are looked at
EXACT_UP_TO = 20_000  # rows: all against all in NumPy are seconds, of a million days
CENTERED = 1 << 24  # numbers that are centered at a time
LEAST = 1e-6  # of the first axis's variance; in float32 a sampled axis of less is noise


@dataclass(frozen=True)
class Space:
    """A reference to rows of a run, of a recording, or of a file of vectors, as plain values.

    `name` as in a URL; `layer` h, z, or "towers": z of images and of captions (towers.py); "loaded" for vectors;
    `content` the hash of the run's weights (for towers: and its captions) or of the vectors."""

    name: str
    split: str = "test"
    layer: str = "h"
    content: str = ""

    @classmethod
    def of_name(cls, name: str, split: str = "test", layer: str = "h") -> Space:
        """Return the space with the name of a run, of a recording (its newest rows, or those named), or of loaded
        vectors. Raises ValueError for an unknown name, or a run without weights."""
        if name.startswith(recorded_rows.PREFIX):
            return cls.of_recording(recorded_rows.of_key(name.removeprefix(recorded_rows.PREFIX)), layer)
        if not name.startswith(loaded_vectors.PREFIX):
            run = load(name)
            if run.is_recording:
                return cls.of_recording(recorded_rows.newest(run), layer)
            return cls.of_run(run, split, layer)
        every = cls.of_vectors(name.removeprefix(loaded_vectors.PREFIX))
        return every.with_split(split) if every.splits else every

    @classmethod
    def of_run(cls, run: Run, split: str = "test", layer: str = "h") -> Space:
        """Return the space of a run's embedding. Raises ValueError if it has no weights."""
        return cls(run.name, split, layer, content_of(run, layer))

    @classmethod
    def of_vectors(cls, key: str) -> Space:
        return cls(loaded_vectors.PREFIX + key, "", "loaded", key)

    @classmethod
    def of_recording(cls, place: recorded_rows.Recorded, layer: str = "z") -> Space:
        return cls(recorded_rows.PREFIX + place.key, "", layer, place.content)

    @property
    def is_file(self) -> bool:
        return self.name.startswith(loaded_vectors.PREFIX)

    @property
    def is_recording(self) -> bool:
        return self.name.startswith(recorded_rows.PREFIX)

    @property
    def is_loaded(self) -> bool:
        """Return whether the rows are fixed: no encoder is available that could embed others."""
        return self.is_file or self.is_recording

    @property
    def key(self) -> str:
        return self.name.removeprefix(loaded_vectors.PREFIX).removeprefix(recorded_rows.PREFIX)

    @property
    def recorded(self) -> recorded_rows.Recorded | None:
        """The place in a recording; None for any other space. Raises ValueError if the recording does not exist."""
        return recorded_rows.of_key(self.key) if self.is_recording else None

    @property
    def run(self) -> Run | None:
        """The run that embeds the rows; None for vectors and recorded rows. Raises ValueError for a missing run."""
        return None if self.is_loaded else load(self.name)

    @property
    def title(self) -> str:
        """The run's name, or the name of the vectors' file."""
        if place := self.recorded:
            return place.title
        return loaded_vectors.about(self.key)["name"] if self.is_file else self.name

    @property
    def splits(self) -> tuple[str, ...]:
        """The available splits; none if loaded vectors are not marked as train and test."""
        if self.is_recording or (self.is_file and loaded_vectors.about(self.key)["splits"] != ["test", "train"]):
            return ()
        return ("test", "train")

    @property
    def loss(self) -> str | None:
        """The loss of the run or recording; None if unknown."""
        run = place.run if (place := self.recorded) else self.run
        name = run.config.get("loss") if run else None
        return str(name) if name else None

    @property
    def values(self) -> dict[str, str]:
        """Return this space as plain values; `Space(**values)` is the inverse."""
        return asdict(self)

    def with_split(self, split: str) -> Space:
        return replace(self, split=split)

    def rows(self) -> EmbeddingSet | None:
        """Return the vectors; None if a run's have not been computed. Raises ValueError for a missing space."""
        if run := self.run:
            return cached(run, self.split, self.layer)
        if place := self.recorded:
            rows = place.rows(self.layer)
            return replace(rows, ids=_dataset_ids(rows))
        return loaded_vectors.rows(self.key, self.split)

    def images(self) -> Any:
        """Return images (n, c, h, w) uint8 of the rows in order, an array or `ImageRows`; None without images."""
        if run := self.run:
            images = datasets.of_config(run.config, self.split, afresh=False).images
            return images_of_towers(images, self.rows()) if self.layer == TOWERS else images
        if place := self.recorded:
            rows = place.rows(self.layer)
            if (towers := towers_of(rows)) is None:
                return dataset_pictures(replace(rows, ids=_dataset_ids(rows)))
            at = towers.rows_of(picture_tower(towers.names))  # of the image tower; gray for the others
            own = replace(rows.take(at), ids=tuple(rows.columns[PAIR][at].tolist()))
            images = dataset_pictures(replace(own, ids=_dataset_ids(own)))
            return None if images is None else spread(images, at, len(rows))
        return loaded_vectors.images(self.key, self.split)


def layers_of(run: Run) -> tuple[str, ...]:
    """Return the layers that a run embeds."""
    return (*LAYERS, TOWERS) if run.has_towers else LAYERS


def content_of(run: Run, layer: str) -> str:
    """Return the hash of a layer's weights, and for both towers of the captions too. Raises as `of_run` does."""
    weights, captions = run.weights_hash(), run.captions_hash() if layer == TOWERS else ""
    return hashlib.sha256(f"{weights} {captions}".encode()).hexdigest() if captions else weights


# --- files ---------------------------------------------------------------------------------------


def cached(run: Run, split: str, layer: str) -> EmbeddingSet | None:
    """Return the embedding if it has been computed for the current weights. Needs no torch."""
    shipped = SHIPPED / run.name / "embeddings" / f"{split}-{layer}.npz"
    path = shipped if run.shipped and shipped.exists() else path_of(run, split, layer)
    try:
        return EmbeddingSet.from_arrays(read_npz(path))
    except (ValueError, FileNotFoundError, KeyError):
        return None


def path_of(run: Run, split: str, layer: str) -> Path:
    """Return the path of an embedding; those of a shipped run, which is read-only, are in the data folder."""
    key = f"{split}-{layer}-{content_of(run, layer)[:16]}-v{VERSION}.npz"
    return data_home() / "embeddings" / run.name / key if run.shipped else run.path / "embeddings" / key


def graph_path(content: str, metric: str) -> Path:
    """Return the path of the neighbor graph of an embedding's own rows."""
    return data_home() / "graphs" / f"{content[:24]}-{metric}.npz"


def kept_graph(rows: EmbeddingSet, k: int) -> tuple[np.ndarray, np.ndarray, float | None] | None:
    """Return the k nearest rows of every row, their cosines, (n, k) each, and the recall (None: exact), stored by a
    search for a map or a score; None if there is none."""
    try:
        graph = read_npz(graph_path(rows.content_hash, "cosine"), mapped=MAPPED)
        if graph["index"].shape[1] < k:
            return None
        recall = float(graph["recall"]) if "recall" in graph else None
        return graph["index"][:, :k], graph["score"][:, :k], recall
    except (OSError, ValueError, KeyError):
        return None


# --- images --------------------------------------------------------------------------------------


def images_of_towers(images: Any, rows: EmbeddingSet | None) -> Any:
    """Return images (n + m, c, h, w) of the rows of a run's two towers; a caption has the image that it describes."""
    return None if rows is None else ImageRows(images, rows.columns[PAIR].astype(np.int64))


def _dataset_ids(rows: EmbeddingSet) -> tuple[str, ...]:
    """Return the ids of recorded rows; row numbers of a split become the data set's ids."""
    names, dataset = rows.ids, str(rows.provenance.get("dataset") or "")
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


# --- rows that teach and rows that are judged ----------------------------------------------------


def train_test_split(rows: EmbeddingSet) -> tuple[EmbeddingSet | None, EmbeddingSet, np.ndarray, str]:
    """Return training rows (None if there are none), test rows, their indices, and a sentence about the split: by the
    column `split`, or else by a hash of the ids, so files that share rows hold out (nearly) the same ones."""
    splits = np.asarray(rows.columns.get("split", [])).astype(str)
    how = N_("Trained on the rows marked train and evaluated on the rows marked test.")
    train, test = splits == "train", splits == "test"
    if not (train.any() and test.any()):
        how = N_("No rows are marked train and test, so a fixed fifth of each class is held out for evaluation.")
        labels, test = np.zeros(len(rows), np.int64) if rows.labels is None else rows.labels, np.zeros(len(rows), bool)
        hashed = [hashlib.blake2b(name.encode(), digest_size=8).digest() for name in rows.ids]
        order = np.argsort(np.frombuffer(b"".join(hashed), ">u8"), kind="stable")
        for label in np.unique(labels):
            rows_of_class = order[labels[order] == label]
            test[rows_of_class[: len(rows_of_class) // HELD_OUT]] = True
        if not test.any():
            return None, rows, np.arange(len(rows)), N_("Too few rows for a held-out set.")
        train = ~test
    at = np.flatnonzero(test)
    return rows.take(np.flatnonzero(train)) if train.any() else None, rows.take(at), at, how


# --- nearest rows and principal components, by NumPy: fast enough for pages and files -------------
# Searches in tasks use neighbor_graphs.py, whose graphs `kept_graph` reads.


def nearest_of(rows: EmbeddingSet, at: np.ndarray | int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the k rows most similar to each row `at` (r), and their cosines: (r, k), or (k) for one row. Ties: smaller
    number."""
    some = np.atleast_1d(np.asarray(at))
    found: list[tuple[np.ndarray, np.ndarray]] = [(np.zeros(0, np.int64), np.zeros(0))] * len(some)
    for first in range(0, len(some), BLOCK):
        block = some[first : first + BLOCK]
        for start in range(0, len(rows), COLUMNS):
            part = slice(start, start + COLUMNS)
            s = rows.features[block] @ rows.features[part].T / rows.lengths[part]  # (r, columns)
            s = s / rows.lengths[block][:, None]
            own = (block >= start) & (block < start + COLUMNS)
            s[own, block[own] - start] = -np.inf
            for r, scores in enumerate(s, first):
                index = _top(scores, k)
                both = np.concatenate([found[r][0], start + index])
                values = np.concatenate([found[r][1].astype(s.dtype), scores[index]])
                order = np.argsort(-values, kind="stable")[:k]  # the earlier, of smaller numbers, first
                found[r] = both[order], values[order]
    shape = len(some), min(k, len(rows))
    index = np.array([row for row, _ in found], np.int64).reshape(shape)
    similarity = np.array([cosines for _, cosines in found]).reshape(shape)
    return (index, similarity) if np.ndim(at) else (index[0], similarity[0])


def _top(scores: np.ndarray, k: int) -> np.ndarray:
    """Return the indices of the k largest scores (or all), descending; equal scores keep their order."""
    candidates = np.arange(len(scores))
    if k < len(scores) // 4:
        least = np.partition(-scores, k - 1)[k - 1]
        candidates = np.flatnonzero(~(-scores > least))  # what is no number, too: it is sorted last
    return candidates[np.argsort(-scores[candidates], kind="stable")[:k]]


def nearest_of_label(rows: EmbeddingSet, at: int, label: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the k (or all) other rows of a label (int64) that are most similar to row `at`, and their cosines."""
    if rows.labels is None:
        return np.zeros(0, np.int64), np.zeros(0)
    some = np.flatnonzero(rows.labels == label)
    some = some[some != at]
    s = rows.features[some] @ rows.features[at] / rows.lengths[some] / rows.lengths[at]
    best = _top(s, k)
    return np.asarray(some[best], np.int64), s[best]


def pca(features: np.ndarray, components: int = 2, at_most: int | None = None) -> np.ndarray:
    """Return scores (n, components) on the leading principal axes, float32; signs are fixed. Missing components (fewer
    columns or rows) are zero. `features`: (n, d); `at_most`: if both n and d are larger, the axes are computed from
    that many rows, chosen by a fixed seed. Raises UnusableEmbedding for values that are not finite."""
    n, d = features.shape
    step = max(1, CENTERED // d)
    parts = [slice(i, i + step) for i in range(0, n, step)]
    total = np.zeros(d)
    for part in parts:
        total += np.asarray(features[part], np.float32).sum(0, dtype=np.float64)
    if not np.isfinite(total).all():
        raise UnusableEmbedding(N_("some rows hold values that are not finite"))
    mean = (total / n).astype(np.float32)

    def centered(at: slice | np.ndarray) -> np.ndarray:
        return np.asarray(features[at], np.float32) - mean

    if at_most is not None and at_most < min(n, d):
        some = centered(np.random.default_rng(0).permutation(n)[:at_most])
        values, left_vectors = _leading(some @ some.T, components)
        lengths = np.where(values > LEAST * values[0], np.sqrt(values), np.inf)
        axes = ((some.T @ left_vectors) / lengths).astype(np.float32)  # of length 1
        scores = np.concatenate([centered(part) @ axes for part in parts])
    elif d <= n:
        gram = np.zeros((d, d), np.float32)
        for x in map(centered, parts):
            gram += x.T @ x
        axes = _leading(gram, components)[1].astype(np.float32)
        scores = np.concatenate([centered(part) @ axes for part in parts])
    else:
        x = centered(slice(None))
        values, left_vectors = _leading(x @ x.T, components)
        scores = (left_vectors * np.sqrt(values)).astype(np.float32)
    out = np.zeros((n, components), np.float32)
    out[:, : scores.shape[1]] = scores
    columns = np.arange(components)
    return np.where(out[np.abs(out).argmax(0), columns] < 0, -out, out)


def _leading(symmetric: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest eigenvalues (c), at least 0, and their vectors (m, c), in float64."""
    values, vectors = np.linalg.eigh(symmetric.astype(np.float64))
    return values[::-1][:count].clip(0), vectors[:, ::-1][:, :count]
