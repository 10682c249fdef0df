"""Analyses of several spaces: comparisons and their similarity, also of the snapshots of one run; and of queries and
documents: the quality of compressed vectors, and of vectors mapped to a new model."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from contrastive_core import metrics, runs
from contrastive_core.base.memory import rows_of_sample
from contrastive_core.base.messages import N_, message
from contrastive_core.base.progress import OnProgress, fraction_of, prefixed
from contrastive_core.base.score import Scores, scores_from_json, scores_to_json
from contrastive_core.compare import adapter as adapters
from contrastive_core.compare import retrieval
from contrastive_core.compare.comparison import Entry, common, compare
from contrastive_core.compare.differences import ROW, find_differences
from contrastive_core.compare.evaluate import evaluate_sets
from contrastive_core.compare.representation_similarity import (
    MOST,
    NEAREST,
    ORDERS,
    calibrate,
    ckas,
    graphs_of,
    matrix,
    overlaps,
    procrustes,
)
from contrastive_core.compare.retrieval import Relevant
from contrastive_core.compare.towers import centered as subtract_means
from contrastive_core.compare.towers import compare_checkpoints
from contrastive_core.compare.verdicts import ACCURACIES
from contrastive_core.engine.answers import cached_graphs, rows_of, test_rows
from contrastive_core.engine.answers.scores import two_towers
from contrastive_core.spaces import results
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.label_files import read_qrels
from contrastive_core.spaces.neighbor_graphs import Graphs
from contrastive_core.spaces.results import Result, Values
from contrastive_core.spaces.space import TOWERS, Space
from contrastive_core.spaces.towers import Towers, towers_of

SNAPSHOTS = 12  # maximum snapshots of a run that are compared


def comparison(values: Values, on_progress: OnProgress, device: str) -> Result:
    """Compare spaces: the better one, their similarity, and the samples on which they differ.

    Stored scores are reused, without embedding their training rows, so shipped runs are compared in a moment. If all
    scores are stored, all are tested, even if only the first was requested.

    Args: values: from `comparison_request`; `metrics`: accuracies to compare; `is_scored_only`: skip the similarity."""
    spaces = [Space(**plain) for plain in values["spaces"]]
    groups = [(method, int(seed)) for method, seed in values.get("groups", [])] or [("", 0)] * len(spaces)
    is_chosen = "metrics" in values and not values.get("every_score", True)
    asked = values["metrics"] if is_chosen else metrics.names()
    entries = [
        replace(entry_of(space, name, asked, prefixed(on_progress, name), device), group=group)
        for space, name, group in zip(spaces, values["names"], groups, strict=True)
    ]
    sets = common([entry.test for entry in entries])
    is_kept = all(cut is entry.test and entry.scores for cut, entry in zip(sets, entries, strict=True))
    every_score = values.get("every_score", True) or (is_kept and "metrics" not in values)
    for number, space in enumerate(spaces):
        if entries[number].scores and sets[number] is not entries[number].test:
            train, _ = judged(space, on_progress, device)
            entries[number] = replace(entries[number], train=train)
    # A linear probe takes twenty times as long as the kNN vote.
    accuracies = values.get("metrics") or (tuple(ACCURACIES) if every_score else ("knn",))
    for number, space in enumerate(spaces):
        if space.run and not entries[number].scores and sets[number] is entries[number].test:
            names = metrics.names() if every_score else accuracies
            entries[number] = scored(space, entries[number], names, cached_graphs(on_progress, device))
    on_progress(N_("the differences and their tests"), None)
    judged_by = values.get("qrels")
    report = compare(
        entries,
        accuracies,
        every_score,
        device,
        on_progress=on_progress,
        qrels=(read_qrels(judged_by["file"]), Path(judged_by["file"]).name) if judged_by else None,
        is_scored_only=values.get("is_scored_only", False),
    )
    return Result(report.plain(), report.arrays())


def entry_of(space: Space, name: str, asked: Sequence[str], on_progress: OnProgress, device: str) -> Entry:
    """Return the entry of a run, a file or a recording; with training rows only if scores must be computed. Args:
    asked: names of the scores that are compared."""
    if kept := kept_scores(space, asked):
        return Entry(name, None, rows_of(space, on_progress, device), scores=kept)
    return Entry(name, *judged(space, on_progress, device))


def scored(space: Space, entry: Entry, names: Sequence[str], graphs: Graphs) -> Entry:
    """Compute the scores of an entry, and store its accuracies for tables of runs."""
    scores = evaluate_sets(names, entry.train, entry.test, graphs)
    about = {"n_train": len(entry.train) if entry.train else 0, "n_test": len(entry.test)}
    accuracies = scores_to_json({name: scores[name] for name in ACCURACIES if name in scores})
    results.write("accuracies", {"space": space.values}, Result({"scores": accuracies, **about}))
    return replace(entry, scores=scores)


def judged(space: Space, on_progress: OnProgress, device: str) -> tuple[EmbeddingSet | None, EmbeddingSet]:
    """Return the training and test rows of a space. Loaded rows without labels or with
    partners have no training rows; all of them are test rows."""
    rows = rows_of(space, on_progress, device)
    if space.is_loaded and (rows.labels is None or towers_of(rows) is not None):
        return None, rows
    train, test, _, _ = test_rows(space, rows, on_progress, device)
    return train, test


def kept_scores(space: Space, asked: Sequence[str]) -> Scores:
    """Return the stored scores of a space's test rows, with values per row; {} if one that is asked for is missing, or
    they cover other rows: without splits, scores that need no training rows cover all rows."""
    if space.is_loaded and not space.split:
        return {}
    result = results.read("scores", {"space": space.values})
    scores = {} if result is None else scores_from_json(result.meta["scores"]["own"], result.arrays)
    return scores if scores.keys() >= {*asked} else {}


def snapshots(values: Values, on_progress: OnProgress, device: str) -> Result:
    """Compute the similarity of one run's snapshots by CKA, shared neighbors and Procrustes."""
    run, layer = runs.load(values["run"]), values["layer"]
    epochs = run.snapshots()
    if len(epochs) < 2:
        raise ValueError(message("{name} has {count} snapshots; two are needed", name=run.name, count=len(epochs)))
    chosen = np.unique(np.linspace(0, len(epochs) - 1, SNAPSHOTS).round().astype(int))
    epochs = [epochs[q] for q in chosen]
    features = [run.snapshot(epoch)[layer] for epoch in epochs]
    on_progress(N_("similarity of the snapshots"), None)
    k = min(20, len(features[0]) - 1)
    graphs, _ = graphs_of([EmbeddingSet(x) for x in features], k, Graphs(device))
    arrays = {"cka": ckas(features), "overlap": overlaps(graphs), "procrustes": matrix(features, procrustes)}
    return Result({"epochs": epochs, "k": k, "n": len(features[0])}, arrays)


def calibration(values: Values, on_progress: OnProgress, device: str) -> Result:
    """Compute the similarity of spaces relative to chance, by measure, on their common samples."""
    spaces = [Space(**plain) for plain in values["spaces"]]
    place = on_progress, device
    sets = common([judged(s, *place)[1] if s.is_loaded else rows_of(s, *place) for s in spaces])
    graphs, _ = graphs_of(sets, min(NEAREST, len(sets[0]) - 1), Graphs(device, on_progress=on_progress))
    found = calibrate([s.features for s in sets], graphs, on_fraction=fraction_of(on_progress, N_("chance")))
    arrays = {f"{name}:{m}": values for name, by_measure in vars(found).items() for m, values in by_measure.items()}
    return Result({"n": len(sets[0]), "rows": min(MOST, len(sets[0])), "orders": ORDERS}, arrays)


def checkpoints(values: Values, on_progress: OnProgress, device: str) -> Result:
    """Compare the recall and modality gap of two checkpoints of a run with two towers."""
    spaces = [Space(values["run"], "train", TOWERS, epoch=epoch) for epoch in values["epochs"]]
    before, after = (two_towers(space.rows()) for space in spaces)
    return _changes(before, after, on_progress)


def centered(values: Values, on_progress: OnProgress, device: str) -> Result:
    """Compare the recall and modality gap of two towers before and after each mean is subtracted."""
    pair = two_towers(rows_of(Space(**values["space"]), on_progress, device))
    return _changes(pair, subtract_means(pair), on_progress)


def _changes(before: Towers, after: Towers, on_progress: OnProgress) -> Result:
    on_progress(N_("the differences and their intervals"), None)
    changes = compare_checkpoints(before, after)
    scores = {
        "before": scores_to_json({change.name: change.before for change in changes}),
        "after": scores_to_json({change.name: change.after for change in changes}),
    }
    differences = {change.name: [change.value, *change.interval] for change in changes}
    return Result({"scores": scores, "differences": differences, "n": [len(before.a), len(before.b)]})


def differences(values: Values, on_progress: OnProgress, device: str) -> Result:
    """Find the groups of samples that are close together in one of two spaces and scattered in the other. Rows of a
    group are row numbers of the first space. Args: values: from `differences_request`."""
    names = values["names"]
    a, b = (
        rows_of(Space(**plain), prefixed(on_progress, name), device)
        for plain, name in zip(values["spaces"], names, strict=True)
    )
    sets = common([replace(a, columns={**a.columns, ROW: np.arange(len(a))}), b])
    seeds = []
    for at, plain in values["seeds"]:
        other = Space(**plain)
        one, two = common([sets[at], rows_of(other, prefixed(on_progress, other.title), device)])
        seeds.append((other.title, one, two))
    n = len(sets[0])
    found = find_differences(sets, names, seeds, (len(a) - n, len(b) - n), on_progress)
    own = sets[0].columns[ROW]
    groups = [replace(group, rows=own[group.rows].tolist()) for group in found.groups]
    return Result(asdict(replace(found, groups=groups)))


# --- queries and documents ---


def relevant_of(pair: Towers, values: Values) -> Relevant:
    """Return the relevant documents by the judgments that a request names, else by the partners of both towers."""
    if judged_by := values.get("qrels"):
        return Relevant.of(pair, read_qrels(judged_by["file"]), Path(judged_by["file"]).name)
    return Relevant.of_partners(pair)


def compression(values: Values, on_progress: OnProgress, device: str) -> Result:
    """Compute recall@10 and nDCG@10 with fewer dimensions and lower precision. Args: values: `space`; `qrels` from
    `judgments_request`."""
    pair = two_towers(rows_of(Space(**values["space"]), on_progress, device))
    every, x = relevant_of(pair, values), pair.rows.features
    some = every.at_most(retrieval.MOST)
    on_fraction = fraction_of(on_progress, N_("compressed vectors"))
    found = retrieval.compress(x[some.rows], x[some.documents], some, on_fraction)
    counts = {"queries": len(some.rows), "of": len(every.rows), "documents": len(some.documents), "width": x.shape[1]}
    return Result({**counts, "scores": [asdict(one) for one in found]})


def adapter(values: Values, on_progress: OnProgress, device: str) -> Result:
    """Fit and judge a map from the vectors of an old model to those of a new one. Rows of one tower are split: every
    fourth is a query. Args: values: from `adapter_request`."""
    old, new = common([rows_of(Space(**values[key]), on_progress, device) for key in ("old", "new")])
    usable = np.intersect1d(old.usable, new.usable)
    if (pair := towers_of(new)) is not None:
        queries, documents = (side[np.isin(side, usable)] for side in (pair.a, pair.b))
    else:
        usable = np.random.default_rng(0).permutation(usable)
        queries, documents = usable[::4], np.delete(usable, np.s_[::4])
    documents = documents[rows_of_sample(len(documents), adapters.DOCUMENTS)]
    queries = queries[np.linspace(0, len(queries) - 1, min(len(queries), adapters.MOST)).round().astype(np.int64)]
    on_fraction = fraction_of(on_progress, N_("a map between the models"))
    found = adapters.judge(
        (old.features[documents], new.features[documents]),
        (old.features[queries], new.features[queries]),
        None if new.labels is None else new.labels[queries],
        on_fraction=on_fraction,
    )
    groups = [{**asdict(one), "name": new.class_name(one.label)} for one in found.groups]
    meta = {
        "kind": found.adapter.kind,
        "setting": found.adapter.setting,
        "widths": [old.width, new.width],
        "kept": [asdict(one) for one in found.kept],
        "old": found.old,
        "groups": groups,
        "partial": [[share, *values] for share, values in found.partial.items()],
        "first": [new.ids[row] for row in documents[found.first[: adapters.LISTED]]],
        **found.counts,
    }
    return Result(meta, {"matrix": found.adapter.matrix, "offset": found.adapter.offset, "per_query": found.per_query})
