"""Where a run's embeddings and neighbor graphs are kept, and how they are read back. Torch-free.

The cache lies in the run's folder (for shipped runs: in `data_home()`) under the hash of weights and data.
"""

from __future__ import annotations

from pathlib import Path

from contrastive_core.paths import SHIPPED, data_home
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.run import Run
from contrastive_core.storage import json_files

VERSION = 1


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
    key = f"{split}-{layer}-{run.weights_hash()[:16]}-v{VERSION}.npz"
    if run.shipped:
        return data_home() / "embeddings" / run.name / key
    return run.path / "embeddings" / key


def graph_path(content: str, metric: str) -> Path:
    """Where the neighbor graph of an embedding among its own rows is kept."""
    return data_home() / "graphs" / f"{content[:24]}-{metric}.npz"
