"""Maps of several spaces side by side, aligned to the first, with a shared selection."""

from typing import Any

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from contrastive_core.compare.comparison import NOTHING_IN_COMMON
from contrastive_core.compare.representation_similarity import procrustes_align
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.results import MAP_DEFAULTS
from contrastive_core.spaces.space import Space
from contrastive_lab import cache, embedding_map, format, locale, pictures, query_params, state
from contrastive_lab.compare.disagreements import ComparedSamples
from contrastive_lab.compare.space_picker import SHAPES
from contrastive_lab.components import scatter
from contrastive_lab.components.scatter import (
    MAX_IMAGES,
    MAX_POINTS,
    PALETTE,
    LinkedSelection,
    ScatterData,
    bring_pictures,
)
from contrastive_lab.components.shared.transport import NO_THUMBNAILS, thumbnail_sheet
from contrastive_lab.embedding_map import color_of, drawn_places, subsample_rows
from contrastive_lab.locale import N_, _

MANY = 50_000  # rows, of which UMAP takes minutes
COLORS = ("class", N_("which encoder is right"))
ALIGNED = N_(
    "Each map is rotated, mirrored and scaled to fit map A (Procrustes). The slider moves every sample to its place "
    "on map A."
)


def empty(title: str, text: str) -> DeltaGenerator:
    """Draw an empty stage with a title, the reason, and room for a next step; return that container."""
    place = st.container(key="compare-empty", horizontal_alignment="center", vertical_alignment="center", gap="small")
    place.header(title, width="content")
    place.caption(text, width="content", text_alignment="center")
    return place


def choose(spaces: list[Space], samples: ComparedSamples | None) -> None:
    """Draw the choices of map kind and colors at the end of the toolbar."""
    group, help = st.segmented_control, locale.text(ALIGNED)
    query_params.one_of(group, _("Map"), _kinds(spaces), name="map", format_func=str.upper, help=help)
    if samples is not None and samples.metric:
        query_params.one_of(group, _("Color by"), COLORS, name="color")


def _kinds(spaces: list[Space]) -> list[str]:
    """Return the kinds of maps, UMAP first unless there are so many rows that it takes minutes."""
    embeddings = (cache.embedding(space) for space in spaces)
    is_large = any(rows is not None and len(rows) > MANY for rows in embeddings)
    return ["pca", "umap"] if is_large else ["umap", "pca"]


def maps(spaces: list[Space], samples: ComparedSamples | None) -> str:
    """Draw all maps side by side, aligned to the first, with a shared selection; return their content, "" if there are
    none."""
    kinds = _kinds(spaces)
    kind = query_params.current("map", kinds, kinds[0])
    embeddings = [rows for space in spaces if (rows := cache.embedding(space)) is not None]
    if len(embeddings) < len(spaces):
        empty(_("The maps are not ready yet"), _("They appear here once every run is embedded."))
        return ""
    if len(set.intersection(*(set(rows.ids) for rows in embeddings))) < 2:
        empty(_("No samples in common"), format.plain(NOTHING_IN_COMMON))
        return ""
    xy, first = _aligned(spaces, embeddings, kind)
    colors: Any = (*color_of(first, "class" if first.labels is not None else "sample", {}), PALETTE)
    if samples is not None and samples.metric and query_params.current("color", COLORS, COLORS[0]) == COLORS[1]:
        colors = samples.outcomes(first.ids)
    return _draw(spaces, embeddings, xy, (first, colors), kind)


def _aligned(spaces: list[Space], embeddings: list[EmbeddingSet], kind: str) -> tuple[list[np.ndarray], EmbeddingSet]:
    """Return maps (n, 2) of the samples that all spaces share, aligned to the first, and the first space's rows of
    them."""
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
    spaces: list[Space],
    embeddings: list[EmbeddingSet],
    xy: list[np.ndarray],
    shown: tuple[EmbeddingSet, Any],
    kind: str,
) -> str:
    """Draw aligned maps with a shared selection; return their content. Args: shown: the rows, and for each its
    category, with the categories' names and colors."""
    first, (values, names, palette) = shown
    drawn_rows = subsample_rows(first.labels, len(first), MAX_POINTS // len(xy))
    part: slice | np.ndarray = slice(None)
    ids, note = first.ids, _("{kind} of {n} samples").format(kind=kind.upper(), n=f"{len(first):,}")
    if drawn_rows is not None:
        part, ids = drawn_rows, tuple(first.ids[i] for i in drawn_rows)
        text = _("{kind} of {count} of {total} samples, by class")
        note = text.format(kind=kind.upper(), count=f"{len(drawn_rows):,}", total=f"{len(first):,}")
    with_pictures = drawn_rows is None and len(first) == len(embeddings[0]) and pictures.are_decoded(spaces[0])
    pictured = subsample_rows(first.labels, len(first), MAX_IMAGES) if with_pictures else None
    place, key = state.place_of(spaces[0]), "maps-side-by-side"
    data = ScatterData(
        xy[0][part],
        ids,
        cache.digest(*(r.content_hash for r in embeddings), kind, with_pictures),
        None if values is None else values[part],
        names,
        palette,
        thumbnails=cache.thumbnails(spaces[0], pictured) if with_pictures else NO_THUMBNAILS,
        pictured=pictured,
        rows_key=f"compare {place} {len(xy)}",
        title=_("{kind} maps side by side").format(kind=kind.upper()),
        note=note,
    )
    selection = LinkedSelection(
        drawn_places(state.selection(place), drawn_rows),
        f"{place} {state.stamp(key)}",
        lambda rows: state.select(rows if drawn_rows is None else drawn_rows[rows], place, key),
    )
    titles = [f"{shape} {space.title}" for shape, space in zip(SHAPES, spaces, strict=False)]
    data = scatter.side_by_side(data, [m[part] for m in xy], titles)
    scatter.draw_scatter(data, selection, fits=True, gallery=False, key=key)
    if pictured is not None:
        images = pictures.of(spaces[0])
        bring_pictures(data.content, len(first), lambda some: thumbnail_sheet(images, rows=some), key)
    return data.content
