"""Analyses of one space or run: its embedding, its scores, the loss of each sample, its table of samples, its map."""

import functools
import threading
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import fields, replace
from typing import Any

import numpy as np

from contrastive_core import metrics, runs
from contrastive_core.base.errors import BadSetting, UnusableEmbedding
from contrastive_core.base.json_files import JsonObject
from contrastive_core.base.messages import N_, message
from contrastive_core.base.progress import OnProgress, fraction_of, ignore_progress
from contrastive_core.base.score import Scores, scores_to_json
from contrastive_core.compare.embed import data_of, embed_run, load_model, random_encoder, raw_pixels
from contrastive_core.compare.evaluate import evaluate_sets, evaluate_split, metric_names, zero_shot_scores
from contrastive_core.compare.evaluation import BESIDE, SOURCES, Evaluation, gather
from contrastive_core.compare.likeness import Picture, Words, explain, nearest_images
from contrastive_core.compare.projection import map_of, project_new
from contrastive_core.compare.towers import tower_notes, tower_scores
from contrastive_core.data.captions import captions_of
from contrastive_core.engine.answers import cached_graphs, make, rows_of, test_rows
from contrastive_core.lab.batch import load_batch
from contrastive_core.lab.lab_view import BatchRequest
from contrastive_core.methods import Method
from contrastive_core.runs.run import Run
from contrastive_core.samples.run_samples import make_table
from contrastive_core.samples.sample_table import request_of
from contrastive_core.samples.tower_pairs import find_tower_pairs
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.neighbor_graphs import Graphs
from contrastive_core.spaces.results import Result, Values
from contrastive_core.spaces.space import LAYERS, TOWERS, Space
from contrastive_core.spaces.towers import Towers, towers_of

_one_map = threading.Lock()  # numba's threading layer does not support two layouts at once


def evaluate(
    run: Run,
    split: str = "test",
    device: str = "auto",
    on_progress: OnProgress = ignore_progress,
    metrics: Sequence[str] | None = None,
) -> Evaluation:
    """Score h and z of a run with the baselines (raw pixels, untrained encoder), and its two towers. Cached scores are
    reused. Args: metrics: names, default all. Raises: UnknownName; ValueError without weights."""
    names = metric_names(metrics) if metrics else ()
    whole = gather(run, split, lambda kind, values: make(kind, values, on_progress, device), names)
    assert whole is not None
    return whole


def scores(values: Values, on_progress: OnProgress, device: str) -> Result:
    """Compute all scores of a space, or those of `metrics`, with their details and values per sample: those of metrics
    that need training rows are NaN or −1 for training rows."""
    space, names = Space(**values["space"]), metric_names(values.get("metrics"))
    rows = rows_of(space, on_progress, device)
    train, test, at, how = test_rows(space, rows, on_progress, device)
    graphs, own, arrays = cached_graphs(on_progress, device), Scores(), dict[str, np.ndarray]()
    for name in names:
        metric = metrics.get(name)
        on_progress(metric.title, None)
        own |= evaluate_split([name], (train, test), rows, graphs)
        for part, array in own[name].arrays.items():
            if metric.needs_train and len(array) == len(at) < len(rows) and array.ndim == 1:
                every = np.full(len(rows), np.nan if array.dtype.kind == "f" else -1, array.dtype)
                every[at] = array
                array = every
            arrays[f"{name}:{part}"] = array
    sources = {"own": scores_to_json(own), **_references(values, names, on_progress, device)}
    about = {"how": how, "n": len(rows), "n_train": len(train) if train else 0, "n_test": len(at)}
    return Result({"scores": sources, **about}, arrays)


def _references(
    values: Values, names: Sequence[str], on_progress: OnProgress, device: str
) -> dict[str, dict[str, dict[str, object]]]:
    """Return the scores of raw pixels and the untrained encoder; {} for vectors, recordings and towers."""
    space = Space(**values["space"])
    if (run := space.run) is None or space.layer == TOWERS:
        return {}
    if space.layer != "h":
        of_h = make("scores", {**values, "space": replace(space, layer="h").values}, on_progress, device)
        return {source: of_h.meta["scores"][source] for source in BESIDE}
    sets: dict[str, list[EmbeddingSet]] = {source: [] for source in BESIDE}
    for split in ("train", space.split):
        dataset = data_of(run, split)
        sets["raw"].append(raw_pixels(dataset))
        on_part = fraction_of(on_progress, message("the untrained encoder, {split} images", split=split))
        sets["random"].append(random_encoder(run, dataset, device, progress=on_part)[0])
    found = {}
    for source, (train, test) in sets.items():
        on_progress(SOURCES[source], None)
        taught = None if space.split == "train" else train  # training rows do not vote on themselves
        found[source] = scores_to_json(evaluate_sets(names, taught, test, Graphs(device)))
    return found


def towers(values: Values, on_progress: OnProgress, device: str) -> Result:
    """Compute the recall and modality gap of two towers, the chance levels, and the rank of each row's partner."""
    pair = two_towers(values, on_progress, device)
    on_progress(N_("ranks of partners"), None)
    own, chance, ranks = tower_scores(pair)
    by_source = {"own": scores_to_json(own), "chance": scores_to_json(chance)}
    return Result({"scores": by_source, **tower_notes(pair, (own, chance))}, {"rank": ranks})


def two_towers(values: Values, on_progress: OnProgress, device: str) -> Towers:
    """Return the two towers of the space of a job. Raises ValueError if there are no two towers."""
    if (pair := towers_of(rows_of(Space(**values["space"]), on_progress, device))) is None:
        raise ValueError(N_("these rows do not belong to two towers"))
    return pair


def tower_pairs(values: Values, on_progress: OnProgress, device: str) -> Result:
    """Find all pairs of a space with two towers, with scores for mismatched pairs and false negatives."""
    pair = two_towers(values, on_progress, device)
    on_progress(N_("pairs of the two towers"), None)
    found = find_tower_pairs(pair)
    known = {field.name: getattr(found, field.name) for field in fields(found)}
    names = [pair.names[found.query_tower], pair.names[1 - found.query_tower]]
    meta = {"names": names, "candidates": [*found.candidates], "left_out": found.left_out, **tower_notes(pair)}
    return Result(meta, {name: array for name, array in known.items() if isinstance(array, np.ndarray)})


def zero_shot(values: Values, on_progress: OnProgress, device: str) -> Result:
    """Compute the zero-shot accuracy of a run's images with templates for the class names, and the chance level."""
    pair, run = two_towers(values, on_progress, device), runs.load(values["space"]["name"])
    own, chance = zero_shot_scores(pair, lambda: open_model(run, device), values["templates"])
    return Result({"scores": {"own": scores_to_json(own), "chance": scores_to_json(chance)}})


def text_query(values: Values, on_progress: OnProgress, device: str) -> Result:
    """Find the images most similar to a sentence, and its words that the text tower has not learned."""
    pair, run = two_towers(values, on_progress, device), runs.load(values["space"]["name"])
    rows, similarity, unknown = nearest_images(open_model(run, device), pair, values["text"], values["most"])
    return Result({"unknown": unknown}, {"rows": rows, "similarity": similarity})


def likeness(values: Values, on_progress: OnProgress, device: str) -> Result:
    """Explain the similarity of two samples of a run in the layer of a space: the parts of pairs of patches or words,
    the effect of covering them, and a figure. `ids` are images or captions of `splits`; or `rows` are thumbnails or
    texts of a `batch` in the Loss Lab."""
    space = Space(**values["space"])
    run = runs.load(space.name)
    on_progress(N_("similarity of patches"), None)
    if "rows" in values:
        thumbs = _thumbs(run.name, run.weights_hash(), BatchRequest(**values["batch"]))
        samples = [row if isinstance(row, str) else thumbs[row] for row in values["rows"]]
    else:
        splits = values.get("splits", [space.split] * 2)
        samples = [_sample(run, split, name) for split, name in zip(splits, values["ids"], strict=True)]
    model = open_model(run, device)
    are_images = not any(isinstance(one, str) for one in samples)
    encoder = model.encoder if space.layer == "h" and are_images else model  # a text has only z
    sides = [Words(model, one) if isinstance(one, str) else Picture(encoder, one) for one in samples]
    found = explain((sides[0], sides[1]))
    meta = {
        "similarity": found.similarity,
        "explained": float(found.patches.sum()),
        "is_exact": found.is_exact,
        "gap": found.gap,
        "interval": list(found.interval),
        "shapes": [list(shape) for shape in found.shapes],
        "words": [side.words if isinstance(side, Words) else [] for side in sides],
    }
    images = {f"image{k}": one for k, one in enumerate(samples) if not isinstance(one, str)}
    return Result(meta, {"patches": found.patches, **images})


@functools.lru_cache(maxsize=1)
def _thumbs(run: str, weights: str, request: BatchRequest) -> Any:
    """Return the thumbnails of a batch, whose pairs are clicked one after another."""
    return load_batch(runs.load(run), request).thumbs


def _sample(run: Run, split: str, name: str) -> np.ndarray | str:
    """Return the image or the caption with this id. Raises BadSetting if there is none."""
    dataset = data_of(run, split)
    if name in dataset.ids:
        return np.asarray(dataset.images[dataset.ids.index(name)])
    texts = dict[str, str]()
    if run.has_towers:
        captions = captions_of(dataset)
        texts = dict(zip(captions.names(dataset.ids), captions.texts, strict=True))
    if name not in texts:
        raise BadSetting("no sample {sample}; ids look like {id}", sample=name, id=dataset.ids[0])
    return texts[name]


def open_model(run: Run, device: str) -> Method:
    """Return the model of a run; the last one stays in memory for further requests."""
    return _open_model(str(run.path), run.weights_hash(), run.name, device)


@functools.lru_cache(maxsize=1)
def _open_model(path: str, weights: str, name: str, device: str) -> Method:
    run = runs.load(name)
    return load_model(run, data_of(run, "test"), device).requires_grad_(False)


def loss(values: Values, on_progress: OnProgress, device: str) -> Result:
    """Compute the loss of every sample with the run's own loss."""
    space = Space(**values["space"])
    on_progress(N_("the loss of every sample"), None)
    table = make_table(request_of(space.name, space.split), device=device)
    loss_of = dict(zip(table.columns["id"], table.columns["loss"], strict=True))
    values_of_rows = [loss_of.get(name, np.nan) for name in rows_of(space, on_progress, device).ids]
    return Result({"loss": table.loss}, {"loss": np.array(values_of_rows, np.float64)})


def map_of_space(values: Values, on_progress: OnProgress, device: str) -> Result:
    """Compute a map with its settings and quality."""
    rows = rows_of(Space(**values["space"]), on_progress, device)
    settings = {k: v for k, v in values.items() if k not in ("space", "kind")}
    return map_of_rows(rows, values["kind"], settings, cached_graphs(on_progress, device), on_progress)


def map_of_rows(rows: EmbeddingSet, kind: str, settings: JsonObject, graphs: Graphs, on_progress: OnProgress) -> Result:
    """Compute the map of rows in memory."""
    on_fraction = fraction_of(on_progress, N_("UMAP's layout"))
    with _one_map if kind == "umap" else nullcontext():
        projection = map_of(rows, kind, graphs, on_fraction, **settings)
    return Result({"settings": projection.settings, "quality": projection.quality}, {"xy": projection.xy})


def placed(values: Values, on_progress: OnProgress, device: str) -> Result:
    """Place the samples of another space of the same width on an existing map. Raises UnusableEmbedding."""
    rows, new = (rows_of(Space(**of), on_progress, device) for of in (values["map"]["space"], values["new"]))
    if rows.width != new.width:
        raise UnusableEmbedding(
            "the rows of the map have {width} dimensions, the new rows {new}", width=rows.width, new=new.width
        )
    xy = make("map", values["map"], on_progress, device).arrays["xy"]
    on_progress(N_("placing the new samples"), None)
    return Result({}, {"xy": project_new(new.features, rows.features, xy, device=device)})


# --- jobs with result files of their own ---


def evaluation(values: Values, on_progress: OnProgress, device: str) -> None:
    """Embed and score a run."""
    evaluate(runs.load(values["run"]), device=device, on_progress=on_progress)


def embedding(values: Values, on_progress: OnProgress, device: str) -> None:
    """Embed a split of a run: h and z, and on request both towers."""
    run = runs.load(values["run"])
    for layer in dict.fromkeys((*LAYERS, values.get("layer", "z"))):
        embed_run(run, values["split"], layer, device, fraction_of(on_progress, N_("embedding")))


def samples(values: Values, on_progress: OnProgress, device: str) -> None:
    """Create the table of all samples of a run's split, of loaded vectors or of a recording. Raises ValueError."""
    make_table(request_of(values["name"], values["split"], values["loss"]), on_progress, device)
