"""A training while it runs: how far it is, its curves, its map forming, its log; and where to go once it is done."""

from collections.abc import Callable
from functools import partial

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from contrastive_core.engine import importing, process, queue, training
from contrastive_core.records import Progress, runs
from contrastive_core.records.advice import is_trial
from contrastive_core.records.run import Run
from contrastive_core.records.run_metrics import MetricsReader, labeled_images
from contrastive_core.records.score import wilson
from contrastive_lab import format, forming_map, guard, locale, plots, query_params, scrolling, state
from contrastive_lab.components.scatter.categories import PALETTE
from contrastive_lab.locale import _
from contrastive_lab.progress import bar
from contrastive_lab.train import collapse_curves, running_advisers, tower_curves

WATCHED = "watched"  # the run that is chosen, for the session
PICKER = "train-watched"  # the key of its picker
AT_WORK = "training"  # of the session: the run that is chosen once it is done
FEW_STEPS = 300  # points of a curve


def watch_next(name: str) -> None:
    """Watch this run from the next time the page is drawn, which then scrolls to it."""
    st.session_state[WATCHED] = st.session_state[AT_WORK] = name
    scrolling.scroll_next()


def watched() -> str | None:
    """Return the run that was started last, or any active run."""
    chosen = query_params.requested("watch") or st.session_state.get(WATCHED)
    return chosen or next(iter(_at_work()), None)


def _at_work() -> list[str]:
    """Runs in training, without an adviser's tries, which are many: the adviser stands for them."""
    return [run.name for run in training.working() if not is_trial(run.name)]


def comes_first() -> bool:
    """Whether the training stands above the views and the folder: while it runs, and once it is done until views
    are asked for."""
    name = watched()
    return name is not None and (not st.session_state.get("preview") or queue.progress_of(name) is not None)


def watch() -> None:
    """The run that is watched."""
    busy, name = _at_work(), watched()
    if name is None and running_advisers.running():
        running_advisers.watch()
        return
    if name is None:
        st.info(_("Nothing is training. Choose a method and data, and press Start."))
        st.caption(_("digits: 1,797 real images, about 20 s. shapes: 6,000 generated images, minutes."))
        return
    st.session_state[WATCHED] = name
    options = list(dict.fromkeys([name, *busy, *(job.name for job in queue.queue())]))
    if len(options) == 1:
        query_params.keep(watch=name)
    else:
        query_params.choose(PICKER, name)
        name = query_params.one_of(
            st.segmented_control, _("Watch"), options, name="watch", key=PICKER, on_change=_picked
        )
    with scrolling.in_view():
        live(name)


def _picked() -> None:
    st.session_state[WATCHED] = query_params.chosen(PICKER)


@st.fragment(run_every=1.0)
def live(name: str) -> None:
    """All of it, drawn again every second."""
    queue.go_on()
    try:
        run = runs.load(name)
    except (ValueError, OSError) as error:
        not_yet(name, error)
        return
    if queue.progress_of(name) is not None:
        st.session_state[AT_WORK] = name
    elif st.session_state.get(AT_WORK) == name and run.status()["status"] == "done":
        del st.session_state[AT_WORK]
        scrolling.scroll_next()
        state.choose_run(name)
        st.rerun()
    progress(run)
    path = run.path / "metrics.jsonl"
    reader: MetricsReader = st.session_state.setdefault(f"read {path}", MetricsReader(path))
    curves(run, reader.update())
    forming(run)
    with st.expander(_("Log")):
        st.code(process.log_of(name, 30) or _("nothing"), language=None)


def not_yet(name: str, error: Exception) -> None:
    """A training that has made no run yet: it waits, failed to start, or decodes images."""
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
        if opened := importing.waited_for(name):
            opened.stop()


def in_line(name: str) -> bool:
    """Whether a run waits: then behind which others, and a way out."""
    waiting = [job.name for job in queue.queue()]
    if name not in waiting:
        return False
    ahead = waiting[: waiting.index(name)]
    at_work = ", ".join(run.name for run in training.working()) or _("the run before it")
    values = {"name": name, "at_work": at_work, "ahead": ", ".join(ahead)}
    one, more = _("{name} is waiting for {at_work}."), _("{name} is waiting for {at_work}, then {ahead}.")
    st.info((more if ahead else one).format(**values))
    if st.button(_("Take it out of the queue"), key=f"leave-{name}"):
        queue.remove(name)
        st.rerun()
    return True


def progress(run: Run) -> None:
    """How it stands, and what can be done with it."""
    status = training.status_of(run)
    now, epochs = status["status"], status.get("epochs") or run.config.get("epochs", 1)
    st.header(run.name)
    if now == "running" and (told := queue.progress_of(run.name)):
        bar(told, now)
    else:
        epoch, template = status.get("epoch") or 0, _("{state}: epoch {epoch} of {epochs}")
        text = template.format(state=locale.text(now), epoch=epoch, epochs=epochs)
        st.progress(min(1.0, epoch / max(1, epochs)), text)
    if note := status.get("note"):
        (st.warning if status.get("is_warned") else st.info)(format.plain(format.in_form(note)))
    row = st.container(horizontal=True)
    if now in ("running", "starting") and row.button(_("Stop"), icon=":material/stop:", key="stop"):
        training.stop(run.name)
    if not in_line(run.name) and now in ("stopped", "failed") and not run.shipped:
        (st.error if now == "failed" else st.info)(format.plain(format.in_form(status.get("reason") or now)))
        if problem := training.failure(run.name):
            st.error(format.plain(_("It could not continue: {problem}").format(problem=problem)))
        if row.button(_("Resume"), icon=":material/play_arrow:", type="primary", key="resume"):
            with guard.errors_shown():
                queue.resume(run.name)
                watch_next(run.name)
                st.rerun()  # all of the page: the sidebar tells of it too
    if now == "done":
        _ways_on(run, row)


def _ways_on(run: Run, row: DeltaGenerator) -> None:
    """To the pages that show what a finished training has learned; labels can be wrong where there are any."""
    page = "explore" if row.button(_("Explore it"), icon=":material/scatter_plot:", key="explore") else ""
    if run.manifest.get("classes"):
        label, icon = _("Find wrong labels"), ":material/image_search:"
        page = "samples" if row.button(label, icon=icon, key="find-wrong-labels") else page
    if page:
        state.choose_run(run.name)
        st.switch_page(f"pages/{page}.py")


def curves(run: Run, metrics: MetricsReader) -> None:
    """The figures of now, and how they came about: kNN where there are classes, recall between two towers."""
    if not metrics.steps:
        st.caption(_("The first step is being taken…"))
        return
    epochs = metrics.epochs
    scored = [(x["epoch"], x["knn_train_sample"]) for x in epochs if "knn_train_sample" in x]
    has_classes = bool(scored or run.manifest.get("classes"))
    _figures_of_now(metrics, has_classes)
    thin = metrics.steps[:: -(-len(metrics.steps) // FEW_STEPS)]
    loss = {"loss": ([x["step"] for x in thin], [x["loss"] for x in thin])}
    towers = tower_curves.figures(epochs, thin)
    drawn = {"loss": plots.curves(loss, "step", _("Loss")), **towers}
    cells: list[Callable[[], object]] = [
        partial(st.plotly_chart, figure, key=f"{key}-{run.name}", config=plots.SVG) for key, figure in drawn.items()
    ]
    if has_classes:
        cells.insert(1, partial(vote, run, scored))
    for at in range(0, len(cells), 2):
        for column, cell in zip(st.columns(2), cells[at : at + 2], strict=False):
            with column:
                cell()
    if "recall" in towers:
        st.caption(_(tower_curves.OF_SAMPLE))
    collapse_curves.draw(run.name, thin, epochs)


def _figures_of_now(metrics: MetricsReader, has_classes: bool) -> None:
    epochs = metrics.epochs
    score, title, help = "", "", ""
    if has_classes:
        score, title = "knn_train_sample", _("kNN on the training sample")
        help = _("A fixed sample of training images, each voted on by the others.")
    elif any(tower_curves.FORTH in line for line in epochs):
        score, title = tower_curves.FORTH, _("Recall@1, image → caption")
        help = _(tower_curves.OF_SAMPLE)
    speed = float(np.median([x["images_per_s"] for x in metrics.latest]))
    columns = iter(st.columns(3))
    next(columns).metric(_("Loss"), f"{(epochs or metrics.latest)[-1]['loss']:.3f}")
    if score:
        share = next((line[score] for line in reversed(epochs) if score in line), None)  # not every epoch is scored
        next(columns).metric(title, f"{100 * share:.1f} %" if share is not None else "–", help=help)
    next(columns).metric(_("Images/s"), f"{speed:,.0f}")


def vote(run: Run, scored: list[tuple[int, float]]) -> None:
    """kNN over the epochs with the interval of each share, and what the intervals show."""
    epochs, n = [epoch for epoch, _share in scored], labeled_images(run)
    knn = {"kNN": (epochs, [100 * share for _epoch, share in scored])}
    figure = plots.curves(knn, "epoch", _("kNN on the training sample, %"))
    if ends := shares(scored, n):
        plots.band(figure, epochs, ends, "95 %", PALETTE[0])
    zoom = query_params.switch(st.toggle, _("Zoom to the figures"), name="zoom", help=_("Instead of 0 to 100 %."))
    plots.whole_range(figure, zoom)
    figure.update_layout(showlegend=False)
    st.plotly_chart(figure, key=f"knn-{run.name}", config=plots.SVG)
    if ends:
        st.caption(since(epochs, ends, n))


def shares(scored: list[tuple[int, float]], n: int) -> list[tuple[float, float]]:
    """The 95 % interval of each share of n images, in per cent; none where n is not known."""
    ends = [wilson(round(share * n), n) for _epoch, share in scored] if n else []
    return [(100 * low, 100 * high) for low, high in ends]


def since(epochs: list[int], ends: list[tuple[float, float]], n: int) -> str:
    """From which epoch on the intervals overlap the last one: no difference is shown from there."""
    low, high = ends[-1]
    first = len(ends) - 1
    while first and ends[first - 1][0] <= high and low <= ends[first - 1][1]:
        first -= 1
    of = _("The band is the 95 % interval of a share of {n} images, of this one seed.").format(n=f"{n:,}")
    if len(ends) == 1:
        return of
    template = _("{of} Accuracy has not changed significantly since epoch {epochs}.")
    if first == len(ends) - 1:
        template = _("{of} The interval of the last epoch does not overlap that of the epoch before.")
    return template.format(of=of, epochs=epochs[first])


def forming(run: Run) -> None:
    """The map of the fixed sample after the last epoch, or any earlier one."""
    if not (epochs := run.snapshots()):
        return
    epoch = epochs[-1]
    if run.status()["status"] != "running" and len(epochs) > 1:
        epoch = st.select_slider(_("Map after epoch"), epochs, value=epoch, key=f"epoch-{run.name}")
    forming_map.draw(run, epoch)
