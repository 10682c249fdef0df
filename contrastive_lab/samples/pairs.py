"""Pairs of two towers on the Samples page: mismatched pairs and false negatives, each with its evidence."""

from typing import Any

import numpy as np
import streamlit as st

from contrastive_core.records import embedding_ref, loaded_vectors
from contrastive_core.records.embedding_ref import TOWERS
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.pair_lists import HOW, LISTS, ORDERS, OWN_RANK, PairList, listed, pair_lists, said
from contrastive_core.records.sample_request import SampleRequest
from contrastive_lab import cache, format, load_vectors, locale, number_inputs, query_params
from contrastive_lab.locale import _, message
from contrastive_lab.progress import answer_or_wait, embedded_or_wait
from contrastive_lab.samples import pair_decisions, pair_view
from contrastive_lab.samples.pair_view import TowerPairLists
from contrastive_lab.tables import draw_table

AT = "pair-at"  # of the session: the query of the pair at hand
PLACE = "pair-place"  # where in the list it stood last
ROWS = 2000  # of the table; the file has all


def show(request: SampleRequest) -> None:
    """Show both lists of the pairs, one of them at a time."""
    pairs = _pairs_or_wait(request)
    if pairs is None:
        return
    name = query_params.one_of(
        st.pills,
        _("List"),
        LISTS,
        name="pairs",
        format_func=LISTS.get,
        label_visibility="collapsed",
        on_change=_to_first,
    )
    _say_what_there_is(pairs)
    for text in pairs.about.get("warnings", ()):
        st.warning(format.plain(text))
    for note in pairs.about["notes"]:
        st.caption(format.plain(note))
    decisions = pair_decisions.Decisions(pairs.space, name)
    whole = pairs.lists[name]
    with st.expander(_("Filter and order")):
        shown = _filtered(pairs, whole, decisions)
    if not len(shown):
        st.info(_("No pair passes these filters."))
    else:
        place = _place(pairs, shown)
        pair_view.show(pairs, shown.take(np.array([place])), name)
        decisions.buttons(pairs.rows, shown, place, name)
        _table(pairs, shown, decisions, name)
    decisions.bar(pairs.rows, whole)
    if name == "mismatched":
        decisions.retrain(request)
    with st.expander(_("How this list is made")):
        st.caption(locale.text(HOW[name]))


def _to_first() -> None:
    for key in (AT, PLACE):
        st.session_state.pop(key, None)


def _pairs_or_wait(request: SampleRequest) -> TowerPairLists | None:
    try:
        if (run := request.run) is not None:
            if not embedded_or_wait(run, request.split, TOWERS):
                return None
            space = embedding_ref.of_run(run, request.split, TOWERS)
        else:
            space = embedding_ref.of_name(request.name, request.split, "z")
        rows = cache.embedding(space)
    except ValueError as error:
        st.warning(format.plain(error))
        return None
    result = answer_or_wait("tower_pairs", {"space": space.values}, message("Pairs of the two towers"))
    if rows is None or result is None:
        return None
    a, b = result.meta["names"]
    lists = _lists(rows.content_hash, rows, result.arrays)
    return TowerPairLists(space, rows, lists, (a, b), tuple(result.meta["candidates"]), result.meta)


@st.cache_resource(max_entries=4, show_spinner=False)
def _lists(content: str, _rows: EmbeddingSet, _found: dict[str, np.ndarray]) -> dict[str, PairList]:
    return pair_lists(_rows, _found)


def _say_what_there_is(pairs: TowerPairLists) -> None:
    n, (query, partner) = len(pairs.lists["mismatched"]), pairs.names
    text = _("{n} pairs of {query} and {partner}.")
    if _has_several(pairs):
        text = _("{n} pairs of {query} and {partner}: each row of {query} with its most similar partner.")
    said = text.format(n=f"{n:,}", query=query, partner=partner)
    is_file = not (pairs.space.run or pairs.space.recorded)
    counts = {**loaded_vectors.about(pairs.space.key)["left_out"]} if is_file else {}
    counts |= {reason: k for reason, k in pairs.about["left_out"].items() if k}
    st.caption(format.plain(f"{said} {load_vectors.left_out(counts)}".strip()))


def _has_several(pairs: TowerPairLists) -> bool:
    """Whether a query has more than one partner."""
    towers = cache.towers(pairs.rows)
    group = np.array([]) if towers is None else (towers.group_a, towers.group_b)[towers.names.index(pairs.names[1])]
    return len(np.unique(group[group >= 0])) < (group >= 0).sum()


def _filtered(pairs: TowerPairLists, whole: PairList, decisions: pair_decisions.Decisions) -> PairList:
    """The pairs that pass the filters, in the chosen order."""
    a, b, c, d = st.columns([2, 3, 2, 2])
    by = query_params.one_of(a.selectbox, _("Order"), ORDERS, name="pair-order", format_func=ORDERS.get)
    words = query_params.text(b.text_input, _("Text contains"), name="pair-text").strip().lower()
    most = max(pairs.candidates[0], 2)
    label, help = _("Own rank at least"), _(OWN_RANK)
    lowest = number_inputs.number(c.number_input, label, 1, most, name="pair-rank", default=1, help=help)
    choice = query_params.one_or_none(d.segmented_control, _("Decided"), ("yes", "no"), name="pair-marked")
    keep = whole.rank >= lowest
    if words:
        both = zip(whole.query.tolist(), whole.partner.tolist(), strict=True)
        keep &= np.array([_has(pairs.rows, q, p, words) for q, p in both])
    if choice is not None:
        has = np.array([pairs.rows.ids[q] in decisions.marks for q in whole.query])
        keep &= has == (choice == "yes")
    some = whole.take(np.flatnonzero(keep))
    if not keep.all():
        st.caption(_("The filter leaves {sum} of {rows}.").format(sum=f"{len(some):,}", rows=f"{len(whole):,}"))
    return some.take(some.order(by))


def _has(rows: EmbeddingSet, query: int, partner: int, words: str) -> bool:
    texts = (said(rows, query), said(rows, partner), rows.ids[query], rows.ids[partner])
    return any(words in text.lower() for text in texts)


def _place(pairs: TowerPairLists, shown: PairList) -> int:
    """Where the pair at hand stands; where the list lost it, the one in its place."""
    ids = [pairs.rows.ids[q] for q in shown.query]
    at = st.session_state.get(AT)
    place = ids.index(at) if at in ids else min(int(st.session_state.get(PLACE, 0)), len(ids) - 1)
    st.session_state[AT], st.session_state[PLACE] = ids[place], place
    return place


def _table(pairs: TowerPairLists, shown: PairList, decisions: pair_decisions.Decisions, name: str) -> None:
    """The list as a table; a click brings a pair to hand."""
    st.download_button(
        _("This list as CSV"),
        lambda: format.table_csv(listed(pairs.rows, shown, decisions.marks)),
        f"{name}.csv",
        "text/csv",
        on_click="ignore",
    )
    part = shown.take(np.arange(min(ROWS, len(shown))))
    key = f"pairs-table-{name}"

    def chosen() -> None:
        if picked := st.session_state[key]["selection"]["rows"]:
            st.session_state[AT] = pairs.rows.ids[int(part.query[picked[0]])]

    look: dict[str, Any] = {"hide_index": True, "height": 380, "selection_mode": "single-row"}
    ranks = dict.fromkeys(("own rank", "own rank back"), st.column_config.NumberColumn(help=OWN_RANK))
    look["column_config"] = {"decision": st.column_config.TextColumn(width=110), **ranks}  # holds the longest word
    draw_table([*listed(pairs.rows, part, decisions.marks)], key=key, on_select=chosen, **look)
    if len(part) < len(shown):
        st.caption(_("The first {n} pairs; the file has all.").format(n=f"{ROWS:,}"))
