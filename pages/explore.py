"""Explore: one embedding space, its map, the images behind the points, its scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

from contrastive_core.embeddings import ref
from contrastive_core.embeddings.embedding_set import EmbeddingSet
from contrastive_core.evaluation.score import scores_from_json
from contrastive_core.runs import Run
from contrastive_lab import (
    cache,
    embedding_map,
    embedding_source,
    format,
    guard,
    query_params,
    state,
)
from contrastive_lab.colors import DETAILS, LOSS, names_of
from contrastive_lab.components.scatter import MAX_POINTS
from contrastive_lab.embedding_source import Source
from contrastive_lab.explore import load_vectors, scores, selection
from contrastive_lab.progress import answer_or_wait, scored_or_wait

LAYERS = ("h", "z")
SELECT = 150  # pixels of a list of choices


def page() -> None:
    key = load_vectors.chosen()
    run = state.chosen_run()
    if key:
        with guard.on_its_own("This file"):
            of_vectors(key)
    elif run is None:
        title("Explore")
        st.info("There is no run to look at yet. Train one: a minute is enough for digits.")
        st.page_link("pages/train.py", label="Go to Train", icon=":material/play_circle:")
    else:
        with guard.on_its_own(run.name):
            of_run(run)


def title(text: str) -> None:
    with st.container(
        horizontal=True, horizontal_alignment="distribute", vertical_alignment="bottom"
    ):
        st.title(format.plain(text), width="content")
        load_vectors.opener()


def of_vectors(key: str) -> None:
    about = ref.loaded()[key]
    source = embedding_source.of_vectors(key, about)
    title(source.name)
    known = "with labels" if about["labels"] else "no labels"
    st.caption(f"Loaded vectors · {about['rows']:,} rows × {about['width']:,} · {known}")
    if left_out := load_vectors.about_left_out(key):
        st.warning(format.plain(left_out))
    split = split_of(source)
    found = answer_or_wait("scores", {"space": source.space(split, "loaded").values}, "Scores")
    if found is not None:
        named = {k: scores_from_json(v) for k, v in found.meta["scores"].items()}
        scores.headline(named, found.meta["how"])
    show(source, split, "loaded")


def of_run(run: Run) -> None:
    title(run.meta().get("title") or run.name)
    config = run.config
    st.caption(format.plain(
        f"{config.get('method')} · loss {config.get('loss')} · {config.get('dataset')}"
        f" · {config.get('epochs')} epochs · seed {config.get('seed')}"
    ))  # fmt: skip
    if left_out := run.manifest.get("left_out"):
        st.caption(format.plain(left_out))
    status = run.status()
    if not run.weights.exists():
        waiting(run, status)
        return
    if not scored_or_wait(run):
        return
    source = embedding_source.of_run(run)
    which = query_params.current("features", LAYERS, "h")
    headline(run, which)
    split = split_of(source)
    if scored_or_wait(run, split, which):
        show(source, split, which)
    else:
        source_choices(source)  # the way back, while it is made


def split_of(source: Source) -> str:
    if not source.splits:
        return ""
    return query_params.current("split", source.splits, source.splits[0])


def headline(run: Run, which: str) -> None:
    """The test split's scores, beside raw pixels, a random encoder and the other features."""
    record = cache.scores(run)
    if record is None:
        return
    found = record.scores
    other = "z" if which == "h" else "h"
    named = {"own": found.get(which, {}), "other": found.get(other, {})}
    named |= {k: found[k] for k in ("raw", "random") if k in found}
    scores.headline(named, "", other)


def waiting(run: Run, status: dict[str, Any]) -> None:
    if status["status"] == "running":
        st.info("This run is still training; its map forms on the Train page.")
        st.page_link("pages/train.py", label="Watch it train", icon=":material/play_circle:")
    else:
        st.warning(format.plain(f"It is {status['status']} and has no weights. {status['reason']}"))


def show(source: Source, split: str, which: str) -> None:
    """Map, selection, and what is asked for below."""
    rows = source.rows(split, which)
    if rows is None:
        st.info(f"{format.plain(source.name)} has no {which} of its {split} images yet.")
        return
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        kind, wanted, name, other = controls(source, split, rows)
    found = embedding_map.map_of(source, split, which, kind, wanted, rows)
    extra = placed(source, split, which, wanted, other) if other else None
    picked = embedding_map.draw(
        source, split, which, rows, found, (name, details(source, split, which, name)), extra
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        embedding_map.told(found)
        if found["settings"]["kind"] == "umap":
            embedding_map.agreement(source.space(split, which), wanted)
    if picked:
        selection.selected(source, rows, split, which, [i for i in picked if i < len(rows)])
    more(source, split, which, rows, found, picked)


def source_choices(source: Source) -> None:
    """The split and the layer that are looked at."""
    if source.splits:
        query_params.one_of(st.segmented_control, "Images" if source.run else "Rows", source.splits,
                            name="split", width="content")  # fmt: skip
    if source.run:
        query_params.one_of(st.segmented_control, "Features", LAYERS, name="features",
                            help="h: backbone, z: projection", width="content")  # fmt: skip


def controls(
    source: Source, split: str, rows: EmbeddingSet
) -> tuple[str, dict[str, Any], str, str]:
    """Choices above the map: its kind and settings, what colors it, what else is placed on it."""
    source_choices(source)
    large = len(rows) > MAX_POINTS  # then UMAP takes minutes, and is made when it is asked for
    kind = query_params.one_of(st.segmented_control, "Map", ["umap", "pca"], name="map",
                               default="pca" if large else "umap", format_func=str.upper,
                               width="content", key=f"map-kind-{large}")  # fmt: skip
    wanted, other = embedding_map.settings(kind), ""
    names = names_of(rows, split != "train", source.run is not None)
    name = query_params.one_of(st.selectbox, "Color by", names, name="color",
                               key=f"color-{cache.digest(source.data)}", width=SELECT)  # fmt: skip
    if kind == "umap" and (others := others_of(source, split)):
        nothing = "nothing else"
        other = query_params.one_of(
            st.selectbox, "Place on this map", [nothing, *others], name="placed", width=SELECT,
            key=f"place-{cache.digest(source.data, split)}",
        )  # fmt: skip
        other = "" if other == nothing else other
    return kind, wanted, name, other


def details(source: Source, split: str, which: str, name: str) -> dict[str, np.ndarray]:
    """What is known of each sample for this color; computed when it is first asked for."""
    space = {"space": source.space(split, which).values}
    if name in DETAILS:
        found = answer_or_wait("scores", space, "What is known of each sample")
        return {} if found is None else found.arrays
    if name == LOSS:
        found = answer_or_wait("loss", space, "The loss of every sample")
        return {} if found is None else found.arrays
    return {}


def others_of(source: Source, split: str) -> dict[str, str]:
    """What can be placed on a map, by its name: the other split, or the key of loaded vectors."""
    others = {s: "" for s in source.splits if s != split}
    loaded = {str(about["name"]): key for key, about in ref.loaded().items()}
    return others | {name: key for name, key in loaded.items() if key != source.key}


def placed(
    source: Source, split: str, which: str, wanted: dict[str, Any], name: str
) -> tuple[np.ndarray, str] | None:
    """Where other samples fall on this map: the other split, or loaded vectors of its width."""
    own, key = source.space(split, which), others_of(source, split)[name]
    new = ref.of_vectors(key) if key else own.with_split(name)
    question = embedding_map.question(own, "umap", wanted)
    found = answer_or_wait(
        "placed", {"map": question, "new": new.values}, f"Placing {name} on the map"
    )
    return None if found is None else (found.arrays["xy"], name)


def more(
    source: Source, split: str, which: str, rows: EmbeddingSet, found: Any, picked: list[int]
) -> None:
    with st.container(
        horizontal=True, horizontal_alignment="distribute", vertical_alignment="bottom"
    ):
        view = query_params.one_of(st.segmented_control, "More", scores.VIEWS, name="more",
                                   optional=True, width="content")  # fmt: skip
        selection.out(source, rows, found, picked)
    if view:
        asked = {"space": source.space(split, which).values}
        answer = answer_or_wait("scores", asked, "All scores and what they say of each sample")
        if answer is not None:
            scores.more(source, view, answer, rows, split)


state.run(page)
