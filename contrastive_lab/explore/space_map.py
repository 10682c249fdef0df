"""Explore's toolbar and stage: the space, the kind and colors of its map, the selection, and the map; where the space
comes from, or the reason why there is nothing to show."""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from contrastive_core.data import datasets
from contrastive_core.data.dataset import form_of
from contrastive_core.runs.run import Run
from contrastive_core.spaces import loaded_vectors
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.space import TOWERS, Space, layers_of
from contrastive_lab import cache, embedding_map, format, load_vectors, locale, query_params, recordings, stage, state
from contrastive_lab.embedding_map import DETAILS, LOSS, DrawnMap, color_names
from contrastive_lab.locale import N_, _, message, ngettext
from contrastive_lab.progress import answer_or_wait
from contrastive_lab.recordings import LAYER_TITLES, Kinds, choose_place, follows_newest

MANY = 50_000  # rows, of which UMAP takes minutes
COLOR_WIDTH = 208  # pixels, with the label on the same line; 150 without it on a narrow screen (explore.css)
NOTHING = N_("nothing else")
SHORT = {"h": "h", "z": "z", TOWERS: LAYER_TITLES[TOWERS]}
alone = partial(st.container, key="explore-alone")  # replaces the stage when there is no map
FEATURES = N_("h is the output of the encoder, z the output of the projection head.")


@dataclass(frozen=True)
class View:
    """The view of a space: `kind` umap or pca with its settings; the color; `new`: the name and the space of samples
    to place on the map; `is_quick`: whether the map must be ready at once; and a description of the rows, if the page
    needs one."""

    kind: str
    settings: Mapping[str, float | str]
    color: str
    new: tuple[str, Space] | None = None
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

    def choose(self, space: Space, rows: EmbeddingSet, kinds: Kinds | None = None) -> View:
        """Draw the controls; return the chosen view. `kinds`: of a recording, whose followed newest step uses PCA,
        which is ready at once."""
        place, many = space.recorded, len(rows) > MANY
        follows = place is not None and kinds is not None and follows_newest(place.run, place, kinds)
        kind = "pca"
        with self.left:
            if place is not None and kinds is not None:
                choose_place(place.run, place, kinds)
            else:
                split_and_layer(space)
            if not follows:  # UMAP of many rows takes minutes and is only computed on request
                default = "pca" if many or place else "umap"
                look: dict[str, Any] = {"key": f"map-kind-{many}-{default}", "width": "content"}
                box, options = st.segmented_control, ["umap", "pca"]
                look |= {"default": default, "format_func": str.upper}
                kind = query_params.one_of(box, _("Map"), options, name="map", **look)
            names = color_names(rows, space.split != "train", not space.is_loaded and space.layer != TOWERS)
            look = {"key": f"color-{cache.digest(state.data_of(space))}", "width": COLOR_WIDTH}
            help = cache.definitions(*names) or None
            color = query_params.one_of(st.selectbox, _("Color by"), names, name="color", help=help, **look)
            at = state.place_of(space)
            if picked := [i for i in state.selection(at) if i < len(rows)]:  # a chip that clears it
                text = _("{picked} selected").format(picked=f"{len(picked):,}")
                label = format.plain(rows.ids[picked[0]]) if len(picked) == 1 else text
                clear: dict[str, Any] = {"key": "clear-selection", "on_click": state.select, "args": ([], at)}
                st.button(f"{label} ✕", help=_("Clear the selection"), **clear)
        new = None
        with self.more:
            if kind == "umap" and (others := others_of(space)):
                look = {"key": f"placed-{cache.digest(state.data_of(space), space.split)}"}
                label, options = _("Place on this map"), [NOTHING, *others]
                name = query_params.one_of(st.selectbox, label, options, name="placed", **look)
                new = (name, others[name]) if name in others else None
            settings = embedding_map.settings(kind)
        return View(kind, settings, color, new, follows, place.rows_title if place else "")


def others_of(space: Space) -> dict[str, Space]:
    """Return the spaces whose samples can be placed on a map, by name: the other split, and loaded vectors."""
    if space.is_recording:
        return {}
    loaded = {about["name"]: Space.of_vectors(key) for key, about in loaded_vectors.loaded().items()}
    splits = {split: space.with_split(split) for split in space.splits if split != space.split}
    return splits | {name: other for name, other in loaded.items() if other.name != space.name}


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


# --- the map on the stage --------------------------------------------------------------------------


def space_of(run: Run | None, key: str = "") -> Space:
    """Return the space of a run or of loaded vectors, with the split and layer of the URL or the controls."""
    if run is None:
        space = Space.of_vectors(key)
    else:
        space = Space.of_run(run, layer=query_params.current("features", layers_of(run), first_layer(run)))
    splits = space.splits
    return space.with_split(query_params.current("split", splits, splits[0]) if splits else "")


def draw(space: Space, rows: EmbeddingSet, view: View) -> tuple[DrawnMap, list[int]]:
    """Draw the map; return it with the selected rows."""
    if view.is_quick:
        drawn_map = embedding_map.quick_map(rows)
    else:  # new samples have places on the map as it was computed
        drawn_map = embedding_map.map_of(space, view.kind, view.settings, rows, aligned=view.new is None)
    details: dict[str, np.ndarray] = {}  # of each sample, if the map is colored by one of them
    if view.color in (*DETAILS, LOSS):
        kind, what = "scores", message("Table of all samples")
        if view.color == LOSS:
            kind, what = "loss", message("The loss of every sample")
        if (result := answer_or_wait(kind, {"space": space.values}, what)) is not None:
            details = result.arrays
    placed = None
    if view.new is not None:
        name, other = view.new
        values = {"map": embedding_map.question(space, view.kind, view.settings), "new": other.values}
        if result := answer_or_wait("placed", values, message("Placing {name} on the map", name=name)):
            placed = name, result.arrays["xy"]
    picked = embedding_map.draw(space, rows, drawn_map, (view.color, details), placed)
    return drawn_map, [i for i in picked if i < len(rows)]


# --- where it comes from -------------------------------------------------------------------------


def about_vectors(space: Space) -> None:
    """Describe a file of vectors and its missing parts."""
    about, rows = loaded_vectors.about(space.key), cache.embedding(space)
    labels: str = _("with labels") if about["labels"] else _("no labels")
    if rows is not None and rows.labels is not None and (missing := int((rows.labels < 0).sum())):
        few = ngettext("{missing} of {n} rows has no label", "{missing} of {n} rows have no label", missing)
        labels = few.format(missing=f"{missing:,}", n=f"{len(rows):,}")
    text = _("Loaded vectors · {rows} rows × {width} · {labels}")
    st.caption(text.format(rows=f"{about['rows']:,}", width=f"{about['width']:,}", labels=labels))
    if about["said"]:
        st.caption(format.plain(about["said"]))
    if lacking := load_vectors.about_left_out(space.key):
        st.warning(format.plain(lacking))


def left_out(run: Run, split: str) -> None:
    """Draw the files of a folder that a split leaves out, from its decoded images or the run's manifest."""
    name, lacking = str(run.config.get("dataset")), run.manifest.get("left_out") or ""
    if datasets.is_files(name):
        with contextlib.suppress(ValueError, OSError):
            if datasets.is_made(name, split, form_of(run.config)):
                lacking = cache.dataset_of(run, split).left_out
    if lacking:
        st.caption(format.plain(lacking))


def about_recording(run: Run, kinds: recordings.Kinds) -> None:
    """Draw a recording's progress, notes, checks and limits."""
    if run.is_alive():
        recordings.follow(run.name, kinds)
    else:
        st.caption(format.plain(recordings.describe(run)))
    status = run.status()
    if note := status.get("note"):
        (st.warning if status.get("is_warned") else st.info)(format.plain(format.in_form(note)))
    recordings.loop_check(run)
    st.caption(locale.text(recordings.LACKS))


def without_run() -> None:
    st.title(_("Explore"))
    with alone():
        st.info(_("No runs yet. Train one: digits takes about a minute."))
        st.page_link("pages/train.py", label=_("Go to Train"), icon=":material/play_circle:")
        load_vectors.opener()


def without_weights(run: Run) -> None:
    status = run.status()
    if status["status"] == "running":
        st.info(_("This run is still training; its map forms on the Train page."))
        st.page_link("pages/train.py", label=_("Watch it train"), icon=":material/play_circle:")
    else:
        text = _("The run is {status} and has no weights. {reason}")
        st.warning(format.plain(text.format(status=locale.text(status["status"]), reason=status["reason"])))


def not_embedded(space: Space) -> None:
    text = _("{name} has no {layer} for its {split} images yet.")
    layer = locale.text(recordings.LAYER_TITLES[TOWERS]) if space.layer == TOWERS else space.layer
    st.info(text.format(name=format.plain(space.title), layer=layer, split=space.split))
