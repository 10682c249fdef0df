"""Scores of a run beside raw pixels and a random encoder, for h and z; kept in evaluation.json.

Nothing is selected on the test set. Embeddings are taken in evaluation mode. Without labels the
label-free scores take the place of the accuracies.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from contrastive_core.embeddings.embedding_set import EmbeddingSet
from contrastive_core.evaluation.embed import data_of, embed_run, parts, random_encoder, raw_pixels
from contrastive_core.paths import data_home
from contrastive_core.runs import Run
from contrastive_core.runs.formats import EVALUATION
from contrastive_core.storage import records

if TYPE_CHECKING:
    from contrastive_core.embeddings.graphs import Graphs

__all__ = ["SOURCES", "evaluate", "evaluate_sets", "evaluation_path", "read_evaluation"]

SOURCES = {"h": "backbone h", "z": "projection z", "raw": "raw pixels", "random": "random encoder"}
Tell = Callable[[str], None]


def evaluate(
    run: Run,
    chosen: Sequence[str] | None = None,
    split: str = "test",
    device: str = "auto",
    tell: Tell = lambda what: None,
) -> dict[str, Any]:
    """Score a run; the record is written beside it and returned.

    Args: chosen: names of metrics, default all. Raises: UnknownName; ValueError without weights.
    """
    from contrastive_core import metrics
    from contrastive_core.distributed import collectives
    from contrastive_core.distributed.sharded_rows import HERE, SPREAD
    from contrastive_core.embeddings.graphs import Graphs

    names = list(chosen) if chosen else metrics.names()
    for name in names:
        metrics.get(name)
    rows = HERE if collectives.is_single_process() else SPREAD
    record: dict[str, Any] = {
        "run": run.name,
        "split": split,
        "weights": run.weights_hash(),
        "made": time.time(),
        "scores": {},
    }
    for source, (train, test) in _sources(run, split, device, tell).items():
        tell(f"scoring {SOURCES[source]}")
        record["scores"][source] = evaluate_sets(names, train, test, Graphs(rows=rows))
        record.setdefault("n_train", rows.number(len(train)))
        record.setdefault("n_test", rows.number(len(test)))
    if collectives.world().is_rank0:
        records.write_json(evaluation_path(run), record)
    return record


def evaluate_sets(
    names: Sequence[str],
    train: EmbeddingSet | None,
    test: EmbeddingSet,
    graphs: Graphs | None = None,
    arrays: dict[str, dict[str, np.ndarray]] | None = None,
) -> dict[str, Any]:
    """Each metric's figure, interval and plain extras; or the sentence why there is none.

    Args: arrays: filled with each metric's arrays, `per_sample` among them.
    """
    from contrastive_core import metrics
    from contrastive_core.embeddings.graphs import Graphs
    from contrastive_core.errors import CannotScore

    graphs = graphs or Graphs()
    found: dict[str, dict[str, Any]] = {}
    for name in names:
        metric = metrics.create(name)
        about: dict[str, Any] = {"title": metric.title, "reading": metric.reading}
        try:
            result = metric(train, test, graphs)
        except CannotScore as error:
            found[name] = {**about, "missing": str(error)}
            continue
        about |= {"settings": dataclasses.asdict(metric), "higher": metric.higher_is_better}
        value = {"value": result.value, "interval": result.interval, "unit": result.unit}
        found[name] = {**about, **value, "extras": result.extras}
        if arrays is not None:
            own = {} if result.per_sample is None else {"per_sample": result.per_sample}
            arrays[name] = {**own, **result.arrays}
    return found


def read_evaluation(run: Run) -> dict[str, Any] | None:
    """The record, if it is of the run's present weights. Needs no torch."""
    try:
        record = records.read_object(evaluation_path(run), EVALUATION)
        return record if record["weights"] == run.weights_hash() else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _sources(
    run: Run, split: str, device: str, tell: Tell
) -> dict[str, tuple[EmbeddingSet, EmbeddingSet]]:
    """Training rows and rows to score, by source; of many processes, each has its part."""
    from contrastive_core.distributed import collectives

    tell("embedding")
    if not collectives.is_single_process():
        ours = {s: parts(run, s, device) for s in ("train", split)}
        return {k: (ours["train"][k], ours[split][k]) for k in SOURCES}
    pair = {s: data_of(run, s) for s in ("train", split)}
    h, z, raw, random = {}, {}, {}, {}
    for s, dataset in pair.items():
        h[s], z[s] = (embed_run(run, s, which, device) for which in "hz")
        raw[s] = raw_pixels(dataset)
        random[s], _ = random_encoder(run, dataset, device)
    both = {"h": h, "z": z, "raw": raw, "random": random}
    return {k: (v["train"], v[split]) for k, v in both.items()}


def evaluation_path(run: Run) -> Path:
    """Where the record of a run is kept."""
    if run.shipped and not (run.path / "evaluation.json").exists():
        return data_home() / "embeddings" / run.name / "evaluation.json"
    return run.path / "evaluation.json"
