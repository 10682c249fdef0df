"""Which rows the Loss Lab compares: loss, pairing, encoder or file, how many, which batch."""

from __future__ import annotations

from typing import Any

import streamlit as st

from contrastive_core.embeddings import file_formats, kept_vectors
from contrastive_core.embeddings.open_vectors import open_upload
from contrastive_core.loss_lab.batch import SNAPSHOT, STEP, BatchRequest, snapshots_of
from contrastive_core.loss_lab.view import PAIRINGS, SOURCES
from contrastive_core.runs import Run, recorded
from contrastive_lab import format, query_params
from contrastive_lab.loss_lab.drawn import default_pairing, request_of
from contrastive_lab.recordings.place import choose_step

__all__ = ["choose_batch"]

SIZES = (16, 32, 64, 128, 256, 512, 1024)


def choose_batch(run: Run, losses: dict[str, Any]) -> tuple[str, str, BatchRequest | None]:
    """Loss, pairing and rows; no rows as long as no file of vectors has been opened."""
    a, b, c, d, e = st.columns([3, 3, 3, 2, 2])
    trained_with = run.config.get("loss")
    loss = query_params.one_of(
        a.selectbox, "Loss", losses, name="loss", key=f"lab-loss-{trained_with in losses}",
        default=trained_with if trained_with in losses else "nt_xent",
        format_func=lambda n: losses[n]["title"],
    )  # fmt: skip
    sources = SOURCES | snapshots_of(run)
    if run.is_recording:
        sources = of_recording(run)
    source = query_params.one_of(c.selectbox, "Rows from", sources, name="rows",
        key=f"lab-rows-{run.is_recording}", default=next(iter(sources)),
        format_func=lambda s: sources[s], help=(
        "Projection z is what the run's loss saw in training, backbone h what is used afterwards. "
        "An untrained encoder shows the start of training. Snapshots are the run's fixed sample of "
        "training images, one row of each, as it was after an epoch."
    ))  # fmt: skip
    if source == STEP:
        source = f"{STEP}{choose_step(st.select_slider, run, 'step', recorded.steps(run))}"
    single = source == "file" or source.startswith(SNAPSHOT)
    pairing = query_params.one_of(b.selectbox, "Positives are", PAIRINGS, name="pairing",
        default="classes" if single else default_pairing(run),
        format_func=lambda p: PAIRINGS[p], help=(
        "Views: two augmentations of each image, self-supervised. Classes: every view of a class, "
        "supervised. Queue: training images ask, against the key of each and a queue of older "
        "keys. Bank: training images ask, against a slot for each image. A quarter of the columns "
        "are the queries' own."
    ))  # fmt: skip
    size = query_params.one_of(d.selectbox, "Rows", SIZES, name="size", default=64,
                               help="Candidates: columns of the matrix.")  # fmt: skip
    seed = query_params.number(
        e.number_input, "Batch", 0, 9999, name="batch", default=0,
        help="Another number draws other images and other augmentations.",
    )  # fmt: skip
    if source == "file":
        file = choose_vectors()
        if file is None:
            return loss, pairing, None
        source = f"file:{file}"
    return loss, pairing, request_of(source, pairing, size, int(seed or 0))


def of_recording(run: Run) -> dict[str, str]:
    """What a recording has: rows of its steps, snapshots of its probe set; and files."""
    steps = {STEP: "Rows of a step"} if recorded.steps(run) else {}
    return steps | snapshots_of(run) | {"file": SOURCES["file"]}


def choose_vectors() -> str | None:
    """The key of loaded vectors: those that are opened here, were opened before, or stand in the
    address."""
    a, b = st.columns(2)
    upload = b.file_uploader(
        "Open a file", [e.removeprefix(".") for e in file_formats.ENDINGS], key="lab-upload",
        help="One row per sample; a column or array named label makes classes. Rows that share an "
        "id are views of one image. The file stays on this computer.",
    )  # fmt: skip
    if upload is not None and upload.file_id != st.session_state.get("lab-opened"):
        st.session_state["lab-opened"] = upload.file_id
        try:
            key = open_upload(upload.name, upload.getbuffer())
            query_params.choose("lab-file", key)
            if note := kept_vectors.loaded()[key]["note"]:
                b.warning(format.plain(note))
        except ValueError as error:
            b.warning(format.plain(error))
    loaded = kept_vectors.loaded()
    if not loaded:
        a.info("No vectors have been opened yet.")
        return None
    file_key = query_params.requested("file")
    if file_key and file_key not in loaded:
        a.warning("The vectors of this address are not kept here; open their file again.")
    key = query_params.one_of(
        a.selectbox, "Vectors", loaded, name="file", key="lab-file",
        format_func=lambda k: f"{loaded[k]['name']}: {loaded[k]['rows']} × {loaded[k]['width']}",
    )  # fmt: skip
    reasons = {"zero": "zero vectors, which have no direction", "not_finite": "not finite"}
    left_out = [f"{n} {reasons[why]}" for why, n in loaded[key]["left_out"].items()]
    if left_out:
        a.caption(f"Rows left out: {'; '.join(left_out)}.")
    return key
