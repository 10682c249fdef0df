"""One pair of two towers: both rows as texts or pictures, what fits better, and the evidence."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import streamlit as st

from contrastive_core.records.embedding_ref import TOWERS, EmbeddingRef
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.pair_lists import MISMATCHED, OWN_RANK, PairList, said
from contrastive_core.records.towers import plain_rank
from contrastive_lab import cache, format
from contrastive_lab.locale import _

PIXELS = 160  # of a picture
LONGEST = 2000  # characters of a text


class TowerPairLists(NamedTuple):
    """The pairs of a space, in their lists."""

    space: EmbeddingRef
    rows: EmbeddingSet
    lists: dict[str, PairList]
    names: tuple[str, str]  # of the tower of the queries, and of the other
    candidates: tuple[int, int]
    about: Mapping[str, Any]  # of the answer: rows left out, notes, warnings


def show(pairs: TowerPairLists, one: PairList, name: str) -> None:
    """Show a list of one pair."""
    query_name, partner_name = pairs.names
    query, partner, other, twin = (int(x[0]) for x in (one.query, one.partner, one.other, one.twin))
    similarity, better = float(one.similarity[0]), float(one.other_similarity[0])
    a, b, c = st.columns(3)
    with a.container(border=True):
        _row(pairs, query, query_name)
    with b.container(border=True):
        _row(pairs, partner, _("Its partner in {name}").format(name=partner_name))
        _evidence(_("Cosine {s}. Rank {rank} of {n}.").format(**_numbers(similarity, one, pairs)), _(OWN_RANK))
    with c.container(border=True):
        title = _("Best other fit in {name}") if name == MISMATCHED else _("{name} of the similar pair")
        _row(pairs, other, title.format(name=partner_name))
        _evidence(_("Cosine {s}. Margin {margin}.").format(s=f"{better:.3f}", margin=f"{similarity - better:+.3f}"))
        if twin >= 0:
            _row(pairs, twin, _("{name} of the similar pair").format(name=query_name))
    back = _("Rank from {partner} to {query}: {rank} of {n}. Score of the list: {score}.")
    values = {
        "rank": f"{plain_rank(one.rank_back[0]):,}",
        "n": f"{pairs.candidates[1]:,}",
        "score": f"{one.score[0]:.2f}",
    }
    _evidence(back.format(partner=partner_name, query=query_name, **values))


def _numbers(similarity: float, one: PairList, pairs: TowerPairLists) -> dict[str, str]:
    return {"s": f"{similarity:.3f}", "rank": f"{plain_rank(one.rank[0]):,}", "n": f"{pairs.candidates[0]:,}"}


def _evidence(text: str, help: str | None = None) -> None:
    st.caption(format.plain(text), help=help)


def _row(pairs: TowerPairLists, row: int, title: str) -> None:
    """A row's picture, its text, or its id."""
    st.markdown(f"**{format.plain(title)}**")
    text, image = said(pairs.rows, row), picture_of(pairs, row)
    if image is not None:
        st.image(image, width=PIXELS)
    if text:
        st.markdown(format.plain(text[:LONGEST]))
    st.caption(format.plain(pairs.rows.ids[row]))


def picture_of(pairs: TowerPairLists, row: int) -> np.ndarray | None:
    """The picture of a row (h, w, 3); None of a caption, and of a row that came without."""
    if pairs.space.layer == TOWERS and said(pairs.rows, row):
        return None
    images = cache.images(pairs.space)
    if images is None:
        return None
    picture = cache.picture(images, row)
    return None if (picture == picture[0, 0]).all() else picture  # plain gray: it has none
