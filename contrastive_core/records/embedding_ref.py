"""Where an embedding comes from: a run, one of its snapshots, a recording, or loaded vectors. Torch-free."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from contrastive_core.paths import SHIPPED, data_home
from contrastive_core.records import loaded_vectors, recorded_rows
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.run import Run
from contrastive_core.records.runs import load
from contrastive_core.storage import json_files
from contrastive_core.storage.json_files import JsonObject

VERSION = 1
LAYERS, TOWERS = ("h", "z"), "towers"


@dataclass(frozen=True)
class EmbeddingRef:
    """Rows of a run, of one of its snapshots, or of loaded vectors, named by plain values that an address can hold.
    `name` is a run's, `vectors:KEY`, or `recording:RUN@probe-STEP` and the like (recorded_rows.py); `layer` h, z, or
    "towers": z of images and of captions (towers.py); "loaded" for vectors; `epoch` that of a snapshot; `content` the
    hash of the run's weights (of towers: and its captions) or of the vectors."""

    name: str
    split: str = "test"
    layer: str = "h"
    content: str = ""
    epoch: int | None = None

    @property
    def is_loaded(self) -> bool:
        """Whether these rows are all there is: no encoder made them here, or can make others."""
        return self.name.startswith((loaded_vectors.PREFIX, recorded_rows.PREFIX))

    @property
    def key(self) -> str:
        return self.name.removeprefix(loaded_vectors.PREFIX).removeprefix(recorded_rows.PREFIX)

    @property
    def recorded(self) -> recorded_rows.Recorded | None:
        """The place in a recording; None for all else. Raises ValueError when there is none."""
        return recorded_rows.of_key(self.key) if self.name.startswith(recorded_rows.PREFIX) else None

    @property
    def run(self) -> Run | None:
        """The run that embeds them; None for loaded vectors and recorded rows. Raises ValueError for no run."""
        return None if self.is_loaded else load(self.name)

    @property
    def title(self) -> str:
        """The run's name, or that of the file the vectors came from."""
        if place := self.recorded:
            return place.title
        return str(loaded_vectors.about(self.key)["name"]) if self.is_loaded else self.name

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits it has; none where loaded vectors are not marked as train and test."""
        if self.recorded or (self.is_loaded and loaded_vectors.about(self.key).get("splits") != ["test", "train"]):
            return ()
        return ("test", "train")

    @property
    def values(self) -> JsonObject:
        """The same as plain values; `EmbeddingRef(**values)` is the inverse."""
        return {k: v for k, v in asdict(self).items() if v is not None}

    def with_split(self, split: str) -> EmbeddingRef:
        return replace(self, split=split)


def layers_of(run: Run) -> tuple[str, ...]:
    """The layers that a run embeds."""
    return (*LAYERS, TOWERS) if run.has_towers else LAYERS


def content_of(run: Run, layer: str) -> str:
    """The hash of what a layer follows from: the weights, and for both towers the captions. Raises as `of_run`."""
    weights, captions = run.weights_hash(), run.captions_hash() if layer == TOWERS else ""
    return hashlib.sha256(f"{weights} {captions}".encode()).hexdigest() if captions else weights


def of_run(run: Run, split: str = "test", layer: str = "h") -> EmbeddingRef:
    """A run's embedding. Raises ValueError when it has no weights."""
    return EmbeddingRef(run.name, split, layer, content_of(run, layer))


def of_vectors(key: str, split: str = "") -> EmbeddingRef:
    """Loaded vectors: all rows, or those of one split."""
    return EmbeddingRef(loaded_vectors.PREFIX + key, split, "loaded", key)


def of_recording(place: recorded_rows.Recorded, layer: str = "z") -> EmbeddingRef:
    """Rows of a recording: a snapshot of its probe set, or a step's."""
    return EmbeddingRef(recorded_rows.PREFIX + place.key, "", layer, place.content)


def of_name(name: str, split: str = "test", layer: str = "h") -> EmbeddingRef:
    """By the name of a run, of a recording (its newest rows, or those named), or of loaded vectors, whose rows may be
    of no split and have no layers.
    Raises: ValueError for what does not exist, or a run that has no weights."""
    if name.startswith(recorded_rows.PREFIX):
        return of_recording(recorded_rows.of_key(name.removeprefix(recorded_rows.PREFIX)), layer)
    if not name.startswith(loaded_vectors.PREFIX):
        run = load(name)
        if run.is_recording:
            return of_recording(recorded_rows.newest(run), layer)
        return of_run(run, split, layer)
    every = of_vectors(name.removeprefix(loaded_vectors.PREFIX))
    return every.with_split(split) if every.splits else every


def cached(run: Run, split: str, layer: str) -> EmbeddingSet | None:
    """The embedding if it has been computed for these weights. Needs no torch."""
    try:
        return EmbeddingSet.from_arrays(json_files.read_npz(find(run, split, layer)))
    except (ValueError, FileNotFoundError, KeyError):
        return None


def find(run: Run, split: str, layer: str) -> Path:
    """Where an embedding is read from: the one that came with a shipped run, if it did."""
    shipped = SHIPPED / run.name / "embeddings" / f"{split}-{layer}.npz"
    return shipped if run.shipped and shipped.exists() else path_of(run, split, layer)


def path_of(run: Run, split: str, layer: str) -> Path:
    """Where an embedding is written; nobody writes to a shipped run, so its lie with the data."""
    key = f"{split}-{layer}-{content_of(run, layer)[:16]}-v{VERSION}.npz"
    return data_home() / "embeddings" / run.name / key if run.shipped else run.path / "embeddings" / key


def graph_path(content: str, metric: str) -> Path:
    """Where the neighbor graph of an embedding among its own rows is kept."""
    return data_home() / "graphs" / f"{content[:24]}-{metric}.npz"
