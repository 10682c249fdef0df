"""What the Loss Lab compares: loss, pairing, encoder or file, how many images, which batch."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from contrastive_core.records import loaded_vectors, recorded_rows
from contrastive_core.records.lab_towers import SOURCE
from contrastive_core.records.lab_view import (
    FILE_PAIRINGS,
    PAIRINGS,
    SNAPSHOT,
    SOURCES,
    STEP,
    BatchRequest,
    snapshots_of,
)
from contrastive_core.records.run import Run
from contrastive_lab import format, load_vectors, number_inputs, query_params
from contrastive_lab.locale import N_, _
from contrastive_lab.loss_lab import towers
from contrastive_lab.loss_setting import default_pairing, request_of
from contrastive_lab.recordings import choose_step

SIZES = (16, 32, 64, 128, 256, 512, 1024)
FIRST_SIZE = 64
VECTORS = N_(
    "The loss uses the output of the head (z) during training. Later tasks use the output of the encoder (h). An "
    "untrained encoder shows the start of training. Snapshots are z of a fixed sample of training images after an "
    "epoch, one view of each."
)
PAIRED = N_(
    "Views: two augmentations of each image, self-supervised. Classes: every view of a class, supervised. Queue: "
    "training images as queries, compared with their own keys and a queue of older keys. Bank: training images as "
    "queries, compared with a slot for each image. A quarter of the columns are the queries' own."
)

PAIRED_ROWS = N_(
    "An id that several rows share: they are views of one sample. Classes: every row of a class. Queue and bank: the "
    "first view is the query, the second its key."
)
ACROSS = N_(
    "Rows of one tower are the anchors, rows of the other the candidates. The loss of the batch is that of this "
    "direction; symmetric losses such as CLIP's take the mean of both."
)


def in_one_line(run: Run, losses: dict[str, Any]) -> str:
    """What is chosen, before the settings are drawn: they are folded under this line."""
    sources = _sources(run)
    source = query_params.current("rows", sources, next(iter(sources)), key_of_rows(run))
    directions = towers.current_directions(run, source)
    offered = towers.losses_across(losses) if directions else losses
    loss = query_params.current("loss", offered, *_first_loss(run, offered, bool(directions)))
    size = int(query_params.current("size", [*SIZES, *map(str, SIZES)], str(FIRST_SIZE)))  # type: ignore[list-item]
    if directions:
        how = query_params.current("direction", directions, next(iter(directions)))
        parts = [losses[loss]["title"], directions[how], _("at most {n} rows of each tower").format(n=size)]
        return format.plain(" · ".join(parts))
    pairing = query_params.current("pairing", PAIRINGS, _first_pairing(run, source))
    if source == "file":
        how = _(FILE_PAIRINGS[pairing])
        parts = [losses[loss]["title"], how[0].lower() + how[1:], _("at most {n} rows of a file").format(n=size)]
        return format.plain(" · ".join(parts))
    request = request_of(source, pairing, size, 0)
    names = FILE_PAIRINGS if run.is_recording else PAIRINGS
    template = _("{views} views of {images} images") if request.views > 1 else _("{images} images")
    template = _("{n} rows") if run.is_recording else template  # which need not be images
    many = template.format(views=request.views, images=request.images, n=size)
    if request.memory:
        many += _(" and a {memory}").format(memory=request.memory)
    what, how = _(sources[source]), _(names[pairing])
    parts = [losses[loss]["title"], how[0].lower() + how[1:], what[0].lower() + what[1:], many]
    return format.plain(" · ".join(parts))


def choose_batch(run: Run, losses: dict[str, Any]) -> tuple[str, str, BatchRequest | None]:
    """Loss, pairing or direction, and batch; no batch as long as no file of vectors has been opened."""
    row, below = st.container(), st.container()
    a, b, c, d, e = row.columns([3, 3, 3, 2, 2])
    sources, key = _sources(run), key_of_rows(run)
    source = query_params.one_of(
        c.selectbox, _("Vectors from"), sources, name="rows", key=key, format_func=sources.get, help=VECTORS
    )
    paired, are_rows = _first_pairing(run, source), source == "file" or run.is_recording
    with below:
        if source == STEP:
            source = f"{STEP}{choose_step(run, 'step', recorded_rows.steps(run))}"
        file = choose_vectors() if source == "file" else None
        if directions := towers.directions_of(run, source, file):
            st.caption(format.plain(towers.refused(losses)))
    offered = towers.losses_across(losses) if directions else losses
    titles = {name: about["title"] for name, about in offered.items()}
    first, key = _first_loss(run, offered, bool(directions))
    loss = query_params.one_of(
        a.selectbox, _("Loss"), titles, name="loss", key=key, default=first, format_func=titles.get
    )
    pairing = _choose_pairing(b, directions, paired, are_rows)
    size, seed = _choose_size(d, e, are_rows, bool(directions))
    if source == "file":
        if file is None:
            return loss, pairing, None
        source = f"file:{file}"
    if directions:
        return loss, pairing, towers.request_of_towers(source, size, seed)
    return loss, pairing, request_of(source, pairing, size, seed)


def _choose_pairing(place: Any, directions: Mapping[str, str], paired: str | None, are_rows: bool) -> str:
    """The direction between two towers, or what makes two rows positives."""
    box = place.selectbox
    if directions:
        label, name = _("Anchors → candidates"), "direction"
        return query_params.one_of(box, label, directions, name=name, format_func=directions.get, help=ACROSS)
    names, help = (FILE_PAIRINGS, PAIRED_ROWS) if are_rows else (PAIRINGS, PAIRED)
    label, name = _("Positives are"), "pairing"
    return query_params.one_of(box, label, PAIRINGS, name=name, default=paired, format_func=names.get, help=help)


def _choose_size(place: Any, beside: Any, are_rows: bool, has_towers: bool) -> tuple[int, int]:
    """How many rows, and which batch."""
    columns = _("Candidates: columns of the matrix.")
    other = _("Another number draws other images and other augmentations.")
    label = _("Images (views)")
    if are_rows:
        label, other = _("Rows"), _("Another number draws other rows.")
    if has_towers:
        label, columns = _("Rows of each tower"), _("At most so many, with all their partners.")
        other = _("Another number draws other rows.")
    size = query_params.one_of(place.selectbox, label, SIZES, name="size", default=FIRST_SIZE, help=columns)
    seed = number_inputs.number(beside.number_input, _("Batch"), 0, 9999, name="batch", default=0, help=other)
    return size, seed


def _sources(run: Run) -> dict[str, str]:
    """What a run's data set and snapshots give; of a recording its steps and snapshots, and files."""
    if run.has_towers:
        return SOURCE | SOURCES | snapshots_of(run)
    if not run.is_recording:
        return SOURCES | snapshots_of(run)
    steps = {STEP: _("Vectors of a step")} if recorded_rows.steps(run) else {}
    return steps | snapshots_of(run) | {"file": SOURCES["file"]}


def _first_loss(run: Run, losses: dict[str, Any], has_towers: bool = False) -> tuple[str, str]:
    """The loss that stands there at first, and the key of its widget."""
    trained_with = run.config.get("loss")
    key = f"lab-loss-{trained_with in losses}"
    if has_towers and run.config.get("method") != "clip" and not run.is_recording:
        return towers.FIRST_LOSS, key
    return str(trained_with) if trained_with in losses else "nt_xent", key


def _first_pairing(run: Run, source: str) -> str:
    return "classes" if source == "file" or source.startswith(SNAPSHOT) else default_pairing(run)


def key_of_rows(run: Run) -> str:
    return f"lab-rows-{run.is_recording}"


def choose_vectors() -> str | None:
    """The key of loaded vectors: those that are opened here, were opened before, or stand in the address."""
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
                st.selectbox, _("Vectors"), titles, name="file", key=towers.FILE_KEY, format_func=titles.get
            )
        else:
            st.info(_("No vectors have been opened yet."))
        load_vectors.opener(lambda opened: query_params.choose(towers.FILE_KEY, opened))
    for text in filter(None, [loaded[key].get("said"), load_vectors.about_left_out(key)] if key else []):
        st.caption(format.plain(text))
    return key
