"""The selected samples: what they are, the neighbors of one of them, and the way out."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from contrastive_core.engine.vectors import EXACT_UP_TO, nearest_of, ranks_of
from contrastive_core.records import embedding_ref
from contrastive_core.records.embedding_ref import EmbeddingRef
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.score import recall_text
from contrastive_lab import cache, export, format, guard, pictures, query_params, state
from contrastive_lab.colors import plain_table
from contrastive_lab.components.gallery import draw_gallery
from contrastive_lab.locale import N_, _
from contrastive_lab.tables import draw_table

SHOWN = 11  # neighbors of a picture
SMALL, TWO_LINES = 40, 100  # pixels of a selected picture, and of two lines of them
NEAR = 48  # pixels of a neighbor
LISTED = 200  # selected samples in the table
OTHERS = 7  # other runs in which ranks are looked up


def beside(space: EmbeddingRef, rows: EmbeddingSet, picked: list[int]) -> None:
    """What is selected: its images, the neighbors of one of them, and what is known of it."""
    if not picked:
        st.caption(_("Click a point, or draw around some: their images and nearest neighbors appear here."))
        return
    one = picked[0]
    if len(picked) == 1:
        st.header(format.plain(rows.ids[one]))
        st.caption(_("Nearest to it in the embedding; an image leads to its point."))
    else:
        st.header(_("{picked} selected").format(picked=f"{len(picked):,}"))
        _classes(rows, picked)
        one = _one_of(space, rows, picked[:LISTED])
    neighbors(space, rows, int(one))
    if rows.columns or rows.labels is not None:
        with st.expander(_("What is known of it") if len(picked) == 1 else _("The selection as a table")):
            draw_table(plain_table(rows, picked[:LISTED]), hide_index=True)


def _classes(rows: EmbeddingSet, picked: list[int]) -> None:
    if rows.labels is not None:
        labels = rows.labels[picked]
        counts = np.bincount(labels[labels >= 0])
        order = np.argsort(-counts)[:12]
        counted = [f"{rows.class_name(int(c))}: {counts[c]:,}" for c in order if counts[c]]
        st.caption(format.plain(" · ".join(counted)))


def _one_of(space: EmbeddingRef, rows: EmbeddingSet, listed: list[int]) -> int:
    """The selected sample that is looked at: by its image, or by its id."""
    place = state.place_of(space)
    key = f"one-{cache.digest(place)}"
    if pictures.are_decoded(space):
        images = pictures.of(space)
        shown = f"selected-{cache.digest(place, listed)}"
        clicked = draw_gallery(
            np.stack([images[i] for i in listed]),
            [""] * len(listed),
            size=SMALL,
            single=True,
            labels=[rows.ids[i] for i in listed],
            height=TWO_LINES,
            title=_("selected images"),
            key=shown,
        )
        if clicked != st.session_state.get(f"{shown}:before", []):  # else the list may say another
            st.session_state[f"{shown}:before"] = clicked
            query_params.choose(key, listed[clicked[0]] if clicked else listed[0])
    return query_params.one_of(
        st.selectbox,
        _("Neighbors of"),
        listed,
        format_func=lambda i: rows.ids[i],
        name="one",
        text=lambda i: rows.ids[i],
        key=key,
    )


def neighbors(space: EmbeddingRef, rows: EmbeddingSet, i: int) -> None:
    """The nearest samples, with similarity, label and their rank in each other run."""
    near, similarity = nearest_of(rows, i, min(SHOWN, len(rows) - 1))
    others = _ranks(space, rows, i, near)
    table = []
    for q, (j, s) in enumerate(zip(near.tolist(), similarity.tolist(), strict=True), 1):
        row: dict[str, Any] = {"rank": q, "id": rows.ids[j], N_("cosine similarity"): round(s, 3)}
        if rows.labels is not None:
            row["class"] = rows.class_name(int(rows.labels[j]))
        table.append(row | {_("rank in {name}").format(name=name): int(r[q - 1]) for name, r in others.items()})
    place = state.place_of(space)
    with_pictures = pictures.are_decoded(space)
    if with_pictures:
        images = pictures.of(space)
        pictured = [i, *near.tolist()]
        captions = [_("itself"), *(_caption(row) for row in table)]
        key = f"near-{cache.digest(place, space.layer, i)}"
        picked = draw_gallery(
            np.stack([images[j] for j in pictured]), captions, size=NEAR, title=_("nearest samples"), key=key
        )
        if picked and pictured[picked[0]] != i:
            state.select([pictured[picked[0]]], place)
            st.rerun()
    with st.expander(_("As a table, with ranks in other runs"), expanded=not with_pictures):
        draw_table(table, hide_index=True)


def _caption(row: dict[str, Any]) -> str:
    return f"{row.get('class', row['id'])} {row['cosine similarity']:.2f}"


def _ranks(space: EmbeddingRef, rows: EmbeddingSet, i: int, near: np.ndarray) -> dict[str, np.ndarray]:
    """For each other run on the same samples: how near it has the same neighbors (1: nearest)."""
    if space.is_loaded:
        return {}
    data, by_run = state.data_of(space), {}
    for run in state.all_runs():
        if run.name == space.name or state.data_key(run) != data:
            continue
        other = None
        with contextlib.suppress(*guard.DAMAGE):  # its own page says what is wrong with it
            if run.weights.exists():
                other = cache.embedding(embedding_ref.of_run(run, space.split, space.layer))
        if other is None or other.ids != rows.ids:
            continue
        by_run[run.name] = ranks_of(other, i, near)
        if len(by_run) == OTHERS:
            break
    return by_run


def out(space: EmbeddingRef, rows: EmbeddingSet, xy: np.ndarray, picked: list[int]) -> None:
    """Selection, coordinates and neighbors, vectors, as files for other tools; each is made when it
    is asked for."""
    name = space.title.rsplit(".", 1)[0]
    with st.popover(_("Export"), icon=":material/download:", width="content"):
        _about_neighbors(rows, len(picked))
        for ending in ("parquet", "csv"):
            if ending == "csv" and not export.fits_csv(len(rows), export.COLUMNS):
                continue
            st.download_button(
                _("Map, neighbors and columns (.{ending})").format(ending=ending),
                partial(export.table, rows, xy, None, ending),
                f"{name}-map.{ending}",
                key=f"map-{ending}",
            )
        for ending in ("parquet", "csv"):
            if ending == "csv" and not export.fits_csv(len(picked), export.COLUMNS):
                continue
            st.download_button(
                _("What is selected: {picked} of {rows} (.{ending})").format(
                    picked=f"{len(picked):,}", rows=f"{len(rows):,}", ending=ending
                ),
                partial(export.table, rows, xy, picked, ending),
                f"{name}-selection.{ending}",
                disabled=not picked,
                key=f"selection-{ending}",
            )
        _vector_files(rows, name)
        st.caption(_("Pictures: the button PNG above each map."))


def _vector_files(rows: EmbeddingSet, name: str) -> None:
    """The vectors themselves: sent, or written to a file where they are large."""
    if export.is_sent(rows):
        st.download_button(_("The vectors (.parquet)"), partial(export.vectors, rows), f"{name}.parquet")
    elif st.button(
        _("Write the vectors ({nbytes} GB) to a file").format(nbytes=f"{rows.features.nbytes / 1000000000.0:.1f}")
    ):
        _write(rows, name)
    if export.fits_csv(len(rows), rows.width):
        st.download_button(_("The vectors (.csv)"), lambda: format.csv_of(rows, range(len(rows))), f"{name}.csv")
    else:
        st.caption(
            _("CSV holds up to {csv_up_to} values here; Parquet holds them all.").format(
                csv_up_to=f"{export.CSV_UP_TO:,}"
            )
        )


def _write(rows: EmbeddingSet, name: str) -> None:
    """Write so many vectors where the app runs, and say where they lie."""
    try:
        with st.spinner(_("Writing the vectors…")):
            path = export.keep_vectors(rows, name)
    except OSError as error:
        st.error(format.plain(error))
    else:
        st.caption(format.plain(_("They lie in {path}.").format(path=path)))


def _about_neighbors(rows: EmbeddingSet, chosen: int) -> None:
    """How the tables name what they hold, and which of them are without neighbors."""
    st.caption(_("x, y and neighbors are named as Embedding Atlas reads them."))
    are_known, recall = export.about_neighbors(rows)
    if not are_known:
        st.caption(
            _(
                "The neighbors are left out: of more than {exact_up_to} rows they are written where "
                "a UMAP map by cosine has found those of every row."
            ).format(exact_up_to=f"{EXACT_UP_TO:,}")
        )
    elif recall is not None:
        st.caption(
            _("These are {recall_text}; the column neighbors_recall says so.").format(recall_text=recall_text(recall))
        )
    if chosen > EXACT_UP_TO:
        st.caption(
            _("Within a selection of more than {exact_up_to} rows neighbors are left out.").format(
                exact_up_to=f"{EXACT_UP_TO:,}"
            )
        )
