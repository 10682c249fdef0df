"""Explore: one embedding space, its map, the images behind the points, its scores."""

from __future__ import annotations

import numpy as np
import streamlit as st

import session
from components import scatter
from contrastive_core import figures
from contrastive_core.runs import Run

SPLITS = ("test", "train")


def page() -> None:
    run = session.chosen_run()
    if run is None:
        st.title("Explore")
        st.info("There is no run to look at yet. Train one: a minute is enough for digits.")
        st.page_link("pages/train.py", label="Go to Train", icon=":material/play_circle:")
        return
    st.title(run.meta().get("title") or run.name)
    status = run.status()
    st.caption(
        f"{run.config.get('method')} · loss {run.config.get('loss')} · {run.config.get('dataset')}"
        f" · {run.config.get('epochs')} epochs · seed {run.config.get('seed')}"
    )
    if not run.weights.exists():
        waiting(run, status)
        return
    if session.ensure(run):
        making_of(run, "test")
        return
    headline(run)
    split = st.query_params.get("split", "test")
    split = st.session_state.get("split") or (split if split in SPLITS else "test")
    st.query_params["split"] = split
    if session.ensure(run, split):
        making_of(run, split)
    else:
        show(run, split)


def waiting(run: Run, status: dict) -> None:
    if status["status"] == "running":
        st.info("This run is still training; its map forms on the Train page.")
        st.page_link("pages/train.py", label="Watch it train", icon=":material/play_circle:")
    else:
        st.warning(f"This run is {status['status']} and has no weights. {status['reason']}")


@st.fragment(run_every=1.0)
def making_of(run: Run, split: str) -> None:
    """Follow the process that embeds, scores and maps the run."""
    what = session.ensure(run, split)
    if what is None:
        st.rerun()
    if why := session.unprepared(run, split):
        st.text(f"{run.name} could not be prepared. {why}")
        if st.button("Try again"):
            session.prepare_again(run, split)
        return
    st.progress(0.3, text=f"Preparing {run.name} (once): {what}")


def show(run: Run, split: str) -> None:
    images = pictures_of(run, split)
    left, right = st.columns([5, 2], gap="medium")
    with right:
        st.segmented_control("Images", SPLITS, default=split, key="split")
        which = st.segmented_control(
            "Features", ["h", "z"], default="h", key="which", help="h: backbone, z: projection"
        )
        kinds = [k for k in ("umap", "pca") if session.read_map(run, split, which or "h", k)]
        kind = st.segmented_control(
            "Map", kinds, default=next(iter(kinds), None), format_func=str.upper
        )
        rows = session.embedding(run, split, which or "h")
        if rows is None or kind is None:
            st.stop()
        names = ["class", *rows.columns]
        colour_by = st.selectbox("Colour by", names) if len(names) > 1 else "class"
        found = session.read_map(run, split, which or "h", kind)
        quality(found)
    with left:
        colour = rows.labels if colour_by == "class" else rows.columns[colour_by]
        sprite, across = session.sprite(run, split) if images else (b"", 1)
        picked = scatter(
            found["xy"],
            colour,
            rows.classes if colour_by == "class" else (),
            content=session.digest(run.name, run.weights_hash(), which, kind, images, split),
            ids=rows.ids,
            title=f"{kind.upper()} map of {run.name}, {which}, {split}",
            sprite=sprite,
            across=across,
            selection=session.selection() if split == "test" else (),
            stamp=f"{run.name} {split}",
            key=f"explore-map-{split}",
        )
        if split == "test":
            session.select(picked)
    if picked and images:
        selected(run, rows, session.dataset_of(run, split), picked)
    more(run, rows)


def pictures_of(run: Run, split: str) -> bool:
    """Whether the images behind the points can be shown; until then the page says so."""
    try:
        if session.images_ready(run, split):
            return True
    except ValueError as error:
        st.warning(f"The images behind the points cannot be shown: {error}")
        return False
    decoding_of(run, split)
    return False


@st.fragment(run_every=1.0)
def decoding_of(run: Run, split: str) -> None:
    try:
        if session.images_ready(run, split):
            st.rerun()
    except ValueError:
        st.rerun()
    st.caption("The images behind the points are being made (once)…")


def headline(run: Run) -> None:
    """The scores, beside raw pixels and a random encoder."""
    record = session.scores(run)
    if record is None:
        return
    shown = ("knn", "linear_probe", "alignment", "uniformity", "rankme")
    h, raw, random = (record["scores"].get(k, {}) for k in ("h", "raw", "random"))
    for column, name in zip(st.columns(len(shown)), shown, strict=True):
        if name not in h:
            continue
        with column.container(border=True):
            score = h[name]
            st.metric(score["title"], figures.figure_of(score), help=score["reading"])
            st.caption(
                f"{figures.interval_of(score)}raw pixels {figures.figure_of(raw.get(name))}, "
                f"random encoder {figures.figure_of(random.get(name))}"
            )


def quality(found: dict) -> None:
    q, s = found["quality"], found["settings"]
    told = [f"{k} {v}" for k, v in s.items() if k != "kind"]
    st.caption(
        f"{s['kind'].upper()}{': ' + ', '.join(told) if told else ''}. "
        f"Trustworthiness {q.get('trustworthiness', float('nan')):.3f}, "
        f"continuity {q.get('continuity', float('nan')):.3f} (k = {q.get('k', '–')}). "
        "Scores are computed in the embedding, never on the map."
    )
    st.caption("Lasso or box to select, wheel to zoom, shift-drag to pan, double-click for all.")


def selected(run: Run, rows, dataset, picked: list[int]) -> None:
    i = picked[0]
    st.subheader(f"{len(picked)} selected" if len(picked) > 1 else rows.ids[i])
    if len(picked) > 1:
        counts = (
            np.bincount(rows.labels[picked], minlength=len(rows.classes))
            if rows.labels is not None
            else []
        )
        told = [f"{rows.class_name(c)} {n}" for c, n in enumerate(counts) if n]
        st.caption(" · ".join(told))
        st.download_button(
            "Selection as CSV", lambda: figures.csv_of(rows, picked), "selection.csv", "text/csv"
        )
    near, similarity = session.neighbours(rows, i)
    st.caption(f"Nearest to {rows.ids[i]} in the embedding, with cosine similarity:")
    columns = st.columns(13)
    columns[0].image(session.picture(dataset.images, i), caption="itself", width="stretch")
    for column, j, s in zip(columns[1:], near, similarity, strict=False):
        label = "" if rows.labels is None else rows.class_name(int(rows.labels[j]))
        column.image(session.picture(dataset.images, int(j)), f"{label} {s:.2f}", width="stretch")


def more(run: Run, rows) -> None:
    record = session.scores(run)
    a, b = st.columns([3, 1])
    if a.toggle("More scores, and how to read them") and record:
        with st.container(border=True):
            st.dataframe(figures.score_table(record), hide_index=True, width="stretch")
            for score in record["scores"]["h"].values():
                st.markdown(f"**{score['title']}**: {score['reading']}")
    b.download_button(
        "Embedding as CSV", lambda: figures.csv_of(rows, range(len(rows))), f"{run.name}.csv"
    )


session.run(page)
