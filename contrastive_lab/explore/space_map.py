"""Explore's current space, and its map on the stage."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from contrastive_core.compare.representation_similarity import procrustes_align
from contrastive_core.runs.run import Run
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.space import Space, layers_of
from contrastive_lab import cache, embedding_map, query_params
from contrastive_lab.embedding_map import DETAILS, LOSS, DrawnMap
from contrastive_lab.explore.toolbar import View, first_layer, others_of
from contrastive_lab.locale import N_, message
from contrastive_lab.progress import answer_or_wait


def space_of_run(run: Run) -> Space:
    """Return the space of a run with the split and layer of the URL or the controls."""
    layer = query_params.current("features", layers_of(run), first_layer(run))
    return _with_split(Space.of_run(run, layer=layer))


def space_of_vectors(key: str) -> Space:
    return _with_split(Space.of_vectors(key))


def _with_split(space: Space) -> Space:
    splits = space.splits
    return space.with_split(query_params.current("split", splits, splits[0]) if splits else "")


def draw(space: Space, rows: EmbeddingSet, view: View) -> tuple[DrawnMap, list[int]]:
    """Draw the map; return it with the selected rows."""
    drawn_map = (
        embedding_map.quick_map(rows) if view.is_quick else embedding_map.map_of(space, view.kind, view.settings, rows)
    )
    if not view.other:  # whose places are on the map as it is
        drawn_map = _turned_like_h(space, drawn_map, view.settings)
    picked = embedding_map.draw(space, rows, drawn_map, (view.color, _details(space, view)), _placed(space, view))
    return drawn_map, [i for i in picked if i < len(rows)]


def _turned_like_h(space: Space, drawn_map: DrawnMap, settings: Mapping[str, Any]) -> DrawnMap:
    """Align a UMAP of z to that of h by rotation and reflection, if that exists, so points move little between them."""
    if drawn_map.settings["kind"] != "umap" or space.layer != "z":
        return drawn_map
    of_h = cache.result("map", embedding_map.question(replace(space, layer="h"), "umap", settings))
    if of_h is None or len(of_h.arrays["xy"]) != len(drawn_map.xy):
        return drawn_map
    xy = procrustes_align(drawn_map.xy, of_h.arrays["xy"])
    return replace(drawn_map, xy=xy, settings={**drawn_map.settings, N_("aligned to"): "h"})


def _placed(space: Space, view: View) -> tuple[np.ndarray, str] | None:
    """Return the positions of another split or of loaded vectors on the same map, and their name; None if there are
    none."""
    if not view.other:
        return None
    values = {"map": embedding_map.question(space, "umap", view.settings), "new": others_of(space)[view.other].values}
    result = answer_or_wait("placed", values, message("Placing {name} on the map", name=view.other))
    return None if result is None else (result.arrays["xy"], view.other)


def _details(space: Space, view: View) -> dict[str, np.ndarray]:
    """Return the details of each sample if the map is colored by one of them."""
    if view.color not in (*DETAILS, LOSS):
        return {}
    kind, what = "scores", message("Table of all samples")
    if view.color == LOSS:
        kind, what = "loss", message("The loss of every sample")
    result = answer_or_wait(kind, {"space": space.values}, what)
    return {} if result is None else result.arrays
