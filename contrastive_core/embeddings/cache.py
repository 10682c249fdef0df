"""Where a run's embeddings and neighbor graphs are kept, and how they are read back. Torch-free.

The cache lies in the run's folder (for shipped runs: in `data_home()`) under the hash of weights
and data.
"""

from __future__ import annotations

from pathlib import Path

from contrastive_core.embeddings.embedding_set import EmbeddingSet
from contrastive_core.paths import SHIPPED, data_home
from contrastive_core.runs import Run
from contrastive_core.storage import records

__all__ = ["cached", "graph_path", "path_of"]

VERSION = 1


def cached(run: Run, split: str, which: str) -> EmbeddingSet | None:
    """The embedding if it has been computed for these weights. Needs no torch."""
    try:
        path = path_of(run, split, which)
        return EmbeddingSet.from_arrays(records.read_npz(path))
    except (ValueError, FileNotFoundError, KeyError):
        return None


def path_of(run: Run, split: str, which: str) -> Path:
    """Where an embedding is kept; shipped runs are read-only, so theirs lie with the data."""
    shipped = SHIPPED / run.name / "embeddings" / f"{split}-{which}.npz"
    if run.shipped and shipped.exists():
        return shipped
    key = f"{split}-{which}-{run.weights_hash()[:16]}-v{VERSION}.npz"
    if run.shipped:
        return data_home() / "embeddings" / run.name / key
    return run.path / "embeddings" / key


def graph_path(content: str, metric: str) -> Path:
    """Where the neighbor graph of an embedding among its own rows is kept."""
    return data_home() / "graphs" / f"{content[:24]}-{metric}.npz"
