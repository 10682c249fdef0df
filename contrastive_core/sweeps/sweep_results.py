"""Results of a sweep in the form of the papers: a table, curves, or a matrix with row means; its best setting; and the
scores of sweeps that are shipped without their runs. Torch-free.

Missing values stay empty. Several seeds of a cell are averaged. A table adds the standard deviation; a figure adds a
dot for each seed and the interval of the mean. Plotly is imported late."""

import contextlib
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from contrastive_core.base import json_files
from contrastive_core.base.messages import N_, join, message
from contrastive_core.base.score import Score, over_seeds
from contrastive_core.base.storage import BUNDLE
from contrastive_core.compare.evaluation import Evaluation
from contrastive_core.compare.verdicts import SettingScores, best_setting
from contrastive_core.sweeps.sweep_file import Row, Sweep

ACCURACIES = {  # which figure of a row "accuracy" is
    "knn_train_sample": N_("kNN on the training sample, %"),
    "linear_probe test": N_("linear probe on test, %"),
    "knn test": N_("kNN on test, %"),
}
LABELS = {
    "uniformity": N_("uniformity, nats (lower: more spread)"),
    "tolerance": N_("tolerance (higher: classes together)"),
    "alignment": N_("alignment (lower: closer pairs)"),
    "rankme": N_("RankMe (effective dimensions)"),
    "memory_mb": N_("memory, MB"),
    "seconds": N_("training time, s"),
    "loss": "loss",
}
UNITS = {"memory_mb": "{:.0f}", "seconds": "{:.0f}", "rankme": "{:.1f}"}
FROM_ZERO = ("rankme", "memory_mb", "seconds")  # amounts, drawn with their zero
COLORS = ("#3B7DD8",)
FOLDER = BUNDLE / "sweeps"  # of shipped scores
DATA = ("dataset", "root")  # settings whose runs have other images


@dataclass(frozen=True)
class Figure:
    """A measure of one cell: its seeds and their values, their mean, and its interval over the seeds."""

    seeds: tuple[int, ...]
    values: tuple[float, ...]
    mean: float | None = None
    interval: tuple[float, float] | None = None

    def text(self, measure: str) -> str:
        """Format the mean and, of several seeds, the standard deviation; "" without a value."""
        if self.mean is None:
            return ""
        form = UNITS.get(measure, "{:.1f}" if measure == "accuracy" else "{:.3g}")
        deviation = f" ± {form.format(statistics.stdev(self.values))}" if len(self.values) > 1 else ""
        return form.format(self.mean) + deviation


def cells_of(rows: Sequence[Row], names: Sequence[str], accuracy: str, measures: Sequence[str]) -> list[Row]:
    """Return one row per combination of `names`: their values, the `Figure` of each measure, and `seeds`, the number of
    finished seeds."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(n) for n in names), []).append(row)
    cells = []
    for at, members in groups.items():
        finished = [m for m in members if m["status"] == "done"]
        figures = {m: figure_of(finished, m, accuracy) for m in measures}
        cells.append({**dict(zip(names, at, strict=True)), "seeds": len(finished), **figures})
    return cells


def figure_of(members: Sequence[Row], measure: str, accuracy: str) -> Figure:
    """Return a measure's figure over the rows of one cell."""
    found = [(m, v) for m in members if (v := value_of(m, measure, accuracy)) is not None]
    if not found:
        return Figure((), ())
    seeds, values = tuple(m["seed"] for m, _ in found), tuple(v for _, v in found)
    mean = statistics.fmean(values)
    interval = over_seeds(values)
    if interval and measure == "accuracy":  # no share lies outside of 0 to 100 %
        interval = max(0.0, interval[0]), min(100.0, interval[1])
    return Figure(seeds, values, mean, interval)


def value_of(row: Row, measure: str, accuracy: str) -> float | None:
    """Return a measure of a finished row, accuracies in per cent; None if it is missing."""
    value = row.get(accuracy if measure == "accuracy" else measure)
    if row["status"] != "done" or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return 100 * float(value) if measure == "accuracy" else float(value)


OF_SEEDS = (
    N_("Each dot is a seed, and the line connects the means."),
    N_("The bars are 95 % intervals of the mean over {counts} seeds."),
    N_("An interval needs at least three seeds."),
)
OF_RUNS = (
    N_("Each dot is a run, and the line connects the means."),
    N_("The bars are 95 % intervals of the mean over {counts} runs."),
    N_("An interval needs at least three runs."),
)


def intervals_in_words(figures: Sequence[Figure], are_runs: bool = False) -> str:
    """Describe the dots and intervals of figures that are drawn together."""
    each, mean, least = OF_RUNS if are_runs else OF_SEEDS
    figures = [f for f in figures if f.mean is not None]
    seeds, parts = {len(f.values) for f in figures if f.interval}, []
    if any(len(f.values) > 1 for f in figures):
        parts.append(each)
    if seeds:
        low, high = min(seeds), max(seeds)
        counts = f"{low:,}" if low == high else f"{low:,}–{high:,}"
        parts.append(message(mean, counts=counts))
    if any(f.interval is None for f in figures):
        parts.append(least)
    return join(" ", parts)


# --- tables and figures ---


def table(sweep: Sweep, rows: Sequence[Row], accuracy: str = "knn_train_sample") -> list[Row]:
    """Return the sweep as rows of text: the axis values of each cell, and each measure with its standard deviation."""
    names, measures = [a.name for a in sweep.axes], sweep.draw.measures
    labels = {a.name: {label for label, _, _ in a.values} for a in sweep.axes}
    switches = [name for name in names if len(labels[name]) == 2 and name in labels[name]]

    def shown(name: str, value: str) -> str:  # as in the papers' tables: a tick or nothing for what is on or off
        return ("✓" if value == name else "") if name in switches else value

    return [
        {name: shown(name, str(cell[name])) for name in names}
        | {label(measure, accuracy): cell[measure].text(measure) for measure in measures}
        | {N_("seeds done"): cell["seeds"]}
        for cell in cells_of(rows, names, accuracy, measures)
    ]


def draw(
    sweep: Sweep,
    rows: Sequence[Row],
    accuracy: str = "knn_train_sample",
    colors: Sequence[str] = COLORS,
    zoom: bool = False,
) -> list[Any]:
    """Return Plotly figures in the sweep's form, one for each measure; none for a table, or before a cell is finished.
    Args: colors: of the series; zoom: axes end at the figures, instead of at 0 and 100 %."""
    if not any(value_of(r, m, accuracy) is not None for r in rows for m in sweep.draw.measures):
        return []
    if sweep.form == "line":
        return [_line(sweep, rows, m, accuracy, colors, zoom) for m in sweep.draw.measures]
    if sweep.form == "matrix":
        return [_matrix(sweep, rows, m, accuracy, zoom) for m in sweep.draw.measures]
    return []


def intervals_of(sweep: Sweep, rows: Sequence[Row], measure: str, accuracy: str = "knn_train_sample") -> str:
    """Describe the intervals of a figure."""
    names = [sweep.draw.rows, sweep.draw.columns] if sweep.form == "matrix" else [sweep.draw.x, sweep.draw.series]
    cells = cells_of(rows, [*filter(None, names)], accuracy, [measure])
    return intervals_in_words([c[measure] for c in cells])


def label(measure: str, accuracy: str) -> str:
    """Return the label of a measure, with its unit."""
    return ACCURACIES[accuracy] if measure == "accuracy" else LABELS[measure]


def _line(sweep: Sweep, rows: Sequence[Row], measure: str, accuracy: str, colors: Sequence[str], zoom: bool) -> Any:
    """Draw curves over x, one per series: means with their intervals, and a dot for each seed."""
    import plotly.graph_objects as go

    x, series = sweep.draw.x, sweep.draw.series
    scale: dict[str, str | list[int]] = {"rangemode": "tozero"} if measure in FROM_ZERO and not zoom else {}
    if measure == "accuracy" and not zoom:  # all of a share
        scale = {"range": [0, 100]}
    cells = cells_of(rows, [x, series] if series else [x], accuracy, [measure])
    cells = [c for c in cells if c["seeds"]]  # without the measure: a gap
    figure = go.Figure()
    for number, name in enumerate(dict.fromkeys(c.get(series, "") for c in cells)):
        mine = [c for c in cells if c.get(series, "") == name]
        mine.sort(key=lambda c: (_as_number(c[x]) is None, _as_number(c[x]) or 0.0))
        add_series(figure, mine, x, measure, str(name), colors[number % len(colors)])
    figure.update_layout(
        height=360,
        margin={"l": 10, "r": 10, "t": 60 if series else 10, "b": 10},
        xaxis={"title": x, **_log_axis([_as_number(c[x]) for c in cells])},
        yaxis={"title": label(measure, accuracy), **scale},
        showlegend=bool(series),
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "title": {"text": series}},
    )
    return figure


def _log_axis(places: Sequence[float | None]) -> Row:
    """Return axis settings: logarithmic with separate ticks if all places are positive and span a wide range."""
    if not places or None in places:
        return {}
    values = sorted({place for place in places if place})
    if not all(places) or values[-1] / values[0] < 8:
        return {"type": "linear"}
    ticks: list[float] = []
    for value in values:
        if not ticks or value > 1.3 * ticks[-1]:
            ticks.append(value)
    return {"type": "log", "tickvals": ticks, "ticktext": [f"{t:g}" for t in ticks]}


def add_series(figure: Any, cells: Sequence[Row], x: str, measure: str, name: str, color: str) -> None:
    """Add one curve with its intervals, which may be asymmetric."""
    at, found = [str(c[x]) if (n := _as_number(c[x])) is None else n for c in cells], [c[measure] for c in cells]
    bars: Row = {"array": [f.interval and f.interval[1] - f.mean for f in found]}
    bars["arrayminus"] = [f.interval and f.mean - f.interval[0] for f in found]
    bars |= {"visible": any(f.interval for f in found), "color": color, "thickness": 1.5}
    style: Row = {"mode": "lines+markers", "line": {"color": color}}
    figure.add_scatter(x=at, y=[f.mean for f in found], error_y=bars, name=name, legendgroup=name, **style)
    dots = [
        (place, value, message("seed {seed}", seed=seed))
        for place, f in zip(at, found, strict=True)
        for seed, value in zip(f.seeds, f.values, strict=True)
        if len(f.values) > 1
    ]
    if dots:
        places, values, texts = zip(*dots, strict=True)
        style = {"marker": {"color": color, "size": 6, "opacity": 0.55, "symbol": "circle-open"}, "mode": "markers"}
        style |= {"name": message("{name} seeds", name=name).strip(), "legendgroup": name, "showlegend": False}
        hover = "%{text}: %{y:.3g}<extra></extra>"
        figure.add_scatter(x=places, y=values, text=texts, hovertemplate=hover, **style)


def _matrix(sweep: Sweep, rows: Sequence[Row], measure: str, accuracy: str, zoom: bool) -> Any:
    """Draw a matrix with the value in each square, its interval on hover, and the row's mean at the right."""
    import plotly.graph_objects as go

    down, across = sweep.draw.rows, sweep.draw.columns
    cells = cells_of(rows, [down, across], accuracy, [measure])
    names, others = (list(dict.fromkeys(str(c[axis]) for c in cells)) for axis in (down, across))
    held = {(str(c[down]), str(c[across])): c[measure] for c in cells}
    found = [[held.get((n, o), Figure((), ())) for o in others] for n in names]
    z = [[f.mean for f in row] for row in found]
    for row in z:  # of whole rows only: a mean of some squares would not compare with the others
        row.append(None if None in row else statistics.fmean(row))
    form = UNITS.get(measure, "{:.1f}")
    text = [["" if v is None else form.format(v) for v in row] for row in z]
    full = {"zmin": 0, "zmax": 100} if measure == "accuracy" and not zoom else {}
    hover = f"{down} %{{y}}, {across} %{{x}}: %{{z:.2f}}%{{customdata}}<extra></extra>"
    texts = {"text": text, "texttemplate": "%{text}", "hovertemplate": hover, "hoverongaps": False}
    intervals = [[*(_interval(f, form) for f in row), ""] for row in found]
    bar = {"title": label(measure, accuracy)}
    heatmap = go.Heatmap(z=z, x=[*others, N_("row mean")], y=names, customdata=intervals, colorbar=bar, **texts, **full)
    figure = go.Figure(heatmap)
    figure.add_vline(x=len(others) - 0.5, line_width=4, line_color="white")
    figure.update_layout(
        height=max(260, 90 + 44 * len(names)),
        margin={"l": 10, "r": 10, "t": 10, "b": 10},
        xaxis={"title": across, "type": "category"},
        yaxis={"title": down, "type": "category", "autorange": "reversed"},
    )
    return figure


def _interval(figure: Figure, form: str) -> str:
    ends = [form.format(end) for end in figure.interval or ()]
    return message(" (95 %: {low} to {high})", low=ends[0], high=ends[1]) if ends else ""


def _as_number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def verdict(sweep: Sweep, rows: Sequence[Row], accuracy: str) -> tuple[str, str]:
    """Return the verdict of paired tests on the finished cells, and its basis; "" if too few are finished, or if they
    are not on the same images.

    Args: rows: those of `sweep_file.status`; accuracy: a key of `ACCURACIES`."""
    if any(key in settings for a in sweep.axes for _, settings, _ in a.values for key in DATA):
        return "", ""
    names, settings = [axis.name for axis in sweep.axes], dict[str, SettingScores]()
    metric, _, split = accuracy.partition(" ")
    first_of_run: dict[str, Row] = {}  # cells that share a run are one setting
    for row in rows:
        first_of_run.setdefault(row["run"], row)
    for row in first_of_run.values():
        if (value := value_of(row, "accuracy", accuracy)) is None:
            continue
        label = ", ".join(str(row[n]) if len(names) == 1 else f"{n} {row[n]}" for n in names)
        one = settings.setdefault(label, SettingScores(label))
        one.scores[row["seed"]] = value / 100
        evaluation: Evaluation | None = row.get("evaluation")
        score = evaluation.score("h", metric) if evaluation and split == "test" else None
        if score is not None and score.per_sample is not None:
            one.right[row["seed"]] = score.per_sample
    return best_setting(names[0] if len(names) == 1 else "", list(settings.values()))


def path_of(sweep: Sweep) -> Path:
    """Return the path of a shipped sweep's scores."""
    return FOLDER / f"{Path(sweep.name).name}.json"


def with_shipped(sweep: Sweep, rows: Sequence[Row]) -> list[Row]:
    """Return the rows of `sweep_file.status`, with the shipped scores for cells that are not finished here; these are
    marked `shipped`. A shipped cell holds `arguments`, `scores` by name, and `right`, the correctly classified test
    images, packed as hexadecimal bits."""
    cells: dict[str, Row] = {}
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):  # most sweeps have none
        kept = json_files.read_object(path_of(sweep))
        for cell in kept["cells"]:
            score = Score("kNN", value=cell["scores"]["knn test"])
            if "right" in cell:
                right = np.unpackbits(np.frombuffer(bytes.fromhex(cell["right"]), np.uint8), count=kept["images"])
                score.arrays["per_sample"] = right.astype(float)
            row = {**cell["scores"], "status": "done", "shipped": True}
            cells[" ".join(cell["arguments"])] = row | {"evaluation": Evaluation("", "test", {"h": {"knn": score}})}
    both = zip(sweep.cells(), rows, strict=True)
    return [row if row["status"] == "done" else row | cells.get(" ".join(cell.arguments()), {}) for cell, row in both]
