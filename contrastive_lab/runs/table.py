"""Leaderboard of all runs, one data set at a time, with two pictures of each run: its stored map, and its kNN accuracy
with its interval on a fixed axis. Active and queued runs."""

import base64
import io
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

from contrastive_core import runs
from contrastive_core.advice.plan import is_trial, trial_score
from contrastive_core.base.memory import read_npz
from contrastive_core.base.progress import ENDING
from contrastive_core.base.score import Score
from contrastive_core.engine import queue, training
from contrastive_core.runs.run import Run
from contrastive_core.spaces import results
from contrastive_core.spaces.space import Space
from contrastive_lab import cache, format, locale, query_params, stage, state
from contrastive_lab.components.scatter import PALETTE
from contrastive_lab.figures import draw_table
from contrastive_lab.home import own_runs
from contrastive_lab.locale import N_, _, ngettext
from contrastive_lab.progress import bar
from contrastive_lab.recordings import describe
from contrastive_lab.stage import DAMAGE

Cell = str | float | None
TABLE, SHOWN = "runs-table", "runs-shown"  # the table's key; names in the order of its rows
OF_TOWERS = {  # columns, by the score of two towers
    "zero_shot": N_("Zero-shot %"),
    "recall_1_forth": N_("Recall@1 to captions, %"),
    "recall_1_back": N_("Recall@1 to images, %"),
}
OF_TRIES = N_("Adviser's kNN %")
MAP, AXIS, INTERVAL = "UMAP", N_("kNN, 0 to 100 %"), N_("95 % interval")
FIRST_COLUMNS = ("name", "status", N_("kNN %"), AXIS, "method", "τ", "epochs")
IF_USED = ("status", N_("kNN based on"), OF_TRIES)  # shown where a run has any
BY_CHOICE = ("title", "loss", "data", "of", "trained", "seed", INTERVAL, *OF_TOWERS.values(), "tags", "created")
TRIES = "tries"  # runs of an adviser: many, and rarely looked at
ALL, RECORDINGS = "all", N_("recordings")
ROW, HEAD, MOST_ROWS, WITH_MAPS = 52, 38, 14, 300  # pixels of a row and of the head; rows in sight, and with maps
MARKS = {"running": "▶", "starting": "▶", "queued": "…", "stopped": "■", "failed": "✕"}
LAST_STATES = "states-of-runs"  # as they were when the page was last drawn
WIDTH, HEIGHT, EDGE, DOT = 192, 104, 5, 2  # pixels of a thumbnail, drawn at half its size
LENGTH, MIDDLE = 290, 24  # pixels from 0 to 100 %, and around the line
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
    """Let the user choose a data set; return its runs. The default is that of the current run if it is the user's own,
    else that of their newest run."""
    counts = Counter(_data(run) for run in all_runs if not is_trial(run.name))
    names = {data: format.data_of(data).rstrip("/\\").rpartition("/")[2] for data in counts}  # the last part of a path
    names[RECORDINGS] = locale.text(RECORDINGS)
    labels = {data: f"{names[data]} {count}" for data, count in counts.most_common()} | {ALL: _("all")}
    current, is_short = state.chosen_run(), len(labels) < 4  # as many as a phone has room for
    own = current if current and not current.shipped else next(iter(own_runs(all_runs)), current)
    if is_short:  # its labels are Markdown
        labels = {data: format.plain(label) for data, label in labels.items()}
    widget: Any = st.segmented_control if is_short else st.selectbox
    chosen = query_params.one_of(
        widget,
        _("Data set"),
        labels,
        name="data",
        default=_data(own) if own else None,
        label_visibility="collapsed",
        width="content" if is_short else 200,
    )
    return [run for run in all_runs if chosen in (ALL, _data(run))]


def _data(run: Run) -> str:
    return str(run.config.get("dataset") or RECORDINGS)


def table(some_runs: Sequence[Run], sought: str, columns: Sequence[str]) -> tuple[list[Run], list[Run]]:
    """Draw the leaderboard; return its runs, best first, and the selected ones."""
    of_runs = rows_of(some_runs, sought)
    found = sorted(of_runs, key=lambda run: -1.0 if (share := _share(run)) is None else share, reverse=True)
    if not found:
        st.info(_("None of the {rows} runs matches. Clear the search.").format(rows=len(some_runs)))
        return [], []
    rows, titles = [of_runs[run] for run in found], {"method": cache.titles("methods"), "loss": cache.titles("losses")}
    raw: dict[str, float] = {}  # kNN accuracy of raw pixels by data set
    for run in found:
        record = cache.accuracies(run)
        if record and (share := record.value("raw", "knn")) is not None:
            raw.setdefault(_data(run), share)
    is_dark = st.context.theme.type == "dark"
    for r, run in zip(rows, found, strict=True):
        r |= {key: of_key.get(str(r[key]), r[key]) for key, of_key in titles.items()}
        r[MAP] = map_of(run) if len(rows) <= WITH_MAPS else None
        r[AXIS] = axis_of(_knn(run), raw.get(_data(run)), is_dark)
    order = dict.fromkeys((MAP, *FIRST_COLUMNS, *IF_USED, *columns))
    shown = [k for k in order if k not in (MAP, *IF_USED) or any(r[k] not in (None, "") for r in rows)]
    _keep_selection([run.name for run in found])
    selection = st.session_state.get(TABLE, {}).get("selection", {})
    ticked, clicked = list(selection.get("rows", ())), [place for place, _column in selection.get("cells", ())]
    picked = [i for i in (ticked if len(ticked) > 1 else clicked or ticked) if i < len(found)]
    axis = dict(COLUMNS[AXIS])
    if len(shares := {raw.get(_data(run)) for run in found}) == 1 and (share := shares.pop()) is not None:
        axis["label"] = _("kNN, 0 to 100 % │ raw pixels {share}").format(share=f"{100 * share:.1f}")
    best = "; ".join(f"{run.name} {100 * share:.1f} %" for run in found[:5] if (share := _share(run)) is not None)
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
    tries = 0 if "show:" in sought else sum(is_trial(run.name) for run in some_runs)
    more = ngettext(
        " {count} try of the adviser is listed separately (search for show:tries).",
        " {count} tries of the adviser are listed separately (search for show:tries).",
        tries,
    ).format(count=f"{tries:,}")
    text = _("{visible} of {rows} runs.{more} Click a run for its details, tick two to compare them.")
    st.caption(text.format(visible=len(rows), rows=len(some_runs), more=more if tries else ""))
    return found, [found[i] for i in picked]


def rows_of(some_runs: Sequence[Run], sought: str) -> dict[Run, dict[str, Cell]]:
    """Return the rows of the runs that match all words of a search; `show:mine` and the like choose an origin."""
    words, titles = sought.lower().split(), cache.titles("methods")
    origins = [word.removeprefix("show:") for word in words if word.startswith("show:")]
    found = {}
    for run in some_runs:
        r = row(run)
        said = " ".join(map(str, [*r.values(), titles.get(str(r["method"]), "")])).lower()
        is_shown = r["origin"] in origins if origins else r["origin"] != TRIES
        if is_shown and all(word in said for word in words if not word.startswith("show:")):
            found[run] = r
    return found


def _knn(run: Run) -> Score | None:
    record = cache.accuracies(run)
    return record.score("h", "knn") if record else None


def _share(run: Run) -> float | None:
    score = _knn(run)
    return None if score is None else score.value


def _keep_selection(names: list[str]) -> None:
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


def row(run: Run) -> dict[str, Cell]:
    """Return a run as a row of the table."""
    status, record, meta, knn = training.status_of(run), cache.accuracies(run), run.meta(), _knn(run)
    phase, config, imported = str(status["status"]), run.config, run.manifest.get("imported")
    trained = "here"
    if imported:
        trained = _("no, random weights") if imported.get("random") else _("not trained here")
    epochs = config.get("epochs")
    finished = epochs if phase == "done" else status.get("epoch", 0)
    share, trial = _share(run), trial_score(run.name)
    origin = TRIES if is_trial(run.name) else "mine"
    of_towers = {title: record.value("towers", name) if record else None for name, title in OF_TOWERS.items()}
    return {
        "name": run.name,
        "title": str(meta.get("title") or ""),
        "status": f"{MARKS[phase]} {locale.text(phase)}" if phase in MARKS else "",
        "state": phase,
        "method": "recording" if run.is_recording else config.get("method"),
        "τ": temperature_of(run),
        "loss": config.get("loss"),
        "data": config.get("dataset"),
        "epochs": None if run.is_recording or imported else finished,
        "of": None if imported else epochs,
        "trained": trained,
        "seed": config.get("seed"),
        N_("kNN %"): None if share is None else 100 * share,
        INTERVAL: "" if knn is None else format.interval_of(knn),
        **{title: None if value is None else 100 * value for title, value in of_towers.items()},
        N_("kNN based on"): "" if knn is None else knn.approximation,
        OF_TRIES: None if trial is None else 100 * trial,
        "tags": ", ".join(map(str, meta.get("tags") or [])),
        "note": str(meta.get("note") or ""),
        "created": str(run.manifest.get("created", ""))[:16].replace("T", " "),
        "origin": "shipped" if run.shipped else origin,
    }


def temperature_of(run: Run) -> float | None:
    """Return the temperature of a run's loss; None without one."""
    tau = (run.config.get("loss_knobs") or {}).get("temperature")
    return tau if isinstance(tau, int | float) else None


# --- pictures of a run ---


def map_of(run: Run, scale: int = 1) -> str | None:
    """Return a picture of a stored map of the run's test images, enlarged by `scale`; None without one."""
    for layer in ("h", "z"):
        try:
            space = Space.of_run(run, "test", layer)
            kept = results.path("map", {"space": space.values, "kind": "umap", **results.MAP_DEFAULTS})
            if kept.exists():
                return _map(kept, kept.stat().st_mtime_ns, space, scale)
        except DAMAGE:
            continue
    return None


@st.cache_data(max_entries=2000, show_spinner=False)
def _map(kept: Path, changed: int, space: Space, scale: int) -> str | None:
    from PIL import Image

    rows, xy = space.rows(), read_npz(kept)["xy"]
    if rows is None or len(rows) != len(xy):
        return None
    low, high = xy.min(0), xy.max(0)
    room = np.array([WIDTH * scale, HEIGHT * scale]) - 2 * EDGE * scale
    at = (EDGE * scale + (xy - low) / np.maximum(high - low, 1e-9) * room).round().astype(int)
    colors = np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in PALETTE], np.uint8)
    color = colors[(np.zeros(len(xy), int) if rows.labels is None else rows.labels) % len(colors)]
    pixels = np.zeros((HEIGHT * scale, WIDTH * scale, 4), np.uint8)
    for dx in range(-DOT, DOT):
        for dy in range(-DOT, DOT):
            pixels[at[:, 1] + dy, at[:, 0] + dx] = np.column_stack([color, np.full(len(color), 255)])
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return _address("image/png", buffer.getvalue())


def axis_of(score: Score | None, raw: float | None, is_dark: bool) -> str | None:
    """Return a picture of a share as a dot with its interval, from 0 to 100 %, with a tick for raw pixels."""
    if score is None or score.value is None:
        return None
    ink, grid, grey = ("#E3E8ED", "#2B343E", "#8D99A6") if is_dark else ("#18222D", "#E3E7EA", "#7A8794")
    x = LENGTH * score.value + MIDDLE
    marks = f'<path d="M{MIDDLE},{MIDDLE}h{LENGTH}" stroke="{grid}" stroke-width="2"/>'
    if raw is not None:
        left = LENGTH * raw + MIDDLE
        marks += f'<path d="M{left:.1f},10v28" stroke="{grey}" stroke-width="1.5"/>'
    if score.interval:
        left, right = (LENGTH * end + MIDDLE for end in score.interval)
        marks += f'<path d="M{left:.1f},{MIDDLE}H{right:.1f}" stroke="{grey}" stroke-width="7" stroke-linecap="round"/>'
    marks += f'<circle cx="{x:.1f}" cy="{MIDDLE}" r="6" fill="{ink}"/>'
    size = f'width="{LENGTH + 2 * MIDDLE}" height="{2 * MIDDLE}"'
    return _address("image/svg+xml", f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{marks}</svg>'.encode())


def _address(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


# --- running and queued trainings ---


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
    queued = [job for job in queue.queue() if job.name not in names]
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
        with stage.errors_told():
            queue.remove(job.name)
