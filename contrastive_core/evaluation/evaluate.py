"""Scores of a run beside raw pixels and a random encoder, for h and z; scores of vectors in a file.

Nothing is selected on the test set. Embeddings are taken in evaluation mode and in float32, however the run was
trained. Without labels the label-free scores take the place of the accuracies. Without a file of training rows a file
is split as pages split loaded vectors: by its column `split`, or a fixed fifth of each class is scored.
"""

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from contrastive_core import metrics
from contrastive_core.device import memory_bytes, pick_device
from contrastive_core.distributed import collectives
from contrastive_core.distributed.sharded_rows import HERE, SPREAD, Rows
from contrastive_core.embeddings import file_formats, label_files
from contrastive_core.embeddings.graphs import Graphs
from contrastive_core.embeddings.reading import split_masks
from contrastive_core.errors import CannotScore
from contrastive_core.evaluation.embed import data_of, embed_run, parts, random_encoder, raw_pixels
from contrastive_core.evaluation.tower_notes import tower_record
from contrastive_core.evaluation.zero_shot import scores_of_towers
from contrastive_core.messages import N_, message, sentence
from contrastive_core.metrics import Metric
from contrastive_core.progress import OnProgress, fraction_of, ignore_progress, prefixed
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.evaluation import SOURCES, TOWERS, Evaluation, read_evaluation, write_evaluation
from contrastive_core.records.loaded_vectors import check_usable
from contrastive_core.records.run import Run
from contrastive_core.records.score import INFLUENCE, Score, Scores, scores_to_json
from contrastive_core.records.towers import towers_of
from contrastive_core.storage.json_files import JsonObject

__all__ = ["evaluate", "evaluate_file", "evaluate_sets", "metric_names"]


def evaluate(
    run: Run,
    metrics: Sequence[str] | None = None,
    split: str = "test",
    device: str = "auto",
    on_progress: OnProgress = ignore_progress,
) -> Evaluation:
    """Score a run and keep the scores with those it has: what is not asked for stays.

    Args: metrics: names, default all. Raises: UnknownName; ValueError without weights.
    """
    names = metric_names(metrics)
    rows = HERE if collectives.is_single_process() else SPREAD
    before = read_evaluation(run, split)
    scores: dict[str, Scores] = {} if before is None else before.scores
    counts: tuple[int, int] = (0, 0)
    for source, (train, test) in _sources(run, split, device, on_progress).items():
        graphs = Graphs(device, on_progress=prefixed(on_progress, SOURCES[source]), rows=rows)
        taken = evaluate_sets(names, train, test, graphs, on_metric=partial(_scoring, on_progress, SOURCES[source]))
        scores[source] = scores.get(source, {}) | taken
        if source == "h":  # raw pixels and the random encoder may be of a sample
            counts = (rows.number(len(train)) if train else 0, rows.number(len(test)))
    if run.has_towers and metrics is None:
        on_progress(N_("recall and zero-shot accuracy"), None)
        scores[TOWERS] = scores_of_towers(run, split, device)
    evaluation = Evaluation(run.name, split, run.weights_hash(), scores, *counts, time.time())
    if collectives.world().is_rank0:
        write_evaluation(run, evaluation)
    return evaluation


def metric_names(chosen: Sequence[str] | None) -> list[str]:
    """The names asked for, or all. Raises UnknownName."""
    names = list(chosen) if chosen else metrics.names()
    for name in names:
        metrics.get(name)
    return names


def evaluate_sets(
    names: Sequence[str],
    train: EmbeddingSet | None,
    test: EmbeddingSet,
    graphs: Graphs | None = None,
    recorded: Mapping[str, Score] | None = None,
    on_metric: Callable[[str, float], None] = lambda title, fraction: None,
) -> Scores:
    """Each metric's score with its default settings, or the sentence why it has no value.

    Args: recorded: what is known of these very rows; a score that has its arrays is not taken
        again, and one that lacks them keeps its figure; on_metric: called with the title of each
        metric before it is taken, and the share of all that was taken before.
    """
    graphs = graphs or Graphs()
    scores: Scores = {}
    for number, name in enumerate(names):
        metric, earlier = metrics.create(name), (recorded or {}).get(name)
        on_metric(metric.title, number / len(names))
        if earlier is None or earlier.settings != dataclasses.asdict(metric):
            scores[name] = _score(metric, train, test, graphs)
        elif earlier.per_sample is not None:
            scores[name] = earlier
        else:
            anew = _score(metric, train, test, graphs)
            interval = anew.interval if INFLUENCE in anew.arrays else earlier.interval  # of an earlier version
            scores[name] = dataclasses.replace(earlier, interval=interval, arrays=anew.arrays)
    return scores


def evaluate_split(
    names: Sequence[str],
    split: tuple[EmbeddingSet | None, EmbeddingSet],
    every: EmbeddingSet,
    graphs: Graphs | None = None,
    recorded: Mapping[str, Score] | None = None,
) -> Scores:
    """Scores of rows, some of which teach: the metrics that need training rows judge the test rows of `split`, all
    others judge every row."""
    scores: Scores = {}
    for name in names:
        train, judged = split if metrics.get(name).needs_train else (None, every)
        scores |= evaluate_sets([name], train, judged, graphs, recorded)
    return scores


def scored_rows(names: Sequence[str], test: EmbeddingSet, every: EmbeddingSet) -> dict[str, int]:
    """The number of rows that each score of `evaluate_split` rests on: those with a label where it needs labels."""
    judged = {name: test if metrics.get(name).needs_train else every for name in names}
    return {k: rows.n_labeled if metrics.get(k).needs_labels else len(rows) for k, rows in judged.items()}


def _scoring(on_progress: OnProgress, source: str, title: str, fraction: float) -> None:
    on_progress(message("scoring {source}: {title}", source=source, title=title), fraction)


def _score(metric: Metric, train: EmbeddingSet | None, test: EmbeddingSet, graphs: Graphs) -> Score:
    try:
        result = metric(train, test, graphs)
    except CannotScore as error:
        return Score(metric.title, metric.reading, missing=sentence(error))
    sets = (train, test) if train is not None and metric.needs_train else (test,)
    samples = [result.extras.get("sample"), *(rows.provenance.get("sample") for rows in sets)]  # of drawn rows
    if sample := ", ".join(filter(None, samples)):
        result.extras["sample"] = sample
    per_sample = {} if result.per_sample is None else {"per_sample": result.per_sample}
    return Score(
        metric.title,
        metric.reading,
        result.value,
        result.interval,
        result.unit,
        metric.higher_is_better,
        dataclasses.asdict(metric),
        result.extras,
        arrays={**per_sample, **result.arrays},
    )


def _sources(
    run: Run, split: str, device: str, on_progress: OnProgress
) -> dict[str, tuple[EmbeddingSet | None, EmbeddingSet]]:
    """Training rows and rows to score, by source; of many processes, each has its part. Training rows are not scored by
    themselves."""
    if collectives.is_single_process():
        sets = {s: _of_split(run, s, device, on_progress) for s in dict.fromkeys(("train", split))}
    else:
        on_progress(N_("embedding"), None)
        sets = {s: parts(run, s, device) for s in dict.fromkeys(("train", split))}
    return {k: (None if split == "train" else sets["train"][k], sets[split][k]) for k in SOURCES}


def _of_split(run: Run, split: str, device: str, on_progress: OnProgress) -> dict[str, EmbeddingSet]:
    dataset = data_of(run, split)
    embedding = fraction_of(on_progress, message("embedding the {split} images", split=split))
    untrained = fraction_of(on_progress, message("the untrained encoder, {split} images", split=split))
    embedding(0.0)
    h, z = (embed_run(run, split, layer, device, embedding) for layer in "hz")
    untrained(0.0)
    random, _ = random_encoder(run, dataset, device, progress=untrained)
    return {"h": h, "z": z, "raw": raw_pixels(dataset), "random": random}


def evaluate_file(
    path: Path,
    train: Path | None = None,
    chosen: Sequence[str] | None = None,
    device: str = "auto",
    on_progress: OnProgress = ignore_progress,
    labels: Path | None = None,
    leave_out: Sequence[str] = (),
) -> JsonObject:
    """Score the vectors of a file; every process calls, and gets the same record.

    Args: train: a file of training rows; chosen: names of metrics, default all; labels: a file of labels, one for each
        row, in place of the file's own; leave_out: columns of no vectors.
    Raises: UnknownName; UnusableEmbedding, Damaged or FileNotFoundError for the files.
    """
    names, rows = metric_names(chosen), HERE if collectives.is_single_process() else SPREAD
    on_progress("reading", None)
    read = _read(path, leave_out, rows, labels)
    if chosen is None and (towers := towers_of(read)) is not None and rows is HERE:
        return tower_record(towers, path.name)
    every, left_out = collectives.raise_together(lambda: _usable(read, path, rows))
    train_rows, test = _split(every, rows) if train is None else (None, every)
    if train is not None:
        taught = _read(train, leave_out, rows)
        train_rows, _ = collectives.raise_together(lambda: _usable(taught, train, rows))
    on_progress("scoring", None)
    scores = evaluate_split(names, (train_rows, test), every, Graphs(device, on_progress=on_progress, rows=rows))
    return {
        "file": path.name,
        "train": train.name if train else None,
        "processes": collectives.world().size,
        "n": rows.number(len(every)),
        "left_out": left_out,
        "rows": {name: rows.number(count) for name, count in scored_rows(names, test, every).items()},
        "n_test": rows.number(len(test)),
        "n_train": rows.number(len(train_rows)) if train_rows else 0,
        "rows_per_process": rows.each(len(test) + (len(train_rows) if train_rows else 0)),
        "peak_bytes_per_process": rows.each(memory_bytes(pick_device(device))),
        "scores": scores_to_json(scores),
    }


def _read(path: Path, leave_out: Sequence[str], rows: Rows, labels: Path | None = None) -> EmbeddingSet:
    """This process's share of a file, with the labels of another file if one is given."""
    world = collectives.world()
    share = collectives.raise_together(lambda: file_formats.read(path, (world.rank, world.size), leave_out))
    if labels is None:
        return share
    of = (rows.number(len(share)), rows.start(len(share)))
    return collectives.raise_together(lambda: label_files.labeled(share, labels, *of))


def _usable(vectors: EmbeddingSet, path: Path, rows: Rows) -> tuple[EmbeddingSet, dict[str, int]]:
    """The rows that are finite and not zero, and how many are left out in all parts, by the reason."""
    usable = vectors.usable
    left_out = {reason: rows.number(len(at)) for reason, at in vectors.problems.items()}
    check_usable(path.name, rows.number(len(usable)), left_out)
    return vectors if len(usable) == len(vectors) else vectors.take(usable), left_out


def _split(vectors: EmbeddingSet, rows: Rows) -> tuple[EmbeddingSet | None, EmbeddingSet]:
    """Training rows and rows to score; without labels all are scored."""
    if not all(rows.each(vectors.labels is not None)):
        return None, vectors
    assert vectors.labels is not None
    splits = vectors.columns.get("split")
    marked = all(rows.each(splits is not None))
    ids = [name for part in rows.each(list(vectors.ids)) for name in part]
    names = np.concatenate(rows.each(np.asarray(splits).astype(str))) if marked else None
    train, test, _ = split_masks(rows.whole(vectors.labels), ids, names)
    first = rows.start(len(vectors))
    here = slice(first, first + len(vectors))  # this part's rows among all
    taught = vectors.take(np.flatnonzero(train[here])) if train.any() else None
    return taught, vectors.take(np.flatnonzero(test[here]))
