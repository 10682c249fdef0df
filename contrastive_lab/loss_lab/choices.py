"""Choices of the Loss Lab: loss, pairing, encoder or file, number of images, and batch; and its stage, with a menu that
saves the picture."""

from collections.abc import Collection, Sequence
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from contrastive_core.base.registry import LossEntry
from contrastive_core.lab import lab_view
from contrastive_core.runs.run import Run
from contrastive_core.spaces import loaded_vectors, recorded_rows
from contrastive_core.spaces.space import Space
from contrastive_core.spaces.towers import are_tower_names
from contrastive_lab import cache, format, load_vectors, locale, query_params, state
from contrastive_lab.locale import N_, _
from contrastive_lab.loss_lab.lesson_panel import leave
from contrastive_lab.recordings import choose_step
from contrastive_lab.report import button

STAGES = {
    "star": N_("Star"),
    "matrix": N_("Matrix"),
    "curves": N_("Curves"),
    "circle": N_("Circle"),  # this and the next rest on no batch
    "playground": N_("Playground"),  # which the list of lessons leads to
}
STAGE = "loss_lab-on"  # the widget
LOSS_KEY, ROWS_KEY, FILE_KEY = "lab-loss", "lab-rows", "lab-file"  # of the widgets
EXPORT = "lab-export"  # of the session: what was asked for last, and how often
SIZES = (16, 32, 64, 128, 256, 512, 1024)
FIRST_SIZE = 64
VECTORS = N_(
    "The loss uses the output of the head (z) during training. Later tasks use the output of the encoder (h). An "
    "untrained encoder shows the start of training. An epoch encodes the same batch with the weights saved after it. "
    "Snapshots are z of a fixed set of training samples after an epoch, one view of each."
)
PAIRED = N_(
    "Views: two augmentations of each image, self-supervised. Classes: every view of a class, supervised. "
    "Queue: training images as queries, compared with their own keys and a queue of older keys. Bank: "
    "training images as queries, compared with a slot for each image. A quarter of the columns belong to the "
    "queries themselves."
)

PAIRED_ROWS = N_(
    "Rows with the same id are views of one sample. Classes: all rows of a class. Queue and bank: the first "
    "view is the query, the second its key."
)
ACROSS = N_(
    "Rows of one tower are the anchors, rows of the other the candidates. The loss of the batch is that of this "
    "direction; symmetric losses such as CLIP's take the mean of both."
)


def take_subject() -> None:
    """Choose the vectors, or the run, that another page shows."""
    asks = any(map(query_params.requested, ("rows", "lesson")))
    if (file := state.new_subject()) is None or asks:
        return
    leave()
    query_params.page_values().pop(ROWS_KEY, None)
    if file in loaded_vectors.loaded():
        query_params.choose(ROWS_KEY, "file", in_popover=True)
        query_params.choose(FILE_KEY, file)


def shown_source(run: Run) -> tuple[str, str | None]:
    """Return the source that `choose_batch` will select, and the key of its vectors if it is a file."""
    sources = _sources(run)
    source = query_params.current("rows", sources, next(iter(sources)), ROWS_KEY)
    loaded = list(loaded_vectors.loaded()) if source == "file" else []
    return source, query_params.current("file", loaded, loaded[0], FILE_KEY) if loaded else None


def loss_title(run: Run, losses: dict[str, LossEntry]) -> str:
    """Return the title of the loss that `choose_batch` will select, for the button above it."""
    has_towers = bool(_directions_of(run, *shown_source(run)))
    offered = offered_losses(losses, has_towers)
    return losses[query_params.current("loss", offered, _first_loss(run, offered, has_towers), LOSS_KEY)]["title"]


def choose_batch(
    run: Run, losses: dict[str, LossEntry], of_file: DeltaGenerator
) -> tuple[str, str, lab_view.BatchRequest | None]:
    """Draw the choices; return loss, pairing or direction, and batch. The batch is None until a file of vectors is
    opened in `of_file`."""
    of_loss, of_pairing = st.container(), st.container()
    sources = _sources(run)
    source = query_params.one_of(st.selectbox, _("Vectors from"), sources, name="rows", key=ROWS_KEY, help=VECTORS)
    paired = "classes" if source == "file" or source.startswith(lab_view.SNAPSHOT) else lab_view.default_pairing(run)
    are_rows = source == "file" or run.is_recording
    if source == lab_view.STEP:
        source = f"{lab_view.STEP}{choose_step(run, 'step', recorded_rows.steps(run))}"
    with of_file:
        file = _choose_vectors() if source == "file" else None
    directions = _directions_of(run, source, file)
    if directions and (others := [about["title"] for about in losses.values() if not about["across"]]):
        text = _("Not for two towers: {titles}. These losses compare the dimensions of two views of one sample.")
        st.caption(format.plain(text.format(titles=", ".join(others))))
    offered = offered_losses(losses, bool(directions))
    titles = {name: about["title"] for name, about in offered.items()}
    first = _first_loss(run, offered, bool(directions))
    loss = query_params.one_of(of_loss.selectbox, _("Loss"), titles, name="loss", key=LOSS_KEY, default=first)
    label, columns = _("Images (views)"), _("Candidates: columns of the matrix.")
    other = _("Change the number to draw different images and augmentations.")
    shown, help = lab_view.PAIRINGS, PAIRED
    if are_rows:
        label, other = _("Rows"), _("Change the number to draw different rows.")
        shown, help = lab_view.FILE_PAIRINGS, PAIRED_ROWS
    if directions:
        label, other = _("Rows of a tower, at most"), _("Change the number to draw different rows.")
        columns = _("A query comes with its answers and given negatives, so there may be fewer queries than documents.")
        box, arrow = of_pairing.selectbox, _("Anchors → candidates")
        pairing = query_params.one_of(box, arrow, directions, name="direction", help=ACROSS)
    else:
        box, positives = of_pairing.selectbox, _("Positives are")
        usual = "classes" if (loss, paired) == ("sup_con", "views") else paired
        pairing = query_params.one_of(box, positives, shown, name="pairing", default=usual, help=help)
        if (loss, pairing) == ("sup_con", "views"):
            text = _("Without labels, SupCon equals NT-Xent. To use the labels, choose “{classes}”.")
            of_pairing.caption(text.format(classes=locale.text(shown["classes"])))
    size = query_params.one_of(st.selectbox, label, SIZES, name="size", default=FIRST_SIZE, help=columns)
    seed = query_params.number(st.number_input, _("Batch"), 0, 9999, name="batch", default=0, help=other)
    if source == "file" and file is None:
        return loss, pairing, None
    source = f"file:{file}" if source == "file" else source
    if directions:
        return loss, pairing, lab_view.BatchRequest(source, size, 1, seed)
    return loss, pairing, lab_view.request_of(source, pairing, size, seed)


def _directions_of(run: Run, source: str, file: str | None) -> dict[str, str]:
    """Return the directions between the towers of a source, by name; {} for rows of one tower or missing ones. file:
    the key of the chosen vectors, if any."""
    if source in lab_view.SOURCE:
        return lab_view.direction_names(lab_view.RUN_TOWERS)
    if source != "file":
        names = run.manifest.get("recording", {}).get("towers") if source.startswith(lab_view.STEP) else None
        return lab_view.direction_names((names[0], names[1])) if are_tower_names(names) else {}
    try:
        rows = cache.embedding(Space.of_vectors(file)) if file else None
    except ValueError:
        return {}
    towers = None if rows is None else cache.towers(rows)
    return {} if towers is None else lab_view.direction_names(towers.names)


def offered_losses(losses: dict[str, LossEntry], has_towers: bool) -> dict[str, LossEntry]:
    """Return the losses of the catalog that work on one tower, or between two."""
    return {name: about for name, about in losses.items() if about["across"] or not has_towers}


def _first_loss(run: Run, offered: dict[str, LossEntry], has_towers: bool) -> str:
    """Return the run's own loss if it is offered, else CLIP's for two towers, and NT-Xent."""
    if has_towers and run.config.get("method") != "clip" and not run.is_recording:
        return "info_nce"
    return str(run.config.get("loss")) if run.config.get("loss") in offered else "nt_xent"


def _sources(run: Run) -> dict[str, str]:
    """Return the sources of vectors: the data set and snapshots of a run, or the steps, snapshots and files of a
    recording."""
    if run.has_towers:
        return lab_view.SOURCE | lab_view.SOURCES | lab_view.snapshots_of(run)
    if not run.is_recording:
        return lab_view.SOURCES | lab_view.epochs_of(run) | lab_view.snapshots_of(run)
    steps = {lab_view.STEP: _("Vectors of a step")} if recorded_rows.steps(run) else {}
    return steps | lab_view.snapshots_of(run) | {"file": lab_view.SOURCES["file"]}


def _choose_vectors() -> str | None:
    """Return the key of loaded vectors, opened here, opened before, or named in the URL; None without any."""
    line, loaded, key = st.container(horizontal=True, vertical_alignment="bottom"), loaded_vectors.loaded(), None
    if (asked := query_params.requested("file")) and asked not in loaded:
        st.warning(_("The vectors in this link are no longer stored here. Open their file again."))
    with line:
        if loaded:
            titles = {key: f"{about['name']}: {about['rows']} × {about['width']}" for key, about in loaded.items()}
            key = query_params.one_of(st.selectbox, _("Vectors"), titles, name="file", key=FILE_KEY)
        else:
            st.info(_("No vectors have been opened yet."))
        load_vectors.opener(lambda opened: query_params.choose(FILE_KEY, opened))
    for text in filter(None, [loaded[key].get("said"), load_vectors.about_left_out(key)] if key else []):
        st.caption(format.plain(text))
    return key


# --- the stage, and its save menu ---


def offered_stages(shown: str = "", left_out: Collection[str] = ()) -> list[str]:
    """Return the stages to offer; the playground only while it is shown: the list of lessons leads to it."""
    return [name for name in STAGES if name not in left_out and name in (shown, *list(STAGES)[:-1])]


def choose_stage(offered: Sequence[str], first: str) -> str:
    """Draw the control for the stage and return it; a change leaves the lesson."""
    look: dict[str, Any] = {"format_func": STAGES.get, "label_visibility": "collapsed", "on_change": leave}
    return query_params.one_of(st.segmented_control, _("Show"), offered, name="on", default=first, **look)


def export(name: str = "") -> None:
    """Draw the menu that saves the picture, its numbers and, with a name, a report on that run or those vectors."""
    with st.popover(_("Export"), key="lab-export-menu"):
        for what in ("png", "csv"):
            request = {EXPORT: (what, asked_export()[1] + 1)}
            st.button(
                what.upper(),
                key=f"lab-export-{what}",
                on_click=st.session_state.update,
                args=(request,),
                width="stretch",
            )
        if name:
            button.offer([name])


def asked_export() -> tuple[str, int]:
    """Return the last request in the menu, and the number of requests."""
    asked: tuple[str, int] = st.session_state.get(EXPORT, ("", 0))
    return asked
