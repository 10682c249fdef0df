"""Explore: one embedding space, its map, the images behind the points, its scores."""

from __future__ import annotations

import streamlit as st

from contrastive_core.embeddings.ref import EmbeddingRef
from contrastive_core.runs import Run
from contrastive_lab import cache, guard, state
from contrastive_lab.explore import choice, heading, load_vectors, more, selection, space_map
from contrastive_lab.progress import scored_or_wait
from contrastive_lab.recordings import place


def page() -> None:
    key, run = load_vectors.chosen(), state.chosen_run()
    if key:
        with guard.on_its_own("This file"):
            of_vectors(key)
    elif run is not None:
        with guard.on_its_own(run.name):
            of_run(run)
    else:
        heading.without_run()


def of_vectors(key: str) -> None:
    space = choice.space_of_vectors(key)
    heading.of_vectors(space)
    heading.scores_of_vectors(space)
    show(space)


def of_run(run: Run) -> None:
    if run.is_recording:
        of_recording(run)
        return
    heading.of_run(run)
    if not run.weights.exists():
        heading.without_weights(run)
    elif scored_or_wait(run):
        space = choice.space_of_run(run)
        heading.scores_of_run(run, space.layer)
        if scored_or_wait(run, space.split, space.layer):
            show(space)
        else:
            choice.split_and_layer(space)  # the way back, while it is made


def of_recording(run: Run) -> None:
    """A recording: its figures, and the rows that it keeps, at any step."""
    heading.of_recording(run)
    chosen = place.place_of(run)
    if chosen is None:
        st.info("It has recorded no rows yet; they appear here with its first step.")
        return
    space = place.space_of(chosen)
    rows = cache.embedding(space)
    if rows is None or len(rows) < 3:
        place.choose_place(run, chosen)
        st.info("Fewer than three rows were kept of this step: too few for a map.")
        return
    xy, picked = space_map.show_recorded(run, chosen, space, rows)
    if picked:
        selection.selected(space, rows, picked)
    more.show(space, rows, xy, picked)


def show(space: EmbeddingRef) -> None:
    """Map, selection, and what is asked for below."""
    rows = cache.embedding(space)
    if rows is None:
        heading.not_embedded(space)
        return
    xy, picked = space_map.show(space, rows)
    if picked:
        selection.selected(space, rows, picked)
    more.show(space, rows, xy, picked)


state.run(page)
