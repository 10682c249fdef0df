"""Where two spaces disagree: samples that one has right, neighbors that one keeps."""

from __future__ import annotations

import numpy as np
import streamlit as st

from contrastive_core.embeddings.ref import EmbeddingRef
from contrastive_core.evaluation.comparison import Comparison
from contrastive_core.evaluation.representation_similarity import overlap
from contrastive_lab import cache, format, pictures, query_params, state
from contrastive_lab.components.gallery import draw_gallery

__all__ = ["disagree"]

SHOWN = 60


def disagree(spaces: list[EmbeddingRef], comparison: Comparison) -> None:
    """Choose A, B and what they disagree on."""
    a, b = st.columns(2)
    names = comparison.names
    first = query_params.one_of(a.selectbox, "A", names, name="a")
    second = query_params.one_of(b.selectbox, "B", [n for n in names if n != first], name="b")
    i, j = names.index(first), names.index(second)
    ways = (
        ["A right, B wrong", "B right, A wrong", "Both wrong"]
        if comparison.right is not None
        else []
    )
    way = query_params.one_of(st.segmented_control, "They disagree on", [*ways, "Neighbors"],
                              name="disagree")  # fmt: skip
    if way == "Neighbors":
        _neighbors(spaces, comparison, i, j)
        return
    assert comparison.right is not None
    one, two = comparison.right[i], comparison.right[j]
    chosen = {ways[0]: one & ~two, ways[1]: two & ~one, ways[2]: ~one & ~two}[way]
    rows = np.flatnonzero(chosen)
    question = way.replace("A", first, 1) if way.startswith("A") else way
    st.markdown(f"**{len(rows):,} samples**: {format.plain(_describe(question, first, second))}.")
    _gallery(spaces[0], comparison, rows, f"{first} {second} {way}")


def _describe(way: str, first: str, second: str) -> str:
    if way == "Both wrong":
        return f"{first} and {second} both wrong"
    right, wrong = (second, first) if way.startswith("B") else (first, second)
    return f"{right} right, {wrong} wrong"


def _gallery(space: EmbeddingRef, comparison: Comparison, rows: np.ndarray, key: str) -> None:
    """Pictures of samples; the chosen ones are selected on all pages."""
    if not len(rows):
        return
    classes = _classes(space, comparison)
    at, place = _places(space, comparison), state.place_of(space)
    first_rows = rows[:SHOWN]
    ids = [comparison.ids[r] for r in first_rows]
    if pictures.are_decoded(space):
        images = pictures.of(space)
        captions = [f"{classes[r]}\n{comparison.ids[r]}" for r in first_rows]
        stack = np.stack([images[at[i]] for i in ids])
        picked = draw_gallery(stack, captions, title=key, key=f"gallery-{cache.digest(key)}")
        if picked:
            st.button("Select these on the maps", on_click=_select,
                      args=([at[ids[q]] for q in picked], place))  # fmt: skip
    else:
        st.dataframe([{"id": i} for i in ids], hide_index=True)
    if len(rows) > SHOWN:
        st.caption(f"{SHOWN} of {len(rows):,} are shown.")
    row = st.container(horizontal=True)
    listed = [{"id": comparison.ids[r], "class": classes[r]} for r in rows]
    row.download_button(
        "These samples as CSV", format.table_csv(listed), "disagree.csv", "text/csv"
    )
    row.button("Select all of these on the maps", on_click=_select,
               args=([at[comparison.ids[r]] for r in rows], place))  # fmt: skip


def _select(rows: list[int], place: str) -> None:
    state.select(rows, place)
    st.toast(f"{len(rows):,} selected, on all pages")


def _neighbors(spaces: list[EmbeddingRef], comparison: Comparison, i: int, j: int) -> None:
    """Samples whose neighborhoods differ most, and what A keeps and B loses for one of them."""
    first, second = comparison.names[i], comparison.names[j]
    share = overlap(comparison.graphs[i], comparison.graphs[j])
    order = np.argsort(share, kind="stable")
    st.markdown(
        f"Of a sample's {comparison.k} nearest, {format.plain(f'{first} and {second}')} share "
        f"**{100 * share.mean():.0f} %**. The samples that moved most come first."
    )
    row = query_params.one_of(
        st.selectbox, "Sample", order[:200].tolist(), name="sample", 
        text=lambda r: comparison.ids[r],
        key=f"moved-{cache.digest(first, second)}",
        format_func=lambda r: f"{comparison.ids[r]}, {100 * share[r]:.0f} % shared",
    )  # fmt: skip
    a, b = comparison.graphs[i][row].tolist(), comparison.graphs[j][row].tolist()
    groups = {
        f"Neighbors in {first} that {second} loses": [r for r in a if r not in set(b)],
        f"New neighbors in {second}": [r for r in b if r not in set(a)],
        "Kept by both": [r for r in a if r in set(b)],
    }
    for title, rows in groups.items():
        if rows:
            st.markdown(f"**{format.plain(title)}** ({len(rows)})")
            _strip(spaces[0], comparison, [row, *rows], title)


def _strip(space: EmbeddingRef, comparison: Comparison, rows: list[int], title: str) -> None:
    if not pictures.are_decoded(space):
        st.text(", ".join(comparison.ids[r] for r in rows[1:]))
        return
    classes = _classes(space, comparison)
    at, images = _places(space, comparison), pictures.of(space)
    captions = ["the sample", *(classes[r] for r in rows[1:])]
    stack = np.stack([images[at[comparison.ids[r]]] for r in rows])
    draw_gallery(stack, captions, title=title, size=56,
                 key=f"strip-{cache.digest(title, rows[0])}")  # fmt: skip


def _places(space: EmbeddingRef, comparison: Comparison) -> dict[str, int]:
    """The row of each sample among the space's pictures."""
    rows = cache.embedding(space)
    return {name: q for q, name in enumerate(rows.ids if rows is not None else comparison.ids)}


def _classes(space: EmbeddingRef, comparison: Comparison) -> list[str]:
    """The class of each sample; "" where it has none."""
    rows = cache.embedding(space)
    if comparison.labels is None or rows is None:
        return [""] * len(comparison.ids)
    return [rows.class_name(int(label)) for label in comparison.labels]
