"""Curves of a training with two towers: recall and modality gap by epoch, temperature and bias by step."""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from contrastive_lab import plots
from contrastive_lab.locale import N_, _

FORTH = "recall_1_forth"
RECALL = {FORTH: N_("image → caption"), "recall_1_back": N_("caption → image")}
GAP = "modality_gap"
LEARNED = {"temperature": N_("Temperature τ"), "bias": N_("Bias")}  # by the method, if it has them
Line = Mapping[str, Any]  # of a run's metrics
OF_SAMPLE = N_("Of the fixed sample of training images and their captions. Gap 0: both towers share one region.")


def figures(epochs: Sequence[Line], steps: Sequence[Line] = ()) -> dict[str, Any]:
    """Recall@1 in both directions, the modality gap, and what the method learns, by name; empty without two towers."""
    drawn = {}
    if scored := [line for line in epochs if line.get(GAP) is not None]:
        at = [line["epoch"] for line in scored]
        recall = {str(_(text)): (at, [100 * line[key] for line in scored]) for key, text in RECALL.items()}
        drawn["recall"] = plots.curves(recall, "epoch", _("Recall@1 on the training sample, %"))
        drawn["recall"].update_layout(legend={"y": -0.3, "yanchor": "top"})  # below the axis: recall rises to the top
        drawn["gap"] = _curve(scored, GAP, "epoch", _("Modality gap"))
        drawn["gap"].update_yaxes(rangemode="tozero")
    for key, title in LEARNED.items():
        if lines := [line for line in steps if line.get(key) is not None]:
            drawn[key] = _curve(lines, key, "step", _(title))
    return drawn


def _curve(lines: Sequence[Line], key: str, x: str, title: str) -> Any:
    figure = plots.curves({key: ([line[x] for line in lines], [line[key] for line in lines])}, x, title)
    figure.update_layout(showlegend=False)
    return figure


def draw(name: str, epochs: Sequence[Line]) -> None:
    """The figures over the epochs side by side, if the run has two towers. Args: name: of the run."""
    drawn = figures(epochs)
    for column, (key, figure) in zip(st.columns(2) if drawn else (), drawn.items(), strict=False):
        column.plotly_chart(figure, key=f"{key}-{name}", config=plots.SVG)
    if drawn:
        st.caption(_(OF_SAMPLE))
