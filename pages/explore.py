"""Explore: one embedding space with its map, its scores, and the images behind points."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st

from contrastive_core.runs.run import Run
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.recorded_rows import kinds_of
from contrastive_core.spaces.space import Space
from contrastive_lab import (
    cache,
    embedding_map,
    format,
    forming_map,
    load_vectors,
    recordings,
    score_strip,
    stage,
    state,
)
from contrastive_lab.explore import export, inspector, scores, space_map
from contrastive_lab.explore.space_map import Bar, View, split_and_layer
from contrastive_lab.locale import _
from contrastive_lab.progress import embedded_or_wait


def page() -> None:
    key, run = load_vectors.chosen(), state.chosen_run()
    if key:
        with stage.on_its_own(_("This file")):
            of_vectors(key)
    elif run is not None:
        with stage.on_its_own(run.name):
            of_run(run)
    else:
        space_map.without_run()


def of_vectors(key: str) -> None:
    space = space_map.space_of(None, key)
    st.title(format.plain(space.title))
    show(space, partial(space_map.about_vectors, space), Bar())


def of_run(run: Run) -> None:
    st.title(format.plain(run.meta().get("title") or run.name))
    bar = Bar()
    if run.is_recording:
        of_recording(run, bar)
        return
    if not run.weights.exists():
        with space_map.alone():
            score_strip.about_run(run)
            space_map.left_out(run, "train")
            space_map.without_weights(run)
            forming_map.show_last(run)
        return
    try:
        space = space_map.space_of(run)
    except ValueError as error:
        st.warning(format.plain(error))
        return

    def about() -> None:
        score_strip.about_run(run)
        space_map.left_out(run, space.split)

    with (wait := space_map.alone()):
        is_there = embedded_or_wait(run, space.split, space.layer)
    if is_there:
        show(space, about, bar)
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
        with space_map.alone():
            space_map.about_recording(run, kinds)
            st.info(_("No rows recorded yet. They appear here with the first step."))
        return
    space = recordings.space_of(chosen)
    rows = cache.embedding(space)
    if rows is None or len(rows) < 3:
        with bar.left:
            recordings.choose_place(run, chosen, kinds)
        with space_map.alone():
            space_map.about_recording(run, kinds)
            st.info(_("Fewer than three rows of this step were kept, which is too few for a map."))
        return
    about = partial(space_map.about_recording, run, kinds)
    side_by_side(space, rows, about, bar, bar.choose(space, rows, kinds))


def show(space: Space, about: Callable[[], None], bar: Bar) -> None:
    """Draw the map of a space and its inspector, once the space has rows. `about` draws where they are from."""
    rows = cache.embedding(space)
    if rows is None:
        with space_map.alone():
            about()
            space_map.not_embedded(space)
        return
    side_by_side(space, rows, about, bar, bar.choose(space, rows))


def side_by_side(space: Space, rows: EmbeddingSet, about: Callable[[], None], bar: Bar, view: View) -> None:
    """Draw the map, the scores or the selection in the inspector, and the chosen panel below."""
    picture, beside = stage.columns()
    with picture:
        drawn_map, picked = space_map.draw(space, rows, view)
    with beside:
        inspector.draw(space, rows, drawn_map, picked, about)
    with stage.below():
        scores.more(space, rows)
        if place := space.recorded:
            recordings.draw_figures(place.run)
    with bar.tools:
        export.offer_files(space, rows, drawn_map.xy, picked)
    with bar.more:
        embedding_map.caption(drawn_map, view.rows_title)


state.run(page)
