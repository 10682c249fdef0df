"""Which space Explore looks at: a run's or loaded vectors', which split, which layer."""

from __future__ import annotations

import streamlit as st

from contrastive_core.records import embedding_ref
from contrastive_core.records.embedding_ref import EmbeddingRef
from contrastive_core.records.run import Run
from contrastive_lab import query_params
from contrastive_lab.locale import _
from contrastive_lab.recordings.place import LAYER_TITLES

LAYERS = ("h", "z")


def space_of_run(run: Run) -> EmbeddingRef:
    """The split and the layer that the address or the controls ask for."""
    space = embedding_ref.of_run(run, layer=query_params.current("features", LAYERS, "h"))
    return space.with_split(_split_of(space))


def space_of_vectors(key: str) -> EmbeddingRef:
    space = embedding_ref.of_vectors(key)
    return space.with_split(_split_of(space))


def _split_of(space: EmbeddingRef) -> str:
    splits = space.splits
    return query_params.current("split", splits, splits[0]) if splits else ""


def split_and_layer(space: EmbeddingRef) -> None:
    """The controls of both."""
    if space.splits:
        query_params.one_of(
            st.segmented_control,
            _("Rows") if space.is_loaded else _("Images"),
            space.splits,
            name="split",
            width="content",
        )
    if not space.is_loaded:
        query_params.one_of(
            st.segmented_control, _("Features"), LAYERS, name="features", format_func=LAYER_TITLES.get, width="content"
        )
