"""Plotly figures from records. Plotly is imported when the first figure is drawn."""

from collections.abc import Mapping, Sequence
from typing import Any

from contrastive_lab import locale

MARGIN = {"l": 10, "r": 10, "t": 10, "b": 10}  # pixels
NO_BAR = {"displayModeBar": False}  # of a chart with its own button for files
SVG = {  # of a chart whose only button saves it
    "displaylogo": False,
    "modeBarButtons": [["toImage"]],
    "toImageButtonOptions": {"format": "svg"},
}


def curves(series: Mapping[str, tuple[Sequence[float], Sequence[float]]], x: str, y: str, height: int = 280) -> Any:
    """Return a figure with a line for each name: (xs, ys). Args: x, y: titles of the axes, which are translated."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for name, (xs, ys) in series.items():
        figure.add_scatter(x=list(xs), y=list(ys), name=name, mode="lines+markers" if len(xs) < 40 else "lines")
    legend = {"orientation": "h", "y": 1.02, "yanchor": "bottom"}  # its rows grow upwards, off the curves
    figure.update_layout(
        height=height, margin=MARGIN, xaxis_title=locale.text(x), yaxis_title=locale.text(y), legend=legend
    )
    return figure


def band(figure: Any, xs: Sequence[float], ends: Sequence[tuple[float, float]], name: str, color: str) -> None:
    """Add an area between the two ends at each of xs, behind the figure's lines."""
    outline = {"x": [*xs, *reversed(xs)], "y": [high for _, high in ends] + [low for low, _ in reversed(ends)]}
    look = {"fill": "toself", "fillcolor": color, "line": {"width": 0}, "opacity": 0.25, "mode": "lines", "zorder": -1}
    figure.add_scatter(**outline, **look, name=name, hoverinfo="skip")


def matrix(values: Any, names: Sequence[str], across: Sequence[str], reverse: bool = False) -> Any:
    """Return a heat map of a symmetric matrix (n, n) of shares, with values in the cells. Args: across: short names
    below the columns; reverse: small values get the strong color."""
    import plotly.graph_objects as go

    text = [["–" if v != v else f"{v:.2f}" for v in row] for row in values.tolist()]
    look = {"colorscale": "Blues", "reversescale": reverse, "zmin": 0, "zmax": 1, "showscale": False}
    cells = {"text": text, "texttemplate": "%{text}", "hovertemplate": "%{y} and %{x}: %{text}<extra></extra>"}
    figure = go.Figure(go.Heatmap(z=values.tolist(), x=list(across), y=list(names), **cells, **look))
    figure.update_yaxes(autorange="reversed", type="category")
    figure.update_xaxes(type="category")
    figure.update_layout(height=300, margin=MARGIN)
    return figure
