"""Which rows of a recording a page looks at: of the probe set or of a batch, and at which step."""

from __future__ import annotations

from typing import Any

import streamlit as st

from contrastive_core.records import embedding_ref
from contrastive_core.records.embedding_ref import EmbeddingRef
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.recorded_rows import PROBE, STEP, Recorded, kinds_of
from contrastive_core.records.run import Run
from contrastive_lab import cache, query_params
from contrastive_lab.locale import N_, _

NEWEST = "newest"
LAYER_TITLES = {"h": N_("encoder output (h)"), "z": N_("after the head (z)")}
KINDS = {PROBE: N_("Probe set"), STEP: N_("Images of a step")}


def place_of(run: Run) -> Recorded | None:
    """The rows that the address or the controls ask for; None while there are none."""
    kinds = kinds_of(run)
    if not kinds:
        return None
    kind = query_params.current("rows", kinds, next(iter(kinds)))
    chosen = _chosen_step(run, kind, kinds[kind])
    return Recorded(run, kind, kinds[kind][-1] if chosen == NEWEST else int(chosen))


def space_of(place: Recorded) -> EmbeddingRef:
    """The rows of a place, in the layer that is asked for where there are two."""
    layers = ("h", "z") if place.has_h() else ("z",)
    return embedding_ref.of_recording(place, query_params.current("features", layers, layers[0]))


def choose_place(run: Run, place: Recorded) -> None:
    """The controls: probe set or batch, which step, which layer."""
    kinds = kinds_of(run)
    if len(kinds) > 1:
        query_params.one_of(
            st.segmented_control, _("Images"), list(kinds), name="rows", width="content", format_func=KINDS.get
        )
    choose_step(run, place.kind, kinds[place.kind])
    if place.has_h():
        title_of = LAYER_TITLES.get
        query_params.one_of(
            st.segmented_control, _("Features"), ("h", "z"), name="features", format_func=title_of, width="content"
        )


def choose_step(run: Run, kind: str, steps: list[int]) -> int:
    """A step of those that are kept; the newest is followed until another is chosen."""
    chosen = query_params.one_of(
        st.select_slider,
        _("Step"),
        [*map(str, steps), NEWEST],
        name="step",
        key=_key(run, kind),
        default=NEWEST,
        format_func=lambda s: s if s == NEWEST else f"{int(s):,}",
    )
    return steps[-1] if chosen == NEWEST else int(chosen)


def follows_newest(run: Run, place: Recorded) -> bool:
    """Whether the page shows whatever is newest of a recording that grows."""
    return run.is_alive() and _chosen_step(run, place.kind, kinds_of(run)[place.kind]) == NEWEST


def _chosen_step(run: Run, kind: str, steps: list[int]) -> str:
    return query_params.current("step", [*map(str, steps), NEWEST], NEWEST, key=_key(run, kind))


def quick_map(rows: EmbeddingSet) -> dict[str, Any]:
    """PCA without a judgment: following a growing recording may take no process for each step."""
    xy = cache.map_pca(rows.content_hash, rows.features)
    return {"xy": xy, "settings": {"kind": "pca"}, "quality": {}}


def _key(run: Run, kind: str) -> str:
    return f"recorded-step-{cache.digest(run.name, kind)}"


def has_rows(run: Run) -> bool:
    """Whether a page can show a run: it has weights, or is a recording with rows."""
    return run.weights.exists() or (run.is_recording and bool(kinds_of(run)))
