"""The maps of several spaces side by side, turned onto the first, with one selection in all."""

from __future__ import annotations

import streamlit as st

from contrastive_core.embeddings.ref import EmbeddingRef
from contrastive_core.evaluation.representation_similarity import procrustes_align
from contrastive_core.jobs.results import MAP_DEFAULTS
from contrastive_lab import cache, embedding_map, format, pictures, query_params, state
from contrastive_lab.colors import color_of, drawn, kept
from contrastive_lab.components.scatter import (
    MAX_POINTS,
    LinkedSelection,
    ScatterData,
    draw_scatter,
)
from contrastive_lab.components.scatter.side_by_side import side_by_side
from contrastive_lab.components.shared.thumbnails import NO_THUMBNAILS

__all__ = ["maps"]


def maps(spaces: list[EmbeddingRef]) -> None:
    """All maps side by side, turned onto the first; one selection is lit in all of them."""
    kind = query_params.one_of(st.segmented_control, "Map", ["pca", "umap"], name="map",
                               format_func=str.upper)  # fmt: skip
    sets = [cache.embedding(s) for s in spaces]
    if any(rows is None for rows in sets):
        st.info("An embedding is still being made.")
        return
    known = [rows for rows in sets if rows is not None]
    shared = set.intersection(*(set(rows.ids) for rows in known))
    order = [i for i in known[0].ids if i in shared]
    settings = MAP_DEFAULTS if kind == "umap" else {}
    whole = [
        embedding_map.map_of(space, kind, settings, rows)["xy"]
        for space, rows in zip(spaces, known, strict=True)
    ]
    at = [{name: row for row, name in enumerate(rows.ids)} for rows in known]
    xy = [m[[a[i] for i in order]] for m, a in zip(whole, at, strict=True)]
    xy = [xy[0], *(procrustes_align(m, xy[0]) for m in xy[1:])]
    first = known[0] if len(order) == len(known[0]) else known[0].take([at[0][i] for i in order])
    shown = drawn(first.labels, len(first), MAX_POINTS // len(xy))
    part = slice(None) if shown is None else shown
    values, names = color_of(first, "class" if first.labels is not None else "sample", {})
    with_pictures = (
        shown is None and len(first) == len(known[0]) and pictures.are_decoded(spaces[0])
    )
    place, key = state.place_of(spaces[0]), f"compare-{kind}-{spaces[0].layer}"
    data = ScatterData(
        xy[0][part], first.ids if shown is None else [first.ids[i] for i in shown],
        cache.digest(*(r.content_hash for r in known), kind, with_pictures),
        None if values is None else values[part], names,
        thumbnails=pictures.thumbnails(spaces[0]) if with_pictures else NO_THUMBNAILS,
        title=f"{kind.upper()} maps side by side",
        note="" if shown is None else f"{len(shown):,} of {len(first):,} points, by class",
    )  # fmt: skip
    selection = LinkedSelection(
        kept(state.selection(place), shown), f"{place} {state.stamp(key)}",
        lambda rows: state.select(
            rows if shown is None else [int(shown[i]) for i in rows], place, key),
    )  # fmt: skip
    draw_scatter(
        side_by_side(data, [m[part] for m in xy], [s.title for s in spaces]), selection,
        height={2: 430, 3: 360}.get(len(xy), 600), key=key,
    )  # fmt: skip
    st.caption(
        f"Each map is turned and mirrored onto that of {format.plain(spaces[0].title)} "
        "(Procrustes), at one size. The slider moves every sample to where the first map has it."
    )
