"""The map of one space: made, judged by other seeds, and with other samples placed on it."""

from __future__ import annotations

from contrastive_core.cli.analyses._base import Values, cached_graphs, cached_result, rows_of
from contrastive_core.embeddings.ref import EmbeddingRef
from contrastive_core.errors import UnusableEmbedding
from contrastive_core.jobs.results import Result
from contrastive_core.progress import OnProgress, fraction_of, prefixed

__all__ = ["agreement", "map_of_space", "placed"]

SEEDS = 3  # maps that are compared


def map_of_space(values: Values, on_progress: OnProgress, device: str) -> Result:
    """A map with its settings and how far it can be believed."""
    from contrastive_core.evaluation.projection import map_of

    rows = rows_of(EmbeddingRef(**values["space"]), on_progress, device)
    settings = {k: v for k, v in values.items() if k not in ("space", "kind")}
    projection = map_of(
        rows,
        values["kind"],
        cached_graphs(on_progress, device),
        fraction_of(on_progress, "UMAP's layout"),
        **settings,
    )
    return Result(
        {"settings": projection.settings, "quality": projection.quality}, {"xy": projection.xy}
    )


def agreement(values: Values, on_progress: OnProgress, device: str) -> Result:
    """How many of the nearest points on a map are the same with two other seeds."""
    from contrastive_core.evaluation.map_quality import agreement as mean_agreement

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
    from contrastive_core.evaluation.projection import project_new

    map_values = values["map"]
    rows = rows_of(EmbeddingRef(**map_values["space"]), on_progress, device)
    new = rows_of(EmbeddingRef(**values["new"]), on_progress, device)
    if rows.width != new.width:
        raise UnusableEmbedding(f"the map's rows are {rows.width} wide, the new ones {new.width}")
    xy = cached_result("map", map_of_space, map_values, on_progress, device).arrays["xy"]
    on_progress("placing the new samples", None)
    places = project_new(new.features, rows.features, xy, device=device)
    return Result({"n": len(new)}, {"xy": places})
