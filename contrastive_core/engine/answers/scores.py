"""Questions about one space: scores, the loss of each sample, its map, and the files of a run."""

import functools
import threading
from contextlib import nullcontext

import numpy as np

from contrastive_core import metrics
from contrastive_core.embeddings.graphs import Graphs
from contrastive_core.embeddings.reading import read_images, read_rows
from contrastive_core.engine.answers import Values, cached_graphs, cached_result, recorded_of, rows_of, test_rows
from contrastive_core.engine.results import Result
from contrastive_core.errors import UnusableEmbedding
from contrastive_core.evaluation.embed import data_of, embed_run, load_model, random_encoder, raw_pixels
from contrastive_core.evaluation.evaluate import evaluate, evaluate_sets, evaluate_split
from contrastive_core.evaluation.map_quality import agreement as mean_agreement
from contrastive_core.evaluation.projection import map_of, project_new
from contrastive_core.evaluation.reproduce import ScoreCache
from contrastive_core.evaluation.tower_notes import tower_notes
from contrastive_core.evaluation.towers import tower_scores
from contrastive_core.evaluation.zero_shot import nearest_images, zero_shot_scores
from contrastive_core.messages import N_, message
from contrastive_core.methods import Method
from contrastive_core.progress import OnProgress, fraction_of, prefixed
from contrastive_core.records import runs
from contrastive_core.records.embedding_ref import LAYERS, TOWERS, EmbeddingRef
from contrastive_core.records.evaluation import read_evaluation
from contrastive_core.records.frozen import parse
from contrastive_core.records.run import Run
from contrastive_core.records.sample_request import SampleRequest, request_of
from contrastive_core.records.sample_table import SampleTable
from contrastive_core.records.score import Scores, scores_to_json
from contrastive_core.records.towers import Towers, towers_of
from contrastive_core.samples import run_samples
from contrastive_core.storage.json_files import JsonObject

SLOW = "linear_probe"  # on pixels; raw and random have theirs in the run's evaluation
SEEDS = 3  # maps that are compared

_one_map = threading.Lock()  # numba's layer of threads is not safe for two layouts at once


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
        own |= evaluate_split([name], (train, test), rows, graphs, recorded)
        for part, array in own[name].arrays.items():
            arrays[f"{name}:{part}"] = _spread(array, at if needs_train else np.arange(len(rows)), len(rows))
    sources = {"own": scores_to_json(own)}
    sources |= (
        {}
        if space.is_loaded or space.layer == TOWERS
        else _references(space, on_progress, device, {} if known is None else known)
    )
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


def towers(values: Values, on_progress: OnProgress, device: str) -> Result:
    """Recall and modality gap of a space of two towers, with what chance gives; the rank of each row's partner."""
    pair = towers_of(rows_of(EmbeddingRef(**values["space"]), on_progress, device))
    if pair is None:
        raise ValueError(N_("these rows are not of two towers"))
    on_progress(N_("ranks of partners"), None)
    own, chance, ranks = tower_scores(pair)
    by_source = {"own": scores_to_json(own), "chance": scores_to_json(chance)}
    return Result({"scores": by_source, **vars(tower_notes(pair, (own, chance)))}, {"rank": ranks})


def zero_shot(values: Values, on_progress: OnProgress, device: str) -> Result:
    """Zero-shot accuracy of a run's images with templates for the class names, and what chance gives."""
    run, towers = _run_and_towers(values, on_progress, device)
    own, chance = zero_shot_scores(towers, lambda: open_model(run, device), values["templates"])
    return Result({"scores": {"own": scores_to_json(own), "chance": scores_to_json(chance)}})


def text_query(values: Values, on_progress: OnProgress, device: str) -> Result:
    """The images most similar to a sentence, and the words of it that the text tower has not learned."""
    run, towers = _run_and_towers(values, on_progress, device)
    rows, similarity, unknown = nearest_images(open_model(run, device), towers, values["text"], values["most"])
    return Result({"unknown": unknown}, {"rows": rows, "similarity": similarity})


def open_model(run: Run, device: str) -> Method:
    """The model of a run, kept open: a sentence then takes no second load."""
    return _open_model(str(run.path), run.weights_hash(), run.name, device)


@functools.lru_cache(maxsize=1)
def _open_model(path: str, weights: str, name: str, device: str) -> Method:
    run = runs.load(name)
    return load_model(run, data_of(run, "test"), device)


def _run_and_towers(values: Values, on_progress: OnProgress, device: str) -> tuple[Run, Towers]:
    space = EmbeddingRef(**values["space"])
    pair = towers_of(rows_of(space, on_progress, device))
    if pair is None or space.run is None:
        raise ValueError(N_("these rows are not of two towers"))
    return space.run, pair


def losses(values: Values, on_progress: OnProgress, device: str) -> Result:
    """The loss of every sample, with the run's own loss."""
    space = EmbeddingRef(**values["space"])
    on_progress(N_("the loss of every sample"), None)
    table = run_samples.samples_of_run(runs.load(space.name), None, space.split, device=device)
    loss_of = dict(zip(table.columns["id"], table.columns["loss"], strict=True))
    loss = [loss_of.get(name, np.nan) for name in rows_of(space, on_progress, device).ids]
    return Result({"loss": table.loss}, {"loss": np.array(loss, np.float64)})


def evaluation(values: Values, on_progress: OnProgress) -> None:
    """Embed and score a run."""
    evaluate(runs.load(values["run"]), on_progress=on_progress)


def embedding(values: Values, on_progress: OnProgress) -> None:
    """Embed a split of a run: h and z, and both towers if they are asked for."""
    run = runs.load(values["run"])
    for layer in dict.fromkeys((*LAYERS, values.get("layer", "z"))):
        embed_run(run, values["split"], layer, progress=fraction_of(on_progress, N_("embedding")))


def samples(values: Values, on_progress: OnProgress) -> None:
    """The table of every sample of a run's split, of loaded vectors or of a recording."""
    frozen = parse(values["frozen"]) if values["frozen"] else None
    sample_table(request_of(values["name"], values["split"], values["loss"], frozen), on_progress)


def sample_table(request: SampleRequest, on_progress: OnProgress, device: str = "auto") -> SampleTable:
    """The same, of what is asked for."""
    if (run := request.run) is not None:
        return run_samples.samples_of_run(run, request.loss, request.split, on_progress, device, request.frozen)
    if (rows := read_rows(request.rows)) is None:
        raise ValueError(message("no vectors named {name}", name=request.name))
    return run_samples.samples_of_vectors(request, rows, read_images(request.rows), on_progress, device)


def map_of_space(values: Values, on_progress: OnProgress, device: str) -> Result:
    """A map with its settings and how far it can be believed."""
    rows = rows_of(EmbeddingRef(**values["space"]), on_progress, device)
    settings = {k: v for k, v in values.items() if k not in ("space", "kind")}
    graphs = cached_graphs(on_progress, device)
    on_fraction = fraction_of(on_progress, N_("UMAP's layout"))
    with _one_map if values["kind"] == "umap" else nullcontext():
        projection = map_of(rows, values["kind"], graphs, on_fraction, **settings)
    return Result({"settings": projection.settings, "quality": projection.quality}, {"xy": projection.xy})


def agreement(values: Values, on_progress: OnProgress, device: str) -> Result:
    """How many of the nearest points on a map are the same with two other seeds."""
    seeds = [int(values["seed"]) + q for q in range(SEEDS)]
    maps = []
    for number, seed in enumerate(seeds, 1):
        part = prefixed(on_progress, f"seed {number} of {SEEDS}")
        result = cached_result("map", map_of_space, {**values, "seed": seed}, part, device)
        maps.append(result.arrays["xy"])
    k = min(15, len(maps[0]) - 1)
    return Result({"agreement": mean_agreement(maps, k), "k": k, "seeds": seeds})


def placed(values: Values, on_progress: OnProgress, device: str) -> Result:
    """Where the samples of another space, of the same width, fall on a map that exists."""
    map_values = values["map"]
    rows = rows_of(EmbeddingRef(**map_values["space"]), on_progress, device)
    new = rows_of(EmbeddingRef(**values["new"]), on_progress, device)
    if rows.width != new.width:
        raise UnusableEmbedding("the map's rows are {width} wide, the new ones {new}", width=rows.width, new=new.width)
    xy = cached_result("map", map_of_space, map_values, on_progress, device).arrays["xy"]
    on_progress(N_("placing the new samples"), None)
    places = project_new(new.features, rows.features, xy, device=device)
    return Result({"n": len(new)}, {"xy": places})
