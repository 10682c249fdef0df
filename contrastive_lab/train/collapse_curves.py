"""Curves that show a collapse, drawn on request: deviations by step, rank and correlations of dimensions by epoch."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from contrastive_lab import plots, query_params
from contrastive_lab.locale import N_, _

HELP = N_(
    "Deviation: of each dimension of unit rows z in a batch, times √d; 1 is evenly spread, 0 is one point. A random "
    "encoder starts near 0. Rank and correlation are those of a fixed sample of training images."
)
DEVIATIONS = {
    "z_std": N_("mean of dimensions"),
    "z_std_least": N_("least of dimensions"),
    "text_z_std": N_("mean of dimensions, texts"),
    "z_scale": N_("mean of dimensions, rows not scaled"),
}
RANK = {"z_rank": N_("effective rank of z")}
SHARES = {
    "z_correlation": N_("mean |correlation| of two dimensions"),
    "key_distance": N_("distance to the momentum encoder"),
}


def draw(name: str, steps: Sequence[dict[str, Any]], epochs: Sequence[dict[str, Any]]) -> None:
    """Nothing for a run that has not recorded them. Args: name: of the run."""
    if not any("z_std" in line for line in steps):
        return
    if not query_params.switch(st.toggle, _("Collapse monitors"), name="monitors", help=HELP):
        return
    left, middle, right = st.columns(3)
    with left:
        _figure(f"deviation-{name}", DEVIATIONS, steps, "step", _("Deviation"))
    with middle:
        _figure(f"rank-{name}", RANK, epochs, "epoch", _("Effective rank"))
    with right:
        _figure(f"shares-{name}", SHARES, epochs, "epoch", _("Correlation and distance"))


def _figure(key: str, names: dict[str, str], lines: Sequence[dict[str, Any]], x: str, y: str) -> None:
    series = {}
    for name, text in names.items():
        if known := [line for line in lines if line.get(name) is not None]:
            series[str(_(text))] = ([line[x] for line in known], [line[name] for line in known])
    if series:
        figure = plots.curves(series, x, y)
        figure.update_yaxes(rangemode="tozero")
        figure.update_layout(legend={"y": 1.02, "yanchor": "bottom"})  # two rows grow upwards, off the curves
        st.plotly_chart(figure, key=key, config=plots.SVG)
