"""Samples: find what a method gets wrong, look, decide, and train again without it."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

import session
from contrastive_core import figures, jobs, marks
from contrastive_core.runs import Run

SHOWN = 40
LISTS = {
    "mislabelled": ("Likely mislabelled", "Neighbours and an out-of-fold probe disagree with it."),
    "loss": ("Highest loss", "What the loss finds hardest, exact over the whole split."),
    "false_negative": ("Likely false negatives", "Pushed apart, though they look the same."),
    "duplicate": ("Near-duplicates", "Much nearer to one other sample than is usual here."),
    "outlier": ("Outliers", "Far from everything: mean distance to 20 neighbours."),
    "ambiguous": ("Ambiguous", "An out-of-fold probe cannot decide between classes."),
}


def page() -> None:
    st.title("Samples")
    run = session.chosen_run()
    if run is None or not run.weights.exists():
        st.info("Choose a run with weights in the sidebar, or train one.")
        st.page_link("pages/train.py", label="Go to Train", icon=":material/play_circle:")
        return
    a, b, c = st.columns([3, 1, 2])
    known = list(LISTS)
    wanted = st.query_params.get("list", known[0])
    name = a.segmented_control(
        "List", known, default=wanted if wanted in known else known[0],
        format_func=lambda n: LISTS[n][0],
    ) or known[0]  # fmt: skip
    split = b.segmented_control("Split", ["train", "test"], default="train") or "train"
    losses = list(session.catalogue()["losses"])
    own = str(run.config.get("loss"))
    loss = c.selectbox("Loss", losses, losses.index(own) if own in losses else 0)
    st.query_params["list"] = name
    try:
        table = session.sample_table(run.name, run.weights_hash(), loss, split)
    except ValueError as error:
        st.warning(str(error))
        return
    st.caption(LISTS[name][1])
    rows = ranked(table, name)
    if not len(rows):
        st.info("This list needs labels of at least two classes, and there are none.")
        return
    rows = filtered(table, rows)
    undo_bar(run)
    gallery(run, table, rows, name, split)
    after(run, table, rows, name)


def ranked(table: Any, name: str) -> np.ndarray:
    """Rows of the list, the strongest suspicion first."""
    score = np.asarray(table.columns[name], np.float64)
    order = np.argsort(-np.where(np.isfinite(score), score, -np.inf), kind="stable")
    return order[np.isfinite(score[order])]


def filtered(table: Any, rows: np.ndarray) -> np.ndarray:
    classes = sorted(set(table.columns["label"].tolist()) - {""})
    if len(classes) < 2:
        return rows
    with st.expander("Filter"):
        wanted = st.multiselect("Classes", classes)
        loss = table.columns["loss"][rows]
        known = loss[np.isfinite(loss)]
        if len(known) and known.min() < known.max():
            low, high = st.slider("Loss", float(known.min()), float(known.max()),
                                  (float(known.min()), float(known.max())))  # fmt: skip
            rows = rows[~np.isfinite(loss) | ((loss >= low) & (loss <= high))]
    return rows[np.isin(table.columns["label"][rows], wanted)] if wanted else rows


def undo_bar(run: Run) -> None:
    found = marks.marks(run)
    a, b = st.columns([5, 1])
    counts = {w: sum(m["what"] == w for m in found.values()) for w in marks.CHOICES}
    a.caption("Marked: " + ", ".join(f"{n} {w}" for w, n in counts.items()))
    if found and b.button("Undo", icon=":material/undo:", shortcut="u"):
        marks.undo(run)
        st.rerun()


def gallery(run: Run, table: Any, rows: np.ndarray, name: str, split: str) -> None:
    """The sample at hand, large, with its neighbours; below it the list."""
    cols, marked = table.columns, marks.marks(run)
    dataset = session.dataset_of(run, split)
    at = {sample: q for q, sample in enumerate(dataset.ids)}
    place = min(int(st.session_state.get("sample-place", 0)), len(rows) - 1)
    asked = st.query_params.get("sample")
    if asked and "sample-place" not in st.session_state:
        hits = np.flatnonzero(cols["id"][rows] == asked)
        place = int(hits[0]) if len(hits) else place
    i = int(rows[place])
    sample = str(cols["id"][i])
    st.query_params["sample"] = sample
    left, right = st.columns([1, 3], gap="large")
    with left:
        st.image(session.picture(dataset.images, at[sample]), f"{sample}", width="stretch")
        a, b = st.columns(2)
        step(a, "Previous", place - 1, len(rows), "j")
        step(b, "Next", place + 1, len(rows), "k")
    with right:
        st.subheader(f"{place + 1} of {len(rows)}: {cols['label'][i] or 'no label'}")
        known = [k for k in LISTS if np.isfinite(cols[k][i])]
        told = [f"{k.replace('_', ' ')} **{float(cols[k][i]):.3f}**" for k in known]
        st.markdown(" · ".join(told) + f" · rank by loss **{int(cols['rank'][i])}**")
        decide(run, sample, dataset.classes, marked.get(sample), place)
        around(run, split, sample, dataset, at)
    st.divider()
    columns = st.columns(10)
    first = max(0, place - 5)
    for q, row in enumerate(rows[first : first + SHOWN]):
        other = str(cols["id"][row])
        what = marked.get(other, {}).get("what")
        columns[q % 10].image(
            session.picture(dataset.images, at[other]),
            f"{first + q + 1}. {cols['label'][row]}{' · ' + what if what else ''}", width="stretch",
        )  # fmt: skip


def step(column: Any, text: str, place: int, n: int, key: str) -> None:
    if column.button(text, disabled=not 0 <= place < n, shortcut=key, width="stretch"):
        st.session_state["sample-place"] = place
        st.rerun()


def decide(run: Run, sample: str, classes: tuple[str, ...], mark: Any, place: int) -> None:
    a, b, c, d = st.columns([1, 1, 1, 2])
    label = d.selectbox("Right class", classes, label_visibility="collapsed") if classes else None
    for column, what, key in ((a, "keep", "1"), (b, "drop", "2"), (c, "relabel", "3")):
        pressed = column.button(
            what.capitalize(), shortcut=key, width="stretch",
            disabled=what == "relabel" and not classes,
            type="primary" if mark and mark["what"] == what else "secondary",
        )  # fmt: skip
        if pressed:
            marks.add(run, sample, what, label if what == "relabel" else None)
            st.session_state["sample-place"] = place + 1
            st.rerun()


def around(run: Run, split: str, sample: str, dataset: Any, at: dict[str, int]) -> None:
    """Its nearest samples, with their labels: why it is on the list."""
    rows = session.embedding(run, split, "z")
    if rows is None:
        return
    near, similarity = session.neighbours(rows, rows.ids.index(sample), 8)
    st.caption("Nearest in the embedding:")
    for column, j, s in zip(st.columns(8), near, similarity, strict=False):
        label = "" if rows.labels is None else rows.class_name(int(rows.labels[j]))
        picture = session.picture(dataset.images, at[rows.ids[j]])
        column.image(picture, f"{label} {s:.2f}", width="stretch")


def after(run: Run, table: Any, rows: np.ndarray, name: str) -> None:
    listed = [{k: table.columns[k][r] for k in ("id", "label", "loss", name)} for r in rows[:1000]]
    a, b = st.columns(2)
    a.download_button("This list as CSV", figures.table_csv(listed), f"{name}.csv", "text/csv")
    found = marks.marks(run)
    changed = sum(m["what"] in ("drop", "relabel") for m in found.values())
    if b.button(
        f"Retrain with these {changed} changes", type="primary", disabled=not changed,
        icon=":material/replay:",
    ):  # fmt: skip
        exclude, relabel, dropped, relabelled = marks.export(run)
        arguments = jobs.arguments_of(run)
        arguments += ["--exclude", str(exclude)] if dropped else []
        arguments += ["--relabel", str(relabel)] if relabelled else []
        taken = {r.name for r in session.all_runs()}
        fresh = next(n for q in range(1, 999) if (n := f"{run.name[:50]}-cleaned-{q}") not in taken)
        jobs.start_training(fresh, arguments)
        st.session_state["watched"] = fresh
        st.switch_page("pages/train.py")


session.run(page)
