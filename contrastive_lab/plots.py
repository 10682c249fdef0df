"""Records as Plotly figures. Torch-free; plotly is imported when the first figure is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["curves", "matrix"]


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
