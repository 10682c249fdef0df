"""The maps of several spaces side by side, turned onto the first, with one selection in all."""

import numpy as np
import streamlit as st

from contrastive_core.engine.results import MAP_DEFAULTS
from contrastive_core.engine.vectors import procrustes_align
from contrastive_core.records.comparison import NOTHING_IN_COMMON
from contrastive_core.records.embedding_ref import EmbeddingRef
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_lab import cache, embedding_map, format, guard, pictures, query_params, state
from contrastive_lab.colors import color_of, drawn_places, subsample_rows
from contrastive_lab.components import scatter
from contrastive_lab.components.map_pictures import bring_pictures
from contrastive_lab.components.scatter import MAX_IMAGES, MAX_POINTS, LinkedSelection, ScatterData
from contrastive_lab.components.shared.thumbnails import NO_THUMBNAILS, thumbnail_sheet
from contrastive_lab.locale import _


def can_be_drawn(spaces: list[EmbeddingRef]) -> bool:
    """Whether all are embedded, whatever else is still unknown of them."""
    try:
        return bool(spaces) and all(cache.embedding(s) is not None for s in spaces)
    except guard.DAMAGE:
        return False


def maps(spaces: list[EmbeddingRef]) -> None:
    """All maps side by side, turned onto the first; one selection is lit in all of them."""
    group, kinds = st.segmented_control, ["pca", "umap"]
    kind = query_params.one_of(group, _("Map"), kinds, name="map", format_func=str.upper, label_visibility="collapsed")
    embeddings = [rows for space in spaces if (rows := cache.embedding(space)) is not None]
    if len(embeddings) < len(spaces):
        st.info(_("An embedding is still being computed."))
        return
    if len(set.intersection(*(set(rows.ids) for rows in embeddings))) < 2:
        st.warning(format.plain(NOTHING_IN_COMMON))
        return
    xy, first = _aligned(spaces, embeddings, kind)
    _draw(spaces, embeddings, xy, first, kind)
    text = _(
        "Each map is turned and mirrored onto that of {title} (Procrustes), at one size. The "
        "slider moves every sample to where the first map has it."
    )
    st.caption(text.format(title=format.plain(spaces[0].title)))


def _aligned(
    spaces: list[EmbeddingRef], embeddings: list[EmbeddingSet], kind: str
) -> tuple[list[np.ndarray], EmbeddingSet]:
    """Maps (n, 2) of the samples that all spaces share, aligned to the first, and the first's rows of them."""
    shared = set.intersection(*(set(rows.ids) for rows in embeddings))
    order = [i for i in embeddings[0].ids if i in shared]
    settings = MAP_DEFAULTS if kind == "umap" else {}
    maps: list[np.ndarray] = []
    for space, rows in zip(spaces, embeddings, strict=True):
        places = {name: row for row, name in enumerate(rows.ids)}
        xy = embedding_map.map_of(space, kind, settings, rows).xy[[places[i] for i in order]]
        maps.append(procrustes_align(xy, maps[0]) if maps else xy)
    first = embeddings[0]
    return maps, first if len(order) == len(first) else first.take([q for q, i in enumerate(first.ids) if i in shared])


def _draw(
    spaces: list[EmbeddingRef], embeddings: list[EmbeddingSet], xy: list[np.ndarray], first: EmbeddingSet, kind: str
) -> None:
    """Draw aligned maps with one shared selection."""
    drawn_rows = subsample_rows(first.labels, len(first), MAX_POINTS // len(xy))
    part: slice | np.ndarray = slice(None)
    ids, note = first.ids, ""
    if drawn_rows is not None:
        part, ids = drawn_rows, tuple(first.ids[i] for i in drawn_rows)
        text = _("{drawn_rows} of {first} points, by class")
        note = text.format(drawn_rows=f"{len(drawn_rows):,}", first=f"{len(first):,}")
    values, names = color_of(first, "class" if first.labels is not None else "sample", {})
    with_pictures = drawn_rows is None and len(first) == len(embeddings[0]) and pictures.are_decoded(spaces[0])
    pictured = subsample_rows(first.labels, len(first), MAX_IMAGES) if with_pictures else None
    place, key = state.place_of(spaces[0]), f"compare-{kind}-{spaces[0].layer}"
    data = ScatterData(
        xy[0][part],
        ids,
        cache.digest(*(r.content_hash for r in embeddings), kind, with_pictures),
        None if values is None else values[part],
        names,
        thumbnails=cache.thumbnails(spaces[0], pictured) if with_pictures else NO_THUMBNAILS,
        pictured=pictured,
        title=_("{kind} maps side by side").format(kind=kind.upper()),
        note=note,
    )
    selection = LinkedSelection(
        drawn_places(state.selection(place), drawn_rows),
        f"{place} {state.stamp(key)}",
        lambda rows: state.select(rows if drawn_rows is None else drawn_rows[rows], place, key),
    )
    data = scatter.side_by_side(data, [m[part] for m in xy], [s.title for s in spaces])
    scatter.draw_scatter(data, selection, height={2: 370, 3: 340}.get(len(xy), 600), key=key)
    if pictured is not None:
        images = pictures.of(spaces[0])
        bring_pictures(data.content, len(first), lambda some: thumbnail_sheet(images, rows=some), key)
