"""Overview of Compare on one screen: the verdict with its dumbbells, the maps, and a strip of disagreements."""

from typing import Any

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from contrastive_core.compare.comparison import NOTHING_IN_COMMON
from contrastive_core.compare.representation_similarity import procrustes_align
from contrastive_core.runs.run import Run
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.results import MAP_DEFAULTS
from contrastive_core.spaces.space import Space
from contrastive_lab import cache, embedding_map, format, locale, pictures, query_params, stage, state
from contrastive_lab.compare import score_tables, space_picker, towers, verdict
from contrastive_lab.compare.disagreements import ComparedSamples
from contrastive_lab.compare.space_picker import SHAPES, A, B
from contrastive_lab.components import scatter
from contrastive_lab.components.gallery import draw_gallery
from contrastive_lab.components.scatter import (
    MAX_IMAGES,
    MAX_POINTS,
    PALETTE,
    LinkedSelection,
    ScatterData,
    bring_pictures,
)
from contrastive_lab.components.shared.mount import NO_THUMBNAILS, thumbnail_sheet
from contrastive_lab.embedding_map import color_of, drawn_places, subsample_rows
from contrastive_lab.figures import draw_table
from contrastive_lab.locale import N_, _

MANY = 50_000  # rows, of which UMAP takes minutes
RIGHT = N_("which encoder is right")  # a color
ALIGNED = N_(
    "Each map is rotated, mirrored and scaled to fit map A (Procrustes). The slider moves every sample to its place "
    "on map A."
)
IN_STRIP = 40  # pictures, of which a screen shows a dozen
STRIP = "compare-strip"  # by which a selection was made


def show(spaces: list[Space], samples: ComparedSamples | None) -> None:
    """Draw the overview; only the maps if no scores are known."""
    picture, side = stage.columns(is_first=False)
    with side:
        space_picker.say_left_out()
        with stage.on_its_own(_("Candidates"), stage.UNREADABLE):
            if samples is not None:
                _answers(spaces, samples)
            else:
                above = st.container(gap="small")
                if verdict.known(spaces, waits=True) is not None:
                    st.rerun()  # it was made while the toolbar was drawn
                if verdict.is_coming(spaces):
                    above.header(_("The verdict comes in a moment"))
                    above.caption(_("The scores of each run are computed once. The maps do not wait for them."))
                else:
                    above.header(_("No verdict"))  # the reason is below
    with picture, stage.on_its_own(_("Candidates")):
        above, below = st.container(key="compare-maps", gap=None), st.container(key="compare-strip").empty()
        below.caption(_("The samples on which A and B disagree appear here."))  # keeps their room: no map jumps
        with above:
            content = maps(spaces, samples)
        if content and samples is not None:
            with below.container(gap="small"):
                strip(samples, content)


def _answers(spaces: list[Space], samples: ComparedSamples) -> None:
    """Draw the verdict, scores and classes, the similarity of the spaces, and the next step."""
    comparison, metric = samples.comparison, samples.metric
    with st.container(key="compare-verdict", gap="xsmall"):
        verdict.draw(spaces, comparison, metric)
    if metric:
        verdict.draw_dumbbells(spaces, samples)
    towers.show_recall(comparison.names, spaces)
    text = _("CKA {cka} · they share {share} % of neighbors")
    st.markdown(text.format(cka=f"{comparison.cka[0, 1]:.2f}", share=f"{100 * comparison.overlap[0, 1]:.0f}"))
    if verdict.with_scores(spaces, comparison):  # computes them; the page then shows the linear probe too
        score_tables.follow_references([space for space in spaces if space.run][:1])
    label = str(_("See how alike they are"))
    if metric:
        label = _("Look at the {n} disagreements").format(n=f"{samples.one_right:,}")
    view = "Disagreements" if metric else "Similarity"
    with st.container(key="compare-next"):
        st.button(label, type="primary", width="stretch", on_click=open_view, args=(view,))


def open_view(view: str) -> None:
    """Show a view of the page, for a button's `on_click`."""
    query_params.choose("compare-view", view)
    stage.close_more()


def without_pair(names: list[str]) -> None:
    """Draw the stage for fewer than two spaces."""
    space_picker.say_left_out()
    if names:
        empty(_("One is not enough"), _("Choose at least two."))
        return
    text = _("Comparing needs two runs with weights, or recordings. Train another one.")
    with empty(_("Nothing to compare yet"), text):
        st.page_link("pages/train.py", label=_("Go to Train"), icon=":material/play_circle:")


def without_common(reason: str, names: list[str], ready: list[Run]) -> None:
    """Explain that the runs have different data sets, and offer a run that A can be compared with."""
    space_picker.say_left_out()
    with empty(_("No samples in common"), reason):
        data = {run.name: run.data_key for run in ready}
        other = next((run for run in data if run != names[0] and data[run] == data.get(names[0])), None)
        if other is not None:
            label = _("Compare {a} and {b}").format(a=names[0], b=other)
            st.button(format.plain(label), type="primary", on_click=space_picker.put, args=([names[0], other],))


# --- its maps ---


def empty(title: str, text: str) -> DeltaGenerator:
    """Draw an empty stage with a title, the reason, and room for a next step; return that container."""
    place = st.container(key="compare-empty", horizontal_alignment="center", vertical_alignment="center", gap="small")
    place.header(title, width="content")
    place.caption(text, width="content", text_alignment="center")
    return place


def choose_map(spaces: list[Space], samples: ComparedSamples | None) -> None:
    """Draw the choices of map kind and colors at the end of the toolbar."""
    group, help = st.segmented_control, locale.text(ALIGNED)
    query_params.one_of(group, _("Map"), _kinds(spaces), name="map", format_func=str.upper, help=help)
    if samples is not None and samples.metric and (rows := cache.embedding(spaces[0])) is not None:
        query_params.one_of(group, _("Color by"), (_own_color(rows), RIGHT), name="color")


def _own_color(rows: EmbeddingSet) -> str:
    """Return the first color of samples: their class, else the tower if there are two."""
    return "class" if rows.labels is not None else embedding_map.color_names(rows, judged=False, is_run=False)[0]


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
    shared, first, xy = set.intersection(*(set(rows.ids) for rows in embeddings)), embeddings[0], list[np.ndarray]()
    if len(shared) < 2:
        empty(_("No samples in common"), format.plain(NOTHING_IN_COMMON))
        return ""
    order = [i for i in first.ids if i in shared]
    for space, rows in zip(spaces, embeddings, strict=True):
        places = {name: row for row, name in enumerate(rows.ids)}
        drawn_map = embedding_map.map_of(space, kind, MAP_DEFAULTS if kind == "umap" else {}, rows)
        own = drawn_map.xy[[places[i] for i in order]]
        xy.append(procrustes_align(own, xy[0]) if xy else upright(own, len(spaces)) if kind == "umap" else own)
    if len(order) < len(first):
        first = first.take([q for q, i in enumerate(first.ids) if i in shared])
    colors: Any = (*color_of(first, usual := _own_color(first), {}), PALETTE)
    if samples is not None and samples.metric and query_params.current("color", (usual, RIGHT), usual) == RIGHT:
        colors = samples.outcomes(first.ids)
    return _draw_maps(spaces, embeddings, xy, (first, colors), kind)


def upright(xy: np.ndarray, count: int) -> np.ndarray:
    """Return the first map (n, 2) of UMAP, turned so its longer side is upright if up to three maps share the width;
    four or more stand in two lines."""
    wide, high = np.ptp(xy, axis=0)
    return xy[:, ::-1] * (1, -1) if (wide > high) == (count < 4) else xy


def _draw_maps(
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


# --- its strip ---


def strip(samples: ComparedSamples, content: str) -> None:
    """Draw a line of images of the selected samples, or of those that only one of A and B has right; without labels, of
    those whose neighbors changed most. Hovering over one highlights its point on the maps of this content."""
    if samples.ways:
        first, second, both = samples.ways.values()
        counts = [f"{len(found):,} {samples.way_title(way)}" for way, found in samples.ways.items()]
        counts[0] = f"**{counts[0]}**"
        larger, smaller = (first, second) if len(first) >= len(second) else (second, first)
        rows = np.concatenate([larger, smaller]) if samples.one_right else both
    else:
        counts = [_("**Neighbors that moved most** from {a} to {b}").format(a=A, b=B)]
        rows = np.argsort(samples.shared, kind="stable")
    rows = rows[:IN_STRIP]
    if (lit := samples.lit()) and not {*lit} <= {*rows.tolist()}:
        rows, counts = np.array(lit[:IN_STRIP]), []
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(_(" · ").join([*counts, _("point at one to see it on both maps")]), width="content")
        if lit:
            label = _("{picked} selected").format(picked=f"{len(lit):,}")
            clear: tuple[list[int], str] = ([], state.place_of(samples.space))
            st.button(
                f"{label} ✕", help=_("Clear the selection"), key="clear-selection", on_click=state.select, args=clear
            )
    table = samples.table(rows)
    captions = [f"{A} {row['A says']}\n{B} {row['B says']}" for row in table]
    if not samples.metric:
        captions = [_("{share} % shared").format(share=f"{100 * samples.shared[row]:.0f}") for row in rows]
    if not pictures.are_decoded(samples.space):
        said = [{"text": samples.text(str(row["id"]))} if samples.texts is not None else {} for row in table]
        listed = zip(table, said, captions, strict=True)
        draw_table([{"id": row["id"], **own, "said": text} for row, own, text in listed], height=110)
        return
    key = f"strip-{cache.digest(content, samples.metric, rows.tobytes())}-{state.stamp(STRIP)}"
    places, title = [samples.places[name] for name in samples.ids(rows)], _("Samples on which A and B disagree")
    chosen = [q for q, row in enumerate(rows.tolist()) if row in lit]
    points = {"map": content, "rows": places}
    images = samples.images(rows)
    picked = draw_gallery(images, captions, selected=chosen, points=points, title=title, size=64, key=key)
    if sorted(picked) != chosen:
        state.select([places[q] for q in picked], state.place_of(samples.space), STRIP)
        st.rerun()
