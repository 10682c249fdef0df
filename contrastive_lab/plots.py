"""Records as Plotly figures. Torch-free; plotly is imported when the first figure is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["band", "curves", "histogram", "intervals", "matrix", "whole_range"]

WHOLE = (0.0, 100.0)  # of a share in per cent


def curves(
    series: Mapping[str, tuple[Sequence[float], Sequence[float]]], x: str, y: str, height: int = 280
) -> Any:
    """A Plotly line for each name: (xs, ys)."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for name, (xs, ys) in series.items():
        figure.add_scatter(
            x=list(xs), y=list(ys), name=name, mode="lines+markers" if len(xs) < 40 else "lines"
        )
    figure.update_layout(
        height=height, margin={"l": 10, "r": 10, "t": 10, "b": 10},
        xaxis_title=x, yaxis_title=y, legend={"orientation": "h", "y": 1.1},
    )  # fmt: skip
    return figure


def band(
    figure: Any, xs: Sequence[float], ends: Sequence[tuple[float, float]], name: str, color: str
) -> None:
    """An area between the two ends at each of xs, drawn behind the figure's lines."""
    low, high = [e[0] for e in ends], [e[1] for e in ends]
    figure.add_scatter(
        x=[*xs, *reversed(xs)], y=[*high, *reversed(low)], fill="toself", fillcolor=color,
        line={"width": 0}, opacity=0.25, mode="lines", name=name, hoverinfo="skip", zorder=-1,
    )  # fmt: skip


def intervals(
    figure: Any, ys: Sequence[float], ends: Sequence[tuple[float, float] | None], line: int = 0
) -> None:
    """Bars between the two ends about the points of a line; none where there are no ends."""
    both = [e or (y, y) for y, e in zip(ys, ends, strict=True)]
    figure.data[line].error_y = {
        "array": [high - y for y, (_, high) in zip(ys, both, strict=True)],
        "arrayminus": [y - low for y, (low, _) in zip(ys, both, strict=True)],
        "thickness": 1.5,
    }


def whole_range(figure: Any, zoom: bool) -> None:
    """From 0 to 100 %, unless one zooms to the figures."""
    if not zoom:
        figure.update_yaxes(range=list(WHOLE))


def histogram(values: Any, cut: float, x: str, y: str, bins: int, height: int = 260) -> Any:
    """How many values between 0 and 1 lie where, as Plotly bars; those above the cut in another
    color, with a line there. Counts on a logarithmic axis, so that few are seen beside many."""
    import numpy as np
    import plotly.graph_objects as go

    figure, edges, most = go.Figure(), np.linspace(0, 1, bins + 1), 1
    for name, part in (("below", values[values <= cut]), ("above", values[values > cut])):
        counts = np.histogram(part, edges)[0]
        most = max(most, int(counts.max()))
        figure.add_bar(
            x=(edges[:-1] + edges[1:]) / 2, y=counts, name=name, width=1 / bins,
            hovertemplate="%{x:.2f}: %{y} %{fullData.name} the cut-off<extra></extra>",
        )  # fmt: skip
    figure.add_vline(cut, line={"dash": "dash", "color": "#7C8794"}, annotation_text=f"{cut:.2f}")
    figure.update_yaxes(type="log", title=y, dtick=1, range=[-0.3, np.log10(most) + 0.2])
    figure.update_xaxes(range=[0, 1], title=x)
    figure.update_layout(
        height=height, barmode="stack", bargap=0, margin={"l": 10, "r": 10, "t": 20, "b": 10},
        legend={"orientation": "h", "y": 1.15},
    )  # fmt: skip
    return figure


def matrix(
    values: Any,
    names: Sequence[str],
    across: Sequence[str],
    reverse: bool = False,
    height: int = 300,
) -> Any:
    """A symmetric matrix (n, n) of shares as a Plotly heat map, each value written in its cell.

    Args: across: short names, below the columns; reverse: small values are the strong ones.
    """
    import plotly.graph_objects as go

    text = [["–" if v != v else f"{v:.2f}" for v in row] for row in values.tolist()]
    figure = go.Figure(
        go.Heatmap(
            z=values.tolist(), x=list(across), y=list(names), text=text, texttemplate="%{text}",
            colorscale="Blues", reversescale=reverse, zmin=0, zmax=1, showscale=False,
            hovertemplate="%{y} and %{x}: %{text}<extra></extra>",
        )
    )  # fmt: skip
    figure.update_yaxes(autorange="reversed", type="category")
    figure.update_xaxes(type="category")
    figure.update_layout(height=height, margin={"l": 10, "r": 10, "t": 10, "b": 10})
    return figure
