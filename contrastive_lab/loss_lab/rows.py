"""Which rows the Loss Lab compares: loss, pairing, encoder or file, how many, which batch."""

from __future__ import annotations

from typing import Any

import streamlit as st

from contrastive_core.embeddings import file_formats, ref
from contrastive_core.embeddings.open_vectors import open_upload
from contrastive_core.loss_lab.batch import SNAPSHOT, snapshots_of
from contrastive_core.loss_lab.view import PAIRINGS, SOURCES
from contrastive_core.runs import Run
from contrastive_lab import format
from contrastive_lab.query_params import Address

__all__ = ["choices", "vectors"]

SIZES = (16, 32, 64, 128, 256, 512, 1024)


def choices(run: Run, losses: dict[str, Any], address: Address) -> tuple[str, str, str, int, int]:
    """Loss, pairing, source of the rows, their number and the batch's seed."""
    default = run.config.get("loss") if run.config.get("loss") in losses else "nt_xent"
    a, b, c, d, e = st.columns([3, 3, 3, 2, 2])

    def pick(
        column: Any, label: str, known: dict[str, str], name: str, first: str, **more: Any
    ) -> str:
        at = list(known).index(address.text(name, first, known))
        return str(column.selectbox(
            label, list(known), at, format_func=lambda n: known[n], key=f"lab-{name}", **more
        ))  # fmt: skip

    titles = {n: about["title"] for n, about in losses.items()}
    loss = pick(a, "Loss", titles, "loss", str(default))
    source = pick(c, "Rows from", SOURCES | snapshots_of(run), "rows", "z", help=(
        "Projection z is what the run's loss saw in training, backbone h what is used afterwards. "
        "An untrained encoder shows the start of training. Snapshots are the run's fixed sample of "
        "training images, one row of each, as it was after an epoch."
    ))  # fmt: skip
    single = source == "file" or source.startswith(SNAPSHOT)
    paired = "classes" if single else default_pairing(run)
    pairing = pick(b, "Positives are", PAIRINGS, "pairing", paired, help=(
        "Views: two augmentations of each image, self-supervised. Classes: every view of a class, "
        "supervised. Queue: training images ask, against the key of each and a queue of older "
        "keys. Bank: training images ask, against a slot for each image. A quarter of the columns "
        "are the queries' own."
    ))  # fmt: skip
    sizes = {str(n): str(n) for n in SIZES}
    size = int(pick(d, "Rows", sizes, "size", "64", help="Candidates: columns of the matrix."))
    seed = e.number_input(
        "Batch", 0, 9999, int(address.number("batch", 0, 0, 9999)), key="lab-seed",
        help="Another number draws other images and other augmentations.",
    )  # fmt: skip
    return loss, pairing, source, size, int(seed or 0)


def default_pairing(run: Run) -> str:
    method = run.config.get("method")
    return {
        "sup_con": "classes", "metric": "classes", "moco_v1": "queue", "moco_v2": "queue",
        "inst_disc": "bank",
    }.get(str(method), "views")  # fmt: skip


def vectors(address: Address) -> str | None:
    """The key of loaded vectors: those that are opened here, were opened before, or stand in the
    address."""
    a, b = st.columns(2)
    given = b.file_uploader(
        "Open a file", [e.removeprefix(".") for e in file_formats.ENDINGS], key="lab-upload",
        help="One row per sample; a column or array named label makes classes. Rows that share an "
        "id are views of one image. The file stays on this computer.",
    )  # fmt: skip
    if given is not None and given.file_id != st.session_state.get("lab-opened"):
        st.session_state["lab-opened"] = given.file_id
        try:
            key = st.session_state["lab-file"] = open_upload(given.name, given.getbuffer())
            if told := ref.loaded()[key]["told"]:
                b.warning(format.plain(told))
        except ValueError as error:
            b.warning(format.plain(error))
    known = ref.loaded()
    if not known:
        a.info("No vectors have been opened yet.")
        return None
    wanted = address.text("file", "")
    if wanted and wanted not in known:
        a.warning("The vectors of this address are not kept here; open their file again.")
    key = str(a.selectbox(
        "Vectors", list(known), list(known).index(wanted) if wanted in known else 0,
        format_func=lambda k: f"{known[k]['name']}: {known[k]['rows']} × {known[k]['width']}",
        key="lab-file",
    ))  # fmt: skip
    told = {"zero": "zero vectors, which have no direction", "not_finite": "not finite"}
    left = [f"{n} {told[why]}" for why, n in known[key]["left_out"].items()]
    if left:
        a.caption(f"Rows left out: {'; '.join(left)}.")
    return key
