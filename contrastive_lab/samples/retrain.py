"""What was decided, on many at once too, and training again without it: then the comparison."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import streamlit as st

from contrastive_core.engine import queue, training
from contrastive_core.engine.run_tools import sample_annotations
from contrastive_core.records import Locked
from contrastive_core.records.run import Run
from contrastive_core.records.sample_request import SampleRequest
from contrastive_lab import cache, format, guard, query_params, state
from contrastive_lab.locale import _
from contrastive_lab.progress import follow_training
from contrastive_lab.samples.findings import Findings, window

MANY = "samples-many"  # of the session: how often many were decided on at once


def bar(findings: Findings) -> None:
    """What was decided, and the new labels to download."""
    line = st.container(horizontal=True, vertical_alignment="center")
    by_split = {r.split: sample_annotations.marks(r.marked) for r in findings.requests}
    every = [m["what"] for marks in by_split.values() for m in marks.values()]
    kept, relabeled, dropped = (every.count(what) for what in ("keep", "relabel", "drop"))
    line.caption(
        _(
            "Decided: {kept} kept, {relabeled} relabeled, {dropped} dropped. Decisions belong to "
            "the data set: every run of it shows them."
        ).format(kept=kept, relabeled=relabeled, dropped=dropped)
    )
    line.download_button(
        _("Download new labels"),
        lambda: sample_annotations.labels_csv(by_split),
        "new_labels.csv",
        "text/csv",
        icon=":material/download:",
        disabled=not every,
    )


def decide_on_many(findings: Findings, rows: np.ndarray) -> None:
    """Drop or relabel the first of a list at once, those that are decided left out."""
    table, marked = findings.table, findings.marked
    with st.popover(_("Drop or relabel many"), icon=":material/delete_sweep:"):
        number = 1
        if len(rows) > 1:
            number = query_params.number(
                st.number_input,
                _("The first of this list"),
                1,
                len(rows),
                name="drop",
                key="drop-first",
                default=min(10, len(rows)),
            )
        part = [int(r) for r in rows[:number] if str(table.columns["id"][r]) not in marked]
        st.caption(_("What was decided stays. One undo takes all of these of a split back."))
        of, decided = ["drop-first"], None if part else _("All of these are decided.")
        if query_params.button(
            st.button, _("Drop {part}").format(part=len(part)), of=of, disabled=not part, help=decided, type="primary"
        ):
            _many(findings, dict.fromkeys(part))
        if "suggested" not in table.extra:
            return
        classes = {row: str(table.extra["suggested"][row]) for row in part}
        changed = {row: label for row, label in classes.items() if label in table.classes}
        if query_params.button(
            st.button,
            _("Relabel {changed} as suggested").format(changed=len(changed)),
            of=of,
            disabled=not changed,
            help=decided or (None if changed else _("No other class is suggested for these.")),
        ):
            _many(findings, changed)


def _many(findings: Findings, labels: Mapping[int, str | None]) -> None:
    """Relabel rows, or drop them where they have no label; then the page is drawn anew."""
    by, table = window()[0], findings.table
    for request in findings.requests:
        some = {r: c for r, c in labels.items() if table.extra["split"][r] == request.split}
        about = {findings.own_id(r): findings.about(r) for r in some}
        new = {findings.own_id(r): c for r, c in some.items() if c is not None}
        drop = [findings.own_id(r) for r, c in some.items() if c is None]
        if drop:
            sample_annotations.drop_many(request.marked, drop, about, by)
        if new:
            sample_annotations.relabel_many(request.marked, new, about, by)
    st.session_state[MANY] = st.session_state.get(MANY, 0) + 1
    st.rerun()


def retrain(findings: Findings) -> None:
    """What was decided, as files to download; a button that trains without it; what came of it."""
    request = findings.training or findings.requests[0]
    run = request.run
    done = sample_annotations.changes(request.marked, run)
    changed = done.dropped + done.relabeled
    with st.expander(_("Train again with {changes}").format(changes=_changes(changed)), expanded=bool(changed)):
        if changed:
            files(request)
        if run is None:
            st.caption(_("Vectors cannot be trained again; the files say what to leave out."))
        elif request.split != "train":
            st.caption(
                _(
                    "Training leaves out training samples only: choose training images above. What is "
                    "decided here is of test images alone."
                )
            )
        else:
            start(request, run, changed)
    if run is not None:
        results(run)


def files(request: SampleRequest) -> None:
    """Both lists to download; nothing is written here, on any draw of the page."""
    for option, content in sample_annotations.changes(request.marked, request.run).files.items():
        name = f"{option}.csv"
        use = _(" for train --{option}").format(option=option) if request.split == "train" else ""
        st.download_button(f"{name}{use}", content, name, "text/csv", icon=":material/download:")


def start(request: SampleRequest, run: Run, changed: int) -> None:
    a, b = st.columns([1, 2], vertical_alignment="bottom")
    key = f"epochs-{cache.digest(run.name)}"
    epochs = query_params.number(
        a.number_input, _("Epochs"), 1, 10_000, name="epochs", key=key, default=int(run.config.get("epochs") or 20)
    )
    pressed = query_params.button(
        b.button,
        _("Retrain with {changes}").format(changes=_changes(changed)),
        of=[key],
        type="primary",
        disabled=not changed,
        help=None if changed else _("Nothing is relabeled or dropped yet."),
        icon=":material/replay:",
    )
    if not pressed:
        return
    arguments = [*training.arguments_of(run), *sample_annotations.export(request.marked, run), "--epochs", str(epochs)]
    used_names = queue.taken_names()
    fresh = next(n for q in range(1, 999) if (n := f"{run.name[:50]}-cleaned-{q}") not in used_names)
    try:
        queue.enqueue(fresh, arguments)
    except (ValueError, OSError, Locked) as error:
        st.error(format.plain(error))
        return
    st.session_state["retrained"] = fresh
    st.toast(_("{fresh} waits for its turn, or trains: Train and Runs show it.").format(fresh=format.plain(fresh)))


def _changes(count: int) -> str:
    return _("1 change") if count == 1 else _("{count} changes").format(count=f"{count:,}")


def results(run: Run) -> None:
    """Runs that were trained without what was marked here."""
    fresh = st.session_state.get("retrained")
    retrained = sample_annotations.cleaned(run, state.all_runs())
    if fresh and (why := training.failure(fresh)):
        st.error(format.plain(_("{fresh} could not start. {why}").format(fresh=fresh, why=why)))
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
        old, new = (cache.scores(r) for n in (before, name) for r in state.all_runs() if r.name == n)
        accuracies = [format.figure_of(s.score("h", "knn") if s else None) for s in (old, new)]
        parts.append(_("kNN accuracy {before} before, {after} now").format(before=accuracies[0], after=accuracies[1]))
    a.markdown(" · ".join(parts))
    key = f"compare-{cache.digest(name)}"
    if one.weights.exists() and b.button(_("Compare"), key=key, width="stretch"):
        st.switch_page("pages/compare.py", query_params={"runs": f"{before},{name}"})
