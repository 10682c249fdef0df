"""Texts for a run's text tower on Explore: zero-shot templates, and a text query that finds images."""

import streamlit as st

from contrastive_core.base.score import Scores, scores_from_json
from contrastive_core.spaces.space import Space
from contrastive_core.spaces.towers import DEFAULT_TEMPLATES
from contrastive_lab import cache, format, pictures, query_params, state
from contrastive_lab.figures import draw_table
from contrastive_lab.locale import _, message
from contrastive_lab.progress import answer_or_wait

FOUND = 12  # images of a query
TEMPLATES = "templates"


def with_zero_shot(space: Space, by_source: dict[str, Scores]) -> dict[str, Scores]:
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


def search(space: Space) -> None:
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
