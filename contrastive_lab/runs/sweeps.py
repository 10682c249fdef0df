"""Sweeps: choose or write one (form or TOML), estimate its time, queue its cells, and follow its figure."""

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import streamlit as st

from contrastive_core import runs
from contrastive_core.base import storage
from contrastive_core.base.errors import BadSetting
from contrastive_core.base.storage import BUNDLE, read_regular, runs_home
from contrastive_core.compare.evaluation import evaluation_path
from contrastive_core.engine import queue, training
from contrastive_core.engine.jobs import Job
from contrastive_core.runs.train_config import literal
from contrastive_core.sweeps import sweep_file, sweep_results
from contrastive_core.sweeps.sweep_file import FORMS, LARGEST, Row, Sweep, load, read, title_of
from contrastive_core.sweeps.sweep_results import with_shipped
from contrastive_lab import cache, figures, format, locale, query_params, stage
from contrastive_lab.compare.space_picker import MOST
from contrastive_lab.components.scatter import PALETTE
from contrastive_lab.figures import draw_table
from contrastive_lab.locale import N_, _, message, ngettext
from contrastive_lab.progress import bar
from contrastive_lab.setting_names import shown_name

READY = BUNDLE / "sweeps"
NEW = N_("a new one…")
PICKER = "runs-sweep"
# Settings that are often swept, as pages name them.
AXES = {"": "none", "loss.temperature": N_("temperature τ"), "batch_size": N_("batch size"), "lr": N_("learning rate")}
AXES |= {"weight_decay": N_("weight decay"), "epochs": "epochs", "method.dim": N_("width of the head's output (z)")}
CHOOSE = N_("Choose an option")  # a field's own words, which have no Chinese
SHORT = {"loss.temperature": "τ", "batch_size": N_("batch size"), "lr": N_("learning rate")}  # in figures


def sweeps() -> None:
    """Draw the chosen sweep: its plan, time, cells and figure."""
    files = {p.stem: p for folder in (READY, own_folder()) for p in sorted(folder.glob("*.toml"))}
    titles = {name: title_of(path) for name, path in files.items()} | {NEW: NEW}
    scored = next((name for name in files if (READY / f"{name}.json").exists()), None)  # it opens with a figure
    name = query_params.one_of(st.selectbox, _("Sweep"), titles, name="sweep", default=scored, key=PICKER)
    if name == NEW:
        by_form()
        return
    with stage.errors_shown():
        plan(load(files[name]), files[name])
    with stage.errors_shown():
        _file(files[name])


def own_folder() -> Path:
    """Return the folder of a user's own sweep files."""
    return runs_home() / ".sweeps"


@st.fragment(run_every=5.0)
def plan(sweep: Sweep, path: Path) -> None:
    """Draw the state of a sweep every five seconds."""
    rows = sweep_file.status(sweep)
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
    a.metric(_("Trained here"), _("{done} of {states}").format(done=counts["done"], states=len(states)))
    b.metric(_("Running, queued"), f"{counts['running']}, {counts['queued']}")
    c.metric(_("Stopped or failed"), bad, help=_("Start continues with them."))
    seconds = sweep_file.estimate(sweep)
    left = format.duration(seconds) if seconds else "0"
    if seconds is None:
        left = _("unknown")
    d.metric(_("Still to train"), left, help=_("Estimated for this computer, with no other training running."))
    if blocked := next(filter(None, (j.blocked_reason() for j in queued.values() if j.group == sweep.name)), ""):
        st.warning(locale.text(blocked))
    idle = counts["queued"] if blocked else 0  # a new start gives them new hours
    todo, key = len(states) - counts["done"] - counts["running"] - counts["queued"] + idle, cache.digest(sweep.name)
    if seconds is None:
        job = Job(f"_time.{key}", sweep_file.timing_path(sweep), ("sweep", str(path), "--dry-run"))
        on_demand(job, message("How long will it take?"), st, ":material/timer:")
    if todo:
        a, b = st.columns([1, 3], vertical_alignment="bottom")
        label = _("Runs to train now")
        most = query_params.number(a.number_input, label, 1, todo, name="", default=todo, key=f"most-{key}")
        help: str = _("Trains one cell at a time. You can close the app meanwhile.")
        if sweep.budget_hours:
            text = _("Trains one cell at a time and starts no cell after {hours} h. You can close the app meanwhile.")
            help = text.format(hours=f"{sweep.budget_hours:g}")
        if b.button(_("Start"), icon=":material/play_arrow:", type="primary", key=f"start-{key}", help=help):
            with stage.errors_shown():
                added = queue.enqueue_group(sweep.name, sweep_file.trainings(sweep)[:most], sweep.budget_hours)
                text = ngettext("{added} run is queued.", "{added} runs are queued.", len(added))
                st.toast(text.format(added=len(added)))
                st.rerun()
    figure(sweep, path, with_shipped(sweep, rows))


def figure(sweep: Sweep, path: Path, rows: list[Row]) -> None:
    """Draw the current figure or table, by the chosen accuracy."""
    if not any(r["status"] == "done" for r in rows):
        st.caption(_("The chart appears when the first cell is done."))
        return
    titles, key = sweep_results.ACCURACIES, cache.digest(sweep.name)
    there = [k for k in titles if any(k in r for r in rows)] or ["knn_train_sample"]
    unscored = sweep_file.unscored(sweep)
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
        st.toggle,
        _("Zoom to the figures"),
        name="zoom",
        help=_("Fit the axis to the values instead of showing 0 to 100 %."),
        key=f"zoom-{key}",
    )
    if shipped := sum("shipped" in r for r in rows):
        text = _("{shipped} of these results come with the app. Runs that you train here replace them.")
        st.caption(text.format(shipped=shipped))
    names_in_words = _draw(sweep, rows, accuracy, zoom)
    shown, rests_on = sweep_results.verdict(sweep, rows, accuracy)
    if shown:
        st.markdown(f"**{format.plain(shown)}**")
        judged = _("Judged by {score}.").format(score=titles[accuracy].removesuffix(", %"))
        st.caption(format.plain(f"{judged} {rests_on}"))
    table = sweep_results.table(sweep, rows, accuracy)
    shown_table = [{names_in_words.get(k, k): v for k, v in row.items()} for row in table]
    with st.container() if sweep.form == "table" else st.expander(_("As a table")):
        draw_table(shown_table, hide_index=True)
    line = st.container(horizontal=True)
    line.download_button(_("Table as CSV"), format.table_csv(table), f"{sweep.name}.csv", "text/csv", on_click="ignore")
    here = [r for r in rows if r["status"] == "done" and "shipped" not in r and r["seed"] == sweep.seeds[0]]
    names = list(dict.fromkeys(r["run"] for r in here))[:MOST]
    label, help = _("Compare {names} of its runs"), _("One seed of each completed setting, at most eight.")
    icon = ":material/compare_arrows:"
    if len(names) > 1 and line.button(label.format(names=len(names)), key=f"compare-{key}", icon=icon, help=help):
        st.switch_page("pages/compare.py", query_params={"runs": ",".join(names)})
    with stage.errors_shown():
        if unscored:  # no scores on the test images yet: another process makes them
            last = evaluation_path(runs.load(unscored[-1]))
            job = Job(f"_score.{key}", last, ("sweep", str(path), "--score"))
            on_demand(job, message("Score the runs on the test images ({count})", count=len(unscored)), line)


def _draw(sweep: Sweep, rows: list[Row], accuracy: str, zoom: bool) -> dict[str, str]:
    """Draw the sweep's figures; return the titles of its settings by their names."""
    drawn = sweep_results.draw(sweep, rows, accuracy, PALETTE, zoom)
    drawn = [(one, measure) for one, measure in zip(drawn, sweep.draw.measures, strict=False) if one.data]
    columns = st.columns(max(1, min(3, len(drawn))))
    in_words = {a.name: shown_name(a.name) for a in sweep.axes if a.name in a.values[0][1]}
    for column, (one, measure) in zip(columns, drawn, strict=False):
        for title in (one.layout.xaxis.title, one.layout.yaxis.title):
            title.text = in_words.get(title.text, title.text)
        with column:
            figures.draw(one, f"{sweep.name}-{measure}", f"figure-{measure}-{cache.digest(sweep.name)}")
        column.caption(sweep_results.intervals_of(sweep, rows, measure, accuracy))
    return in_words


def on_demand(job: Job, label: str, place: Any, icon: str | None = None) -> None:
    """Draw a button that starts a job, its progress, and its failure."""
    if progress := job.progress():
        bar(progress, label, place)
        return
    if problem := job.failure():
        st.error(format.plain(problem))
    if place.button(locale.text(label), icon=icon):
        with stage.errors_shown():
            job.start(label=label)
            st.rerun()


def _file(path: Path) -> None:
    """Draw the file and its command line. An own file can be edited; another is saved under a new name."""
    st.code(f"contrastive-lab sweep {shlex.quote(str(path))}", language="bash", wrap_lines=True)
    with st.expander(_("The file")), st.form(f"toml-{path.stem}"):
        content, is_ready = read_regular(path, LARGEST).decode(errors="replace"), path.parent == READY
        name = st.text_input(_("Name"), f"my-{path.stem}").strip() if is_ready else path.stem
        own = content.replace(f'name = "{path.stem}"', "") if is_ready else content
        written = st.text_area("TOML", own, height=360)
        pressed = st.form_submit_button(_("Save"))
        with stage.errors_kept(f"toml-{path.stem}", (name, written), pressed):
            if pressed:
                save(name, written, is_new=is_ready)


# --- a new one ---


def by_form() -> None:
    """Draw the fields of a new sweep."""
    with st.form("new-sweep"):
        a, b, c, d = st.columns(4)
        name, choose = a.text_input(_("Name"), placeholder="tau"), locale.text(CHOOSE)
        titles = {n: locale.text(cache.method_title(n)) for n in sorted(cache.catalog()["methods"])}
        simclr = [*titles].index("simclr")
        method = b.selectbox(_("Method"), [*titles], simclr, format_func=titles.__getitem__, placeholder=choose)
        dataset = c.text_input(_("Data"), "digits", help=_("A data set's name, or folder:PATH"))
        epochs = d.number_input(_("Epochs of each run"), 1, 10_000, 10)
        axes = [_axis(1, "loss.temperature", "0.1, 0.2, 0.5"), _axis(2, "", "")]
        a, b, c = st.columns(3)
        seeds = a.text_input(_("Seeds, separated by commas"), "0")
        label, line = _("Start no new run after this many hours"), FORMS.index("line")
        hours = b.number_input(label, 0.1, 1000.0, 3.0)
        form = c.selectbox(_("Chart"), FORMS, line, format_func=locale.text, placeholder=choose)
        pressed = st.form_submit_button(_("Save the sweep"), type="primary")
        base = {"method": method, "dataset": dataset.strip(), "epochs": epochs}
        with stage.errors_kept("new-sweep", (name, base, axes, seeds, hours, form), pressed):
            if pressed:
                save(name.strip(), toml_of(name.strip(), base, axes, seeds, hours, form))


def toml_of(
    name: str, base: Mapping[str, object], axes: list[tuple[str, str]], seeds: str, hours: float, form: str
) -> str:
    """Return a sweep file's text. Raises BadSetting for invalid seeds or values."""
    try:
        numbers = [int(s) for s in seeds.split(",") if s.strip()]
    except ValueError:
        raise BadSetting(
            _("seeds must be whole numbers separated by commas; got {seeds}").format(seeds=f"{seeds!r}")
        ) from None
    lines = [f"title = {json.dumps(name)}", f"form = {json.dumps(form)}"]
    lines += [f"seeds = {numbers}", f"budget_hours = {hours}", "", "[base]"]
    lines += [f"{k} = {json.dumps(v)}" for k, v in base.items()]
    for key, values in axes:
        if key:
            parsed = [literal(v) for v in values.split(",") if v.strip()]
            parsed = ["none" if v is None else v for v in parsed]
            lines += ["", "[[axes]]", f"key = {json.dumps(key)}", f"values = {json.dumps(parsed)}"]
            lines += [f"name = {json.dumps(SHORT[key], ensure_ascii=False)}"] * (key in SHORT)
    return "\n".join(lines) + "\n"


def save(name: str, text: str, is_new: bool = True) -> None:
    """Store a valid sweep file, and show the sweep. Raises ValueError, OSError."""
    if is_new and any((place / f"{runs.new_name(name)}.toml").exists() for place in (own_folder(), READY)):
        raise BadSetting(_("there is a sweep {name} already; choose another name").format(name=f"{name!r}"))
    read(text, f"{name}.toml")
    storage.write_bytes(own_folder() / f"{name}.toml", text.encode())
    query_params.choose(PICKER, name)
    st.rerun()


def _axis(number: int, key: str, values: str) -> tuple[str, str]:
    """Draw the fields of one axis; return the setting's name and its values, separated by commas."""
    a, b = st.columns([1, 2])
    setting = a.selectbox(
        _("Axis {number}: setting").format(number=number),
        list(AXES),
        list(AXES).index(key),
        format_func=lambda k: locale.text(AXES.get(k) or k),
        accept_new_options=True,
        placeholder=locale.text(CHOOSE),
        help=_("Or type the name of the setting, as in the settings of a run."),
    )
    return str(setting or "").strip(), b.text_input(
        _("Axis {number}: values, separated by commas").format(number=number), values
    )
