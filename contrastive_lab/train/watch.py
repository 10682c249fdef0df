"""A running training: its forming map, curves, monitors or log, with its progress and links to follow-up pages."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from contrastive_core import runs
from contrastive_core.advice.plan import is_trial
from contrastive_core.base.json_files import JsonObject
from contrastive_core.base.progress import Progress
from contrastive_core.base.score import wilson
from contrastive_core.engine import process, queue, training
from contrastive_core.runs.run import Run
from contrastive_core.runs.run_metrics import MetricsReader, labeled_images
from contrastive_lab import (
    cache,
    format,
    forming_map,
    guard,
    locale,
    query_params,
    recordings,
    score_strip,
    stage,
    state,
)
from contrastive_lab import figures as plots
from contrastive_lab.components.scatter import PALETTE
from contrastive_lab.locale import N_, _
from contrastive_lab.progress import bar
from contrastive_lab.setting_names import Marks, changes_by_epoch, draw_marks, marks_of
from contrastive_lab.train import curves as figures
from contrastive_lab.train import live as live_settings
from contrastive_lab.train.folder import with_change
from contrastive_lab.train.sparklines import sparkline

WATCHED = "watched"  # the run that is chosen, for the session
PICKER = "train-watched"  # the key of its picker
AT_WORK = "training"  # of the session: the run that is chosen once it is done
NEW = "new run"  # of the session: the form stands there, not the run
KNN = "knn_train_sample"
VIEWS = {"map": N_("Map"), "curves": N_("Curves"), "monitors": N_("Monitors"), "log": N_("Log")}
FEW_STEPS = 300  # points of a curve


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
        st.button(_("Watch {name}").format(name=format.plain(name)), key="watch-run", on_click=watch_again)


def watch_again() -> None:
    st.session_state.pop(NEW, None)


def _begin_new() -> None:
    st.session_state[NEW] = True


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
            more: dict[str, Any] = {"key": PICKER, "on_change": _picked, "width": 260}
            name = query_params.one_of(st.selectbox, _("Watch"), options, name="watch", **more)
        st.space("stretch")
        view = query_params.one_of(
            st.segmented_control, _("View"), list(VIEWS), name="view", format_func=lambda v: locale.text(VIEWS[v])
        )
        st.button(_("New run"), icon=":material/add:", key="new-run", on_click=_begin_new)
    live(name, view)


def _picked() -> None:
    st.session_state[WATCHED] = query_params.chosen(PICKER)


@st.fragment(run_every=1.0)
def live(name: str, view: str) -> None:
    """Draw the watched run, again every second."""
    queue.go_on()
    picture, inspector = stage.columns()
    try:
        run = runs.load(name)
    except (ValueError, OSError) as error:
        with picture:
            st.caption(_("The map appears after the first training steps."))
        with inspector:
            st.subheader(format.plain(name))
            not_yet(name, error)
        return
    family = live_settings.family(run)
    if any(map(queue.progress_of, family)):
        st.session_state[AT_WORK] = name
    elif st.session_state.get(AT_WORK) == name and (done := live_settings.done(family)):
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
            curves(run, metrics, marks_of(changed, metrics.epochs))
        elif view == "monitors":
            marks = marks_of(changed, metrics.epochs)
            figures.draw_collapse(run.name, thinned(metrics), metrics.epochs, marks)
        else:
            st.code(process.log_of(name, 200) or _("nothing"), language=None)


def not_yet(name: str, error: Exception) -> None:
    """Draw a training that has no run yet: it is queued, failed to start, or decodes images."""
    if in_line(name):
        return
    if problem := training.failure(name):
        st.error(format.plain(format.in_form(problem)))
        return
    if name not in training.starting():
        st.progress(0.0, format.plain(error))
        return
    bar(queue.progress_of(name) or Progress("starting"), name)
    if st.button(_("Stop"), icon=":material/stop:", key=f"stop-{name}"):
        training.stop(name)
        if opened := training.import_waited_for(name):
            opened.stop()


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
        live_settings.sliders(run)
    live_settings.not_taken(run)
    live_settings.branches_at_work(branches)
    if now in ("running", "stopped", "failed") and not run.shipped and live_settings.branch_form(run):
        st.rerun()
    if note := status.get("note"):
        (st.warning if status.get("is_warned") else st.info)(format.plain(format.in_form(note)))
    figures_of_now(run, metrics, epochs)
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
                with guard.errors_shown():
                    queue.resume(run.name)
                    watch_next(run.name)
                    st.rerun()  # all of the page: the bar at the top tells of it too
        else:
            _ways_on(run, is_done=now == "done")


def _ways_on(run: Run, is_done: bool) -> None:
    """Draw links to the pages that show the results of a finished training; to wrong labels only if it has labels."""
    look: dict[str, Any] = {"width": "stretch", "disabled": not is_done}
    page = ""
    if is_done and recordings.has_rows(run):
        label, icon = _("Open its loss in the Loss Lab"), ":material/tune:"
        page = "loss_lab" if st.button(label, icon=icon, key="open-loss", width="stretch") else page
    if is_done and run.manifest.get("classes"):
        label, icon = _("Find wrong labels"), ":material/image_search:"
        page = "samples" if st.button(label, icon=icon, key="find-wrong-labels", width="stretch") else page
    label = _("Explore it") if is_done else _("Explore it when done")
    if st.button(label, icon=":material/scatter_plot:", key="explore", type="primary", **look):
        page = "explore"
    if page:
        state.choose_run(run.name)
        st.switch_page(f"pages/{page}.py")


def thinned(metrics: MetricsReader) -> list[JsonObject]:
    """Return as many lines of steps as a curve shows; for a shipped run without them, those of its epochs."""
    lines = metrics.steps or metrics.epochs
    return lines[:: max(1, -(-len(lines) // FEW_STEPS))]


def scores_of(metrics: MetricsReader, name: str) -> list[tuple[int, float]]:
    """Return the named score after each epoch that has one."""
    return [(x["epoch"], x[name]) for x in metrics.epochs if name in x]


def figures_of_now(run: Run, metrics: MetricsReader, epochs: int) -> None:
    """Draw loss and score with their curves: kNN accuracy with classes, recall between two towers."""
    if not (lines := thinned(metrics)):
        if training.status_of(run)["status"] != "done":
            st.caption(_("The first step is running…"))
        return
    newest = (metrics.latest or metrics.epochs)[-1]
    done = max(0.02, min(1.0, (newest.get("epoch") or 1) / max(1, epochs)))
    loss = (metrics.epochs or metrics.latest)[-1]["loss"]
    steps = _("step {step}").format(step=f"{newest['step']:,}")
    last = max(1, newest["step"])
    marks = [min(1.0, change["step"] / last) for change in run.changes()]
    drawn = [sparkline(_("Loss"), f"{loss:.3g}", [x["loss"] for x in lines], share=done, note=steps, marks=marks)]
    scored, forth = scores_of(metrics, KNN), scores_of(metrics, figures.FORTH)
    if scored or run.manifest.get("classes"):
        shares = [100 * share for _epoch, share in scored]
        value = f"{shares[-1]:.3g} %" if shares else "–"
        title, note = _("kNN on the training sample"), _("Other images of the sample vote on each image.")
        drawn.append(sparkline(title, value, shares, baselines(run), done, note))
    elif forth:
        shares = [100 * share for _epoch, share in forth]
        title = _("Recall@1, image → caption")
        drawn.append(sparkline(title, f"{shares[-1]:.3g} %", shares, {}, done, _(figures.OF_SAMPLE)))
    st.html("".join(drawn))
    if any("z_std" in line for line in lines) and not training.status_of(run).get("is_warned"):
        last = next(line for line in reversed(lines) if "z_std" in line)
        deviation = f"{last['z_std']:.2g}"
        text = _("No sign of collapse: the deviation of z is {value}.")
        st.markdown(f":green[●] {text.format(value=deviation)}")
    if metrics.latest:
        speed = float(np.median([x["images_per_s"] for x in metrics.latest]))
        st.caption(_("{speed} images/s").format(speed=f"{speed:,.0f}"))


def baselines(run: Run) -> dict[str, float]:
    """Return the kNN accuracy in per cent of pixels and of an untrained encoder, if a first inspection measured it."""
    asked = {"dataset": str(run.config.get("dataset")), "method": str(run.config.get("method"))}
    try:
        found = cache.result("look", with_change(asked))
    except (OSError, ValueError):
        return {}
    facts = found.meta["facts"] if found else {}
    named = ((_("pixels"), facts.get("pixels_knn")), (_("untrained"), facts.get("random_encoder")))
    return {f"{name} {100 * value:.3g}": 100 * value for name, value in named if value is not None}


def curves(run: Run, metrics: MetricsReader, marks: Marks) -> None:
    """Draw all curves of the training: kNN accuracy with classes, recall between two towers."""
    if not (thin := thinned(metrics)):
        return
    loss = {"loss": ([x["step"] for x in thin], [x["loss"] for x in thin])}
    towers = figures.figures(metrics.epochs, thin, marks)
    drawn = {"loss": plots.curves(loss, "step", _("Loss")), **towers}
    draw_marks(drawn["loss"], marks["step"])
    cells: list[Callable[[], object]] = [
        partial(st.plotly_chart, figure, key=f"{key}-{run.name}", config=plots.SVG) for key, figure in drawn.items()
    ]
    scored = scores_of(metrics, KNN)
    if scored or run.manifest.get("classes"):
        cells.insert(1, partial(vote, run, scored, marks))
    for at in range(0, len(cells), 2):
        for column, cell in zip(st.columns(2), cells[at : at + 2], strict=False):
            with column:
                cell()
    if "recall" in towers:
        st.caption(_(figures.OF_SAMPLE))


def vote(run: Run, scored: list[tuple[int, float]], marks: Marks) -> None:
    """Draw kNN accuracy over the epochs with intervals and baselines, and a sentence about the intervals."""
    epochs, n = [epoch for epoch, _share in scored], labeled_images(run)
    knn = {"kNN": (epochs, [100 * share for _epoch, share in scored])}
    figure = plots.curves(knn, "epoch", _("kNN on the training sample, %"))
    if ends := shares(scored, n):
        plots.band(figure, epochs, ends, "95 %", PALETTE[0])
    for name, value in baselines(run).items():
        figure.add_hline(y=value, line={"dash": "dot", "color": "gray"}, annotation_text=name)
    draw_marks(figure, marks["epoch"])
    figure.update_layout(showlegend=False)
    st.plotly_chart(figure, key=f"knn-{run.name}", config=plots.SVG)
    if ends:
        st.caption(since(epochs, ends, n))


def shares(scored: list[tuple[int, float]], n: int) -> list[tuple[float, float]]:
    """Return the 95 % interval of each share of n images, in per cent; empty if n is unknown."""
    ends = [wilson(round(share * n), n) for _epoch, share in scored] if n else []
    return [(100 * low, 100 * high) for low, high in ends]


def since(epochs: list[int], ends: list[tuple[float, float]], n: int) -> str:
    """Describe from which epoch on the intervals overlap the last one, so no difference is shown."""
    low, high = ends[-1]
    first = len(ends) - 1
    while first and ends[first - 1][0] <= high and low <= ends[first - 1][1]:
        first -= 1
    of = _("The band is the 95 % interval over {n} images, for this seed only.").format(n=f"{n:,}")
    if len(ends) == 1:
        return of
    template = _("{band} Accuracy has not changed significantly since epoch {epochs}.")
    if first == len(ends) - 1:
        template = _("{band} The interval of the last epoch does not overlap that of the epoch before.")
    return template.format(band=of, epochs=epochs[first])
