"""A sweep as the papers draw theirs: a table, curves, or a matrix with row means. Torch-free.

Rows are those of `sweeping.status`, done or not: what is missing stays empty. Several seeds of a
cell become their mean, with the standard deviation beside it. Plotly is imported late.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

from contrastive_core.sweeps.spec import Axis, Sweep

__all__ = ["ACCURACIES", "LABELS", "cells_of", "draw", "table"]

ACCURACIES = {  # which figure of a row "accuracy" is
    "knn_train_sample": "kNN on the training sample, %",
    "linear_probe test": "linear probe on test, %",
    "knn test": "kNN on test, %",
}
LABELS = {
    "uniformity": "uniformity, nats (lower: more spread)",
    "alignment": "alignment (lower: closer pairs)",
    "rankme": "RankMe (effective dimensions)",
    "memory_mb": "memory, MB",
    "seconds": "training time, s",
    "loss": "loss",
}
UNITS = {"memory_mb": "{:.0f}", "seconds": "{:.0f}", "rankme": "{:.1f}"}

Row = dict[str, Any]


def cells_of(
    rows: Sequence[Row], names: Sequence[str], accuracy: str, measures: Sequence[str]
) -> list[Row]:
    """One row per combination of `names`: those, each measure as its mean over seeds (None where
    no seed is done), its deviation under `± measure`, and `seeds`."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(n) for n in names), []).append(row)
    cells = []
    for at, members in groups.items():
        finished = [m for m in members if m["status"] == "done"]
        cell: Row = {**dict(zip(names, at, strict=True)), "seeds": len(finished)}
        for measure in measures:
            values = [v for m in finished if (v := _value(m, measure, accuracy)) is not None]
            cell[measure] = statistics.fmean(values) if values else None
            cell[f"± {measure}"] = statistics.stdev(values) if len(values) > 1 else None
        cells.append(cell)
    return cells


def table(sweep: Sweep, rows: Sequence[Row], accuracy: str = "knn_train_sample") -> list[Row]:
    """The sweep as rows of text: where each cell stands, each measure with its deviation."""
    names, measures = [a.name for a in sweep.axes], sweep.draw.measures
    table_rows = []
    for cell in cells_of(rows, names, accuracy, measures):
        row: Row = {a.name: _stands(a, str(cell[a.name])) for a in sweep.axes}
        for measure in measures:
            row[label(measure, accuracy)] = _text(cell, measure)
        table_rows.append({**row, "seeds done": cell["seeds"]})
    return table_rows


def _stands(axis: Axis, value: str) -> str:
    """A value as in the paper's table: a tick where the axis is a thing that is there or not."""
    two = {label for label, _, _ in axis.values}
    if len(two) == 2 and axis.name in two:
        return "✓" if value == axis.name else ""
    return value


def draw(sweep: Sweep, rows: Sequence[Row], accuracy: str = "knn_train_sample") -> list[Any]:
    """Plotly figures in the sweep's form; none for a table, or before a cell is done."""
    if not any(_value(r, m, accuracy) is not None for r in rows for m in sweep.draw.measures):
        return []
    if sweep.form == "line":
        return [_line(sweep, rows, m, accuracy) for m in sweep.draw.measures]
    if sweep.form == "matrix":
        return [_matrix(sweep, rows, m, accuracy) for m in sweep.draw.measures]
    return []


def label(measure: str, accuracy: str) -> str:
    """A measure in words, with its unit."""
    return ACCURACIES[accuracy] if measure == "accuracy" else LABELS[measure]


def _value(row: Row, measure: str, accuracy: str) -> float | None:
    value = row.get(accuracy if measure == "accuracy" else measure)
    if row["status"] != "done" or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return 100 * float(value) if measure == "accuracy" else float(value)


def _text(cell: Row, measure: str) -> str:
    if cell[measure] is None:
        return ""
    form = UNITS.get(measure, "{:.1f}" if measure == "accuracy" else "{:.3g}")
    more = cell[f"± {measure}"]
    return form.format(cell[measure]) + (f" ± {form.format(more)}" if more is not None else "")


def _line(sweep: Sweep, rows: Sequence[Row], measure: str, accuracy: str) -> Any:
    """Curves over x, one for each series."""
    import plotly.graph_objects as go

    x, series = sweep.draw.x, sweep.draw.series
    names = [x, series] if series else [x]
    cells = [c for c in cells_of(rows, names, accuracy, [measure]) if c[measure] is not None]
    figure = go.Figure()
    for name in dict.fromkeys(c.get(series, "") for c in cells):
        mine = [c for c in cells if c.get(series, "") == name]
        mine.sort(key=lambda c: (_number(c[x]) is None, _number(c[x]) or 0.0))
        more = [c[f"± {measure}"] or 0.0 for c in mine]
        figure.add_scatter(
            x=[_or_text(c[x]) for c in mine],
            y=[c[measure] for c in mine],
            name=str(name),
            mode="lines+markers",
            error_y={"array": more, "visible": any(more)},
        )
    axis: Row = {"title": x}
    numbers = [_number(c[x]) for c in cells]
    if all(n is not None for n in numbers):
        positive = [n for n in numbers if n]
        wide = len(positive) == len(numbers) and max(positive) / min(positive) >= 8
        ticks = _apart(positive) if wide else None
        axis |= {"type": "log" if wide else "linear"}
        axis |= {"tickvals": ticks, "ticktext": [f"{t:g}" for t in ticks]} if ticks else {}
    figure.update_layout(
        height=360, margin={"l": 10, "r": 10, "t": 60 if series else 10, "b": 10}, xaxis=axis,
        yaxis_title=label(measure, accuracy), showlegend=bool(series),
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "title": {"text": series}},
    )  # fmt: skip
    return figure


def _matrix(sweep: Sweep, rows: Sequence[Row], measure: str, accuracy: str) -> Any:
    """Rows × columns with the value in each square, and the row's mean at the right."""
    import plotly.graph_objects as go

    down, across = sweep.draw.rows, sweep.draw.columns
    cells = cells_of(rows, [down, across], accuracy, [measure])
    names = list(dict.fromkeys(str(c[down]) for c in cells))
    others = list(dict.fromkeys(str(c[across]) for c in cells))
    held = {(str(c[down]), str(c[across])): c[measure] for c in cells}
    values = [[held.get((n, o)) for o in others] for n in names]
    means = [_mean(row) for row in values]
    z = [[*row, mean] for row, mean in zip(values, means, strict=True)]
    form = UNITS.get(measure, "{:.1f}")
    text = [["" if v is None else form.format(v) for v in row] for row in z]
    figure = go.Figure(
        go.Heatmap(
            z=z, x=[*others, "row mean"], y=names, text=text, texttemplate="%{text}",
            hovertemplate=f"{down} %{{y}}, {across} %{{x}}: %{{z:.2f}}<extra></extra>",
            colorbar={"title": label(measure, accuracy)}, hoverongaps=False,
        )
    )  # fmt: skip
    figure.add_vline(x=len(others) - 0.5, line_width=4, line_color="white")
    figure.update_layout(
        height=max(260, 90 + 44 * len(names)), margin={"l": 10, "r": 10, "t": 10, "b": 10},
        xaxis={"title": across, "type": "category"},
        yaxis={"title": down, "type": "category", "autorange": "reversed"},
    )  # fmt: skip
    return figure


def _apart(values: Sequence[float]) -> list[float]:
    """Rising, without those too close to the one before to be told apart on a log axis."""
    spaced: list[float] = []
    for value in sorted(set(values)):
        if not spaced or value > 1.3 * spaced[-1]:
            spaced.append(value)
    return spaced


def _mean(values: Sequence[float | None]) -> float | None:
    """Of a whole row only: a mean of some squares would not compare with the others."""
    defined = [v for v in values if v is not None]
    return statistics.fmean(defined) if defined and len(defined) == len(values) else None


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _or_text(value: Any) -> Any:
    number = _number(value)
    return str(value) if number is None else number
