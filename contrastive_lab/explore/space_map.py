"""The space that Explore looks at: which split and layer of it, its map, what else is placed on it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st

from contrastive_core.records import embedding_ref, loaded_vectors
from contrastive_core.records.embedding_ref import TOWERS, EmbeddingRef
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.recorded_rows import Recorded
from contrastive_core.records.run import Run
from contrastive_lab import cache, embedding_map, query_params, state
from contrastive_lab.colors import DETAILS, LOSS, names_of
from contrastive_lab.locale import N_, _, message
from contrastive_lab.progress import answer_or_wait
from contrastive_lab.recordings import LAYER_TITLES, choose_place, follows_newest

MANY = 50_000  # rows, of which UMAP takes minutes
WIDTH = 150  # pixels of a list of choices
NOTHING = N_("nothing else")


@dataclass(frozen=True)
class View:
    """How a space is drawn: `kind` umap or pca with its settings; what colors it; what else is
    placed on it; whether the map has to be there at once; which rows, where that has to be said."""

    kind: str
    settings: dict[str, Any]
    color: str
    other: str = ""
    is_quick: bool = False
    of: str = ""


def space_of_run(run: Run) -> EmbeddingRef:
    """The split and the layer that the address or the controls ask for."""
    layer = query_params.current("features", embedding_ref.layers_of(run), _first_layer(run))
    return _with_split(embedding_ref.of_run(run, layer=layer))


def _first_layer(run: Run) -> str:
    """Of two towers the space that they share; else the encoder's output."""
    return TOWERS if run.has_towers else "h"


def space_of_vectors(key: str) -> EmbeddingRef:
    return _with_split(embedding_ref.of_vectors(key))


def _with_split(space: EmbeddingRef) -> EmbeddingRef:
    splits = space.splits
    return space.with_split(query_params.current("split", splits, splits[0]) if splits else "")


def split_and_layer(space: EmbeddingRef) -> None:
    """The controls of both."""
    if space.splits:
        label = _("Rows") if space.is_loaded or space.layer == TOWERS else _("Images")
        query_params.one_of(st.segmented_control, label, space.splits, name="split", width="content")
    if run := space.run:
        layers, title_of = embedding_ref.layers_of(run), LAYER_TITLES.get
        query_params.one_of(
            st.segmented_control,
            _("Features"),
            layers,
            name="features",
            default=_first_layer(run),
            format_func=title_of,
            width="content",
        )


def choose(space: EmbeddingRef, rows: EmbeddingSet) -> View:
    """The choices above the map, in one line."""
    with _line():
        split_and_layer(space)
        kind, settings = _kind(rows, "pca" if len(rows) > MANY else "umap")
        color, other = _color(space, rows), NOTHING
        if kind == "umap" and (others := _others_of(space)):
            key = f"place-{cache.digest(state.data_of(space), space.split)}"
            label, options = _("Place on this map"), [NOTHING, *others]
            other = query_params.one_of(st.selectbox, label, options, name="placed", width=WIDTH, key=key)
    return View(kind, settings, color, "" if other == NOTHING else other)


def choose_recorded(run: Run, place: Recorded, space: EmbeddingRef, rows: EmbeddingSet) -> View:
    """The same for a recording, with the step; a followed newest step is drawn by PCA, which is there at once."""
    with _line():
        choose_place(run, place)
        follows = follows_newest(run, place)
        kind, settings = ("pca", {}) if follows else _kind(rows, "pca")
        color = _color(space, rows)
    of = _(" of the {rows_title}").format(rows_title=place.rows_title)
    return View(kind, settings, color, is_quick=follows, of=of)


def draw(space: EmbeddingRef, rows: EmbeddingSet, view: View) -> tuple[np.ndarray, list[int]]:
    """The map: its points (n, 2), and the rows that are selected."""
    drawn_map = (
        embedding_map.quick_map(rows) if view.is_quick else embedding_map.map_of(space, view.kind, view.settings, rows)
    )
    extra = _placed(space, view.settings, view.other) if view.other else None
    colors = (view.color, _details(space, view.color))
    picked = embedding_map.draw(space, rows, drawn_map, colors, extra)
    embedding_map.caption(drawn_map, view.of)
    if drawn_map.settings["kind"] == "umap":
        embedding_map.agreement(space, view.settings)
    return drawn_map.xy, [i for i in picked if i < len(rows)]


def _line() -> Any:
    """One line; a narrow screen wraps it without labels (app.py), so the map stays on the first screen."""
    return st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="map-choices")


def _kind(rows: EmbeddingSet, default: str) -> tuple[str, dict[str, Any]]:
    """PCA or UMAP, and its settings. Of many rows UMAP takes minutes: it is made when asked for."""
    about: dict[str, Any] = {"name": "map", "key": f"map-kind-{len(rows) > MANY}-{default}", "width": "content"}
    options = ["umap", "pca"]
    kind = query_params.one_of(st.segmented_control, _("Map"), options, default=default, format_func=str.upper, **about)
    return kind, embedding_map.settings(kind)


def _color(space: EmbeddingRef, rows: EmbeddingSet) -> str:
    names = names_of(rows, space.split != "train", not space.is_loaded and space.layer != TOWERS)
    key = f"color-{cache.digest(state.data_of(space))}"
    help = cache.definitions(*names) or None
    return query_params.one_of(st.selectbox, _("Color by"), names, name="color", key=key, width=WIDTH, help=help)


def _details(space: EmbeddingRef, color: str) -> dict[str, np.ndarray]:
    """What is known of each sample for this color; computed when it is first asked for."""
    what, kind = message("Table of all samples"), "scores"
    if color == LOSS:
        what, kind = message("The loss of every sample"), "loss"
    result = answer_or_wait(kind, {"space": space.values}, what) if color in (*DETAILS, LOSS) else None
    return {} if result is None else result.arrays


def _others_of(space: EmbeddingRef) -> dict[str, EmbeddingRef]:
    """What can be placed on a map, by its name: the other split, or loaded vectors."""
    others = {s: space.with_split(s) for s in space.splits if s != space.split}
    loaded = {str(about["name"]): embedding_ref.of_vectors(key) for key, about in loaded_vectors.loaded().items()}
    return others | {k: v for k, v in loaded.items() if v.name != space.name}


def _placed(space: EmbeddingRef, settings: dict[str, Any], name: str) -> tuple[np.ndarray, str] | None:
    """Where other samples fall on this map: the other split, or loaded vectors of its width."""
    values = {"map": embedding_map.question(space, "umap", settings), "new": _others_of(space)[name].values}
    result = answer_or_wait("placed", values, message("Placing {name} on the map", name=name))
    return None if result is None else (result.arrays["xy"], name)
