"""Decisions, also on many samples together, and retraining with them; then the comparison."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np
import streamlit as st

from contrastive_core.engine import questions, queue, training
from contrastive_core.engine.run_tools import sample_annotations
from contrastive_core.records import Locked
from contrastive_core.records.run import Run
from contrastive_core.records.sample_request import SampleRequest
from contrastive_core.records.train_config import settings_of
from contrastive_lab import cache, format, guard, number_inputs, state
from contrastive_lab.locale import _, message
from contrastive_lab.progress import follow, follow_training
from contrastive_lab.samples.bench import is_probably_wrong
from contrastive_lab.samples.findings import Findings, window

MANY = "samples-many"  # of the session: how often many were decided on at once


def bar(findings: Findings) -> None:
    """Show the decisions and the download of the new labels."""
    line = st.container(horizontal=True, vertical_alignment="center")
    by_split = {r.split: sample_annotations.marks(r.marked) for r in findings.requests}
    every = [m["what"] for marks in by_split.values() for m in marks.values()]
    text = _(
        "Decided: {kept} kept, {relabeled} relabeled, {dropped} dropped. Decisions belong to "
        "the data set: every run of it shows them."
    )
    kept, relabeled, dropped = (every.count(what) for what in ("keep", "relabel", "drop"))
    line.caption(text.format(kept=kept, relabeled=relabeled, dropped=dropped))
    label, content = _("Download new labels"), partial(sample_annotations.labels_csv, by_split)
    icon = ":material/download:"
    line.download_button(label, content, "new_labels.csv", "text/csv", icon=icon, disabled=not every, on_click="ignore")


def decide_on_many(findings: Findings, name: str, rows: np.ndarray) -> None:
    """Drop or relabel the first of a list at once, those that are decided left out."""
    table, key, number = findings.table, "drop-first", 1
    with st.popover(_("Drop or relabel many"), icon=":material/delete_sweep:"):
        if (most := len(rows)) > 1:
            first = _("The first of this list")
            number = number_inputs.number(st.number_input, first, 1, most, name="drop", key=key, default=min(10, most))
        part = [int(r) for r in rows[:number] if findings.id(r) not in findings.marked]
        st.caption(_("Your earlier decisions stay. One undo reverts all of these for a split."))
        decided = None if part else _("All of these are decided.")
        drop = _("Drop {part}").format(part=len(part))
        if number_inputs.button(st.button, drop, of=[key], disabled=not part, help=decided, type="primary"):
            _many(findings, dict.fromkeys(part))
        if "suggested" not in table.extra:
            return
        some = [row for row in part if name == "mislabeled" or is_probably_wrong(table, row)]
        classes = {row: str(table.extra["suggested"][row]) for row in some}
        changed = {row: label for row, label in classes.items() if label in table.classes}
        why = decided or (None if changed else _("No other class is suggested for these."))
        relabel = _("Relabel {changed} as suggested").format(changed=len(changed))
        if number_inputs.button(st.button, relabel, of=[key], disabled=not changed, help=why):
            _many(findings, changed)


def _many(findings: Findings, labels: Mapping[int, str | None]) -> None:
    """Relabel rows, or drop them where they have no label; then the page is drawn anew."""
    by, split = window()[0], findings.table.extra["split"]
    for request in findings.requests:
        some = {findings.own_id(r): label for r, label in labels.items() if split[r] == request.split}
        about = {findings.own_id(r): findings.about(r) for r in labels if split[r] == request.split}
        if drop := [own for own, label in some.items() if label is None]:
            sample_annotations.drop_many(request.marked, drop, about, by)
        if new := {own: label for own, label in some.items() if label is not None}:
            sample_annotations.relabel_many(request.marked, new, about, by)
    st.session_state[MANY] = st.session_state.get(MANY, 0) + 1
    st.rerun()


def retrain(findings: Findings) -> None:
    """Show the decisions as files, a button to retrain with them, and the result."""
    request = next((r for r in findings.requests if r.split == "train"), findings.requests[0])
    run = request.run
    done = sample_annotations.changes(request.marked, run)
    changed, trained = done.dropped + done.relabeled, _trained(run, done)
    if run is None and not changed:
        return
    again = _("Train again with {changes}").format(changes=_changes(trained))
    with st.expander(again if run is not None else _("Files of your decisions"), expanded=bool(changed)):
        for option, content in done.files.items() if changed else ():  # nothing is written here, on any draw
            use = _(" for train --{option}").format(option=option) if request.split == "train" else ""
            name = f"{option}.csv"
            st.download_button(f"{name}{use}", content, name, "text/csv", icon=":material/download:", on_click="ignore")
        if run is None:
            st.caption(_("They list which samples to leave out."))
        elif request.split != "train":
            text = _(
                "Only training samples can be left out of training. Choose training images above: these decisions "
                "are about test images."
            )
            st.caption(text)
        else:
            start(request, run, done)
    if run is not None:
        results(run)


def uses_no_labels(run: Run) -> bool:
    """Whether the run's method trains without labels."""
    method = cache.catalog()["methods"].get(str(run.config.get("method")))
    return method is not None and not method.get("needs_labels")


def _trained(run: Run | None, done: sample_annotations.Changes) -> int:
    """How many of the decisions change a training of this run."""
    return done.dropped + (0 if run is not None and uses_no_labels(run) else done.relabeled)


def start(request: SampleRequest, run: Run, done: sample_annotations.Changes) -> None:
    if ignored := uses_no_labels(run):
        text = _(
            "{method} does not use labels: relabeling cannot change this encoder, but dropping images can. New "
            "labels change scores, and methods that use labels, such as SupCon."
        )
        st.info(text.format(method=cache.method_title(str(run.config.get("method")))))
    a, b = st.columns([1, 2], vertical_alignment="bottom")
    key, default = f"epochs-{cache.digest(run.name)}", int(run.config.get("epochs") or 20)
    epochs = number_inputs.number(a.number_input, _("Epochs"), 1, 10_000, name="epochs", key=key, default=default)
    counted = _trained(run, done)
    label, begin = _("Retrain with {changes}").format(changes=_changes(counted)), partial(b.button, type="primary")
    help = None if counted else _("No sample is dropped.") if ignored else _("No sample is relabeled or dropped.")
    if not number_inputs.button(begin, label, of=[key], disabled=not counted, help=help, icon=":material/replay:"):
        return
    queue_cleaned(run, request.marked, epochs)


def queue_cleaned(run: Run, marked: Path, epochs: int) -> None:
    """Queue a training of a run's settings with the decisions of the file `marked`; what prevents it is shown."""
    arguments = [*settings_of(run.config), *sample_annotations.export(marked, run), "--epochs", str(epochs)]
    used_names = queue.taken_names()
    fresh = next(n for q in range(1, 999) if (n := f"{run.name[:50]}-cleaned-{q}") not in used_names)
    try:
        queue.enqueue(fresh, arguments)
    except (ValueError, OSError, Locked) as error:
        st.error(format.plain(error))
        return
    st.session_state["retrained"] = fresh
    st.toast(_("{fresh} is queued or training. See Train and Runs.").format(fresh=format.plain(fresh)))


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
    elif (done := next((r for r in retrained if r.name == fresh), None)) and not queue.progress_of(done.name):
        del st.session_state["retrained"]
        state.choose_run(done.name)
        st.rerun()
    for one in retrained:
        with guard.on_its_own(one.name):
            result(run, one)


def run_before(run: Run | None) -> Run | None:
    """The run on whose page it was decided what this one was trained without."""
    if run is None or not (run.config.get("exclude") or run.config.get("relabel")):
        return None
    return next((r for r in state.all_runs() if sample_annotations.cleaned(r, [run])), None)


def outcome() -> None:
    """Of a run that was trained again: what it is worth beside the run before."""
    run = state.chosen_run()
    if run is not None and (before := run_before(run)) is not None:
        with st.container(border=True):
            result(before, run)
            if cache.scores(run) is None:
                follow(questions.evaluation(run), message("Accuracy of {name} (once)", name=run.name))
            label = _("Back to {name}").format(name=before.name)
            st.page_link(
                "pages/samples.py", label=label, icon=":material/arrow_back:", query_params={"run": before.name}
            )


def result(before: Run, run: Run) -> None:
    """A retrained run: how far it is, or what it is worth beside the run before."""
    if queue.progress_of(run.name):
        follow_training(run.name)
        return
    a, b = st.columns([5, 1], vertical_alignment="center")
    text = f"**{format.plain(run.name)}**: {format.plain(run.status()['status'])}"
    old, new = cache.scores(before), cache.scores(run)
    if old and new:
        accuracies = [format.figure_of(scores.score("h", "knn")) for scores in (old, new)]
        more = _("kNN accuracy {before} before, {after} now").format(before=accuracies[0], after=accuracies[1])
        text += f" · {more}"
    a.markdown(text)
    key = f"compare-{cache.digest(run.name)}"
    if run.weights.exists() and b.button(_("Compare"), key=key, width="stretch"):
        st.switch_page("pages/compare.py", query_params={"runs": f"{before.name},{run.name}"})
