"""The head of Explore: what is looked at, its first scores, or why there is nothing to see."""

from __future__ import annotations

import contextlib

import streamlit as st

from contrastive_core import catalog
from contrastive_core.data import datasets
from contrastive_core.data.image_form import described, form_of
from contrastive_core.embeddings import kept_vectors
from contrastive_core.embeddings.recorded import kinds_of
from contrastive_core.embeddings.ref import EmbeddingRef
from contrastive_core.evaluation.score import scores_from_json
from contrastive_core.jobs import results
from contrastive_core.runs import Run
from contrastive_lab import cache, format, query_params
from contrastive_lab.explore import load_vectors, strip
from contrastive_lab.progress import answer_or_wait, follow
from contrastive_lab.recordings import growing

__all__ = [
    "left_out",
    "not_embedded",
    "of_recording",
    "of_run",
    "of_vectors",
    "scores_of_run",
    "scores_of_vectors",
    "without_run",
    "without_weights",
]


def title(text: str) -> None:
    """The title, and beside it the way to other vectors."""
    with st.container(
        horizontal=True, horizontal_alignment="distribute", vertical_alignment="bottom"
    ):
        st.title(format.plain(text), width="content")
        load_vectors.opener()


def of_vectors(space: EmbeddingRef) -> None:
    title(space.title)
    about = kept_vectors.about(space.key)
    labels = "with labels" if about["labels"] else "no labels"
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"Loaded vectors · {about['rows']:,} rows × {about['width']:,} · {labels}")
        st.page_link(
            "pages/samples.py", label="Its lists: mislabeled, duplicate, outlying",
            icon=":material/image_search:", query_params={"on": kept_vectors.PREFIX + space.key},
        )  # fmt: skip
    if lacking := load_vectors.about_left_out(space.key):
        st.warning(format.plain(lacking))


def of_run(run: Run) -> None:
    title(run.meta().get("title") or run.name)
    config = run.config
    method = catalog.title("methods", str(config.get("method")))
    loss = catalog.title("losses", str(config.get("loss")))
    data = format.data_of(config.get("dataset"))
    about = [method, loss, data, f"{config.get('epochs')} epochs", f"seed {config.get('seed')}"]
    if imported := run.manifest.get("imported"):
        about = [f"{imported.get('kind')}, not trained here", data]
        about += ["random weights: it has learned nothing"] if imported.get("random") else []
    about += [form] if (form := described(config)) else []
    st.caption(" · ".join(map(format.plain, about)))  # a sentence each, translated by itself


def left_out(run: Run, split: str) -> None:
    """Which files of a folder are not among the images of a split, or only in part: as its decoded
    images tell; while there are none, as its manifest tells of those it was trained on."""
    name, said = str(run.config.get("dataset")), str(run.manifest.get("left_out") or "")
    if datasets.is_files(name):
        with contextlib.suppress(ValueError, OSError):
            if datasets.is_made(name, split, form_of(run.config)):
                said = cache.dataset_of(run, split).left_out
    if said:
        st.caption(format.plain(f"{said.removesuffix('.')}."))  # those of older runs end without


def of_recording(run: Run) -> None:
    """Its name, how far it is, what is known of it, and what it does not hold."""
    title(run.meta().get("title") or run.name)
    if run.is_alive():
        growing.follow(run.name, kinds_of(run))
    else:
        st.caption(format.plain(growing.describe(run)))
    if note := run.status().get("note"):
        st.warning(format.plain(note))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(growing.LACKS)
        st.page_link("pages/loss_lab.py", label="Its images under the loss", icon=":material/tune:")
    if query_params.switch(st.toggle, "Figures over the steps", name="figures"):
        growing.figures(run)


def scores_of_vectors(space: EmbeddingRef) -> None:
    result = answer_or_wait("scores", {"space": space.values}, "Scores")
    if result is not None:
        by_source = {k: scores_from_json(v) for k, v in result.meta["scores"].items()}
        strip.draw(by_source, result.meta["how"])


def scores_of_run(run: Run, layer: str) -> None:
    """The test split's scores, beside raw pixels, an untrained encoder and the other features."""
    record = cache.scores(run)
    if record is None:
        follow(results.evaluation(run), "Scores (once)")
        return
    recorded = record.scores
    other = "z" if layer == "h" else "h"
    by_source = {"own": recorded.get(layer, {}), "other": recorded.get(other, {})}
    by_source |= {k: recorded[k] for k in ("raw", "random") if k in recorded}
    strip.draw(by_source, "", other)


def without_run() -> None:
    title("Explore")
    st.info("There is no run to look at yet. Train one: a minute is enough for digits.")
    st.page_link("pages/train.py", label="Go to Train", icon=":material/play_circle:")


def without_weights(run: Run) -> None:
    status = run.status()
    if status["status"] == "running":
        st.info("This run is still training; its map forms on the Train page.")
        st.page_link("pages/train.py", label="Watch it train", icon=":material/play_circle:")
    else:
        st.warning(format.plain(f"It is {status['status']} and has no weights. {status['reason']}"))


def not_embedded(space: EmbeddingRef) -> None:
    name = format.plain(space.title)
    st.info(f"{name} has no {space.layer} of its {space.split} images yet.")
