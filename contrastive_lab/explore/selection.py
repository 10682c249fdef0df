"""The selected samples: what they are, the neighbors of one of them, and the way out."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from contrastive_core.embeddings import ref
from contrastive_core.embeddings.embedding_set import EmbeddingSet
from contrastive_core.embeddings.nearest import nearest_of
from contrastive_core.embeddings.ref import EmbeddingRef
from contrastive_lab import cache, export, format, guard, pictures, query_params, state
from contrastive_lab.colors import plain_table
from contrastive_lab.components.gallery import draw_gallery

__all__ = ["neighbors", "out", "selected"]

SHOWN = 12  # neighbors of a picture
LISTED = 200  # selected samples in the table
OTHERS = 7  # other runs in which ranks are looked up


def selected(space: EmbeddingRef, rows: EmbeddingSet, picked: list[int]) -> None:
    """A sentence about the selection, and the neighbors of one of its samples."""
    one = picked[0]
    if len(picked) == 1:
        st.header(format.plain(rows.ids[one]))
    else:
        st.header(f"{len(picked):,} selected")
        if rows.labels is not None:
            counts = np.bincount(rows.labels[picked][rows.labels[picked] >= 0])
            order = np.argsort(-counts)[:12]
            counted = [f"{rows.class_name(int(c))}: {counts[c]:,}" for c in order if counts[c]]
            st.caption(format.plain(" · ".join(counted)))
        one = query_params.one_of(
            st.selectbox, "Neighbors of", picked[:LISTED], format_func=lambda i: rows.ids[i],
            name="one", text=lambda i: rows.ids[i],
            key=f"one-{cache.digest(state.place_of(space))}",
        )  # fmt: skip
    neighbors(space, rows, int(one))
    if rows.columns or rows.labels is not None:
        with st.expander("What is known of it" if len(picked) == 1 else "The selection as a table"):
            st.dataframe(plain_table(rows, picked[:LISTED]), hide_index=True)


def neighbors(space: EmbeddingRef, rows: EmbeddingSet, i: int) -> None:
    """The nearest samples, with similarity, label and their rank in each other run."""
    near, similarity = nearest_of(rows, i, min(SHOWN, len(rows) - 1))
    others = _ranks(space, rows, i, near)
    table = []
    for q, (j, s) in enumerate(zip(near.tolist(), similarity.tolist(), strict=True), 1):
        row: dict[str, Any] = {"rank": q, "id": rows.ids[j], "cosine similarity": round(s, 3)}
        if rows.labels is not None:
            row["class"] = rows.class_name(int(rows.labels[j]))
        table.append(row | {f"rank in {name}": int(r[q - 1]) for name, r in others.items()})
    name = format.plain(rows.ids[i])
    st.caption(f"Nearest to {name} in the embedding. Click a picture to go to its point.")
    place = state.place_of(space)
    with_pictures = pictures.are_decoded(space)
    if with_pictures:
        images = pictures.of(space)
        pictured = [i, *near.tolist()]
        captions = ["itself", *(_caption(row) for row in table)]
        key = f"near-{cache.digest(place, space.layer, i)}"
        picked = draw_gallery(np.stack([images[j] for j in pictured]), captions, size=88,
                              title="nearest samples", key=key)  # fmt: skip
        if picked and pictured[picked[0]] != i:
            state.select([pictured[picked[0]]], place)
            st.rerun()
    with st.expander("As a table, with ranks in other runs", expanded=not with_pictures):
        st.dataframe(table, hide_index=True)


def _caption(row: dict[str, Any]) -> str:
    return f"{row.get('class', row['id'])} {row['cosine similarity']:.2f}"


def _ranks(
    space: EmbeddingRef, rows: EmbeddingSet, i: int, near: np.ndarray
) -> dict[str, np.ndarray]:
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
                other = cache.embedding(ref.of_run(run, space.split, space.layer))
        if other is None or other.ids != rows.ids:
            continue
        order, _ = nearest_of(other, i, len(rows) - 1)
        rank = np.empty(len(rows), np.int64)
        rank[order] = np.arange(1, len(rows))
        by_run[run.name] = rank[near]
        if len(by_run) == OTHERS:
            break
    return by_run


def out(space: EmbeddingRef, rows: EmbeddingSet, xy: np.ndarray, picked: list[int]) -> None:
    """Selection, coordinates and neighbors, vectors, as files for other tools."""
    name = space.title.rsplit(".", 1)[0]
    with st.popover("Export", icon=":material/download:", width="content"):
        st.caption("x, y and neighbors are named as Embedding Atlas reads them.")
        for ending in ("parquet", "csv"):
            st.download_button(
                f"Map, neighbors and columns (.{ending})",
                partial(export.table, rows, xy, None, ending),
                f"{name}-map.{ending}", key=f"map-{ending}",
            )  # fmt: skip
        for ending in ("parquet", "csv"):
            st.download_button(
                f"The selection, {len(picked):,} rows (.{ending})",
                partial(export.table, rows, xy, picked, ending),
                f"{name}-selection.{ending}", disabled=not picked, key=f"selection-{ending}",
            )  # fmt: skip
        st.download_button(
            "The vectors (.csv)", lambda: format.csv_of(rows, range(len(rows))), f"{name}.csv"
        )
        st.caption("Pictures: the button PNG above each map.")
