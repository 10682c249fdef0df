"""What was decided, undo, and training again without it: then the comparison."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

from contrastive_core.errors import Locked
from contrastive_core.jobs import queue, training
from contrastive_core.runs import Run
from contrastive_core.samples import annotations as sample_annotations
from contrastive_core.samples.request import SampleRequest
from contrastive_core.samples.table import SampleTable
from contrastive_lab import cache, format, guard, query_params, state
from contrastive_lab.progress import follow_training
from contrastive_lab.samples.at_hand import open_one

__all__ = ["bar", "decide_on_many", "retrain"]


def bar(request: SampleRequest, marked: dict[str, Any]) -> None:
    """What is marked, undo, and the keys."""
    a, b = st.columns([6, 1])
    counts = {w: sum(m["what"] == w for m in marked.values()) for w in sample_annotations.CHOICES}
    a.caption(
        "Marked: " + ", ".join(f"{n} {w}" for w, n in counts.items())
        + ". Keys: j next, k back, 1 keep, 2 drop, 3 relabel, u undo."
    )  # fmt: skip
    if b.button("Undo", icon=":material/undo:", shortcut="u", disabled=not marked, width="stretch"):
        open_one(sample_annotations.undo(request.marked) or "")
        st.rerun()


def decide_on_many(
    request: SampleRequest, table: SampleTable, rows: np.ndarray, marked: dict[str, Any]
) -> None:
    """Drop or relabel the first of a list at once, those that have a mark left out."""
    ids = [str(i) for i in table.columns["id"][rows]]
    with st.popover("Drop or relabel many", icon=":material/delete_sweep:"):
        number = query_params.number(
            st.number_input, "The first of this list", 1, len(ids), name="drop", key="drop-first",
            default=min(10, len(ids)),
        )  # fmt: skip
        part = [i for i in ids[:number] if i not in marked]
        st.caption("Samples that have a mark keep it. One undo takes all of these back.")
        if st.button(f"Drop {len(part)}", disabled=not part, type="primary"):
            sample_annotations.drop_many(request.marked, part)
            st.rerun()
        if "suggested" not in table.extra:
            return
        classes = dict(zip(ids, table.extra["suggested"][rows].tolist(), strict=True))
        changed = {i: classes[i] for i in part if classes[i] in table.classes}
        if st.button(f"Relabel {len(changed)} as suggested", disabled=not changed):
            sample_annotations.relabel_many(request.marked, changed)
            st.rerun()


def retrain(request: SampleRequest, marked: dict[str, Any]) -> None:
    """What was decided, as files to download; a button that trains without it; what came of it."""
    changed = sum(m["what"] in ("drop", "relabel") for m in marked.values())
    run = request.run
    with st.expander(f"Train again with {_changes(changed)}", expanded=bool(changed)):
        if changed:
            files(request)
        if run is None:
            st.caption("Vectors cannot be trained again; the files say what to leave out.")
        elif request.split != "train":
            st.caption(
                "Training leaves out training samples only: choose the split train. What is marked "
                "here is of this split alone."
            )
        else:
            start(run, changed)
    if run is not None:
        results(run)


def files(request: SampleRequest) -> None:
    """Both lists to download; nothing is written here, on any draw of the page."""
    for option, content in sample_annotations.changes(request.marked).files.items():
        name = f"{option}.csv"
        use = f" for train --{option}" if request.split == "train" else ""
        st.download_button(f"{name}{use}", content, name, "text/csv", icon=":material/download:")


def start(run: Run, changed: int) -> None:
    a, b = st.columns([1, 2], vertical_alignment="bottom")
    epochs = query_params.number(
        a.number_input, "Epochs", 1, 10_000, name="epochs", key=f"epochs-{cache.digest(run.name)}",
        default=int(run.config.get("epochs") or 20),
    )  # fmt: skip
    pressed = b.button(
        f"Retrain with {_changes(changed)}", type="primary", disabled=not changed,
        icon=":material/replay:",
    )  # fmt: skip
    if not pressed:
        return
    arguments = [
        *training.arguments_of(run),
        *sample_annotations.export(run),
        "--epochs",
        str(epochs),
    ]
    used_names = queue.taken_names()
    fresh = next(
        n for q in range(1, 999) if (n := f"{run.name[:50]}-cleaned-{q}") not in used_names
    )
    try:
        queue.enqueue(fresh, arguments)
    except (ValueError, OSError, Locked) as error:
        st.error(format.plain(error))
        return
    st.session_state["retrained"] = fresh
    st.toast(f"{format.plain(fresh)} waits for its turn, or trains: Train and Runs show it.")


def _changes(count: int) -> str:
    return "1 change" if count == 1 else f"{count:,} changes"


def results(run: Run) -> None:
    """Runs that were trained without what was marked here."""
    fresh = st.session_state.get("retrained")
    retrained = sample_annotations.cleaned(run, state.all_runs())
    if fresh and (why := training.failure(fresh)):
        st.error(format.plain(f"{fresh} could not start. {why}"))
    elif fresh and fresh not in {r.name for r in retrained} and queue.progress_of(fresh):
        follow_training(fresh)
    for one in retrained:
        with guard.on_its_own(one.name):
            result(run.name, one.name)


def result(before: str, name: str) -> None:
    """A retrained run: how far it is, or what it is worth beside the run before."""
    one = next(r for r in state.all_runs() if r.name == name)
    if queue.progress_of(name):
        follow_training(name)
        return
    a, b = st.columns([5, 1], vertical_alignment="center")
    parts = [f"**{format.plain(name)}**: {format.plain(one.status()['status'])}"]
    pair = [cache.scores(r) for r in state.all_runs() if r.name in (before, name)]
    if len(pair) == 2 and all(pair):
        old, new = (cache.scores(r) for n in (before, name) for r in state.all_runs()
                    if r.name == n)  # fmt: skip
        accuracies = [format.figure_of(s.score("h", "knn") if s else None) for s in (old, new)]
        parts.append(f"kNN accuracy {accuracies[0]} before, {accuracies[1]} now")
    a.markdown(" · ".join(parts))
    key = f"compare-{cache.digest(name)}"
    if one.weights.exists() and b.button("Compare", key=key, width="stretch"):
        st.switch_page("pages/compare.py", query_params={"runs": f"{before},{name}"})
