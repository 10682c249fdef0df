"""Computations of jobs by kind; most results are cached by `spaces/results.py`. A job has plain values:
spaces (`Space.values`) and settings. The module of a computation is imported on demand."""

import dataclasses
import importlib
from typing import Any

import numpy as np

from contrastive_core import runs
from contrastive_core.base.messages import N_
from contrastive_core.base.progress import OnProgress, fraction_of, ignore_progress
from contrastive_core.compare.embed import embed_run
from contrastive_core.data import datasets
from contrastive_core.spaces import results
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.neighbor_graphs import Graphs
from contrastive_core.spaces.results import MAP_DEFAULTS, Result, Values
from contrastive_core.spaces.space import Space, graph_path, train_test_split

KINDS = {  # module and function of each
    **{kind: f"scores.{kind}" for kind in ("scores", "loss", "placed", "towers", "zero_shot")},
    **{kind: f"scores.{kind}" for kind in ("text_query", "tower_pairs", "likeness")},
    "map": "scores.map_of_space",
    **{kind: f"comparisons.{kind}" for kind in ("comparison", "calibration", "centered", "differences")},
    **{kind: f"comparisons.{kind}" for kind in ("compression", "adapter")},
    **{kind: f"previews.{kind}" for kind in ("views", "folder", "look", "advice_plan")},
}
FILES = {kind: f"scores.{kind}" for kind in ("evaluation", "embedding", "samples")}  # with result files of their own
FILES |= {"decoding": "previews.decoding"}


def answer(kind: str, values: Values, on_progress: OnProgress, device: str = "auto") -> None:
    """Compute and store a job's result. Raises ValueError with the reason."""
    if kind in FILES:
        _function(FILES[kind])(values, on_progress, device)
    else:
        make(kind, values, on_progress, device)


def make(kind: str, values: Values, on_progress: OnProgress = ignore_progress, device: str = "auto") -> Result:
    """Return the result of an analysis; compute it unless it is stored. Raises ValueError with the reason."""
    if kind not in KINDS:
        raise ValueError(f"an analysis is one of {', '.join(KINDS)}; got {kind!r}")
    if (result := results.read(kind, values)) is None:
        result = _function(KINDS[kind])(values, on_progress, device)
        results.write(kind, values, result)
    return result


def _function(name: str) -> Any:
    module, function = name.split(".")
    return getattr(importlib.import_module(f"{__name__}.{module}"), function)


def with_defaults(values: Values) -> Values:
    """Return the values of a map, with UMAP's default settings added."""
    return {**values, **MAP_DEFAULTS} if values["kind"] == "umap" else values


def rows_of(space: Space, on_progress: OnProgress, device: str) -> EmbeddingSet:
    """Return the rows of a space; a run's embedding is computed if it is not cached."""
    if (rows := space.rows()) is not None:
        return rows
    run = runs.load(space.name)
    run.weights_hash()  # raises without weights, before anything is decoded
    datasets.of_config(run.config, space.split, on_progress=on_progress)
    return embed_run(run, space.split, space.layer, device, fraction_of(on_progress, N_("embedding")))


def test_rows(
    space: Space, rows: EmbeddingSet, on_progress: OnProgress, device: str
) -> tuple[EmbeddingSet | None, EmbeddingSet, np.ndarray, str]:
    """Return training rows, test rows, the indices of the test rows in `rows`, and a sentence on the split."""
    if space.is_loaded and not space.split:
        return train_test_split(rows)
    everywhere = np.arange(len(rows))
    if space.split == "train":
        return None, rows, everywhere, N_("No training row votes on itself.")
    train = dataclasses.replace(space, split="train")
    return rows_of(train, on_progress, device), rows, everywhere, N_("Judged on the test split.")


def cached_graphs(on_progress: OnProgress, device: str) -> Graphs:
    """Return a cache of nearest neighbors, stored on the disk."""
    return Graphs(device, place=graph_path, on_progress=on_progress)
