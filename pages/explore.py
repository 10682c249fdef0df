"""Explore: one embedding space with its map, its scores, and the images behind points."""

from __future__ import annotations

from functools import partial

import streamlit as st

from contrastive_core.runs.run import Run
from contrastive_core.spaces.recorded_rows import kinds_of
from contrastive_lab import (
    cache,
    embedding_map,
    format,
    forming_map,
    guard,
    load_vectors,
    recordings,
    score_strip,
    stage,
    state,
)
from contrastive_lab.explore import export, heading, inspector, scores, space_map
from contrastive_lab.explore.inspector import Subject
from contrastive_lab.explore.space_map import Bar, View, split_and_layer
from contrastive_lab.locale import _
from contrastive_lab.progress import embedded_or_wait


def page() -> None:
    key, run = load_vectors.chosen(), state.chosen_run()
    if key:
        with guard.on_its_own(_("This file")):
            of_vectors(key)
    elif run is not None:
        with guard.on_its_own(run.name):
            of_run(run)
    else:
        heading.without_run()


def of_vectors(key: str) -> None:
    space = space_map.space_of_vectors(key)
    heading.title(space.title)
    subject = Subject(space, lambda: heading.scores_of_vectors(space), lambda: heading.about_vectors(space))
    show(subject, Bar())


def of_run(run: Run) -> None:
    heading.title(run.meta().get("title") or run.name)
    bar = Bar()
    if run.is_recording:
        of_recording(run, bar)
        return
    if not run.weights.exists():
        with heading.alone():
            score_strip.about_run(run)
            heading.left_out(run, "train")
            heading.without_weights(run)
            forming_map.show_last(run)
        return
    try:
        space = space_map.space_of_run(run)
    except ValueError as error:
        st.warning(format.plain(error))
        return

    def about() -> None:
        score_strip.about_run(run)
        heading.left_out(run, space.split)

    with (wait := heading.alone()):
        is_there = embedded_or_wait(run, space.split, space.layer)
    if is_there:
        show(Subject(space, lambda: heading.scores_of_run(run, space), about), bar)
        return
    with bar.left:
        split_and_layer(space)  # the way back, while it is made
    with wait:
        about()
        forming_map.show_last(run)


def of_recording(run: Run, bar: Bar) -> None:
    """Draw a recording: its figures, and its stored rows at any step."""
    kinds = kinds_of(run)
    chosen = recordings.place_of(run, kinds)
    if chosen is None:
        with heading.alone():
            heading.about_recording(run, kinds)
            st.info(_("No rows recorded yet. They appear here with the first step."))
        return
    space = recordings.space_of(chosen)
    rows = cache.embedding(space)
    if rows is None or len(rows) < 3:
        with bar.left:
            recordings.choose_place(run, chosen, kinds)
        with heading.alone():
            heading.about_recording(run, kinds)
            st.info(_("Fewer than three rows of this step were kept, which is too few for a map."))
        return
    about = partial(heading.about_recording, run, kinds)
    subject = Subject(space, recordings.offer_figures, about, partial(recordings.draw_figures, run))
    side_by_side(subject, bar, bar.choose_recorded(run, chosen, kinds, space, rows))


def show(subject: Subject, bar: Bar) -> None:
    """Draw the map of a space and its inspector, once the space has rows."""
    rows = cache.embedding(subject.space)
    if rows is None:
        with heading.alone():
            subject.about()
            heading.not_embedded(subject.space)
        return
    side_by_side(subject, bar, bar.choose(subject.space, rows))


def side_by_side(subject: Subject, bar: Bar, view: View) -> None:
    """Draw the map, the scores or the selection in the inspector, and the chosen panel below."""
    space, rows = subject.space, cache.embedding(subject.space)
    assert rows is not None
    picture, beside = stage.columns()
    with picture:
        drawn_map, picked = space_map.draw(space, rows, view)
    with beside:
        inspector.draw(subject, rows, drawn_map, picked)
    with stage.below():
        scores.more(space, rows)
        subject.below()
    with bar.tools:
        export.offer_files(space, rows, drawn_map.xy, picked)
    with bar.more:
        embedding_map.caption(drawn_map, view.rows_title)


state.run(page)
