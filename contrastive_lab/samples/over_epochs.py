"""The loss of samples over a run's snapshots: of one, and which were learned late or forgotten."""

import numpy as np
import streamlit as st

from contrastive_core.engine import questions
from contrastive_core.records.run import Run
from contrastive_core.records.sample_request import SampleRequest
from contrastive_core.records.sample_table import SampleTable
from contrastive_lab import cache, figures, format, plots, query_params
from contrastive_lab.locale import N_, _, message
from contrastive_lab.progress import follow
from contrastive_lab.samples.across_runs import ranks
from contrastive_lab.samples.current_sample import go_to, open_on_findings
from contrastive_lab.samples.table_picker import Pictures


def of_one(request: SampleRequest, table: SampleTable, rows: np.ndarray, row: int, names: np.ndarray) -> None:
    """One sample's loss beside the mean, or a way to one that snapshots follow; names: (n) the rows' on the page."""
    history = losses_over_time(request, len(table))
    if history is None:
        return
    where, about = places(table, history), covered(table, history)
    if row in where:
        curves(request, table, history, [row])
        st.caption(about)
        return
    st.info(_("The run's snapshots do not follow this sample. {covered}").format(covered=about))
    at = int(np.flatnonzero(rows == row)[0]) if row in rows else -1
    other = next((int(r) for r in np.roll(rows, -at - 1) if int(r) in where), None)
    if other is None:
        st.caption(_("The filter leaves no sample of this list. Clear the filter, or see Over time above."))
        return
    label = _("Go to the next of this list that they follow: {names}").format(names=format.plain(names[other]))
    if st.button(label, icon=":material/arrow_forward:"):
        go_to(str(names[other]))
        st.rerun()


def covered(table: SampleTable, history: dict[str, np.ndarray]) -> str:
    """How many samples the snapshots follow, and when they were taken."""
    epochs = history["epochs"].tolist()
    few = _("{first} to {last}").format(first=epochs[0], last=epochs[-1])
    when = few if len(epochs) > 8 else ", ".join(map(str, epochs))
    text = _(
        "{followed} of {total} samples are followed, at {unit}s {when}. Their losses use only these samples, paired "
        "by class."
    )
    followed, total = f"{len(places(table, history)):,}", f"{len(table):,}"
    return text.format(followed=followed, total=total, unit=_unit(history), when=when)


def curves(request: SampleRequest, table: SampleTable, history: dict[str, np.ndarray], rows: list[int]) -> None:
    """Losses of rows of the table over the snapshots, beside the mean of all that they follow."""
    every, epochs, where = history["loss"], history["epochs"].tolist(), places(table, history)
    finite = every[:, np.isfinite(every).all(0)]
    series = {N_("mean of all"): (epochs, finite.mean(1).tolist())} if finite.size else {}
    for row in rows:
        name = f"{table.columns['id'][row]} ({table.columns['label'][row]})"
        series[name] = (epochs, every[:, where[row]].tolist())
    figure = plots.curves(series, _unit(history), _("{loss} by class").format(loss=request.loss))
    figures.draw(figure, "loss-by-class", "loss-by-class")


def of_all(request: SampleRequest, table: SampleTable) -> None:
    """Which samples were learned late, or forgotten."""
    history = losses_over_time(request, len(table))
    if history is None:
        return
    st.caption(covered(table, history))
    where = {row: q for row, q in places(table, history).items() if np.isfinite(history["loss"][:, q]).all()}
    if not where:
        st.info(_("The loss is undefined: no selected sample has another sample of its class."))
        return
    high = np.stack([ranks(v[[*where.values()]]) for v in history["loss"]])  # (epochs, r)
    kinds = {
        N_("Hard from first to last"): high.min(0),
        N_("Learned late: hard on average, easy at the end"): high.mean(0) - high[-1],
        N_("Forgotten: easy at some epoch, hard at the end"): high[-1] - high.min(0),
    }
    kind = query_params.one_of(st.segmented_control, _("Which"), kinds, name="learned")
    order = np.array([*where])[np.argsort(-kinds[kind], kind="stable")].tolist()
    curves(request, table, history, order[:5])
    pictures = Pictures(request)
    for column, row in zip(st.columns(10), order, strict=False):
        sample = str(table.columns["id"][row])
        pictures.show(column, sample, str(table.columns["label"][row]))
        if column.button(_("Open"), key=f"time-{cache.digest(sample)}"):
            open_on_findings(sample)
            st.rerun()


def losses_over_time(request: SampleRequest, rows: int) -> dict[str, np.ndarray] | None:
    """What snapshots say; None, with a sentence, where they say nothing. Args: rows: of the table."""
    run = _followed_run(request)
    if run is None or not run.snapshots():
        st.info(_("Losses over time need snapshots, and this run has none."))
        return None
    try:
        history = cache.snapshot_losses(str(request.path("snapshots")))
    except LookupError:
        task, label = questions.samples(request, rows), message("The losses over the snapshots")
        if task.is_running():
            follow(task, label, may_stop=True)
            return None
        st.info(_("The losses over this run's snapshots have not been made."))
        if st.button(_("Make them"), type="primary"):
            task.start(label=label)
            st.rerun()
        return None
    if "why" in history:
        st.info(format.plain(_("No losses over time: {why}.").format(why=history["why"])))
        return None
    return history


def followed(request: SampleRequest, table: SampleTable) -> np.ndarray | None:
    """Which rows (n) bool the snapshots follow; None where that is all, none, or not known."""
    if _followed_run(request) is None:
        return None
    try:
        history = cache.snapshot_losses(str(request.path("snapshots")))
    except LookupError:
        return None
    mask = np.isin(np.arange(len(table)), list(places(table, history)))
    return mask if mask.any() and not mask.all() else None


def places(table: SampleTable, history: dict[str, np.ndarray]) -> dict[int, int]:
    """Where rows of the table stand among the snapshots' samples. The index counts the training set as the run saw it,
    which is what the table lists; the samples of a recording's probe set are found by their ids."""
    if "ids" in history:
        rows = ((table.row(str(name)), q) for q, name in enumerate(history["ids"]))
        return {row: q for row, q in rows if row is not None}
    return {int(i): q for q, i in enumerate(history.get("index", ())) if i < len(table)}


def _followed_run(request: SampleRequest) -> Run | None:
    """Whose snapshots follow these samples: the run's, or the recording's; None: nobody's."""
    if place := request.rows.recorded:
        return place.run
    return request.run if request.split == "train" else None


def _unit(history: dict[str, np.ndarray]) -> str:
    return "step" if "ids" in history else "epoch"
