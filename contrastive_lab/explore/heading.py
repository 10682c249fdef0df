"""Top of Explore: the current space, its first scores, or the reason why there is nothing to show."""

import contextlib

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from contrastive_core.base.score import scores_from_json
from contrastive_core.data import datasets
from contrastive_core.data.dataset import form_of
from contrastive_core.engine import jobs
from contrastive_core.runs.run import Run
from contrastive_core.spaces import loaded_vectors
from contrastive_core.spaces.space import TOWERS, Space
from contrastive_lab import cache, format, load_vectors, locale, recordings, score_strip
from contrastive_lab.explore import tower_panels
from contrastive_lab.locale import _, message, ngettext
from contrastive_lab.progress import answer_or_wait, follow


def title(text: str) -> None:
    """Draw the page's title for screen readers; the toolbar starts with the same name."""
    st.title(format.plain(text))


def alone() -> DeltaGenerator:
    """Return a container that replaces the stage when there is no map."""
    return st.container(key="explore-alone")


def about_vectors(space: Space) -> None:
    """Describe a file of vectors and its missing parts."""
    about = loaded_vectors.about(space.key)
    labels = _labels(space) if about["labels"] else _("no labels")
    rows, width = (f"{about[name]:,}" for name in ("rows", "width"))
    text = _("Loaded vectors · {rows} rows × {width} · {labels}")
    st.caption(text.format(rows=rows, width=width, labels=labels))
    said = about.get("said") or ""
    if said:
        st.caption(format.plain(said))
    lacking = about.get("note", "") if " left out, " in said else load_vectors.about_left_out(space.key)
    if lacking:
        st.warning(format.plain(lacking))


def _labels(space: Space) -> str:
    """Return a text about the labels: all rows have one, or the number without."""
    rows = cache.embedding(space)
    missing = 0 if rows is None or rows.labels is None else int((rows.labels < 0).sum())
    if rows is None or not missing:
        return _("with labels")
    text = ngettext("{missing} of {n} rows has no label", "{missing} of {n} rows have no label", missing)
    return text.format(missing=f"{missing:,}", n=f"{len(rows):,}")


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


def scores_of_vectors(space: Space) -> None:
    if _scores_of_towers(space):
        return
    result = answer_or_wait("scores", {"space": space.values}, message("Scores"))
    if result is not None:
        by_source = {k: scores_from_json(v) for k, v in result.meta["scores"].items()}
        score_strip.draw(by_source, result.meta["how"])


def _scores_of_towers(space: Space) -> bool:
    """Draw the scores if the rows are of two towers, and return whether they are."""
    rows = cache.embedding(space)
    towers = None if rows is None else cache.towers(rows)
    if towers is not None:
        tower_panels.first_scores(space, towers)
    return towers is not None


def scores_of_run(run: Run, space: Space) -> None:
    """Draw the test split's scores, with raw pixels, the untrained encoder, references and the other layer."""
    layer = space.layer
    if layer == TOWERS and _scores_of_towers(space):
        return
    record = cache.scores(run)
    if record is None:
        follow(jobs.evaluation(run), message("Scores (once)"))
        return
    other = "z" if layer == "h" else "h"
    sources = {"own": layer, "other": other, "raw": "raw", "random": "random"}
    own = {name: record.scores.get(source, {}) for name, source in sources.items()}
    score_strip.draw(own | score_strip.reference_scores(run), format.judged_images(record), other)
    score_strip.follow_missing_reference(run)


def without_run() -> None:
    title(_("Explore"))
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
