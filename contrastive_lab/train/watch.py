"""A running training: its forming map, curves, monitors or log, its progress, sliders of its settings, and its
branches."""

import contextlib
import math
from collections.abc import Iterable, Sequence
from typing import Literal

import streamlit as st

from contrastive_core import runs
from contrastive_core.advice.plan import is_trial
from contrastive_core.base.progress import STARTING
from contrastive_core.base.registry import Knob
from contrastive_core.engine import catalog, client, process, queue, training
from contrastive_core.runs import changes as live_changes
from contrastive_core.runs.changes import Live
from contrastive_core.runs.run import Run
from contrastive_core.runs.run_metrics import MetricsReader
from contrastive_lab import cache, format, forming_map, locale, query_params, recordings, score_strip, stage, state
from contrastive_lab.locale import N_, _
from contrastive_lab.progress import bar
from contrastive_lab.setting_names import changes_by_epoch, marks_of, sign
from contrastive_lab.train import curves

WATCHED = "watched"  # the run that is chosen, for the session
PICKER = "train-watched"  # the key of its picker
AT_WORK = "training"  # of the session: the run that is chosen once it is done
NEW = "new run"  # of the session: the form stands there, not the run
VIEWS = {"map": N_("Map"), "curves": N_("Curves"), "monitors": N_("Monitors"), "log": N_("Log")}
REFUSED = "live-refused"  # of the session: the run that did not take a change, and why
SPAN = 100.0  # of a logarithmic slider: from the first value up, and down
IN_A_DECADE = (1.0, 1.25, 1.6, 2.0, 2.5, 3.2, 4.0, 5.0, 6.3, 8.0)


def watch_next(name: str) -> None:
    """Watch this run from the next time the page is drawn."""
    st.session_state[WATCHED] = st.session_state[AT_WORK] = name
    st.session_state.pop(NEW, None)


def watched() -> str | None:
    """Return the run that was started last, or any active run."""
    chosen = query_params.requested("watch") or st.session_state.get(WATCHED)
    return chosen or next(iter(_at_work()), None)


def _at_work() -> list[str]:
    """Return the runs in training without an adviser's trials, which the adviser represents."""
    return [run.name for run in training.working() if not is_trial(run.name)]


def shown() -> str | None:
    """Return the run to show instead of the form: requested, just started, or active, until the user begins a new one.
    A URL with a method or data requests the form."""
    is_form_asked = any(query_params.requested(name) for name in ("method", "data", "folder"))
    if query_params.requested("watch"):
        st.session_state.pop(NEW, None)
    elif is_form_asked:
        st.session_state[NEW] = True
    return None if st.session_state.get(NEW) else watched()


def way_back() -> None:
    """Draw a button from the form to the watched run."""
    if name := watched():
        label, leave = _("Watch {name}").format(name=format.plain(name)), st.session_state.pop
        st.button(label, key="watch-run", on_click=leave, args=(NEW, None))


def watch(name: str) -> None:
    """Draw the watched run: its picture, and its progress beside it."""
    st.session_state[WATCHED] = name
    options = list(dict.fromkeys([name, *_at_work(), *(job.name for job in queue.queue())]))
    with stage.toolbar():
        if len(options) == 1:
            query_params.keep(watch=name)
            st.markdown(f"**{format.plain(name)}**", width="content")
        else:
            query_params.choose(PICKER, name)
            name = query_params.one_of(
                st.selectbox,
                _("Watch"),
                options,
                name="watch",
                key=PICKER,
                on_change=lambda: st.session_state.update({WATCHED: query_params.chosen(PICKER)}),
                width=260,
            )
        st.space("stretch")
        view = query_params.one_of(st.segmented_control, _("View"), VIEWS, name="view")
        st.button(
            _("New run"), icon=":material/add:", key="new-run", on_click=st.session_state.update, args=({NEW: True},)
        )
    live(name, view)


@st.fragment(run_every=1.0)
def live(name: str, view: str) -> None:
    """Draw the watched run, again every second."""
    queue.go_on()
    picture, inspector = stage.columns()
    try:
        run = runs.load(name)
    except (ValueError, OSError) as error:
        with picture, st.container(key="train-folder"):  # for its margin
            st.caption(_("The map appears after the first training steps."))
        with inspector:
            st.subheader(format.plain(name))
            if in_line(name):
                return
            if problem := training.failure(name):
                st.error(format.plain(format.in_form(problem)))
            elif name not in training.starting():
                st.progress(0.0, format.plain(error))
            else:
                bar(queue.progress_of(name) or STARTING, name)
                if st.button(_("Stop"), icon=":material/stop:", key=f"stop-{name}"):
                    training.stop(name)
        return
    origins = {one.name: one.manifest.get("branch", {}).get("run") for one in runs.list_runs()}
    first = name if name in origins.values() else str(origins.get(name) or name)
    family = [first, *sorted(branch for branch, origin in origins.items() if origin == first)]
    if any(map(queue.progress_of, family)):
        st.session_state[AT_WORK] = name
    elif st.session_state.get(AT_WORK) == name and (done := [one for one in family if _is_done(one)]):
        del st.session_state[AT_WORK]
        if len(done) > 1:
            st.switch_page("pages/compare.py", query_params={"runs": ",".join(done)})
        state.choose_run(name)
        st.rerun()
    path = run.path / "metrics.jsonl"
    reader: MetricsReader = st.session_state.setdefault(f"read {path}", MetricsReader(path))
    metrics = reader.update()
    changed = run.changes()
    with inspector:
        progress(run, metrics, family[1:])
    with picture, st.container(key=f"train-{view}"):
        if view == "map":
            is_running = run.status()["status"] == "running"
            forming_map.draw(run, changed=changes_by_epoch(changed, metrics.epochs), is_running=is_running)
        elif view == "curves":
            curves.draw_curves(run, metrics, marks_of(changed, metrics.epochs))
        elif view == "monitors":
            marks = marks_of(changed, metrics.epochs)
            curves.draw_collapse(run.name, curves.thinned(metrics), metrics.epochs, marks)
        else:
            st.code(process.log_of(name, 200) or _("nothing"), language=None)


def in_line(name: str) -> bool:
    """Return whether a run is queued; if so, draw the runs ahead and a button that removes it."""
    waiting = [job.name for job in queue.queue()]
    if name not in waiting:
        return False
    ahead = waiting[: waiting.index(name)]
    at_work = ", ".join(run.name for run in training.working()) or _("the previous run")
    values = {"name": name, "at_work": at_work, "ahead": ", ".join(ahead)}
    one, more = _("{name} is waiting for {at_work}."), _("{name} is waiting for {at_work}, then {ahead}.")
    st.info((more if ahead else one).format(**values))
    if st.button(_("Remove from the queue"), key=f"leave-{name}"):
        queue.remove(name)
        st.rerun()
    return True


def progress(run: Run, metrics: MetricsReader, branches: Sequence[str]) -> None:
    """Draw the state and figures of a run and its branches; at the end, the next step."""
    status = training.status_of(run)
    now, epochs = status["status"], status.get("epochs") or run.config.get("epochs", 1)
    st.subheader(format.plain(run.name))
    score_strip.about_run(run)
    if now == "running" and (told := queue.progress_of(run.name)):
        bar(told, now)
    else:
        epoch, template = status.get("epoch") or 0, _("{state}: epoch {epoch} of {epochs}")
        text = template.format(state=locale.text(now), epoch=epoch, epochs=epochs)
        st.progress(min(1.0, epoch / max(1, epochs)), text)
    if now in ("running", "starting") and st.button(_("Stop"), icon=":material/stop:", key="stop"):
        training.stop(run.name)
    if now == "running":
        sliders(run)
    not_taken(run)
    if started := [name for name in branches if queue.progress_of(name)]:
        text = _("Started: {names}. Choose one at the top to follow it.")
        st.info(format.plain(text.format(names=", ".join(started))))
    if now in ("running", "stopped", "failed") and not run.shipped and branch_form(run):
        st.rerun()
    if note := status.get("note"):
        (st.warning if status.get("is_warned") else st.info)(format.plain(format.in_form(note)))
    curves.figures_of_now(run, metrics, epochs)
    if now == "done":
        score_strip.show_accuracies(run)
    is_waiting = in_line(run.name)
    if now in ("stopped", "failed") and not is_waiting and not run.shipped:
        (st.error if now == "failed" else st.info)(format.plain(format.in_form(status.get("reason") or now)))
        if problem := training.failure(run.name):
            st.error(format.plain(_("It could not continue: {problem}").format(problem=problem)))
    with st.container(key="train-next"):
        if now in ("stopped", "failed") and not is_waiting and not run.shipped:
            icon = ":material/play_arrow:"
            if st.button(_("Resume"), icon=icon, type="primary", key="resume", width="stretch"):
                with stage.errors_shown():
                    queue.resume(run.name)
                    watch_next(run.name)
                    st.rerun()  # all of the page: the bar at the top tells of it too
        else:
            _ways_on(run, is_done=now == "done")


def _ways_on(run: Run, is_done: bool) -> None:
    """Draw links to the pages that show the results of a finished training; to wrong labels only if it has labels."""
    page = ""
    if is_done and recordings.has_rows(run):
        label, icon = _("Open its loss in the Loss Lab"), ":material/tune:"
        page = "loss_lab" if st.button(label, icon=icon, key="open-loss", width="stretch") else page
    if is_done and run.manifest.get("classes"):
        label, icon = _("Find wrong labels"), ":material/image_search:"
        page = "samples" if st.button(label, icon=icon, key="find-wrong-labels", width="stretch") else page
    label = _("Explore it") if is_done else _("Explore it when done")
    icon = ":material/scatter_plot:"
    if st.button(label, icon=icon, key="explore", type="primary", width="stretch", disabled=not is_done):
        page = "explore"
    if page:
        state.choose_run(run.name)
        st.switch_page(f"pages/{page}.py")


# --- sliders of its settings, and branches ---


def live_of(run: Run) -> dict[str, Live]:
    """Return the settings of a run that can be changed during training; {} before the catalog is ready."""
    config = run.config
    knobs = _knobs("losses", str(config.get("loss"))), _knobs("methods", str(config.get("method")))
    return live_changes.live_settings(config, *knobs)


@st.cache_resource(max_entries=40, show_spinner=False)
def _knobs(kind: Literal["methods", "losses"], name: str) -> dict[str, Knob]:
    return catalog.knobs(cache.catalog()[kind].get(name, {}).get("knobs", {}))


def sliders(run: Run) -> None:
    """Draw a slider for each setting, at the last requested value. A change from elsewhere replaces the slider; after a
    change by the user it stays and keeps the focus."""
    taken = {change["id"] for change in run.logged_changes()}
    asked = [*run.changes(), *(one for one in run.requests() if one["id"] not in taken)]
    for name, setting in live_of(run).items():
        values = [setting.start, *(one["to"] for one in asked if one["name"] == name)]
        key, value, label = f"live-{run.name}-{name}", values[-1], sign(name)
        last: list[float] = st.session_state.setdefault(key, [0, value])  # how many sliders so far, and its value
        if last[1] != value:
            last[:] = last[0] + 1, value
        drawn, help = f"{key}-{last[0]}", _(setting.knob.help) if setting.knob.help else None
        if setting.knob.log:
            st.select_slider(label, stops(setting, values), value, _short, drawn, help, _send, (run, name, key))
        else:
            kind = int if isinstance(setting.knob.default, int) else float
            low, high = kind(setting.knob.low or 0), kind(setting.knob.high or 1)
            step, shown = (1, None) if kind is int else ((high - low) / 200, "%.4g")
            st.slider(label, low, high, kind(value), step, shown, drawn, help, _send, (run, name, key))


def _short(value: float) -> str:
    return f"{value:.4g}"


def stops(setting: Live, values: Iterable[float]) -> list[float]:
    """Return values of a logarithmic slider around the initial one, ten per decade, and all earlier values."""
    start, (low, high) = setting.start or setting.knob.default, (setting.knob.low or 0.0, setting.knob.high or math.inf)
    low, high = max(low, start / SPAN), min(high, start * SPAN)
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    every = (float(f"{part}e{decade}") for decade in decades for part in IN_A_DECADE)
    shown = {_short(one): one for one in [*(one for one in every if low <= one <= high), *values]}
    return sorted(shown.values())


def _send(run: Run, name: str, key: str) -> None:
    """Request the value of a slider that the user moved; a browser also sends values of sliders that were only
    drawn."""
    number, before = st.session_state[key]
    if (value := st.session_state[f"{key}-{number}"]) == before:
        return
    st.session_state.pop(REFUSED, None)
    try:
        live_changes.request(run, live_of(run), {name: value})
        st.session_state[key][1] = value
    except (ValueError, OSError) as error:
        st.session_state[REFUSED] = (run.name, str(error))


def not_taken(run: Run) -> None:
    """Draw changes that were refused, or came too late."""
    name, why = st.session_state.get(REFUSED, ("", ""))
    if name == run.name:
        st.error(format.plain(why))
    logged = {change["id"] for change in run.logged_changes()}
    late = [one for one in run.requests() if one["id"] not in logged]
    if late and run.status()["status"] in ("done", "stopped", "failed"):
        told = ", ".join(f"{sign(one['name'])} {one['to']:.4g}" for one in late)
        text = _("The run ended before this change was applied: {changes}")
        st.info(format.plain(text.format(changes=told)))


def branch_form(run: Run) -> str:
    """Draw a form for branches of a run from a saved epoch; return the first one's name once they have started."""
    names: list[str] = []
    with st.expander(_("Branch here")), st.form(f"branch-{run.name}", border=False):
        st.caption(_("Each line continues from a saved epoch as a separate run. Compare opens when all have ended."))
        kept: dict[int, str] = {0: _("the newest state")}  # a list shows no None
        kept |= {epoch: _("epoch {epoch}").format(epoch=epoch) for epoch in reversed(live_changes.saved_epochs(run))}
        help = _("At most eight states are kept, spread over the training.")
        epoch = st.selectbox(
            _("From"), [*kept], format_func=kept.__getitem__, key=f"branch-epoch-{run.name}", help=help
        )
        example = "loss.temperature=0.05\nloss.temperature=0.5, lr=0.001"
        text = st.text_area(_("Other values, one branch per line"), placeholder=example)
        pressed = st.form_submit_button(_("Start the branches"), icon=":material/fork_right:")
        with stage.errors_kept(f"branch-{run.name}", text, pressed):
            if pressed:
                lines = [line.split(",") for line in text.splitlines() if line.strip()]
                every = [live_changes.settings_of(line) for line in lines]
                names = [made.name for made in client.branch(run, epoch or None, *every)]
                for name in names:
                    queue.resume(name)
    return names[0] if names else ""


def _is_done(name: str) -> bool:
    with contextlib.suppress(ValueError, OSError):  # deleted since
        return bool(runs.load(name).status()["status"] == "done")
    return False
