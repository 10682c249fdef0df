"""Sweeps: choose or write one, see how long it takes, let its cells wait, watch its figure fill."""

import shlex
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st

from contrastive_core.engine import queue, sweep_runner, training
from contrastive_core.engine.sweep_results import Sweep, load, read, sweep_plots, title_of
from contrastive_core.engine.training import Task
from contrastive_core.records import BUNDLE, atomic, runs, runs_home
from contrastive_core.records.evaluation import evaluation_path
from contrastive_lab import cache, figures, format, guard, locale, number_inputs, query_params
from contrastive_lab.compare.space_picker import MOST
from contrastive_lab.components.scatter.categories import PALETTE
from contrastive_lab.locale import N_, _, message, ngettext
from contrastive_lab.progress import bar
from contrastive_lab.runs.sweep_form import new_sweep
from contrastive_lab.setting_names import shown_name
from contrastive_lab.tables import draw_table

READY = BUNDLE / "sweeps"
NEW = N_("a new one…")
PICKER = "runs-sweep"


def sweeps() -> None:
    """The sweep that is chosen: its plan, its time, its cells, its figure."""
    files = {p.stem: p for folder in (READY, own_folder()) for p in sorted(folder.glob("*.toml"))}
    titles = {name: title_of(path) for name, path in files.items()} | {NEW: NEW}

    def title(name: str) -> str:
        return titles.get(name, name)

    name = query_params.one_of(st.selectbox, _("Sweep"), titles, name="sweep", key=PICKER, format_func=title)
    if name == NEW:
        if name := new_sweep(own_folder()):
            query_params.choose(PICKER, name)
            st.rerun()
        return
    with guard.errors_shown():
        plan(load(files[name]), files[name])
    text(files[name])


def own_folder() -> Path:
    """Where a user's own sweep files lie."""
    return runs_home() / ".sweeps"


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
    a.metric(_("Runs done"), _("{done} of {states}").format(done=counts["done"], states=len(states)))
    b.metric(_("Running, queued"), f"{counts['running']}, {counts['queued']}")
    c.metric(_("Stopped or failed"), bad, help=_("Start continues with them."))
    d.metric(_("Still to train"), duration(sweep_runner.estimate(sweep)), help=_("On this computer, alone."))
    if blocked := next(filter(None, (j.blocked_reason() for j in queued.values() if j.group == sweep.name)), ""):
        st.warning(locale.text(blocked))
    idle = counts["queued"] if blocked else 0  # a new start gives them new hours
    start(sweep, path, len(states) - counts["done"] - counts["running"] - counts["queued"] + idle)
    figure(sweep, path, rows)


def duration(seconds: float | None) -> str:
    """Seconds in words."""
    if seconds is None:
        return "unknown"
    return format.duration(seconds) if seconds else _("{seconds} min").format(seconds=0)


def start(sweep: Sweep, path: Path, todo: int) -> None:
    """How long it will take, then all cells or a few."""
    if sweep_runner.estimate(sweep) is None:
        arguments = ("sweep", str(path), "--dry-run")
        task = Task(f"time.{sweep.name}", arguments, sweep_runner.timings_path())
        on_demand(task, message("How long will it take?"), st, ":material/timer:")
    if not todo:
        return
    a, b = st.columns([1, 3], vertical_alignment="bottom")
    key = cache.digest(sweep.name)
    of = f"most-{key}"
    most = number_inputs.number(a.number_input, _("Runs to train now"), 1, todo, name="", default=todo, key=of)
    hours = sweep.budget_hours
    budget = _(", no new one after {budget_hours} h").format(budget_hours=f"{hours:g}") if hours else ""
    help = _("One cell at a time{budget}; the app may be closed meanwhile.").format(budget=budget)
    begin, icon = partial(b.button, type="primary", key=f"start-{key}"), ":material/play_arrow:"
    if number_inputs.button(begin, _("Start"), of=[of], icon=icon, help=help):
        with guard.errors_shown():
            added = sweep_runner.enqueue(sweep, most)
            text = ngettext("{added} run is queued.", "{added} runs are queued.", len(added))
            st.toast(text.format(added=len(added)))
            st.rerun()


def figure(sweep: Sweep, path: Path, rows: list[dict[str, Any]]) -> None:
    """The figure or table so far, by the accuracy that is chosen."""
    if not any(r["status"] == "done" for r in rows):
        st.caption(_("The chart appears when the first cell is done."))
        return
    titles, key = sweep_plots.ACCURACIES, cache.digest(sweep.name)
    there = [k for k in titles if any(k in r for r in rows)] or ["knn_train_sample"]
    unscored = sweep_runner.unscored(sweep)
    accuracy = query_params.one_of(
        st.segmented_control,
        _("Accuracy"),
        there,
        name="accuracy",
        default=there[0] if unscored else "knn test",  # once there are test scores, they decide
        format_func=titles.get,
        key=f"accuracy-{key}",
    )
    zoom = sweep.form != "table" and query_params.switch(
        st.toggle, _("Zoom to the figures"), name="zoom", help=_("Instead of 0 to 100 %."), key=f"zoom-{key}"
    )
    names_in_words = _draw(sweep, rows, accuracy, zoom)
    shown, rests_on = sweep_plots.verdict(sweep, rows, accuracy)
    if shown:
        st.markdown(f"**{format.plain(shown)}**")
        judged = _("Judged by {score}.").format(score=titles[accuracy].removesuffix(", %"))
        st.caption(format.plain(f"{judged} {rests_on}"))
    table = sweep_plots.table(sweep, rows, accuracy)
    shown_table = [{names_in_words.get(k, k): v for k, v in row.items()} for row in table]
    with st.container() if sweep.form == "table" else st.expander(_("As a table")):
        draw_table(shown_table, hide_index=True)
    line = st.container(horizontal=True)
    line.download_button(_("Table as CSV"), format.table_csv(table), f"{sweep.name}.csv", "text/csv", on_click="ignore")
    _offer_comparison(sweep, rows, line)
    if unscored:  # no scores on the test images yet: another process makes them
        last = evaluation_path(runs.load(unscored[-1]))
        task = Task(f"score.{sweep.name}", ("sweep", str(path), "--score"), last)
        template = N_("Score {run_names} runs on the test images")
        template = N_("Score 1 run on the test images") if len(unscored) == 1 else template
        on_demand(task, message(template, run_names=len(unscored)), line)


def _draw(sweep: Sweep, rows: list[dict[str, Any]], accuracy: str, zoom: bool) -> dict[str, str]:
    """Draw the sweep's figures; returns the titles of its settings by their names."""
    drawn = sweep_plots.draw(sweep, rows, accuracy, PALETTE, zoom)
    columns = st.columns(max(1, min(3, len(drawn))))
    in_words = {a.name: shown_name(a.name) for a in sweep.axes if a.name in a.values[0][1]}
    for column, one, measure in zip(columns, drawn, sweep.draw.measures, strict=False):
        for title in (one.layout.xaxis.title, one.layout.yaxis.title):
            title.text = in_words.get(title.text, title.text)
        with column:
            figures.draw(one, f"{sweep.name}-{measure}", f"figure-{measure}-{cache.digest(sweep.name)}")
        column.caption(sweep_plots.intervals_of(sweep, rows, measure, accuracy))
    return in_words


def _offer_comparison(sweep: Sweep, rows: list[dict[str, Any]], line: Any) -> None:
    """A button that compares one seed of each setting that is done."""
    done = [r["run"] for r in rows if r["status"] == "done" and r["seed"] == sweep.seeds[0]]
    names = list(dict.fromkeys(done))[:MOST]
    key = f"compare-{cache.digest(sweep.name)}"
    help = _("One seed of each setting that is done, eight at most.")
    if len(names) > 1 and line.button(
        _("Compare {names} of its runs").format(names=len(names)), key=key, icon=":material/compare_arrows:", help=help
    ):
        st.switch_page("pages/compare.py", query_params={"runs": ",".join(names)})


def on_demand(task: Task, label: str, place: Any, icon: str | None = None) -> None:
    """A button that starts a task; how far it is while it runs, and why it failed."""
    if progress := task.progress():
        bar(progress, label, place)
        return
    if problem := task.failure():
        st.error(format.plain(problem))
    if place.button(locale.text(label), icon=icon):
        with guard.errors_shown():
            task.start(label=label)
            st.rerun()


def text(path: Path) -> None:
    """The file itself, and how to run it without the app; an own one can be changed."""
    st.code(f"python -m contrastive_core sweep {shlex.quote(str(path))}", language="bash", wrap_lines=True)
    with st.expander(_("The file")):
        content = path.read_text(encoding="utf-8", errors="replace")
        if path.parent == READY:
            st.code(content, language="toml")
            st.caption(_("To change it, choose “a new one…” and give it another name."))
            return
        with st.form(f"toml-{path.stem}"):
            written = st.text_area("TOML", content, height=360)
            pressed = st.form_submit_button(_("Save"))
            with guard.errors_kept(f"toml-{path.stem}", written, pressed):
                if pressed:
                    read(written, path.name)
                    atomic.write_bytes(path, written.encode())
                    st.rerun()
