"""Leaderboard of all runs, one data set at a time; active and queued runs; damaged runs; the bin."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from contrastive_core import runs
from contrastive_core.advice.plan import is_trial, trial_score
from contrastive_core.base.progress import Progress
from contrastive_core.compare.evaluation import Evaluation
from contrastive_core.engine import queue, run_folders, training
from contrastive_core.runs.run import Run
from contrastive_lab import cache, format, guard, locale, query_params, state
from contrastive_lab.figures import draw_table
from contrastive_lab.locale import N_, _, ngettext
from contrastive_lab.progress import bar
from contrastive_lab.recordings import describe
from contrastive_lab.runs import pictures

TABLE, SHOWN = "runs-table", "runs-shown"  # the table's key; names in the order of its rows
OF_TOWERS = {  # columns, by the score of two towers
    "zero_shot": N_("Zero-shot %"),
    "recall_1_forth": N_("Recall@1 to captions, %"),
    "recall_1_back": N_("Recall@1 to images, %"),
}
OF_TRIES = N_("Adviser's kNN %")
MAP, AXIS, INTERVAL = "map", N_("kNN, 0 to 100 %"), N_("95 % interval")
FIRST_COLUMNS = ("name", "status", N_("kNN %"), AXIS, "method", "τ", "epochs")
IF_USED = ("status", N_("kNN based on"), OF_TRIES)  # shown where a run has any
BY_CHOICE = ("title", "loss", "data", "of", "trained", "seed", INTERVAL, *OF_TOWERS.values(), "tags", "created")
ORIGINS = ("mine", "shipped")
TRIES = "tries"  # runs of an adviser: many, and rarely looked at
ALL, RECORDINGS = "all", N_("recordings")
ROW, HEAD, MOST_ROWS, WITH_MAPS = 52, 38, 14, 300  # pixels of a row and of the head; rows in sight, and with maps
MARKS = {"running": "▶", "starting": "▶", "queued": "…", "stopped": "■", "failed": "✕"}
LAST_STATES = "states-of-runs"  # as they were when the page was last drawn
BINNED = "binned"  # the last deletion
ENDING = Progress("ending", 1.0)
MOST = 30  # that wait are listed
HELP = {  # of columns in per cent
    N_("kNN %"): N_("On the test images; empty if a run has not been scored"),
    OF_TRIES: N_("For tries of an adviser: accuracy on its held-out images, which are training images"),
    OF_TOWERS["zero_shot"]: N_(
        "For runs with captions: test images that the sentence of their class is most similar to"
    ),
    OF_TOWERS["recall_1_forth"]: N_(
        "For runs with captions: test images whose most similar caption is their own or equal to it"
    ),
    OF_TOWERS["recall_1_back"]: N_(
        "For runs with captions: test captions whose most similar image is their own or that of an equal caption"
    ),
}
OF_AXIS = N_("Dot: accuracy on the test images. Bar: 95 % interval over samples, not seeds. Tick: raw pixels.")
COLUMNS = {name: st.column_config.NumberColumn(format="%.1f", help=help) for name, help in HELP.items()} | {
    MAP: st.column_config.ImageColumn(width=100),
    AXIS: st.column_config.ImageColumn(width=330, help=OF_AXIS),
    "name": st.column_config.TextColumn(width=176),
    "epochs": st.column_config.NumberColumn(width=80, help=N_("Number of finished epochs")),
    "of": st.column_config.NumberColumn(N_("planned")),
}


def choose_data(all_runs: Sequence[Run]) -> list[Run]:
    """Let the user choose a data set, by default that of the current run; return its runs."""
    counts = Counter(_data(run) for run in all_runs if not is_trial(run.name))
    labels = {data: f"{_short(data)} {count}" for data, count in counts.most_common()} | {ALL: _("all")}
    own = state.chosen_run()
    widget: Callable[..., Any] = st.selectbox
    if is_short := len(labels) < 4:  # as many as a phone has room for; its labels are Markdown
        widget = st.segmented_control
        labels = {data: format.plain(label) for data, label in labels.items()}
    chosen = query_params.one_of(
        widget,
        _("Data set"),
        labels,
        name="data",
        default=_data(own) if own else None,
        format_func=labels.__getitem__,
        label_visibility="collapsed",
        width="content" if is_short else 200,
    )
    return [run for run in all_runs if chosen in (ALL, _data(run))]


def _data(run: Run) -> str:
    return str(run.config.get("dataset") or RECORDINGS)


def _short(data: str) -> str:
    """Return a short name of a data set; for a folder the last part of its path."""
    return locale.text(data) if data == RECORDINGS else format.data_of(data).rstrip("/\\").rpartition("/")[2]


def search() -> str:
    """Draw the search field and return its text."""
    help = _(
        "A run matches if its name, title, tags, note, method or data contain all words. Narrow it by status:failed, "
        "method:simclr, show:mine, show:shipped or show:tries."
    )
    return query_params.text(
        st.text_input,
        _("Search"),
        name="search",
        placeholder=_("name, tag, note, method:simclr"),
        help=help,
        icon=":material/search:",
        width=260,
    )


def choose_columns() -> list[str]:
    """Let the user choose additional columns; return them."""
    return query_params.many_of(
        st.pills, _("More columns"), BY_CHOICE, name="columns", selection_mode="multi", format_func=_
    )


def table(some_runs: Sequence[Run], sought: str, columns: Sequence[str]) -> tuple[list[Run], list[Run]]:
    """Draw the leaderboard; return its runs, best first, and the selected ones."""
    titles = cache.titles("methods"), cache.titles("losses")
    rows = [r for r in map(row, some_runs) if passes(r, sought, titles[0])]
    rows.sort(key=lambda r: -(r["kNN %"] if r["kNN %"] is not None else -1))
    if not rows:
        st.info(_("None of the {rows} runs matches. Clear the search.").format(rows=len(some_runs)))
        return [], []
    by_name = {run.name: run for run in some_runs}
    found = [by_name[r["name"]] for r in rows]
    raw = raw_pixels(found)
    is_dark = st.context.theme.type == "dark"
    for r, run in zip(rows, found, strict=True):
        r["method"], r["loss"] = (of.get(str(r[k]), r[k]) for of, k in zip(titles, ("method", "loss"), strict=True))
        r[MAP] = pictures.map_of(run) if len(rows) <= WITH_MAPS else None
        r[AXIS] = pictures.axis_of(_knn(run), raw.get(_data(run)), is_dark)
    order = dict.fromkeys((MAP, *FIRST_COLUMNS, *IF_USED, *columns))
    shown = [k for k in order if k not in (MAP, *IF_USED) or any(r[k] not in (None, "") for r in rows)]
    same_selection([r["name"] for r in rows])
    picked = [i for i in _selected() if i < len(found)]
    axis = dict(COLUMNS[AXIS])
    if len(shares := {raw.get(_data(run)) for run in found}) == 1 and (share := shares.pop()) is not None:
        axis["label"] = _("kNN, 0 to 100 % │ raw pixels {share}").format(share=f"{100 * share:.1f}")
    best = "; ".join(f"{r['name']} {r['kNN %']:.1f} %" for r in rows[:5] if r["kNN %"] is not None)
    draw_table(
        [{k: r[k] for k in shown} for r in rows],
        {**COLUMNS, AXIS: axis},
        hide_index=True,
        placeholder="–",
        row_height=ROW,
        height=HEAD + ROW * min(len(rows), MOST_ROWS),
        alt=_("Runs by kNN accuracy: {best}").format(best=best),
        on_select="rerun",
        selection_mode=["multi-row", "single-cell"],
        highlighted=(picked or [0])[0] if len(picked) < 2 else None,  # its details are shown beside the table
        key=TABLE,
    )
    _below(rows, some_runs, sought)
    return found, [found[i] for i in picked]


def _selected() -> list[int]:
    """Return the ticked rows; with fewer than two, the row of a clicked cell if there is one."""
    selection = st.session_state.get(TABLE, {}).get("selection", {})
    looked_at = [place for place, _column in selection.get("cells", ())]
    rows: list[int] = list(selection.get("rows", ()))
    return rows if len(rows) > 1 else looked_at or rows


def as_csv(some_runs: Sequence[Run], sought: str) -> str:
    """Return the matching runs as CSV with all columns except the pictures."""
    titles = cache.titles("methods")
    return format.table_csv(r for r in map(row, some_runs) if passes(r, sought, titles))


def _below(rows: list[dict[str, Any]], some_runs: Sequence[Run], sought: str) -> None:
    """Draw the number of runs, and that of the adviser's trials, which are listed separately."""
    tries = 0 if "show:" in sought else sum(is_trial(run.name) for run in some_runs)
    more = ngettext(
        " {count} try of the adviser is listed separately (search for show:tries).",
        " {count} tries of the adviser are listed separately (search for show:tries).",
        tries,
    ).format(count=f"{tries:,}")
    text = _("{visible} of {rows} runs.{more} Click a run for its details, tick two to compare them.")
    st.caption(text.format(visible=len(rows), rows=len(some_runs), more=more if tries else ""))


def passes(r: dict[str, Any], sought: str, titles: dict[str, str]) -> bool:
    """Return whether a row matches all words of a search; status:failed,stopped matches either value."""
    words = sought.lower().split()
    asked = dict(word.split(":", 1) for word in words if word.startswith(("status:", "method:", "show:")))
    origin = asked.get("show", ALL)
    said = " ".join(map(str, [*r.values(), titles.get(str(r["method"]), "")])).lower()
    return (
        (r["origin"] == origin or (origin not in (*ORIGINS, TRIES) and r["origin"] != TRIES))
        and ("status" not in asked or r["state"] in asked["status"].split(","))
        and ("method" not in asked or str(r["method"]).lower() in asked["method"].split(","))
        and all(word in said for word in words if word.split(":")[0] not in asked)
    )


def raw_pixels(some_runs: Sequence[Run]) -> dict[str, float | None]:
    """Return the kNN accuracy of raw pixels by data set, from the first run that has it."""
    found: dict[str, float | None] = {}
    for run in some_runs:
        if found.get(_data(run)) is None and (record := cache.accuracies(run)):
            found[_data(run)] = record.value("raw", "knn")
    return found


def _knn(run: Run) -> Any:
    record = cache.accuracies(run)
    return record.score("h", "knn") if record else None


def same_selection(names: list[str]) -> None:
    """Keep the same runs selected after rows have moved, so that no other run is deleted."""
    before = st.session_state.get(SHOWN, [])
    if TABLE in st.session_state and before != names:
        selection = st.session_state[TABLE]["selection"]
        chosen = {before[i] for i in selection["rows"] if i < len(before)}
        places = [i for i, name in enumerate(names) if name in chosen]
        looked_at = [(before[i], column) for i, column in selection.get("cells", ()) if i < len(before)]
        cells = [(names.index(name), column) for name, column in looked_at if name in names]
        st.session_state[TABLE] = {"selection": {"rows": places, "columns": [], "cells": cells}}
    st.session_state[SHOWN] = names


def renamed(old: str, new: str) -> None:
    """Keep a run selected under its new name."""
    if st.session_state.get("run") == old:
        st.session_state["run"] = new
    st.session_state[SHOWN] = [new if n == old else n for n in st.session_state.get(SHOWN, [])]


def row(run: Run) -> dict[str, Any]:
    """Return a run as a row of the table."""
    status, record, meta, knn = training.status_of(run), cache.accuracies(run), run.meta(), _knn(run)
    state_now = str(status["status"])
    epochs = run.config.get("epochs")
    epoch = epochs if status["status"] == "done" else status.get("epoch", 0)
    imported, trained = run.manifest.get("imported"), "here"
    if imported:
        trained = _("no, random weights") if imported.get("random") else _("not trained here")
    return {
        "name": run.name,
        "title": str(meta.get("title") or ""),
        "status": f"{MARKS[state_now]} {locale.text(state_now)}" if state_now in MARKS else "",
        "state": state_now,
        "method": "recording" if run.is_recording else run.config.get("method"),
        "τ": temperature_of(run),
        "loss": run.config.get("loss"),
        "data": run.config.get("dataset"),
        "epochs": None if run.is_recording or imported else epoch,
        "of": None if imported else epochs,
        "trained": trained,
        "seed": run.config.get("seed"),
        N_("kNN %"): None if knn is None or knn.value is None else 100 * knn.value,
        INTERVAL: "" if knn is None else format.interval_of(knn),
        **of_towers(record),
        N_("kNN based on"): "" if knn is None else knn.approximation,
        OF_TRIES: None if (share := trial_score(run.name)) is None else 100 * share,
        "tags": ", ".join(map(str, meta.get("tags") or [])),
        "note": str(meta.get("note") or ""),
        "created": str(run.manifest.get("created", ""))[:16].replace("T", " "),
        "origin": "shipped" if run.shipped else TRIES if is_trial(run.name) else "mine",
    }


def temperature_of(run: Run) -> float | None:
    """Return the temperature of a run's loss; None without one."""
    tau = (run.config.get("loss_knobs") or {}).get("temperature")
    return tau if isinstance(tau, int | float) else None


def of_towers(record: Evaluation | None) -> dict[str, float | None]:
    """Return percentages of a run with two towers, by column; None if undefined."""
    values = {name: record.value("towers", name) if record else None for name in OF_TOWERS}
    return {OF_TOWERS[name]: None if value is None else 100 * value for name, value in values.items()}


# --- what is gone, or cannot be read -----------------------------------------------------------


def damage() -> None:
    """Draw the damaged runs, each with the reason."""
    text = _("{name} is not listed: {why}. Nothing else in it was changed.")
    for name, why in runs.damaged().items():
        st.warning(format.plain(text.format(name=name, why=why)))


def remove(chosen: Sequence[Run]) -> None:
    """Move runs to the bin and offer an undo. Called as a button's callback, so no rerun can skip it."""
    st.session_state[BINNED] = gone = list[Path]()
    for run in chosen:
        with guard.errors_told():
            gone.append(run_folders.delete(run.name))


def undo() -> None:
    """Draw a button that reverts the last deletion."""
    if gone := st.session_state.get(BINNED):
        text = _("Deleted: {gone}. You can restore it from the bin below.")
        st.info(text.format(gone=", ".join(map(_name, gone))))
        st.button(_("Undo"), on_click=_restore, args=gone)


def bin_of() -> None:
    """Draw deleted runs with restore buttons; the bin is emptied only on request."""
    if not (gone := run_folders.binned()):
        return
    with st.expander(_("Bin ({gone})").format(gone=len(gone))):
        for path in gone[:50]:
            line = st.container(horizontal=True, vertical_alignment="center")
            line.text(_name(path), width="stretch")
            line.button(_("Restore"), key=f"restore-{path.name}", on_click=_restore, args=[path])
        sure = st.checkbox(_("Yes, delete them permanently. This cannot be undone"))
        st.button(_("Empty the bin"), disabled=not sure, on_click=_empty)


def _name(binned: Path) -> str:
    return binned.name.rsplit("-", 1)[0]


def _restore(*some: Path) -> None:
    st.session_state[BINNED] = []
    for path in some:
        with guard.errors_told():
            run_folders.restore(path)


def _empty() -> None:
    st.session_state[BINNED] = []
    run_folders.empty_bin()


# --- what is at work -----------------------------------------------------------------------------


def line() -> None:
    """Draw running and queued trainings every two seconds; redraw the page when a status changes."""
    st.session_state.pop(LAST_STATES, None)  # the page is being redrawn: another rerun would swallow a click
    _line()


@st.fragment(run_every=2.0)
def _line() -> None:
    queue.go_on()
    states = {run.name: training.status_of(run)["status"] for run in runs.list_runs()}
    if st.session_state.setdefault(LAST_STATES, states) != states:
        st.rerun()
    for why in queue.broken():
        st.warning(format.plain(_("{why}. It is skipped; the other runs stay queued.").format(why=why)))
    for run in runs.list_runs():
        if run.is_recording and run.is_alive():
            st.caption(format.plain(f"{run.name}: {describe(run)}"))
    working = [run.name for run in training.working()]
    names = list(dict.fromkeys([*working, *training.starting()]))
    for name in names:
        a, b = st.columns([5, 1], vertical_alignment="center")
        bar(queue.progress_of(name) or ENDING, name, a)
        if name in working and b.button(_("Stop"), key=f"stop-{name}"):
            training.stop(name)
    _waiting([job for job in queue.queue() if job.name not in names])


def _waiting(queued: list[queue.Waiting]) -> None:
    """Draw the queued runs, each with the reason why it waits and a button that removes it."""
    for place, job in enumerate(queued[:MOST], 1):
        a, b = st.columns([5, 1], vertical_alignment="center")
        reason = job.blocked_reason()
        why = locale.text(reason) if reason else _("waiting for {device}").format(device=job.device)
        a.text(f"{place}. {job.name}: {why}")
        b.button(_("Remove"), key=f"remove-{job.name}", on_click=_remove_queued, args=[job])
    if len(queued) > MOST:
        st.caption(_("… and {queued} more").format(queued=len(queued) - MOST))
    if len(queued) > 1:
        label = _("Remove all {queued} queued runs").format(queued=len(queued))
        st.button(label, on_click=_remove_queued, args=queued)


def _remove_queued(*queued: queue.Waiting) -> None:
    for job in queued:
        with guard.errors_told():
            queue.remove(job.name)
