"""Two towers on Explore: recall in both directions and the modality gap, a row's partners with their ranks, zero-shot
templates, and a text query that finds images."""

import streamlit as st

from contrastive_core.base.score import Scores, scores_from_json
from contrastive_core.compare.towers import Partner, partners_of
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.space import Space
from contrastive_core.spaces.towers import DEFAULT_TEMPLATES, TEXT, TOWER, Towers, plain_rank
from contrastive_lab import cache, format, pictures, query_params, score_strip, state, texts
from contrastive_lab.compare.towers import changes, why_missing
from contrastive_lab.figures import draw_table
from contrastive_lab.locale import N_, _, message
from contrastive_lab.progress import answer_or_wait


def first_scores(space: Space, towers: Towers) -> None:
    """Draw recall@k in both directions with its chance level, and the modality gap."""
    st.header(_("Do its towers agree?"))
    result = answer_or_wait("towers", {"space": space.values}, message("Recall between the towers"))
    if result is not None:
        by_source = {k: scores_from_json(v) for k, v in result.meta["scores"].items()}
        if space.run is not None:
            by_source = _with_zero_shot(space, by_source)
        score_strip.show(by_source, list(by_source["own"]))
        for text in result.meta.get("warnings", ()):
            st.warning(format.plain(text))
        for note in [*result.meta["notes"], *why_missing(by_source["own"])]:
            st.caption(format.plain(note))
    for name, n in zip(towers.names, towers.without_partner, strict=True):
        if n:
            text = _("Rows of {name} without a partner: {n}.")
            st.caption(format.plain(text.format(n=f"{n:,}", name=name)))
    label, about = _("Subtract each tower's mean"), _("Closes most of the gap, without training.")
    is_centered = query_params.switch(st.toggle, label, name="centered", help=about)
    what = message("Recall without the means")
    if is_centered and (found := answer_or_wait("centered", {"space": space.values}, what)):
        changes(found, str(_("as they are")), str(_("minus the means")))
    if space.run is not None:
        _search(space)


def scores_of(space: Space) -> dict[str, Scores]:
    """Return the scores by source; {} if they have not been computed."""
    result = cache.result("towers", {"space": space.values})
    return {} if result is None else {k: scores_from_json(v) for k, v in result.meta["scores"].items()}


def partners(space: Space, rows: EmbeddingSet, i: int) -> None:
    """Draw the text of a row of two towers, and its partners with their ranks in both directions."""
    if (towers := cache.towers(rows)) is None:
        return
    own = str(rows.columns[TOWER][i])
    other = towers.names[1] if own == towers.names[0] else towers.names[0]
    found, query = partners_of(towers, i), said(rows, i)
    st.html(texts.answers(query, [(other, said(rows, one.row)) for one in found[:1]], about=own))
    if not found:
        st.caption(format.plain(_("No row of {other} is its partner.").format(other=other)))
        return
    rank, back = plain_rank(found[0].rank), plain_rank(found[0].rank_back)
    text = _("Its partner. Rank from {own} to {other}: {rank}. Rank from {other} to {own}: {back}. Cosine {cosine}.")
    ranks = {"rank": f"{rank:,}", "back": f"{back:,}", "cosine": f"{found[0].similarity:.3f}"}
    if len(found) > 1:
        text = _(
            "The nearest of {n} partners. Rank from {own} to {other}: {rank}. Rank from {other} to {own}: {back}. "
            "Cosine {cosine}."
        )
    help = _(
        "Rank 1: no wrong row of that tower is more similar. Other partners of the row and duplicates of a "
        "partner are not counted."
    )
    st.caption(format.plain(text.format(own=own, other=other, n=len(found), **ranks)), help=help)
    chosen = [i, *(partner.row for partner in found)]
    st.button(
        _("Select with its partners"), key=f"partners-{i}", on_click=state.select, args=(chosen, state.place_of(space))
    )
    if len(found) > 1:
        with st.expander(_("All partners")):
            draw_table([_listed(rows, partner, own, other) for partner in found], hide_index=True)


def said(rows: EmbeddingSet, i: int) -> str:
    """Return the text of a row, or its id if it has no text."""
    texts = rows.columns.get(TEXT)
    return rows.ids[i] if texts is None or not str(texts[i]) else str(texts[i])


def _listed(rows: EmbeddingSet, partner: Partner, own: str, other: str) -> dict[str, object]:
    rank = _("rank, {a} → {b}")
    return {
        "id": rows.ids[partner.row],
        TEXT: said(rows, partner.row),
        rank.format(a=own, b=other): plain_rank(partner.rank),
        rank.format(a=other, b=own): plain_rank(partner.rank_back),
        N_("cosine similarity"): round(partner.similarity, 3),
    }


# --- texts for a run's text tower ------------------------------------------------------------------


FOUND = 12  # images of a query
TEMPLATES = "templates"


def _with_zero_shot(space: Space, by_source: dict[str, Scores]) -> dict[str, Scores]:
    """Add the zero-shot accuracy to the scores by source, in first place, and draw a field to edit its templates."""
    with st.popover(_("Zero-shot prompts"), icon=":material/edit:", width="content"):
        help = _("The braces stand for the class name. A class is the mean of its prompts.")
        start = "\n".join(DEFAULT_TEMPLATES)
        key = f"{TEMPLATES}-{cache.digest(state.data_of(space))}"
        text = st.text_area(_("Templates, one per line"), start, key=key, help=help)
    templates = [line.strip() for line in text.splitlines() if line.strip()]
    wrong = [line for line in templates if line.count("{}") != 1]
    if wrong or not templates:
        first = wrong[0] if wrong else ""
        template = _("A template needs one pair of braces where the class name goes. Got: {first}")
        st.warning(format.plain(template.format(first=first or "–")))
        return by_source
    values = {"space": space.values, "templates": templates}
    result = answer_or_wait("zero_shot", values, message("Zero-shot accuracy"))
    if result is None:
        return by_source
    made = {k: scores_from_json(v) for k, v in result.meta["scores"].items()}
    return {source: made.get(source, {}) | scores for source, scores in by_source.items()}


def _search(space: Space) -> None:
    """Draw a field for a sentence, and the images most similar to it; a click selects an image's point."""
    text = query_params.text(st.text_input, _("Find images by a sentence"), name="text").strip()
    if not text:
        return
    values = {"space": space.values, "text": text, "most": FOUND}
    result = answer_or_wait("text_query", values, message("Nearest images"))
    if result is None:
        return
    unknown, rows = result.meta["unknown"], result.arrays["rows"].tolist()
    if not rows:
        st.warning(format.plain(_("The training captions have none of these words: {words}.").format(words=text)))
        return
    if unknown:
        words = ", ".join(unknown)
        st.caption(format.plain(_("Words that are not in the training captions: {words}.").format(words=words)))
    every, similarity = cache.embedding(space), result.arrays["similarity"].tolist()
    assert every is not None
    if pictures.are_decoded(space):
        captions = [f"{s:.2f}" for s in similarity]
        pictures.gallery(space, rows, captions, _("images nearest to the sentence"), f"query-{cache.digest(rows)}")
    with st.expander(_("As a table")):
        names = [{"id": every.ids[i], "cosine similarity": round(s, 3)} for i, s in zip(rows, similarity, strict=True)]
        draw_table(names, hide_index=True)
