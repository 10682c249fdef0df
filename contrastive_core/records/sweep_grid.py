"""A sweep: its axes and cells, what is drawn along what, and what the seeds of a cell gave together. Rows are those
of `sweep_runner.status`. A mean has a 95 % interval over its seeds where there are three; with fewer nothing is known
of their spread, and an interval over images alone would be narrower than that of three seeds. Torch-free."""

import itertools
import json
import math
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from contrastive_core.messages import N_, join, message
from contrastive_core.records.score import over_seeds
from contrastive_core.records.train_config import TrainConfig, with_settings
from contrastive_core.storage.json_files import JsonObject

OPTIONS = ("method", "dataset", "epochs", "loss", "encoder", "exclude", "relabel", "root")
ACCURACIES = {  # which figure of a row "accuracy" is
    "knn_train_sample": N_("kNN on the training sample, %"),
    "linear_probe test": N_("linear probe on test, %"),
    "knn test": N_("kNN on test, %"),
}

Row = JsonObject


@dataclass(frozen=True)
class Axis:
    """One thing that varies: a label and the settings behind it, for each value."""

    name: str
    values: tuple[tuple[str, JsonObject, JsonObject], ...]  # label, settings, at
    ignores: dict[str, tuple[str, ...]] = field(default_factory=dict)  # by label: settings


@dataclass(frozen=True)
class Draw:
    """The axes of a figure: names of axes, or of an axis value's `at`."""

    x: str = ""
    series: str = ""
    rows: str = ""
    columns: str = ""
    measures: tuple[str, ...] = ("accuracy",)


@dataclass(frozen=True)
class Cell:
    """One run of a sweep: where it stands on each axis, its settings, its seed."""

    run: str
    at: JsonObject
    settings: JsonObject
    seed: int

    def argv(self) -> list[str]:
        """Arguments of `python -m contrastive_core` that train this cell."""
        return ["train", "--run", self.run, *self.arguments()]

    def arguments(self) -> list[str]:
        """Arguments of `train` without the run's name."""
        return arguments_of(self.settings, self.seed)


@dataclass(frozen=True)
class Sweep:
    """The content of a sweep file."""

    name: str
    title: str
    base: JsonObject
    axes: tuple[Axis, ...]
    seeds: tuple[int, ...]
    form: str
    budget_hours: float | None
    draw: Draw = field(default_factory=Draw)

    def cells(self) -> list[Cell]:
        """Every cell and seed, in the order in which they are trained: one seed after the other. Cells of the same
        settings, but for what one of their values ignores, share a run."""
        cells, run_of_settings = [], dict[str, str]()
        for seed in self.seeds:
            for combination in itertools.product(*(axis.values for axis in self.axes)):
                both = list(zip(self.axes, combination, strict=True))
                ignored = {k for axis, v in both for k in axis.ignores.get(v[0], ())}
                at: JsonObject = {axis.name: v[0] for axis, v in both}
                settings, labels = dict(self.base), []
                for label, values, where in combination:
                    counts = {k: v for k, v in values.items() if k not in ignored}
                    settings |= counts
                    at |= where
                    labels += [label] if counts or not values else []
                same = json.dumps([seed, settings], sort_keys=True, default=str)
                run = run_of_settings.setdefault(same, self._run(labels, seed))
                cells.append(Cell(run, at, settings, seed))
        return cells

    def trained(self) -> list[Cell]:
        """Of cells that share a run, the first."""
        first_of_run: dict[str, Cell] = {}
        for cell in self.cells():
            first_of_run.setdefault(cell.run, cell)
        return list(first_of_run.values())

    def _run(self, labels: Sequence[str], seed: int) -> str:
        """Sweep, labels, seed; with an empty name labels only, and the seed if there are more."""
        ending = [f"s{seed}"] if self.name or len(self.seeds) > 1 else []
        text = "-".join([*filter(None, [self.name]), *labels, *ending])
        return re.sub(r"[^A-Za-z0-9._-]+", "_", text)[:64]


def config_of(cell: Cell) -> TrainConfig:
    """A cell's settings. Raises BadSetting."""
    settings = [f"{k}={as_text(v)}" for k, v in cell.settings.items()]
    return with_settings(TrainConfig(seed=cell.seed), settings)


def arguments_of(settings: Mapping[str, Any], seed: int) -> list[str]:
    """Arguments of `train` for settings by their names, without the run's."""
    arguments = ["--seed", str(seed)]
    for key, value in settings.items():
        if key in OPTIONS:
            arguments += [f"--{key}", str(value)]
        else:
            arguments += ["--set", f"{key}={as_text(value)}"]
    return arguments


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


@dataclass(frozen=True)
class Figure:
    """A measure of one cell: its seeds and their values, their mean, and its interval over the seeds."""

    seeds: tuple[int, ...]
    values: tuple[float, ...]
    mean: float | None = None
    interval: tuple[float, float] | None = None

    @property
    def deviation(self) -> float | None:
        """The standard deviation over the seeds; None for one."""
        return statistics.stdev(self.values) if len(self.values) > 1 else None


def cells_of(rows: Sequence[Row], names: Sequence[str], accuracy: str, measures: Sequence[str]) -> list[Row]:
    """One row per combination of `names`: those, the `Figure` of each measure, and `seeds`, how many are done."""
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
    """Return the combined result of the rows of one cell."""
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
    """A measure of a row that is done; accuracies in per cent."""
    value = row.get(accuracy if measure == "accuracy" else measure)
    if row["status"] != "done" or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return 100 * float(value) if measure == "accuracy" else float(value)


def intervals_in_words(figures: Sequence[Figure], dot: str = "seed") -> str:
    """What the dots and intervals of some figures that are drawn together are of."""
    figures = [f for f in figures if f.mean is not None]
    seeds, parts = {len(f.values) for f in figures if f.interval}, []
    if any(len(f.values) > 1 for f in figures):
        parts.append(message("Each dot is a {dot}, and the line connects the means.", dot=dot))
    if seeds:
        parts.append(message("Intervals: 95 % of the mean over {range} {dot}s.", range=_range(seeds), dot=dot))
    if any(f.interval is None for f in figures):
        parts.append(message("No interval: it needs at least three {dot}s.", dot=dot))
    return join(" ", parts)


def _range(numbers: set[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else message("{low} to {high}", low=f"{low:,}", high=f"{high:,}")
