"""Explore: one embedding space: its map, and beside it its scores and the images behind points."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from contrastive_core.records.embedding_ref import EmbeddingRef
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.run import Run
from contrastive_lab import cache, format, forming_map, guard, load_vectors, recordings, state
from contrastive_lab.explore import heading, scores, selection, space_map
from contrastive_lab.locale import _
from contrastive_lab.progress import embedded_or_wait

SHARES = (64, 36)  # of the map, and of what stands at its right


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
    heading.of_vectors(space)
    show(space, lambda: heading.scores_of_vectors(space))


def of_run(run: Run) -> None:
    if run.is_recording:
        of_recording(run)
        return
    heading.of_run(run)
    if not run.weights.exists():
        heading.left_out(run, "train")
        heading.without_weights(run)
        forming_map.show_last(run)
        return
    try:
        space = space_map.space_of_run(run)
    except ValueError as error:
        st.warning(format.plain(error))
        return
    heading.left_out(run, space.split)
    if embedded_or_wait(run, space.split, space.layer):
        show(space, lambda: heading.scores_of_run(run, space))
    else:
        space_map.split_and_layer(space)  # the way back, while it is made
        forming_map.show_last(run)


def of_recording(run: Run) -> None:
    """A recording: its figures, and the rows that it keeps, at any step."""
    heading.of_recording(run)
    chosen = recordings.place_of(run)
    if chosen is None:
        st.info(_("No rows recorded yet. They appear here with the first step."))
        return
    space = recordings.space_of(chosen)
    rows = cache.embedding(space)
    if rows is None or len(rows) < 3:
        recordings.choose_place(run, chosen)
        st.info(_("Fewer than three rows were kept of this step: too few for a map."))
        return
    side_by_side(space, rows, space_map.choose_recorded(run, chosen, space, rows))


def show(space: EmbeddingRef, first_scores: Callable[[], None]) -> None:
    """Choices, the map, and beside it the scores and the selection."""
    rows = cache.embedding(space)
    if rows is None:
        heading.not_embedded(space)
        return
    side_by_side(space, rows, space_map.choose(space, rows), first_scores)


def side_by_side(
    space: EmbeddingRef, rows: EmbeddingSet, view: space_map.View, first_scores: Callable[[], None] = lambda: None
) -> None:
    """The map; at its right the scores and what is selected on it; below what is asked for."""
    left, right = st.columns(SHARES, gap="medium")
    with left:
        xy, picked = space_map.draw(space, rows, view)
    with right, st.container(gap="xsmall"):
        first_scores()
        selection.beside(space, rows, picked)
    scores.more(space, rows, xy, picked)


state.run(page)
