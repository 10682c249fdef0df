"""Curves of a training: of two towers (recall, modality gap, temperature and bias), and monitors of a collapse."""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from contrastive_lab import figures as plots
from contrastive_lab.locale import N_, _
from contrastive_lab.setting_names import Marks, draw_marks, marks_of

FORTH = "recall_1_forth"
RECALL = {FORTH: N_("image → caption"), "recall_1_back": N_("caption → image")}
GAP = "modality_gap"
LEARNED = {"temperature": N_("Temperature τ"), "bias": N_("Bias")}  # by the method, if it has them
Line = Mapping[str, Any]  # of a run's metrics
NO_MARKS = marks_of([], [])
OF_SAMPLE = N_(
    "Computed on the fixed sample of training images and their captions. At gap 0, both towers share one region."
)
HELP = N_(
    "Deviation: standard deviation of each dimension of the unit rows z in a batch, times √d. 1 means evenly "
    "spread, 0 means one point. A random encoder starts near 0. Rank and correlation are computed on a fixed "
    "sample of training images."
)
DEVIATIONS = {
    "z_std": N_("mean over dimensions"),
    "z_std_least": N_("minimum over dimensions"),
    "text_z_std": N_("mean over dimensions, texts"),
    "z_scale": N_("mean over dimensions, rows not scaled"),
}
RANK = {"z_rank": N_("effective rank of z")}
SHARES = {
    "z_correlation": N_("mean |correlation| of two dimensions"),
    "key_distance": N_("distance to the momentum encoder"),
}


def figures(epochs: Sequence[Line], steps: Sequence[Line] = (), marks: Marks = NO_MARKS) -> dict[str, Any]:
    """Return figures of recall@1 in both directions, the modality gap, and learned values, by name; empty without two
    towers.
    Args: marks: of changed settings."""
    drawn = {}
    if scored := [line for line in epochs if line.get(GAP) is not None]:
        at = [line["epoch"] for line in scored]
        recall = {str(_(text)): (at, [100 * line[key] for line in scored]) for key, text in RECALL.items()}
        drawn["recall"] = plots.curves(recall, "epoch", _("Recall@1 on the training sample, %"))
        drawn["gap"] = _curve(scored, GAP, "epoch", _("Modality gap"))
        drawn["gap"].update_yaxes(rangemode="tozero")
    for key, title in LEARNED.items():
        if lines := [line for line in steps if line.get(key) is not None]:
            drawn[key] = _curve(lines, key, "step", _(title))
    for key, figure in drawn.items():
        draw_marks(figure, marks["step" if key in LEARNED else "epoch"])
    return drawn


def _curve(lines: Sequence[Line], key: str, x: str, title: str) -> Any:
    figure = plots.curves({key: ([line[x] for line in lines], [line[key] for line in lines])}, x, title)
    figure.update_layout(showlegend=False)
    return figure


def draw(name: str, epochs: Sequence[Line]) -> None:
    """Draw the figures over the epochs side by side if the run has two towers. Args: name: of the run."""
    drawn = figures(epochs)
    for column, (key, figure) in zip(st.columns(2) if drawn else (), drawn.items(), strict=False):
        column.plotly_chart(figure, key=f"{key}-{name}", config=plots.SVG)
    if drawn:
        st.caption(_(OF_SAMPLE))


def draw_collapse(name: str, steps: Sequence[Line], epochs: Sequence[Line], marks: Marks = NO_MARKS) -> None:
    """Draw the collapse monitors. Args: name: of the run."""
    if not any("z_std" in line for line in steps):
        st.caption(_("This run has not recorded any collapse monitors."))
        return
    st.caption(_(HELP))
    left, middle, right = st.columns(3)
    with left:
        _figure(f"deviation-{name}", DEVIATIONS, steps, "step", _("Deviation"), marks)
    with middle:
        _figure(f"rank-{name}", RANK, epochs, "epoch", _("Effective rank"), marks)
    with right:
        _figure(f"shares-{name}", SHARES, epochs, "epoch", _("Correlation and distance"), marks)


def _figure(key: str, names: dict[str, str], lines: Sequence[Line], x: str, y: str, marks: Marks) -> None:
    series = {}
    for name, text in names.items():
        if known := [line for line in lines if line.get(name) is not None]:
            series[str(_(text))] = ([line[x] for line in known], [line[name] for line in known])
    if series:
        figure = plots.curves(series, x, y)
        figure.update_yaxes(rangemode="tozero")
        draw_marks(figure, marks[x])
        st.plotly_chart(figure, key=key, config=plots.SVG)
