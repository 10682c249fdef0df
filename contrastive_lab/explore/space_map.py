"""Explore's toolbar and stage: the space, the kind and colors of its map, the selection, a menu of rare options, and
the map."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import streamlit as st

from contrastive_core.compare.representation_similarity import procrustes_align
from contrastive_core.runs.run import Run
from contrastive_core.spaces import loaded_vectors
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.recorded_rows import Recorded
from contrastive_core.spaces.space import TOWERS, Space, layers_of
from contrastive_lab import cache, embedding_map, format, load_vectors, query_params, stage, state
from contrastive_lab.embedding_map import DETAILS, LOSS, DrawnMap, color_names
from contrastive_lab.locale import N_, _, message
from contrastive_lab.progress import answer_or_wait
from contrastive_lab.recordings import LAYER_TITLES, Kinds, choose_place, follows_newest

MANY = 50_000  # rows, of which UMAP takes minutes
COLOR_WIDTH = 208  # pixels, with the label on the same line; 150 without it on a narrow screen (explore.css)
NOTHING = N_("nothing else")
SHORT = {"h": "h", "z": "z", TOWERS: LAYER_TITLES[TOWERS]}
FEATURES = N_("h is the output of the encoder, z the output of the projection head.")


@dataclass(frozen=True)
class View:
    """The view of a space: `kind` umap or pca with its settings; the color; other rows on the map; `is_quick`: whether
    the map must be ready at once; and a description of the rows, if the page needs one."""

    kind: str
    settings: Mapping[str, float | str]
    color: str
    other: str = ""
    is_quick: bool = False
    rows_title: str = ""


class Bar:
    """The toolbar: `left` holds the choice of the space, `tools` the export, and `more` the menu of rare options."""

    def __init__(self) -> None:
        with stage.toolbar():
            self.left = st.container(
                horizontal=True, wrap=False, width="content", vertical_alignment="center", gap="small"
            )
            st.space("stretch")
            load_vectors.opener()
            self.tools = st.container(width="content")
            self.more = stage.more()
        with self.left:
            state.pick_run(st.session_state.get("vectors"))

    def choose(self, space: Space, rows: EmbeddingSet) -> View:
        """Draw the controls for a run or for loaded vectors; return the chosen view."""
        with self.left:
            split_and_layer(space)
            kind, other = _kind(rows, "pca" if len(rows) > MANY else "umap"), NOTHING
            color = _color(space, rows)
            _selected(space, rows)
        with self.more:
            if kind == "umap" and (others := others_of(space)):
                key = f"place-{cache.digest(state.data_of(space), space.split)}"
                label, options = _("Place on this map"), [NOTHING, *others]
                other = query_params.one_of(st.selectbox, label, options, name="placed", key=key)
            settings = embedding_map.settings(kind)
        return View(kind, settings, color, "" if other == NOTHING else other)

    def choose_recorded(self, run: Run, place: Recorded, kinds: Kinds, space: Space, rows: EmbeddingSet) -> View:
        """Draw the controls for a recording, including the step; return the view. The followed newest step uses PCA,
        which is ready at once."""
        with self.left:
            choose_place(run, place, kinds)
            follows = follows_newest(run, place, kinds)
            kind = "pca" if follows else _kind(rows, "pca")
            color = _color(space, rows)
            _selected(space, rows)
        with self.more:
            settings = embedding_map.settings(kind)
        return View(kind, settings, color, is_quick=follows, rows_title=place.rows_title)


def split_and_layer(space: Space) -> None:
    """Draw the controls that choose the split and the layer."""
    if space.splits:
        label = _("Rows") if space.is_loaded or space.layer == TOWERS else _("Images")
        query_params.one_of(st.segmented_control, label, space.splits, name="split", width="content")
    if run := space.run:
        look: dict[str, Any] = {"format_func": SHORT.get, "help": _(FEATURES), "width": "content"}
        first = first_layer(run)
        query_params.one_of(st.segmented_control, _("Features"), layers_of(run), name="features", default=first, **look)


def first_layer(run: Run) -> str:
    """Return the default layer: the shared space of two towers, else the encoder's output."""
    return TOWERS if run.has_towers else "h"


def others_of(space: Space) -> dict[str, Space]:
    """Return the spaces that can be placed on a map, by name: the other split, or loaded vectors."""
    others = {s: space.with_split(s) for s in space.splits if s != space.split}
    loaded = {str(about["name"]): Space.of_vectors(key) for key, about in loaded_vectors.loaded().items()}
    return others | {k: v for k, v in loaded.items() if v.name != space.name}


def _kind(rows: EmbeddingSet, default: str) -> str:
    """Let the user choose PCA or UMAP. UMAP of many rows takes minutes and is only computed on request."""
    about: dict[str, Any] = {"name": "map", "key": f"map-kind-{len(rows) > MANY}-{default}", "width": "content"}
    options = ["umap", "pca"]
    return query_params.one_of(st.segmented_control, _("Map"), options, default=default, format_func=str.upper, **about)


def _color(space: Space, rows: EmbeddingSet) -> str:
    names = color_names(rows, space.split != "train", not space.is_loaded and space.layer != TOWERS)
    key = f"color-{cache.digest(state.data_of(space))}"
    help = cache.definitions(*names) or None
    return query_params.one_of(st.selectbox, _("Color by"), names, name="color", key=key, width=COLOR_WIDTH, help=help)


def _selected(space: Space, rows: EmbeddingSet) -> None:
    """Draw the selection as a chip that clears it."""
    place = state.place_of(space)
    if picked := [i for i in state.selection(place) if i < len(rows)]:
        text = _("{picked} selected").format(picked=f"{len(picked):,}")
        label = format.plain(rows.ids[picked[0]]) if len(picked) == 1 else text
        st.button(
            f"{label} ✕", help=_("Clear the selection"), key="clear-selection", on_click=state.select, args=([], place)
        )


# --- the map on the stage --------------------------------------------------------------------------


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
    details: dict[str, np.ndarray] = {}  # of each sample, if the map is colored by one of them
    if view.color in (*DETAILS, LOSS):
        kind, what = "scores", message("Table of all samples")
        if view.color == LOSS:
            kind, what = "loss", message("The loss of every sample")
        if (result := answer_or_wait(kind, {"space": space.values}, what)) is not None:
            details = result.arrays
    placed = None  # another split or loaded vectors on the same map
    if view.other:
        values = {"map": embedding_map.question(space, "umap", view.settings)}
        values["new"] = others_of(space)[view.other].values
        if result := answer_or_wait("placed", values, message("Placing {name} on the map", name=view.other)):
            placed = result.arrays["xy"], view.other
    picked = embedding_map.draw(space, rows, drawn_map, (view.color, details), placed)
    return drawn_map, [i for i in picked if i < len(rows)]


def _turned_like_h(space: Space, drawn_map: DrawnMap, settings: Mapping[str, float | str]) -> DrawnMap:
    """Align a UMAP of z to that of h by rotation and reflection, if that exists, so points move little between them."""
    if drawn_map.settings["kind"] != "umap" or space.layer != "z":
        return drawn_map
    of_h = cache.result("map", embedding_map.question(replace(space, layer="h"), "umap", settings))
    if of_h is None or len(of_h.arrays["xy"]) != len(drawn_map.xy):
        return drawn_map
    xy = procrustes_align(drawn_map.xy, of_h.arrays["xy"])
    return replace(drawn_map, xy=xy, settings={**drawn_map.settings, N_("aligned to"): "h"})
