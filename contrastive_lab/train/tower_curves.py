"""Curves of a training with two towers: recall and modality gap by epoch, temperature and bias by step."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from contrastive_lab import plots
from contrastive_lab.locale import N_, _

RECALL = {"recall_1_forth": N_("image → caption"), "recall_1_back": N_("caption → image")}
GAP = "modality_gap"
LEARNED = {"temperature": N_("Temperature τ"), "bias": N_("Bias")}  # by the method, if it has them
OF_SAMPLE = N_("Of the fixed sample of training images and their captions. Gap 0: both towers share one region.")


def over_epochs(name: str, epochs: Sequence[dict[str, Any]]) -> bool:
    """Recall@1 in both directions and the modality gap. Returns whether the run has them. Args: name: of the run."""
    scored = [line for line in epochs if line.get(GAP) is not None]
    if not scored:
        return False
    at = [line["epoch"] for line in scored]
    recall = {str(_(text)): (at, [100 * line[key] for line in scored]) for key, text in RECALL.items()}
    left, right = st.columns(2)
    with left:
        figure = plots.curves(recall, "epoch", _("Recall@1 on the training sample, %"))
        st.plotly_chart(figure, key=f"recall-{name}", config=plots.SVG)
    with right:
        figure = plots.curves({"gap": (at, [line[GAP] for line in scored])}, "epoch", _("Modality gap"))
        figure.update_yaxes(rangemode="tozero")
        figure.update_layout(showlegend=False)
        st.plotly_chart(figure, key=f"gap-{name}", config=plots.SVG)
    st.caption(_(OF_SAMPLE))
    return True


def learned(name: str, steps: Sequence[dict[str, Any]]) -> None:
    """The trace of each value that the method learns."""
    traces = {key: [line for line in steps if line.get(key) is not None] for key in LEARNED}
    shown = [key for key, lines in traces.items() if lines]
    for column, key in zip(st.columns(2) if shown else (), shown, strict=False):
        xs, ys = ([line[what] for line in traces[key]] for what in ("step", key))
        figure = plots.curves({key: (xs, ys)}, "step", _(LEARNED[key]), height=200)
        figure.update_layout(showlegend=False)
        column.plotly_chart(figure, key=f"{key}-{name}", config=plots.SVG)
