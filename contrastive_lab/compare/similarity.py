"""How alike spaces are, and the snapshots of one run."""

from collections.abc import Sequence

import numpy as np
import streamlit as st

from contrastive_core.records.comparison import Comparison
from contrastive_core.records.embedding_ref import EmbeddingRef
from contrastive_core.records.score import recall_text
from contrastive_lab import cache, figures, format, plots, query_params
from contrastive_lab.locale import N_, _, message
from contrastive_lab.progress import answer_or_wait

MATRIX = 280  # pixels of a matrix; below each other where there is no room beside each other


def alike(spaces: list[EmbeddingRef], comparison: Comparison) -> None:
    """Matrices between the runs, and between the snapshots of one of them."""
    numbers = [str(q) for q in range(1, len(comparison.names) + 1)]
    legend = (f"**{q}** {format.plain(n)}" for q, n in zip(numbers, comparison.names, strict=True))
    st.markdown(" · ".join(legend))
    between = {"cka": comparison.cka, "overlap": comparison.overlap, "procrustes": comparison.procrustes}
    matrices(numbers, between, comparison.k, full=comparison.names)
    if note := recall_text(comparison.recall):
        st.caption(_("Shared neighbors are of {note}.").format(note=note))
    runs = {run.name: (run, s.layer) for s in spaces if (run := s.run) and len(run.snapshots()) > 1}
    if not runs:
        return
    st.subheader(_("Between the snapshots of one run"))
    name = query_params.one_of(st.selectbox, _("Run"), runs, name="snapshots")
    run, layer = runs[name]
    values = {"run": name, "layer": layer, "epochs": run.snapshots(), "weights": run.weights_hash()}
    if result := answer_or_wait("snapshots", values, message("Comparing the snapshots")):
        st.caption(_("Rows and columns are epochs."))
        matrices([str(e) for e in result.meta["epochs"]], result.arrays, result.meta["k"], name)


READINGS = {
    "cka": (N_("Linear CKA (debiased)"), N_("1: the same up to turning and scaling, 0: unrelated.")),
    "overlap": (N_("Shared neighbors"), N_("Share of the {k} nearest neighbors that two spaces have in common.")),
    "procrustes": (N_("Procrustes distance"), N_("0: one can be turned into the other, 1: not at all.")),
}


def matrices(names: list[str], values: dict[str, np.ndarray], k: int, of: str = "", full: Sequence[str] = ()) -> None:
    """Matrices beside each other. Args: full: longer names, for a figure that is saved."""
    row = st.container(horizontal=True)
    for key, (title, reading) in READINGS.items():
        with row.container(width=MATRIX, gap="xsmall"):
            st.markdown(f"**{_(title)}**")
            figure = plots.matrix(values[key], names, names, reverse=key == "procrustes")
            named = plots.matrix(values[key], full, full, reverse=key == "procrustes") if full else None
            figures.draw(figure, key, f"{key}-{cache.digest(of)}", named)
            st.caption(_(reading).format(k=k))
