"""Choices of the Loss Lab: loss, pairing, encoder or file, number of images, and batch; and its stage, with a menu that
saves the picture."""

from collections.abc import Collection, Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from contrastive_core.base.cards import LossEntry
from contrastive_core.lab.lab_view import (
    FILE_PAIRINGS,
    PAIRINGS,
    RUN_TOWERS,
    SNAPSHOT,
    SOURCE,
    SOURCES,
    STEP,
    BatchRequest,
    direction_names,
    epochs_of,
    snapshots_of,
)
from contrastive_core.runs.run import Run
from contrastive_core.spaces import loaded_vectors, recorded_rows
from contrastive_core.spaces.space import Space
from contrastive_core.spaces.towers import are_tower_names
from contrastive_lab import cache, format, load_vectors, query_params, state
from contrastive_lab.locale import N_, _
from contrastive_lab.loss_lab.lesson_panel import leave
from contrastive_lab.loss_setting import default_pairing, request_of
from contrastive_lab.recordings import choose_step
from contrastive_lab.report import button

PLAYGROUND = "playground"  # which the list of lessons leads to
STAGES = {"star": N_("Star"), "matrix": N_("Matrix"), "curves": N_("Curves")} | {
    "circle": N_("Circle"),
    PLAYGROUND: N_("Playground"),
}
OWN = ("circle", PLAYGROUND)  # which rest on no batch
STAGE = "loss_lab-on"  # the widget
EXPORT = "lab-export"  # of the session: what was asked for last, and how often
OF_CURVES = ("none", "scores", "grads", "curves", "formula", "pushes")  # panels of addresses before there were stages
SIZES = (16, 32, 64, 128, 256, 512, 1024)
FIRST_SIZE = 64
FIRST_ACROSS = "info_nce"  # CLIP's
FILE_KEY = "lab-file"  # of the widget that chooses loaded vectors
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
    for is_recording in (False, True):
        query_params.page_values().pop(key_of_rows(is_recording), None)
        if file in loaded_vectors.loaded():
            query_params.choose(key_of_rows(is_recording), "file", in_popover=True)
            query_params.choose(FILE_KEY, file)


def shown_source(run: Run) -> tuple[str, str | None]:
    """Return the source that `choose_batch` will select, and the key of its vectors if it is a file."""
    sources = _sources(run)
    source = query_params.current("rows", sources, next(iter(sources)), key_of_rows(run.is_recording))
    loaded = list(loaded_vectors.loaded()) if source == "file" else []
    return source, query_params.current("file", loaded, loaded[0], FILE_KEY) if loaded else None


def loss_title(run: Run, losses: dict[str, LossEntry]) -> str:
    """Return the title of the loss that `choose_batch` will select, for the button above it."""
    directions = directions_of(run, *shown_source(run))
    offered = losses_across(losses) if directions else losses
    return losses[query_params.current("loss", offered, *first_loss(run, offered, bool(directions)))]["title"]


def choose_batch(
    run: Run, losses: dict[str, LossEntry], of_file: DeltaGenerator
) -> tuple[str, str, BatchRequest | None]:
    """Draw the choices; return loss, pairing or direction, and batch. The batch is None until a file of vectors is
    opened in `of_file`."""
    of_loss, of_pairing = st.container(), st.container()
    sources, key = _sources(run), key_of_rows(run.is_recording)
    source = query_params.one_of(
        st.selectbox, _("Vectors from"), sources, name="rows", key=key, format_func=sources.get, help=VECTORS
    )
    paired = "classes" if source == "file" or source.startswith(SNAPSHOT) else default_pairing(run)
    are_rows = source == "file" or run.is_recording
    if source == STEP:
        source = f"{STEP}{choose_step(run, 'step', recorded_rows.steps(run))}"
    with of_file:
        file = choose_vectors() if source == "file" else None
    directions = directions_of(run, source, file)
    if directions and (titles := [about["title"] for about in losses.values() if not about["across"]]):
        text = _("Not for two towers: {titles}. These losses compare the dimensions of two views of one sample.")
        st.caption(format.plain(text.format(titles=", ".join(titles))))
    offered = losses_across(losses) if directions else losses
    names = {name: about["title"] for name, about in offered.items()}
    first, key = first_loss(run, offered, bool(directions))
    loss = query_params.one_of(
        of_loss.selectbox, _("Loss"), names, name="loss", key=key, default=first, format_func=names.get
    )
    if directions:
        box, label, shown = of_pairing.selectbox, _("Anchors → candidates"), directions
        pairing = query_params.one_of(box, label, shown, name="direction", format_func=shown.get, help=ACROSS)
    else:
        box, label = of_pairing.selectbox, _("Positives are")
        shown, help = (FILE_PAIRINGS, PAIRED_ROWS) if are_rows else (PAIRINGS, PAIRED)
        pairing = query_params.one_of(
            box, label, PAIRINGS, name="pairing", default=paired, format_func=shown.get, help=help
        )
    size, seed = _choose_size(are_rows, bool(directions))
    if source == "file":
        if file is None:
            return loss, pairing, None
        source = f"file:{file}"
    if directions:
        return loss, pairing, BatchRequest(source, size, 1, seed)
    return loss, pairing, request_of(source, pairing, size, seed)


def _choose_size(are_rows: bool, has_towers: bool) -> tuple[int, int]:
    """Let the user choose the number of rows and the batch; return both."""
    columns = _("Candidates: columns of the matrix.")
    other = _("Change the number to draw different images and augmentations.")
    label = _("Images (views)")
    if are_rows:
        label, other = _("Rows"), _("Change the number to draw different rows.")
    if has_towers:
        label, columns = (
            _("Rows of a tower, at most"),
            _("A query comes with its answers and given negatives, so there may be fewer queries than documents."),
        )
        other = _("Change the number to draw different rows.")
    size = query_params.one_of(st.selectbox, label, SIZES, name="size", default=FIRST_SIZE, help=columns)
    seed = query_params.number(st.number_input, _("Batch"), 0, 9999, name="batch", default=0, help=other)
    return size, seed


def directions_of(run: Run, source: str, file: str | None) -> dict[str, str]:
    """Return the directions between the towers of a source, by name; {} for rows of one tower or missing ones. file:
    the key of the chosen vectors, if any."""
    if source in SOURCE:
        return direction_names(RUN_TOWERS)
    if source != "file":
        names = run.manifest.get("recording", {}).get("towers") if source.startswith(STEP) else None
        return direction_names((names[0], names[1])) if are_tower_names(names) else {}
    try:
        rows = cache.embedding(Space.of_vectors(file)) if file else None
    except ValueError:
        return {}
    towers = None if rows is None else cache.towers(rows)
    return {} if towers is None else direction_names(towers.names)


def losses_across(losses: dict[str, LossEntry]) -> dict[str, LossEntry]:
    """Return the losses of the catalog that work between two towers."""
    return {name: about for name, about in losses.items() if about["across"]}


def _sources(run: Run) -> dict[str, str]:
    """Return the sources of vectors: the data set and snapshots of a run, or the steps, snapshots and files of a
    recording."""
    if run.has_towers:
        return SOURCE | SOURCES | snapshots_of(run, are_all=True)
    if not run.is_recording:
        return SOURCES | epochs_of(run) | snapshots_of(run, are_all=True)
    steps = {STEP: _("Vectors of a step")} if recorded_rows.steps(run) else {}
    return steps | snapshots_of(run, are_all=True) | {"file": SOURCES["file"]}


def first_loss(run: Run, losses: dict[str, LossEntry], has_towers: bool = False) -> tuple[str, str]:
    """Return the default loss, and the key of its widget."""
    trained_with = run.config.get("loss")
    key = f"lab-loss-{trained_with in losses}"
    if has_towers and run.config.get("method") != "clip" and not run.is_recording:
        return FIRST_ACROSS, key
    return str(trained_with) if trained_with in losses else "nt_xent", key


def key_of_rows(is_recording: bool) -> str:
    return f"lab-rows-{is_recording}"


def choose_vectors() -> str | None:
    """Return the key of loaded vectors, opened here, opened before, or named in the URL; None without any."""
    line = st.container(horizontal=True, vertical_alignment="bottom")
    loaded = loaded_vectors.loaded()
    file_key = query_params.requested("file")
    if file_key and file_key not in loaded:
        st.warning(_("The vectors in this link are no longer stored here. Open their file again."))
    key = None
    with line:
        if loaded:
            titles = {key: f"{about['name']}: {about['rows']} × {about['width']}" for key, about in loaded.items()}
            key = query_params.one_of(
                st.selectbox, _("Vectors"), titles, name="file", key=FILE_KEY, format_func=titles.get
            )
        else:
            st.info(_("No vectors have been opened yet."))
        load_vectors.opener(lambda opened: query_params.choose(FILE_KEY, opened))
    for text in filter(None, [loaded[key].get("said"), load_vectors.about_left_out(key)] if key else []):
        st.caption(format.plain(text))
    return key


# --- the stage, and its save menu ---


def read_old_address() -> None:
    """Convert the old URL parameters `on=batch` with `view`, `panel` or `trade` into a stage."""
    if query_params.requested("on") in STAGES or query_params.requested("lesson"):
        return
    panel, has_trade = query_params.take("panel"), query_params.take("trade") == "yes"
    if panel in OF_CURVES[1:5] or has_trade:
        query_params.choose(STAGE, "curves")
    elif panel in (*OF_CURVES, "two") or any(map(query_params.requested, ("view", "order", "masks"))):
        query_params.choose(STAGE, "matrix")
        if panel == "two":
            query_params.ask({"second": "same"})


def without_batch() -> str:
    """Return the stage if it needs no batch, before its control is drawn; else ""."""
    shown = query_params.current("on", STAGES, "")
    return shown if shown in OWN else ""


def offered_stages(shown: str = "", left_out: Collection[str] = ()) -> list[str]:
    """Return the stages to offer; the playground only while it is shown: the list of lessons leads to it."""
    return [name for name in STAGES if name not in left_out and name in (shown, *list(STAGES)[:-1])]


def choose_stage(offered: Sequence[str], first: str) -> str:
    """Draw the control for the stage and return it; a change leaves the lesson."""
    box, label, titles = st.segmented_control, _("Show"), STAGES.get
    return query_params.one_of(
        box, label, offered, name="on", default=first, format_func=titles, label_visibility="collapsed", on_change=leave
    )


def export(name: str = "") -> None:
    """Draw the menu that saves the picture, its numbers and, with a name, a report on that run or those vectors."""
    with st.popover(_("Export"), key="lab-export-menu"):
        for what in ("png", "csv"):
            st.button(what.upper(), key=f"lab-export-{what}", on_click=_ask, args=(what,), width="stretch")
        if name:
            button.offer([name])


def asked_export() -> tuple[str, int]:
    """Return the last request in the menu, and the number of requests."""
    asked: tuple[str, int] = st.session_state.get(EXPORT, ("", 0))
    return asked


def _ask(what: str) -> None:
    st.session_state[EXPORT] = (what, asked_export()[1] + 1)
