"""Records as text, tables and Plotly figures. Torch-free; plotly and pandas are imported late."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import Any

from contrastive_core.embeddings.embedding_set import EmbeddingSet
from contrastive_core.storage.tables import safe_cell

__all__ = [
    "csv_of",
    "curves",
    "figure_of",
    "interval_of",
    "plain",
    "score_table",
    "table_csv",
]

NAMES = {"h": "backbone h", "z": "projection z", "raw": "raw pixels", "random": "random encoder"}


def figure_of(score: dict[str, Any] | None) -> str:
    """A score as text: shares in per cent."""
    if not score or score.get("value") is None:
        return "–"
    value = float(score["value"])
    return f"{100 * value:.1f} %" if score.get("unit") == "share" else f"{value:.3g}"


def interval_of(score: dict[str, Any]) -> str:
    """A 95 % interval as text, or nothing."""
    found = score.get("interval")
    if not found:
        return ""
    low, high = (100 * v if score.get("unit") == "share" else v for v in found)
    return (
        f"95 %: {low:.1f} to {high:.1f}; "
        if score.get("unit") == "share"
        else (f"95 %: {low:.3g} to {high:.3g}; ")
    )


def score_table(record: dict[str, Any]) -> Any:
    """All scores of an evaluation, a row each, a column for each source."""
    import pandas as pd

    rows = []
    for name, score in record["scores"]["h"].items():
        row = {"score": score["title"]}
        for source, scores in record["scores"].items():
            row[NAMES.get(source, source)] = figure_of(scores.get(name))
        row["95 % interval of h"] = interval_of(score).removesuffix("; ").removeprefix("95 %: ")
        row["settings"] = ", ".join(
            f"{k} {v}"
            for k, v in (score.get("extras") or {}).items()
            if isinstance(v, (int, float, str))
        )[:80]
        rows.append(row)
    return pd.DataFrame(rows)


MARKUP = re.compile(r"([\\\\`*_{}\[\]()#+!|<>~:$&@.-])")


def plain(text: object) -> str:
    """Text that Markdown shows as it is: what a file, a name or an error says is no markup."""
    return MARKUP.sub(r"\\\1", str(text))


def csv_of(rows: EmbeddingSet, chosen: Iterable[int]) -> str:
    """Ids, labels and features of some rows as CSV."""
    out = io.StringIO()
    table = csv.writer(out)
    table.writerow(["id", "label", *(f"x{j}" for j in range(rows.width))])
    for i in chosen:
        label = "" if rows.labels is None else rows.class_name(int(rows.labels[i]))
        table.writerow([safe_cell(rows.ids[i]), safe_cell(label), *rows.features[i].tolist()])
    return out.getvalue()


def table_csv(rows: Sequence[dict[str, Any]]) -> str:
    """Rows of plain values as CSV."""
    out = io.StringIO()
    if rows:
        table = csv.DictWriter(out, list(rows[0]))
        table.writeheader()
        table.writerows({k: safe_cell("" if v is None else v) for k, v in r.items()} for r in rows)
    return out.getvalue()


def curves(
    series: dict[str, tuple[Sequence[float], Sequence[float]]], x: str, y: str, height: int = 280
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
