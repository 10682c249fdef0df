"""Analyses of several spaces: comparisons and their similarity; and of queries and documents: the quality of compressed
vectors, and of vectors mapped to a new model."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from contrastive_core import metrics
from contrastive_core.base.memory import rows_of_sample
from contrastive_core.base.messages import N_
from contrastive_core.base.progress import OnProgress, fraction_of, prefixed
from contrastive_core.base.score import Scores, scores_from_json, scores_to_json
from contrastive_core.compare import adapter as adapters
from contrastive_core.compare import retrieval
from contrastive_core.compare.comparison import Entry, common, compare
from contrastive_core.compare.differences import ROW, find_differences
from contrastive_core.compare.evaluate import evaluate_sets
from contrastive_core.compare.representation_similarity import MOST, ORDERS, calibrate, graphs_of
from contrastive_core.compare.retrieval import Relevant
from contrastive_core.compare.towers import compare_centered
from contrastive_core.compare.verdicts import ACCURACIES
from contrastive_core.engine.answers import cached_graphs, rows_of, test_rows
from contrastive_core.engine.answers.scores import two_towers
from contrastive_core.spaces import results
from contrastive_core.spaces.attached_files import read_qrels
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.neighbor_graphs import Graphs
from contrastive_core.spaces.results import Result, Values
from contrastive_core.spaces.space import Space
from contrastive_core.spaces.towers import towers_of


def comparison(values: Values, on_progress: OnProgress, device: str) -> Result:
    """Compare spaces: the better one, their similarity, and the samples on which they differ.

    Stored scores are reused, without embedding their training rows, so shipped runs are compared in a moment. If all
    scores are stored, all are tested, even if only the first was requested.

    Args: values: from `comparison_request`; `metrics`: accuracies to compare; `is_scored_only`: skip the similarity."""
    spaces = [Space(**plain) for plain in values["spaces"]]
    chosen, every_score, entries = values.get("metrics"), values["every_score"], list[Entry]()
    for space, name, group in zip(spaces, values["names"], values["groups"], strict=True):
        known = kept_scores(space, chosen if chosen and not every_score else metrics.names())
        place = prefixed(on_progress, name), device
        train, test = (None, rows_of(space, *place)) if known else judged(space, *place)
        entries.append(Entry(name, train, test, tuple(group), known))
    sets = common([entry.test for entry in entries])
    is_whole = [cut is entry.test for cut, entry in zip(sets, entries, strict=True)]
    every_score |= not chosen and all(is_whole) and all(entry.scores for entry in entries)
    # A linear probe takes twenty times as long as the kNN vote.
    accuracies = chosen or (tuple(ACCURACIES) if every_score else ("knn",))
    for number, (space, entry) in enumerate(zip(spaces, entries, strict=True)):
        if entry.scores and not is_whole[number]:
            entries[number] = replace(entry, train=judged(space, on_progress, device)[0])
        elif space.run and is_whole[number] and not entry.scores:
            names = metrics.names() if every_score else accuracies
            scores = evaluate_sets(names, entry.train, entry.test, cached_graphs(on_progress, device))
            entries[number] = replace(entry, scores=scores)
            kept = scores_to_json({name: scores[name] for name in ACCURACIES if name in scores})  # for tables of runs
            about = {"n_train": len(entry.train) if entry.train else 0, "n_test": len(entry.test)}
            results.write("accuracies", {"space": space.values}, Result({"scores": kept, **about}))
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


def calibration(values: Values, on_progress: OnProgress, device: str) -> Result:
    """Compute the similarity of spaces relative to chance, by measure, on their common samples."""
    spaces = [Space(**plain) for plain in values["spaces"]]
    place = on_progress, device
    sets = common([judged(s, *place)[1] if s.is_loaded else rows_of(s, *place) for s in spaces])
    graphs, _ = graphs_of(sets, Graphs(device, on_progress=on_progress))
    arrays = calibrate([s.features for s in sets], graphs, on_fraction=fraction_of(on_progress, N_("chance")))
    return Result({"n": len(sets[0]), "rows": min(MOST, len(sets[0])), "orders": ORDERS}, arrays)


def centered(values: Values, on_progress: OnProgress, device: str) -> Result:
    """Compare the recall and modality gap of two towers before and after each mean is subtracted."""
    pair = two_towers(values, on_progress, device)
    on_progress(N_("the differences and their intervals"), None)
    before, after, differences = compare_centered(pair)
    return Result({"before": scores_to_json(before), "after": scores_to_json(after), "differences": differences})


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


def compression(values: Values, on_progress: OnProgress, device: str) -> Result:
    """Compute recall@10 and nDCG@10 with fewer dimensions and lower precision. Args: values: `space`; `qrels` from
    `judgments_request`, else partners are relevant."""
    pair = two_towers(values, on_progress, device)
    if judged_by := values.get("qrels"):
        every = Relevant.of(pair, read_qrels(judged_by["file"]), Path(judged_by["file"]).name)
    else:
        every = Relevant.of_partners(pair)
    some, x = every.at_most(retrieval.MOST), pair.rows.features
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
    found, meta, per_query, first = adapters.judge(
        (old.features[documents], new.features[documents]),
        (old.features[queries], new.features[queries]),
        None if new.labels is None else new.labels[queries],
        on_fraction=on_fraction,
    )
    for group in meta["groups"]:
        group["name"] = new.class_name(group["label"])
    meta["widths"] = [old.width, new.width]
    meta["first"] = [new.ids[row] for row in documents[first[: adapters.LISTED]]]
    return Result(meta, {"matrix": found.matrix, "offset": found.offset, "per_query": per_query})
