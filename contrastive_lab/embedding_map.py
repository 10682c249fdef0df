"""The map of one space: which one, how it is made, how far it can be believed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import streamlit as st

from contrastive_core.embeddings.embedding_set import EmbeddingSet
from contrastive_core.embeddings.ref import EmbeddingRef
from contrastive_core.jobs.results import MAP_DEFAULTS
from contrastive_lab import cache, format, pictures, query_params, state, words
from contrastive_lab.colors import color_of, drawn_places, hints_of, subsample_rows
from contrastive_lab.components.map_pictures import bring_pictures
from contrastive_lab.components.scatter import (
    MAX_IMAGES,
    MAX_POINTS,
    LinkedSelection,
    ScatterData,
    draw_scatter,
)
from contrastive_lab.components.scatter.categories import PALETTE
from contrastive_lab.components.shared.thumbnails import (
    NO_THUMBNAILS,
    ThumbnailSheet,
    thumbnail_sheet,
)
from contrastive_lab.progress import answer_or_wait

__all__ = ["agreement", "caption", "draw", "map_of", "settings"]

DARK = "#24292F"  # of samples that are placed on a map of others
AGREE = "Draws this map with two more seeds and counts the neighbors on it that all three share."


def settings(kind: str) -> dict[str, Any]:
    """UMAP's settings, as they were last asked for."""
    if kind != "umap":
        return {}
    now = dict(st.session_state.get("umap", MAP_DEFAULTS))
    drawn_before = st.session_state.get("umap-drawn", 0)  # a new key closes the popover
    box = st.popover("Settings", icon=":material/tune:", key=f"umap-settings-{drawn_before}")
    with box, st.form(f"umap-form-{drawn_before}", border=False):
        seed, of_seed = query_params.form_number(
            st.number_input, "Seed", 0, 10_000, int(now["seed"])
        )
        neighbors = st.slider("Neighbors", 2, 100, int(now["neighbors"]),
                               help="small: local detail; large: the coarse layout")  # fmt: skip
        dist = st.slider("min_dist", 0.0, 1.0, float(now["min_dist"]), 0.05,
                         help="how close points may lie on the map")  # fmt: skip
        metric = st.segmented_control("Metric", ["cosine", "euclidean"], default=now["metric"],
                                      format_func=words.shown, required=True)  # fmt: skip
        if st.form_submit_button("Draw this map", type="primary") and not of_seed:
            st.session_state["umap"] = {
                "seed": int(seed), "neighbors": int(neighbors), "min_dist": float(dist),
                "metric": metric or "cosine",
            }  # fmt: skip
            st.session_state["umap-drawn"] = drawn_before + 1
            st.rerun()
    return now


def map_of(
    space: EmbeddingRef, kind: str, map_settings: dict[str, Any], rows: EmbeddingSet
) -> dict[str, Any]:
    """`xy`, `settings`, `quality`; PCA without a judgment while the map is being made."""
    values = question(space, kind, map_settings)
    result = answer_or_wait("map", values, f"{kind.upper()} map of {space.title}")
    if result is not None:
        return {"xy": result.arrays["xy"], **result.meta}
    xy = cache.map_pca(rows.content_hash, rows.features)
    return {"xy": xy, "settings": {"kind": "pca"}, "quality": {}}


def question(space: EmbeddingRef, kind: str, map_settings: dict[str, Any]) -> dict[str, Any]:
    return {"space": space.values, "kind": kind, **map_settings}


def caption(drawn_map: dict[str, Any], of: str = "") -> None:
    """The map's settings and quality, and of which rows it is where the page does not say so."""
    text = format.map_of(drawn_map["settings"], of) + format.quality_of(drawn_map["quality"])
    st.caption(text + "Scores are computed in the embedding, never on the map.")


def agreement(space: EmbeddingRef, map_settings: dict[str, Any]) -> None:
    """Whether three seeds give the same neighbors on the map, once it is asked for."""
    values = question(space, "umap", map_settings)
    ask = f"three {sorted(values['space'].items())} {sorted(map_settings.items())}"
    if cache.result("agreement", values) is None and not st.session_state.get(ask):
        if st.button("Do three seeds agree?", help=AGREE):
            st.session_state[ask] = True
            st.rerun()
        return
    result = answer_or_wait("agreement", values, "Maps of two more seeds")
    if result is not None:
        seeds = ", ".join(map(str, result.meta["seeds"]))
        st.caption(
            f"Maps of seeds {seeds} share {100 * result.meta['agreement']:.0f} % of the "
            f"{result.meta['k']} nearest points: what differs is the seed's, not the data's."
        )


def draw(
    space: EmbeddingRef,
    rows: EmbeddingSet,
    map_result: dict[str, Any],
    color: tuple[str, dict[str, np.ndarray]],
    extra: tuple[np.ndarray, str] | None = None,
) -> list[int]:
    """The scatter; returns the selected rows. `extra`: places of other samples, and their name."""
    name, details = color
    values, names = color_of(rows, name, details)
    drawn_rows = subsample_rows(rows.labels, len(rows), MAX_POINTS)
    everything = slice(None) if drawn_rows is None else drawn_rows
    xy, ids = map_result["xy"][everything], rows.ids
    if drawn_rows is not None:
        ids = tuple(rows.ids[i] for i in drawn_rows)
    if values is not None:
        values = values[everything]
    palette: Sequence[str] = PALETTE
    if extra is not None:
        xy, ids, values, names = _with_extra(xy, ids, values, names, extra)
        palette = [*(PALETTE[i % len(PALETTE)] for i in range(len(names) - 1)), DARK]
    with_pictures = extra is None and pictures.are_decoded(space)
    place, used = state.place_of(space), map_result["settings"]
    key = f"map-{cache.digest(place)}"
    middles = (
        cache.medoids(cache.digest(place, rows.content_hash, str(used)), xy)
        if with_pictures else []
    )  # fmt: skip
    pictured = _pictured(rows, drawn_rows, middles) if with_pictures else None
    data = ScatterData(
        xy, ids, color=values, names=names, palette=palette,
        content=cache.digest(rows.content_hash, str(used), with_pictures, extra and extra[1]),
        title=f"{used['kind'].upper()} map of the rows of {space.title}, "
        f"{space.layer} {space.split}",
        note="" if drawn_rows is None else f"{len(drawn_rows):,} of {len(rows):,} points, by class",
        hints=hints_of(rows) if drawn_rows is None else (),
        thumbnails=_thumbnails(space, drawn_rows, pictured) if with_pictures else NO_THUMBNAILS,
        pictured=pictured,
        medoids=middles,
    )  # fmt: skip
    selection = LinkedSelection(
        drawn_places(state.selection(place), drawn_rows), f"{place} {state.stamp(key)}",
        lambda chosen: state.select(_rows(chosen, drawn_rows, len(rows)), place, key),
    )  # fmt: skip
    draw_scatter(data, selection, fits=True, gallery=False, key=key)
    if pictured is not None:
        bring_pictures(data.content, len(ids), lambda some: _sheet(space, some, drawn_rows), key)
    return state.selection(place)


def _pictured(
    rows: EmbeddingSet, drawn_rows: np.ndarray | None, middles: list[int]
) -> np.ndarray | None:
    """Points that have a thumbnail, by class, those on the map itself among them; None: all."""
    n = len(rows) if drawn_rows is None else len(drawn_rows)
    labels = rows.labels if rows.labels is None or drawn_rows is None else rows.labels[drawn_rows]
    some = subsample_rows(labels, n, MAX_IMAGES)
    return None if some is None else np.union1d(some, np.asarray(middles, np.int64))


def _thumbnails(
    space: EmbeddingRef, drawn_rows: np.ndarray | None, pictured: np.ndarray | None
) -> ThumbnailSheet:
    if pictured is None or drawn_rows is None:
        return pictures.thumbnails(space, drawn_rows if pictured is None else pictured)
    return pictures.thumbnails(space, drawn_rows[pictured])


def _sheet(space: EmbeddingRef, some: np.ndarray, drawn_rows: np.ndarray | None) -> ThumbnailSheet:
    """Thumbnails of some points."""
    rows = some if drawn_rows is None else drawn_rows[some]
    return thumbnail_sheet(pictures.of(space), rows=rows)


def _rows(chosen: np.ndarray, drawn_rows: np.ndarray | None, n: int) -> np.ndarray:
    """Rows of the space behind points; points of other samples have none."""
    if drawn_rows is None:
        return chosen[chosen < n]
    return drawn_rows[chosen[chosen < len(drawn_rows)]]


def _with_extra(
    xy: np.ndarray, ids: tuple[str, ...], values: Any, names: tuple[str, ...], extra: Any
) -> tuple[Any, ...]:
    """The map's points, pale by their category, and other samples in a category of their own."""
    places, name = extra
    categories = np.zeros(len(xy), np.int64) if values is None or not names else values
    names = names or ("this space",)
    joined = np.concatenate([categories, np.full(len(places), len(names))])
    return (
        np.concatenate([xy, places]), (*ids, *(f"{name} {i}" for i in range(len(places)))),
        joined, (*names, name),
    )  # fmt: skip
