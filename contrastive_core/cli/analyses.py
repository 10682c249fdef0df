"""The analyses that pages wait for, by their kind; jobs/results.py keeps what comes out.

An analysis is given plain values: spaces (`embeddings.ref.EmbeddingRef.values`) and settings.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from contrastive_core import runs
from contrastive_core.embeddings.cache import graph_path
from contrastive_core.embeddings.embedding_set import EmbeddingSet
from contrastive_core.embeddings.graphs import Graphs
from contrastive_core.embeddings.ref import EmbeddingRef, train_test_split
from contrastive_core.errors import UnusableEmbedding
from contrastive_core.evaluation.entries import recorded_scores
from contrastive_core.evaluation.evaluate import evaluate_sets
from contrastive_core.evaluation.record import read_evaluation
from contrastive_core.evaluation.score import Scores, scores_to_json
from contrastive_core.jobs import results
from contrastive_core.jobs.results import MAP_DEFAULTS, Result
from contrastive_core.progress import OnProgress, fraction_of, ignore_progress, prefixed

__all__ = ["KINDS", "make", "with_defaults"]

Values = dict[str, Any]
SEEDS = 3  # maps that are compared
SLOW = "linear_probe"  # on pixels; raw and random have theirs in the run's evaluation
SNAPSHOTS = 12  # of a run that are compared at most
SHOWN, VIEWS = 6, 5  # images, and views of each, that a preview shows


def make(
    kind: str, values: Values, on_progress: OnProgress = ignore_progress, device: str = "auto"
) -> Result:
    """The result, made on the device if it is not there yet. Raises ValueError with the reason."""
    if kind not in KINDS:
        raise ValueError(f"an analysis is one of {', '.join(KINDS)}; got {kind!r}")
    result = results.read(kind, values)
    if result is None:
        result = KINDS[kind](values, on_progress, device)
        results.write(kind, values, result)
    return result


def with_defaults(values: Values) -> Values:
    """The values of a map, with UMAP's default settings where none are given."""
    return {**values, **MAP_DEFAULTS} if values["kind"] == "umap" else values


# --- one space ---------------------------------------------------------------------------------


def _scores(values: Values, on_progress: OnProgress, device: str) -> Result:
    """Every score with all its details, and what it says of each sample."""
    space = EmbeddingRef(**values["space"])
    rows = _rows(space, on_progress, device)
    train, test, at, how = _test_rows(space, rows, on_progress, device)
    graphs = _graphs(on_progress, device)
    scores, arrays = _score_all(space, rows, (train, test, at), graphs, on_progress)
    sources = {"own": scores_to_json(scores)}
    sources |= {} if space.is_loaded else _references(space, on_progress, device)
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
    from contrastive_core import metrics

    train, test, at = judged
    recorded = _recorded(space)
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


def _recorded(space: EmbeddingRef) -> Scores:
    return (
        {} if space.is_loaded else recorded_scores(runs.load(space.name), space.split, space.layer)
    )


def _spread(array: np.ndarray, at: np.ndarray, n: int) -> np.ndarray:
    """Values of the rows `at` among all n: NaN, or -1, for others. What is not per row stays."""
    if len(array) != len(at) or len(at) == n or array.ndim != 1:
        return array
    out = np.full(n, np.nan if array.dtype.kind == "f" else -1, array.dtype)
    out[at] = array
    return out


def _references(space: EmbeddingRef, on_progress: OnProgress, device: str) -> dict[str, Any]:
    """The same for raw pixels and the untrained encoder, where details are shown."""
    from contrastive_core import metrics
    from contrastive_core.evaluation.embed import data_of, random_encoder, raw_pixels

    run = runs.load(space.name)
    sets: dict[str, list[EmbeddingSet]] = {"raw": [], "random": []}
    for split in ("train", "test"):
        dataset = data_of(run, split)
        sets["raw"].append(raw_pixels(dataset))
        sets["random"].append(random_encoder(run, dataset, device)[0])
    found = {}
    evaluation = read_evaluation(run)
    recorded = {} if evaluation is None else evaluation.scores
    for source, (train, test) in sets.items():
        on_progress("raw pixels" if source == "raw" else "the untrained encoder", None)
        names = [name for name in metrics.names() if name != SLOW]
        scores = evaluate_sets(names, train, test, Graphs(device), recorded.get(source))
        found[source] = scores_to_json(scores)
    return found


def _loss(values: Values, on_progress: OnProgress, device: str) -> Result:
    """The loss of every sample, with the run's own loss."""
    from contrastive_core.samples.build import samples_of_run

    space = EmbeddingRef(**values["space"])
    on_progress("the loss of every sample", None)
    table = samples_of_run(runs.load(space.name), None, space.split, device=device)
    at = {name: row for row, name in enumerate(table.columns["id"])}
    ids = _rows(space, on_progress, device).ids
    loss = [table.columns["loss"][at[i]] if i in at else np.nan for i in ids]
    return Result({"loss": table.loss}, {"loss": np.array(loss, np.float64)})


def _map(values: Values, on_progress: OnProgress, device: str) -> Result:
    """A map with its settings and how far it can be believed."""
    from contrastive_core.evaluation.projection import map_of

    rows = _rows(EmbeddingRef(**values["space"]), on_progress, device)
    settings = {k: v for k, v in values.items() if k not in ("space", "kind")}
    made = map_of(
        rows,
        values["kind"],
        _graphs(on_progress, device),
        fraction_of(on_progress, "UMAP's layout"),
        **settings,
    )
    return Result({"settings": made.settings, "quality": made.quality}, {"xy": made.xy})


def _agreement(values: Values, on_progress: OnProgress, device: str) -> Result:
    """How many of the nearest points on a map are the same with two other seeds."""
    from contrastive_core.evaluation.projection import agreement

    seeds = [int(values["seed"]) + q for q in range(SEEDS)]
    maps = []
    for number, seed in enumerate(seeds, 1):
        part = prefixed(on_progress, f"seed {number} of {SEEDS}")
        maps.append(make("map", {**values, "seed": seed}, part, device).arrays["xy"])
    k = min(15, len(maps[0]) - 1)
    return Result({"agreement": agreement(maps, k, device), "k": k, "seeds": seeds})


def _placed(values: Values, on_progress: OnProgress, device: str) -> Result:
    """Where the samples of another space, of the same width, fall on a map that exists."""
    from contrastive_core.evaluation.projection import project_new

    own = values["map"]
    rows, new = (
        _rows(EmbeddingRef(**own["space"]), on_progress, device),
        _rows(EmbeddingRef(**values["new"]), on_progress, device),
    )
    if rows.width != new.width:
        raise UnusableEmbedding(f"the map's rows are {rows.width} wide, the new ones {new.width}")
    xy = make("map", own, on_progress, device).arrays["xy"]
    on_progress("placing the new samples", None)
    placed = project_new(new.features, rows.features, xy, device=device)
    return Result({"n": len(new)}, {"xy": placed})


# --- several spaces ----------------------------------------------------------------------------


def _comparison(values: Values, on_progress: OnProgress, device: str) -> Result:
    """Which of some spaces is better, how alike they are, and on which samples they differ."""
    from contrastive_core.evaluation.compare import Entry, compare

    spaces = [EmbeddingRef(**v) for v in values["spaces"]]
    groups = [(g, int(s)) for g, s in values.get("groups", [])] or [("", 0)] * len(spaces)
    entries = []
    for number, (space, name, group) in enumerate(
        zip(spaces, values["names"], groups, strict=True), 1
    ):
        part = prefixed(on_progress, f"{number} of {len(spaces)}")
        rows = _rows(space, part, device)
        train, test, _, _ = _test_rows(space, rows, part, device)
        entries.append(Entry(name, train, test, group, _recorded(space)))
    on_progress("the differences and their tests", None)
    made = compare(entries, every_score=True, device=device)
    return Result(made.plain(), made.arrays())


def _snapshots(values: Values, on_progress: OnProgress, device: str) -> Result:
    """How alike the snapshots of one run are, by CKA, shared neighbors and Procrustes."""
    from contrastive_core.evaluation.representation_similarity import (
        ckas,
        graphs_of,
        matrix,
        overlaps,
        procrustes,
    )

    run, which = runs.load(values["run"]), values["which"]
    epochs = run.snapshots()
    if len(epochs) < 2:
        raise ValueError(f"{run.name} has {len(epochs)} snapshots; two are needed")
    chosen = np.unique(np.linspace(0, len(epochs) - 1, SNAPSHOTS).round().astype(int))
    epochs = [epochs[q] for q in chosen]
    features = [run.snapshot(epoch)[which] for epoch in epochs]
    on_progress("how alike the snapshots are", None)
    k = min(20, len(features[0]) - 1)
    graphs = graphs_of([EmbeddingSet(x) for x in features], k, Graphs(device))
    found = {
        "cka": ckas(features),
        "overlap": overlaps(graphs),
        "procrustes": matrix(features, procrustes),
    }
    return Result({"epochs": epochs, "k": k, "n": len(features[0])}, found)


# --- before a training -------------------------------------------------------------------------


def _views(values: Values, on_progress: OnProgress, device: str) -> Result:
    """Some images of a data set (k, c, h, w), and the views (k, v, c, h, w) that a training with
    these settings would make of them; uint8."""
    import torch

    from contrastive_core.data import datasets
    from contrastive_core.data.augmentations import Recipe, make_views
    from contrastive_core.training.config import TrainConfig, with_settings
    from contrastive_core.training.defaults import resolve

    config = with_settings(TrainConfig(values["method"], values["dataset"]), values["set"])
    on_progress("the images", None)
    dataset = datasets.load(config.dataset, "train", config.root)
    config, _ = resolve(config, dataset, torch.device("cpu"))
    rows = np.unique(np.linspace(0, len(dataset.images) - 1, SHOWN).round().astype(int))
    images = torch.from_numpy(np.asarray(dataset.images[rows]))
    generator = torch.Generator().manual_seed(config.seed)
    views = make_views(images, Recipe(**config.recipe), VIEWS, generator)
    made = (255 * views).round().to(torch.uint8).numpy()
    meta = {"recipe": config.recipe, "left_out": dataset.left_out}
    return Result(meta, {"images": images.numpy(), "views": made})


KINDS: dict[str, Callable[[Values, OnProgress, str], Result]] = {
    "scores": _scores,
    "loss": _loss,
    "map": _map,
    "agreement": _agreement,
    "placed": _placed,
    "comparison": _comparison,
    "snapshots": _snapshots,
    "views": _views,
}


# --- parts -------------------------------------------------------------------------------------


def _rows(space: EmbeddingRef, on_progress: OnProgress, device: str) -> EmbeddingSet:
    """The rows of a space; a run's are embedded if they have not been."""
    from contrastive_core.evaluation.embed import embed_run

    if space.is_loaded:
        rows = space.rows()
        assert rows is not None
        return rows
    return embed_run(
        runs.load(space.name),
        space.split,
        space.layer,
        device,
        progress=fraction_of(on_progress, "embedding"),
    )


def _test_rows(
    space: EmbeddingRef, rows: EmbeddingSet, on_progress: OnProgress, device: str
) -> tuple[EmbeddingSet | None, EmbeddingSet, np.ndarray, str]:
    """Training rows, judged rows, where these stand among `rows`, and a sentence."""
    if space.is_loaded and not space.split:
        return train_test_split(rows)
    everywhere = np.arange(len(rows))
    if space.split == "train":
        return None, rows, everywhere, "Training rows are not judged by themselves."
    train = dataclasses.replace(space, split="train")
    return _rows(train, on_progress, device), rows, everywhere, "Judged on the test split."


def _graphs(on_progress: OnProgress, device: str) -> Graphs:
    return Graphs(device, place=graph_path, progress=fraction_of(on_progress, "nearest neighbors"))
