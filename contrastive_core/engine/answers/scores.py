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
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.evaluation import read_evaluation
from contrastive_core.records.score import Scores, scores_to_json
from contrastive_core.samples.run_samples import samples_of_run
from contrastive_core.storage.json_files import JsonObject

SLOW = "linear_probe"  # on pixels; raw and random have theirs in the run's evaluation


def scores(values: Values, on_progress: OnProgress, device: str) -> Result:
    """Every score with all its details, and what it says of each sample."""
    return scores_beside(values, on_progress, device, {})


def scores_beside(values: Values, on_progress: OnProgress, device: str, known: ScoreCache) -> Result:
    """The same. `known`: scores of raw pixels and untrained encoders that were met before, filled
    for the next space."""
    space = EmbeddingRef(**values["space"])
    rows = rows_of(space, on_progress, device)
    train, test, at, how = test_rows(space, rows, on_progress, device)
    graphs = cached_graphs(on_progress, device)
    space_scores, arrays = _score_all(space, rows, (train, test, at), graphs, on_progress)
    sources = {"own": scores_to_json(space_scores)}
    sources |= {} if space.is_loaded else _references(space, on_progress, device, known)
    about = {"how": how, "n": len(rows), "n_train": len(train) if train else 0, "n_test": len(at)}
    return Result({"scores": sources, **about}, arrays)


def _score_all(
    space: EmbeddingRef,
    rows: EmbeddingSet,
    judged: tuple[EmbeddingSet | None, EmbeddingSet, np.ndarray],
    graphs: Graphs,
    on_progress: OnProgress,
) -> tuple[Scores, dict[str, np.ndarray]]:
    """Scores that need training rows are taken on the test rows, which stand at rows `at`; those
    that are recorded of this very embedding are taken from there."""

    train, test, at = judged
    recorded = recorded_of(space)
    scores: Scores = {}
    arrays: dict[str, np.ndarray] = {}
    for name in metrics.names():
        metric = metrics.get(name)
        on_progress(metric.title, None)
        taught = metric.needs_train
        pair = (train, test) if taught else (None, rows)
        scores |= evaluate_sets([name], *pair, graphs, recorded)
        where = at if taught else np.arange(len(rows))
        for part, array in scores[name].arrays.items():
            arrays[f"{name}:{part}"] = _spread(array, where, len(rows))
    return scores, arrays


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
    sets: dict[str, list[EmbeddingSet]] = {"raw": [], "random": []}
    for split in ("train", "test"):
        dataset = data_of(run, split)
        sets["raw"].append(raw_pixels(dataset))
        sets["random"].append(random_encoder(run, dataset, device)[0])
    by_source = {}
    evaluation = read_evaluation(run)
    recorded = {} if evaluation is None else evaluation.scores
    for source, (train, test) in sets.items():
        on_progress(N_("raw pixels") if source == "raw" else N_("the untrained encoder"), None)
        names = [name for name in metrics.names() if name != SLOW]
        key = (source, *names, train.content_hash, test.content_hash)
        if key not in known:
            known[key] = evaluate_sets(names, train, test, Graphs(device), recorded.get(source))
        by_source[source] = scores_to_json(known[key])
    return by_source


def losses(values: Values, on_progress: OnProgress, device: str) -> Result:
    """The loss of every sample, with the run's own loss."""

    space = EmbeddingRef(**values["space"])
    on_progress(N_("the loss of every sample"), None)
    table = samples_of_run(runs.load(space.name), None, space.split, device=device)
    at = {name: row for row, name in enumerate(table.columns["id"])}
    ids = rows_of(space, on_progress, device).ids
    loss = [table.columns["loss"][at[i]] if i in at else np.nan for i in ids]
    return Result({"loss": table.loss}, {"loss": np.array(loss, np.float64)})
