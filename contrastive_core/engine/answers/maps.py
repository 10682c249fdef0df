"""The map of one space: made, judged by other seeds, and with other samples placed on it."""

from __future__ import annotations

import threading
from contextlib import nullcontext

from contrastive_core.engine.answers.inputs import Values, cached_graphs, cached_result, rows_of
from contrastive_core.engine.results import Result
from contrastive_core.errors import UnusableEmbedding
from contrastive_core.evaluation.map_quality import agreement as mean_agreement
from contrastive_core.evaluation.projection import map_of, project_new
from contrastive_core.messages import N_
from contrastive_core.progress import OnProgress, fraction_of, prefixed
from contrastive_core.records.embedding_ref import EmbeddingRef

SEEDS = 3  # maps that are compared

_one_map = threading.Lock()  # numba's layer of threads is not safe for two layouts at once


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
