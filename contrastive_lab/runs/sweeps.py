"""Sweeps: choose or write one, see how long it takes, let its cells wait, watch its figure fill."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import streamlit as st

from contrastive_core import runs
from contrastive_core.errors import BadSetting, Locked
from contrastive_core.evaluation.record import evaluation_path
from contrastive_core.jobs import queue, training
from contrastive_core.jobs.task import Task
from contrastive_core.paths import BUNDLE, runs_home
from contrastive_core.storage import atomic
from contrastive_core.sweeps import plots as sweep_plots
from contrastive_core.sweeps import runner as sweep_runner
from contrastive_core.sweeps import verdict as sweep_verdict
from contrastive_core.sweeps.spec import Sweep, load, read, title_of
from contrastive_lab import cache, format, query_params
from contrastive_lab.compare.choice import MOST
from contrastive_lab.components.scatter.categories import PALETTE
from contrastive_lab.progress import bar
from contrastive_lab.runs.sweep_form import new_sweep
from contrastive_lab.setting_names import shown_name

__all__ = ["sweeps"]

READY = BUNDLE / "sweeps"
NEW = "a new one…"
PICKER = "runs-sweep"


def sweeps() -> None:
    """The sweep that is chosen: its plan, its time, its cells, its figure."""
    files = {p.stem: p for folder in (READY, own_folder()) for p in sorted(folder.glob("*.toml"))}
    names = [*files, NEW]
    titles = _titles(files)
    name = query_params.one_of(
        st.selectbox, "Sweep", names, name="sweep", key=PICKER, format_func=titles
    )
    if name == NEW:
        if name := new_sweep(own_folder()):
            query_params.choose(PICKER, name)
            st.rerun()
        return
    try:
        sweep = load(files[name])
    except BadSetting as error:
        st.error(format.plain(error))
        text(files[name])
        return
    plan(sweep, files[name])
    text(files[name])


def own_folder() -> Path:
    """Where a user's own sweep files lie."""
    return runs_home() / ".sweeps"


def _titles(files: dict[str, Path]) -> Any:
    return lambda name: title_of(files[name]) if name in files else name


@st.fragment(run_every=5.0)
def plan(sweep: Sweep, path: Path) -> None:
    """How it stands; redrawn every five seconds."""
    rows = sweep_runner.status(sweep)
    queued = {job.name: job for job in queue.queue()}
    starting = training.starting()
    for row in rows:
        if row["run"] in starting:
            row["status"] = "running"
        elif row["run"] in queued and row["status"] != "running":
            row["status"] = "queued"
    states = list({r["run"]: r["status"] for r in rows}.values())  # some cells share a run
    counts = {s: states.count(s) for s in ("done", "running", "queued")}
    bad = states.count("failed") + states.count("stopped")
    a, b, c, d = st.columns(4)
    a.metric("Runs done", f"{counts['done']} of {len(states)}")
    b.metric("At work, waiting", f"{counts['running']}, {counts['queued']}")
    c.metric("Stopped or failed", bad, help="Start goes on with them.")
    d.metric(
        "Still to train", duration(sweep_runner.estimate(sweep)), help="On this computer, alone."
    )
    reasons = [j.blocked_reason() for j in queued.values() if j.group == sweep.name]
    blocked = next(filter(None, reasons), "")
    if blocked:
        st.warning(blocked)
    idle = counts["queued"] if blocked else 0  # a new start gives them new hours
    start(sweep, path, len(states) - counts["done"] - counts["running"] - counts["queued"] + idle)
    figure(sweep, path, rows)


def duration(seconds: float | None) -> str:
    """Seconds in words."""
    if seconds is None:
        return "unknown"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min" if seconds >= 60 or not seconds else f"{seconds:.0f} s"
    return f"{seconds / 3600:.1f} h"


def start(sweep: Sweep, path: Path, todo: int) -> None:
    """How long it will take, then all cells or a few."""
    if sweep_runner.estimate(sweep) is None:
        arguments = ("sweep", str(path), "--dry-run")
        task = Task(f"time.{sweep.name}", arguments, sweep_runner.timings_path())
        on_demand(task, "How long will it take?", st, ":material/timer:")
    if not todo:
        return
    a, b = st.columns([1, 3], vertical_alignment="bottom")
    key = cache.digest(sweep.name)
    of = f"most-{key}"
    most = query_params.number(
        a.number_input, "Runs to train now", 1, todo, name="", default=todo, key=of
    )
    budget = f", no new one after {sweep.budget_hours:g} h" if sweep.budget_hours else ""
    pressed = query_params.button(
        b.button, "Start", of=[of], type="primary", icon=":material/play_arrow:",
        key=f"start-{key}",
        help=f"One cell at a time{budget}; the app may be closed meanwhile.",
    )  # fmt: skip
    if pressed:
        try:
            added = sweep_runner.enqueue(sweep, most)
            st.toast(f"{len(added)} runs wait for their turn.")
        except (ValueError, OSError, Locked) as error:
            st.error(format.plain(error))
            return
        st.rerun()


def figure(sweep: Sweep, path: Path, rows: list[dict[str, Any]]) -> None:
    """The figure or table so far, by the accuracy that is chosen."""
    if not any(r["status"] == "done" for r in rows):
        st.caption("The figure appears with the first cell that is done.")
        return
    titles = sweep_plots.ACCURACIES
    there = [k for k in titles if any(k in r for r in rows)] or ["knn_train_sample"]
    accuracy = query_params.one_of(
        st.segmented_control, "Accuracy", there, name="accuracy", format_func=lambda k: titles[k],
        key=f"accuracy-{cache.digest(sweep.name)}",
    )  # fmt: skip
    zoom = sweep.form != "table" and query_params.switch(
        st.toggle, "Zoom to the figures", name="zoom", help="Instead of 0 to 100 %.",
        key=f"zoom-{cache.digest(sweep.name)}",
    )  # fmt: skip
    drawn = sweep_plots.draw(sweep, rows, accuracy, PALETTE, zoom)
    columns = st.columns(max(1, min(3, len(drawn))))
    in_words = {a.name: shown_name(a.name) for a in sweep.axes if a.name in a.values[0][1]}
    for column, one, measure in zip(columns, drawn, sweep.draw.measures, strict=False):
        for title in (one.layout.xaxis.title, one.layout.yaxis.title):
            title.text = in_words.get(title.text, title.text)
        column.plotly_chart(one, key=f"figure-{measure}-{cache.digest(sweep.name)}")
        column.caption(sweep_plots.intervals_of(sweep, rows, measure, accuracy))
    shown, rests_on = sweep_verdict.verdict(sweep, rows, accuracy)
    if shown:
        st.markdown(f"**{format.plain(shown)}**")
        judged = f"Judged by {titles[accuracy].removesuffix(', %')}."
        st.caption(format.plain(f"{judged} {rests_on}"))
    table = sweep_plots.table(sweep, rows, accuracy)
    shown_table = [{in_words.get(k, k): v for k, v in row.items()} for row in table]
    with st.container() if sweep.form == "table" else st.expander("As a table"):
        st.dataframe(shown_table, hide_index=True)
    line = st.container(horizontal=True)
    line.download_button("Table as CSV", format.table_csv(table), f"{sweep.name}.csv", "text/csv")
    done = [r["run"] for r in rows if r["status"] == "done" and r["seed"] == sweep.seeds[0]]
    names = list(dict.fromkeys(done))[:MOST]
    key = f"compare-{cache.digest(sweep.name)}"
    if len(names) > 1 and line.button(
        f"Compare {len(names)} of its runs", key=key, icon=":material/compare_arrows:",
        help="One seed of each setting that is done, eight at most.",
    ):  # fmt: skip
        st.switch_page("pages/compare.py", query_params={"runs": ",".join(names)})
    unscored(sweep, path, line)


def unscored(sweep: Sweep, path: Path, place: Any) -> None:
    """Runs whose test images have no scores yet: another process makes them."""
    if run_names := sweep_runner.unscored(sweep):
        last = evaluation_path(runs.load(run_names[-1]))
        task = Task(f"score.{sweep.name}", ("sweep", str(path), "--score"), last)
        on_demand(task, f"Score {len(run_names)} runs on the test images", place)


def on_demand(task: Task, label: str, place: Any, icon: str | None = None) -> None:
    """A button that starts a task; how far it is while it runs, and why it failed."""
    if progress := task.progress():
        bar(progress, label, place)
        return
    if problem := task.failure():
        st.error(format.plain(problem))
    if place.button(label, icon=icon):
        try:
            task.start(label=label)
        except (OSError, Locked) as error:
            st.error(format.plain(error))
            return
        st.rerun()


def text(path: Path) -> None:
    """The file itself, and how to run it without the app; an own one can be changed."""
    st.code(
        f"python -m contrastive_core sweep {shlex.quote(str(path))}",
        language="bash",
        wrap_lines=True,
    )
    with st.expander("The file"):
        content = path.read_text(encoding="utf-8", errors="replace")
        if path.parent == READY:
            st.code(content, language="toml")
            st.caption("To change it, choose “a new one…” and give it another name.")
            return
        with st.form(f"toml-{path.stem}"):
            written = st.text_area("TOML", content, height=360)
            if st.form_submit_button("Save"):
                try:
                    read(written, path.name)
                except BadSetting as error:
                    st.error(format.plain(error))
                    return
                atomic.write_bytes(path, written.encode())
                st.rerun()
