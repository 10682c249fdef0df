"""Every score of one space, and the loss of each of its samples."""

from __future__ import annotations

import numpy as np

from contrastive_core import metrics
from contrastive_core.embeddings.graphs import Graphs
from contrastive_core.engine.answers.inputs import Values, cached_graphs, recorded_of, rows_of, test_rows
from contrastive_core.engine.results import Result
from contrastive_core.evaluation.embed import data_of, random_encoder, raw_pixels
from contrastive_core.evaluation.evaluate import evaluate_sets
from contrastive_core.evaluation.reproduce import ScoreCache
from contrastive_core.messages import N_
from contrastive_core.progress import OnProgress
from contrastive_core.records import runs
from contrastive_core.records.embedding_ref import EmbeddingRef
from contrastive_core.records.evaluation import read_evaluation
from contrastive_core.records.score import Scores, scores_to_json
from contrastive_core.samples.run_samples import samples_of_run
from contrastive_core.storage.json_files import JsonObject

SLOW = "linear_probe"  # on pixels; raw and random have theirs in the run's evaluation


def scores(values: Values, on_progress: OnProgress, device: str, known: ScoreCache | None = None) -> Result:
    """Every score with all its details, and what it says of each sample. `known`: scores of raw pixels and untrained
    encoders that were met before, filled for the next space."""
    space = EmbeddingRef(**values["space"])
    rows = rows_of(space, on_progress, device)
    train, test, at, how = test_rows(space, rows, on_progress, device)
    graphs, recorded = cached_graphs(on_progress, device), recorded_of(space)
    own: Scores = {}
    arrays: dict[str, np.ndarray] = {}
    for name in metrics.names():
        metric = metrics.get(name)
        on_progress(metric.title, None)
        needs_train = metric.needs_train  # is taken on the test rows, which stand at rows `at`
        own |= evaluate_sets([name], *((train, test) if needs_train else (None, rows)), graphs, recorded)
        for part, array in own[name].arrays.items():
            arrays[f"{name}:{part}"] = _spread(array, at if needs_train else np.arange(len(rows)), len(rows))
    sources = {"own": scores_to_json(own)}
    sources |= {} if space.is_loaded else _references(space, on_progress, device, {} if known is None else known)
    about = {"how": how, "n": len(rows), "n_train": len(train) if train else 0, "n_test": len(at)}
    return Result({"scores": sources, **about}, arrays)


def _spread(array: np.ndarray, at: np.ndarray, n: int) -> np.ndarray:
    """Values of the rows `at` among all n: NaN, or -1, for others. What is not per row stays."""
    if len(array) != len(at) or len(at) == n or array.ndim != 1:
        return array
    out = np.full(n, np.nan if array.dtype.kind == "f" else -1, array.dtype)
    out[at] = array
    return out


def _references(space: EmbeddingRef, on_progress: OnProgress, device: str, known: ScoreCache) -> JsonObject:
    """The same for raw pixels and the untrained encoder, where details are shown."""
    run = runs.load(space.name)
    datasets = [data_of(run, split) for split in ("train", "test")]
    sets = {
        "raw": [raw_pixels(dataset) for dataset in datasets],
        "random": [random_encoder(run, dataset, device)[0] for dataset in datasets],
    }
    evaluation = read_evaluation(run)
    names = [name for name in metrics.names() if name != SLOW]
    by_source = {}
    for source, (train, test) in sets.items():
        on_progress(N_("raw pixels") if source == "raw" else N_("the untrained encoder"), None)
        key = (source, *names, train.content_hash, test.content_hash)
        recorded = evaluation.scores.get(source) if evaluation else None
        known[key] = known.get(key) or evaluate_sets(names, train, test, Graphs(device), recorded)
        by_source[source] = scores_to_json(known[key])
    return by_source


def losses(values: Values, on_progress: OnProgress, device: str) -> Result:
    """The loss of every sample, with the run's own loss."""
    space = EmbeddingRef(**values["space"])
    on_progress(N_("the loss of every sample"), None)
    table = samples_of_run(runs.load(space.name), None, space.split, device=device)
    loss_of = dict(zip(table.columns["id"], table.columns["loss"], strict=True))
    loss = [loss_of.get(name, np.nan) for name in rows_of(space, on_progress, device).ids]
    return Result({"loss": table.loss}, {"loss": np.array(loss, np.float64)})
