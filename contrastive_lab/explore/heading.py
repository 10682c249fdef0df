"""The current space on Explore: where it comes from, its first scores, or the reason why there is nothing to show."""

import contextlib
from functools import partial

import streamlit as st

from contrastive_core.base.score import Scores
from contrastive_core.data import datasets
from contrastive_core.data.dataset import form_of
from contrastive_core.engine import jobs
from contrastive_core.runs.run import Run
from contrastive_core.spaces import loaded_vectors
from contrastive_core.spaces.space import TOWERS, Space
from contrastive_core.spaces.towers import DEFAULT_TEMPLATES, Towers
from contrastive_lab import cache, format, load_vectors, locale, pictures, query_params, recordings, score_strip, state
from contrastive_lab.compare.towers import changes, why_missing
from contrastive_lab.explore.scores import by_source
from contrastive_lab.figures import draw_table
from contrastive_lab.locale import _, message, ngettext
from contrastive_lab.progress import answer_or_wait, follow

FOUND = 12  # images of a query
alone = partial(st.container, key="explore-alone")  # replaces the stage when there is no map


# --- where it comes from -------------------------------------------------------------------------


def about_vectors(space: Space) -> None:
    """Describe a file of vectors and its missing parts."""
    about, rows = loaded_vectors.about(space.key), cache.embedding(space)
    labels: str = _("with labels") if about["labels"] else _("no labels")
    if rows is not None and rows.labels is not None and (missing := int((rows.labels < 0).sum())):
        few = ngettext("{missing} of {n} rows has no label", "{missing} of {n} rows have no label", missing)
        labels = few.format(missing=f"{missing:,}", n=f"{len(rows):,}")
    text = _("Loaded vectors · {rows} rows × {width} · {labels}")
    st.caption(text.format(rows=f"{about['rows']:,}", width=f"{about['width']:,}", labels=labels))
    if about["said"]:
        st.caption(format.plain(about["said"]))
    if lacking := load_vectors.about_left_out(space.key):
        st.warning(format.plain(lacking))


def left_out(run: Run, split: str) -> None:
    """Draw the files of a folder that a split leaves out, from its decoded images or the run's manifest."""
    name, lacking = str(run.config.get("dataset")), run.manifest.get("left_out") or ""
    if datasets.is_files(name):
        with contextlib.suppress(ValueError, OSError):
            if datasets.is_made(name, split, form_of(run.config)):
                lacking = cache.dataset_of(run, split).left_out
    if lacking:
        st.caption(format.plain(lacking))


def about_recording(run: Run, kinds: recordings.Kinds) -> None:
    """Draw a recording's progress, notes, checks and limits."""
    if run.is_alive():
        recordings.follow(run.name, kinds)
    else:
        st.caption(format.plain(recordings.describe(run)))
    status = run.status()
    if note := status.get("note"):
        (st.warning if status.get("is_warned") else st.info)(format.plain(format.in_form(note)))
    recordings.loop_check(run)
    st.caption(locale.text(recordings.LACKS))


def without_run() -> None:
    st.title(_("Explore"))
    with alone():
        st.info(_("No runs yet. Train one: digits takes about a minute."))
        st.page_link("pages/train.py", label=_("Go to Train"), icon=":material/play_circle:")
        load_vectors.opener()


def without_weights(run: Run) -> None:
    status = run.status()
    if status["status"] == "running":
        st.info(_("This run is still training; its map forms on the Train page."))
        st.page_link("pages/train.py", label=_("Watch it train"), icon=":material/play_circle:")
    else:
        text = _("The run is {status} and has no weights. {reason}")
        st.warning(format.plain(text.format(status=locale.text(status["status"]), reason=status["reason"])))


def not_embedded(space: Space) -> None:
    text = _("{name} has no {layer} for its {split} images yet.")
    layer = locale.text(recordings.LAYER_TITLES[TOWERS]) if space.layer == TOWERS else space.layer
    st.info(text.format(name=format.plain(space.title), layer=layer, split=space.split))


# --- first scores --------------------------------------------------------------------------------


def first_scores(space: Space) -> None:
    """Draw the scores of two towers, of a file, or of a run's test split beside raw pixels, the untrained encoder,
    references and the other layer; for a recording, the switch for its figures."""
    rows, run = cache.embedding(space), space.run
    if space.is_recording:
        recordings.offer_figures()
    elif rows is not None and (towers := cache.towers(rows)):
        _scores_of_towers(space, towers)
    elif run is None:
        if result := answer_or_wait("scores", {"space": space.values}, message("Scores")):
            score_strip.draw(by_source(result), result.meta["how"])
    elif (record := cache.scores(run)) is None:
        follow(jobs.evaluation(run), message("Scores (once)"))
    else:
        other = "z" if space.layer == "h" else "h"
        sources = {"own": space.layer, "other": other, "raw": "raw", "random": "random"}
        own = {name: record.scores.get(source, {}) for name, source in sources.items()}
        score_strip.draw(own | score_strip.reference_scores(run), format.judged_images(record), other)
        score_strip.follow_missing_reference(run)


def _scores_of_towers(space: Space, towers: Towers) -> None:
    """Draw recall@k in both directions with its chance level, and the modality gap."""
    st.header(_("Do its towers agree?"))
    result = answer_or_wait("towers", {"space": space.values}, message("Recall between the towers"))
    if result is not None:
        found = by_source(result)
        if space.run is not None:
            accuracy = _zero_shot(space)
            found = {source: accuracy.get(source, {}) | scores for source, scores in found.items()}
        score_strip.show(found, list(found["own"]))
        for text in result.meta.get("warnings", ()):
            st.warning(format.plain(text))
        for note in [*result.meta["notes"], *why_missing(found["own"])]:
            st.caption(format.plain(note))
    for name, n in zip(towers.names, towers.without_partner, strict=True):
        if n:
            st.caption(format.plain(_("Rows of {name} without a partner: {n}.").format(n=f"{n:,}", name=name)))
    label, about = _("Subtract each tower's mean"), _("Closes most of the gap, without training.")
    is_centered = query_params.switch(st.toggle, label, name="centered", help=about)
    what = message("Recall without the means")
    if is_centered and (made := answer_or_wait("centered", {"space": space.values}, what)):
        changes(made, str(_("as they are")), str(_("minus the means")))
    if space.run is not None:
        _search(space)


def _zero_shot(space: Space) -> dict[str, Scores]:
    """Draw a field to edit the templates; return the zero-shot accuracy by source, {} until there is one."""
    with st.popover(_("Zero-shot prompts"), icon=":material/edit:", width="content"):
        help = _("The braces stand for the class name. A class is the mean of its prompts.")
        key = f"templates-{cache.digest(state.data_of(space))}"
        text = st.text_area(_("Templates, one per line"), "\n".join(DEFAULT_TEMPLATES), key=key, help=help)
    templates = [line.strip() for line in text.splitlines() if line.strip()]
    wrong = [line for line in templates or ["–"] if line.count("{}") != 1]
    if wrong:
        template = _("A template needs one pair of braces where the class name goes. Got: {first}")
        st.warning(format.plain(template.format(first=wrong[0])))
        return {}
    values = {"space": space.values, "templates": templates}
    result = answer_or_wait("zero_shot", values, message("Zero-shot accuracy"))
    return by_source(result) if result else {}


def _search(space: Space) -> None:
    """Draw a field for a sentence, and the images most similar to it; a click selects an image's point."""
    text = query_params.text(st.text_input, _("Find images by a sentence"), name="text").strip()
    values = {"space": space.values, "text": text, "most": FOUND}
    if not text or not (result := answer_or_wait("text_query", values, message("Nearest images"))):
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
