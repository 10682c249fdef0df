"""A sweep as the papers draw theirs: a table, curves, or a matrix with row means. Torch-free.

What is missing stays empty. Several seeds of a cell become their mean, with the standard deviation
beside it in a table, and in a figure a dot each and the interval of the mean. Plotly is imported
late.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from contrastive_core.messages import N_, message
from contrastive_core.records.sweep_cells import ACCURACIES, Figure, Row, cells_of, intervals_in_words, value_of
from contrastive_core.sweeps.spec import Axis, Sweep

LABELS = {
    "uniformity": N_("uniformity, nats (lower: more spread)"),
    "alignment": N_("alignment (lower: closer pairs)"),
    "rankme": N_("RankMe (effective dimensions)"),
    "memory_mb": N_("memory, MB"),
    "seconds": N_("training time, s"),
    "loss": "loss",
}
UNITS = {"memory_mb": "{:.0f}", "seconds": "{:.0f}", "rankme": "{:.1f}"}
FROM_ZERO = ("rankme", "memory_mb", "seconds")  # amounts, drawn with their zero
COLORS = ("#3B7DD8",)


def table(sweep: Sweep, rows: Sequence[Row], accuracy: str = "knn_train_sample") -> list[Row]:
    """The sweep as rows of text: where each cell stands, each measure with its deviation."""
    names, measures = [a.name for a in sweep.axes], sweep.draw.measures
    table_rows = []
    for cell in cells_of(rows, names, accuracy, measures):
        row: Row = {a.name: _stands(a, str(cell[a.name])) for a in sweep.axes}
        for measure in measures:
            row[label(measure, accuracy)] = _text(cell[measure], measure)
        table_rows.append({**row, N_("seeds done"): cell["seeds"]})
    return table_rows


def _stands(axis: Axis, value: str) -> str:
    """A value as in the paper's table: a tick where the axis is a thing that is there or not."""
    two = {label for label, _, _ in axis.values}
    if len(two) == 2 and axis.name in two:
        return "✓" if value == axis.name else ""
    return value


def draw(
    sweep: Sweep,
    rows: Sequence[Row],
    accuracy: str = "knn_train_sample",
    colors: Sequence[str] = COLORS,
    zoom: bool = False,
) -> list[Any]:
    """Plotly figures in the sweep's form, one for each measure; none for a table, or before a cell
    is done.

    Args: colors: of the series; zoom: axes end where the figures do, instead of 0 to 100 %.
    """
    if not any(value_of(r, m, accuracy) is not None for r in rows for m in sweep.draw.measures):
        return []
    if sweep.form == "line":
        return [_line(sweep, rows, m, accuracy, colors, zoom) for m in sweep.draw.measures]
    if sweep.form == "matrix":
        return [_matrix(sweep, rows, m, accuracy, zoom) for m in sweep.draw.measures]
    return []


def intervals_of(sweep: Sweep, rows: Sequence[Row], measure: str, accuracy: str = "knn_train_sample") -> str:
    """What the intervals of a figure are of, in words."""
    cells = cells_of(rows, _names(sweep), accuracy, [measure])
    return intervals_in_words([c[measure] for c in cells])


def _names(sweep: Sweep) -> list[str]:
    """What a figure is drawn along."""
    if sweep.form == "matrix":
        return [sweep.draw.rows, sweep.draw.columns]
    if sweep.form == "line":
        return [n for n in (sweep.draw.x, sweep.draw.series) if n]
    return [a.name for a in sweep.axes]


def label(measure: str, accuracy: str) -> str:
    """A measure in words, with its unit."""
    return ACCURACIES[accuracy] if measure == "accuracy" else LABELS[measure]


def _text(figure: Figure, measure: str) -> str:
    if figure.mean is None:
        return ""
    form = UNITS.get(measure, "{:.1f}" if measure == "accuracy" else "{:.3g}")
    more = figure.deviation
    return form.format(figure.mean) + (f" ± {form.format(more)}" if more is not None else "")


def _line(sweep: Sweep, rows: Sequence[Row], measure: str, accuracy: str, colors: Sequence[str], zoom: bool) -> Any:
    """Curves over x, one for each series: means with their intervals, and a dot for each seed."""
    import plotly.graph_objects as go

    x, series = sweep.draw.x, sweep.draw.series
    cells = [c for c in cells_of(rows, _names(sweep), accuracy, [measure]) if c[measure].mean is not None]
    figure = go.Figure()
    for number, name in enumerate(dict.fromkeys(c.get(series, "") for c in cells)):
        mine = [c for c in cells if c.get(series, "") == name]
        mine.sort(key=lambda c: (_as_number(c[x]) is None, _as_number(c[x]) or 0.0))
        _series(figure, mine, x, measure, str(name), colors[number % len(colors)])
    axis: Row = {"title": x}
    numbers = [_as_number(c[x]) for c in cells]
    if numbers and all(n is not None for n in numbers):
        positive = [n for n in numbers if n]
        wide = len(positive) == len(numbers) and max(positive) / min(positive) >= 8
        ticks = _apart(positive) if wide else None
        axis |= {"type": "log" if wide else "linear"}
        axis |= {"tickvals": ticks, "ticktext": [f"{t:g}" for t in ticks]} if ticks else {}
    figure.update_layout(
        height=360,
        margin={"l": 10, "r": 10, "t": 60 if series else 10, "b": 10},
        xaxis=axis,
        yaxis={"title": label(measure, accuracy), **_scale(measure, zoom)},
        showlegend=bool(series),
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "title": {"text": series}},
    )
    return figure


def _series(figure: Any, cells: Sequence[Row], x: str, measure: str, name: str, color: str) -> None:
    """One curve. Its interval need not lie evenly about the mean."""
    at, found = [_or_text(c[x]) for c in cells], [c[measure] for c in cells]
    ends = [f.interval or (f.mean, f.mean) for f in found]
    figure.add_scatter(
        x=at,
        y=[f.mean for f in found],
        name=name,
        mode="lines+markers",
        line={"color": color},
        error_y={
            "array": [high - f.mean for f, (_, high) in zip(found, ends, strict=True)],
            "arrayminus": [f.mean - low for f, (low, _) in zip(found, ends, strict=True)],
            "visible": any(f.interval for f in found),
            "color": color,
            "thickness": 1.5,
        },
        legendgroup=name,
    )
    dots = [
        (place, value, message("seed {seed}", seed=seed))
        for place, f in zip(at, found, strict=True)
        for seed, value in zip(f.seeds, f.values, strict=True)
        if len(f.values) > 1
    ]
    if dots:
        figure.add_scatter(
            x=[d[0] for d in dots],
            y=[d[1] for d in dots],
            text=[d[2] for d in dots],
            mode="markers",
            name=message("{name} seeds", name=name).strip(),
            showlegend=False,
            legendgroup=name,
            marker={"color": color, "size": 6, "opacity": 0.55, "symbol": "circle-open"},
            hovertemplate="%{text}: %{y:.3g}<extra></extra>",
        )


def _scale(measure: str, zoom: bool) -> Row:
    """The whole range of a share, and the zero of an amount, unless one zooms in."""
    if zoom:
        return {}
    if measure == "accuracy":
        return {"range": [0, 100]}
    return {"rangemode": "tozero"} if measure in FROM_ZERO else {}


def _matrix(sweep: Sweep, rows: Sequence[Row], measure: str, accuracy: str, zoom: bool) -> Any:
    """Rows × columns with the value in each square, its interval where one points at it, and the
    row's mean at the right."""
    import plotly.graph_objects as go

    down, across = sweep.draw.rows, sweep.draw.columns
    cells = cells_of(rows, [down, across], accuracy, [measure])
    names = list(dict.fromkeys(str(c[down]) for c in cells))
    others = list(dict.fromkeys(str(c[across]) for c in cells))
    held = {(str(c[down]), str(c[across])): c[measure] for c in cells}
    found = [[held.get((n, o), Figure((), ())) for o in others] for n in names]
    means = [_mean([f.mean for f in row]) for row in found]
    z = [[*(f.mean for f in row), mean] for row, mean in zip(found, means, strict=True)]
    form = UNITS.get(measure, "{:.1f}")
    text = [["" if v is None else form.format(v) for v in row] for row in z]
    full = {"zmin": 0, "zmax": 100} if measure == "accuracy" and not zoom else {}
    figure = go.Figure(
        go.Heatmap(
            z=z,
            x=[*others, N_("row mean")],
            y=names,
            text=text,
            texttemplate="%{text}",
            customdata=[[*(_interval(f, form) for f in row), ""] for row in found],
            hovertemplate=f"{down} %{{y}}, {across} %{{x}}: %{{z:.2f}}%{{customdata}}<extra></extra>",
            colorbar={"title": label(measure, accuracy)},
            hoverongaps=False,
            **full,
        )
    )
    figure.add_vline(x=len(others) - 0.5, line_width=4, line_color="white")
    figure.update_layout(
        height=max(260, 90 + 44 * len(names)),
        margin={"l": 10, "r": 10, "t": 10, "b": 10},
        xaxis={"title": across, "type": "category"},
        yaxis={"title": down, "type": "category", "autorange": "reversed"},
    )
    return figure


def _interval(figure: Figure, form: str) -> str:
    if figure.interval is None:
        return ""
    low, high = (form.format(end) for end in figure.interval)
    return message(" (95 %: {low} to {high})", low=low, high=high)


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


def _as_number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _or_text(value: Any) -> Any:
    number = _as_number(value)
    return str(value) if number is None else number
