"""Where two spaces disagree: samples that one has right, neighbors that one keeps."""

from __future__ import annotations

import numpy as np
import streamlit as st

from contrastive_core.engine.vectors import overlap
from contrastive_core.records.comparison import Comparison
from contrastive_core.records.embedding_ref import EmbeddingRef
from contrastive_lab import cache, format, pictures, query_params, state
from contrastive_lab.components.gallery import draw_gallery
from contrastive_lab.locale import N_, _
from contrastive_lab.tables import draw_table

SHOWN = 60

WAYS = (N_("A right, B wrong"), N_("B right, A wrong"), N_("Both wrong"))
NEIGHBORS = N_("Neighbors")


def disagree(spaces: list[EmbeddingRef], comparison: Comparison) -> None:
    """Choose A, B and what they disagree on."""
    a, b = st.columns(2)
    names = comparison.names
    first = query_params.one_of(a.selectbox, "A", names, name="a")
    second = query_params.one_of(b.selectbox, "B", [n for n in names if n != first], name="b")
    i, j = names.index(first), names.index(second)
    ways = [*WAYS] if comparison.right is not None else []
    way = query_params.one_of(st.segmented_control, _("They disagree on"), [*ways, NEIGHBORS], name="disagree")
    if way == NEIGHBORS:
        _neighbors(spaces, comparison, i, j)
        return
    assert comparison.right is not None
    one, two = comparison.right[i], comparison.right[j]
    rows = np.flatnonzero([one & ~two, two & ~one, ~one & ~two][WAYS.index(way)])
    st.markdown(
        _("**{count} samples**: {question}.").format(
            count=f"{len(rows):,}", question=format.plain(_describe(way, first, second))
        )
    )
    _gallery(spaces[0], comparison, rows, f"{first} {second} {way}")


def _describe(way: str, first: str, second: str) -> str:
    if way == "Both wrong":
        return _("{first} and {second} both wrong").format(first=first, second=second)
    right, wrong = (second, first) if way.startswith("B") else (first, second)
    return _("{right} right, {wrong} wrong").format(right=right, wrong=wrong)


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
            st.button(_("Select these on the maps"), on_click=_select, args=([at[ids[q]] for q in picked], place))
    else:
        draw_table([{"id": i} for i in ids], hide_index=True)
    if len(rows) > SHOWN:
        st.caption(_("{shown} of {rows} are shown.").format(shown=SHOWN, rows=f"{len(rows):,}"))
    row = st.container(horizontal=True)
    listed = [{"id": comparison.ids[r], "class": classes[r]} for r in rows]
    row.download_button(_("These samples as CSV"), format.table_csv(listed), "disagree.csv", "text/csv")
    row.button(
        _("Select all of these on the maps"), on_click=_select, args=([at[comparison.ids[r]] for r in rows], place)
    )


def _select(rows: list[int], place: str) -> None:
    state.select(rows, place)
    st.toast(_("{rows} selected, on all pages").format(rows=f"{len(rows):,}"))


def _neighbors(spaces: list[EmbeddingRef], comparison: Comparison, i: int, j: int) -> None:
    """Samples whose neighborhoods differ most, and what A keeps and B loses for one of them."""
    first, second = comparison.names[i], comparison.names[j]
    share = overlap(comparison.graphs[i], comparison.graphs[j])
    order = np.argsort(share, kind="stable")
    st.markdown(
        _("Of a sample's {k} nearest, {first} share **{mean} %**. The samples that moved most come first.").format(
            k=comparison.k,
            first=format.plain(_("{first} and {second}").format(first=first, second=second)),
            mean=f"{100 * share.mean():.0f}",
        )
    )
    row = query_params.one_of(
        st.selectbox,
        _("Sample"),
        order[:200].tolist(),
        name="sample",
        text=lambda r: comparison.ids[r],
        key=f"moved-{cache.digest(first, second)}",
        format_func=lambda r: _("{ids}, {share} % shared").format(ids=comparison.ids[r], share=f"{100 * share[r]:.0f}"),
    )
    a, b = comparison.graphs[i][row].tolist(), comparison.graphs[j][row].tolist()
    groups = {
        _("Neighbors in {first} that {second} loses").format(first=first, second=second): [
            r for r in a if r not in set(b)
        ],
        _("New neighbors in {second}").format(second=second): [r for r in b if r not in set(a)],
        N_("Kept by both"): [r for r in a if r in set(b)],
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
    captions = [_("the sample"), *(classes[r] for r in rows[1:])]
    stack = np.stack([images[at[comparison.ids[r]]] for r in rows])
    draw_gallery(stack, captions, title=title, size=56, key=f"strip-{cache.digest(title, rows[0])}")


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
