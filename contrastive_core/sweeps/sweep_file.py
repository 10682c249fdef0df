"""Sweep files: a short TOML file lists the settings to vary (docs/guides/sweeps.md); each cell is an ordinary run.
Torch-free.

Cells are the product of the axes and the seeds. A cell's run is named after sweep, cell and seed, so an interrupted
sweep can continue: finished runs are kept and stopped ones are resumed, by the app's queue or by the command line."""

import contextlib
import itertools
import json
import math
import re
import statistics
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from contrastive_core import runs
from contrastive_core.base import json_files
from contrastive_core.base.errors import BadSetting, NotRegular, UnknownName
from contrastive_core.base.json_files import JsonObject
from contrastive_core.base.storage import FileCache, data_home, read_regular
from contrastive_core.compare.evaluation import read_evaluation
from contrastive_core.data import datasets
from contrastive_core.runs.train_config import TrainConfig, with_settings

OPTIONS = ("method", "dataset", "epochs", "loss", "encoder", "exclude", "relabel", "root")
FORMS = ("table", "line", "matrix")
KEYS = {"name", "title", "seeds", "form", "budget_hours", "base", "axes", "draw"}
MEASURES = ("accuracy", "uniformity", "alignment", "rankme", "memory_mb", "seconds", "loss")
MOST = 1000  # cells
LARGEST = 1 << 18  # bytes of a file
PARTS = 8  # of a dotted key
_PART = r"""(?:"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+'|[\w-]++)"""
DEEP = re.compile(rf"(?<![\w-])(?:{_PART}[ \t]*+\.[ \t]*+){{{PARTS}}}")
SCORED = ("linear_probe", "knn")  # metrics that a figure can show of a cell's test images
STARTING = 4.0  # seconds that a cell takes before its first step
Row = JsonObject


@dataclass(frozen=True)
class Axis:
    """An axis of a sweep: for each value, a label and its settings."""

    name: str
    values: tuple[tuple[str, dict[str, object], dict[str, object]], ...]  # label, settings, at
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
    """One run of a sweep: its value on each axis, its settings, its seed."""

    run: str
    at: dict[str, object]
    settings: dict[str, object]
    seed: int

    def arguments(self) -> list[str]:
        """Return the arguments of `train` without the run's name."""
        return arguments_of(self.settings, self.seed)


@dataclass(frozen=True)
class Sweep:
    """The content of a sweep file."""

    name: str
    title: str
    base: dict[str, object]
    axes: tuple[Axis, ...]
    seeds: tuple[int, ...]
    form: str
    budget_hours: float | None
    draw: Draw = field(default_factory=Draw)

    def cells(self) -> list[Cell]:
        """Return all cells of all seeds in the order of training: one seed after the other. Cells whose settings differ
        only in ignored ones share a run. A run's name is sweep, labels, seed; with an empty sweep name only the labels,
        and the seed if there are several."""
        cells, run_of_settings = [], dict[str, str]()
        for seed in self.seeds:
            for combination in itertools.product(*(axis.values for axis in self.axes)):
                both = list(zip(self.axes, combination, strict=True))
                ignored = {k for axis, v in both for k in axis.ignores.get(v[0], ())}
                at: dict[str, object] = {axis.name: v[0] for axis, v in both}
                settings, labels = dict(self.base), []
                for label, values, where in combination:
                    counts = {k: v for k, v in values.items() if k not in ignored}
                    settings |= counts
                    at |= where
                    labels += [label] if counts or not values else []
                same = json.dumps([seed, settings], sort_keys=True, default=str)
                ending = [f"s{seed}"] if self.name or len(self.seeds) > 1 else []
                name = _safe("-".join([*filter(None, [self.name]), *labels, *ending]))[:64]
                run = run_of_settings.setdefault(same, name)
                cells.append(Cell(run, at, settings, seed))
        return cells

    def trained(self) -> list[Cell]:
        """Return the cells to train: the first of those that share a run."""
        first_of_run: dict[str, Cell] = {}
        for cell in self.cells():
            first_of_run.setdefault(cell.run, cell)
        return list(first_of_run.values())


def _safe(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "_", text)


def config_of(cell: Cell) -> TrainConfig:
    """Return a cell's settings. Raises BadSetting."""
    settings = [f"{k}={as_text(v)}" for k, v in cell.settings.items()]
    return with_settings(TrainConfig(seed=cell.seed), settings)


def arguments_of(settings: Mapping[str, object], seed: int) -> list[str]:
    """Return the arguments of `train` for settings by name, without the run's name."""
    arguments = ["--seed", str(seed)]
    for key, value in settings.items():
        if key in OPTIONS:
            arguments += [f"--{key}", str(value)]
        else:
            arguments += ["--set", f"{key}={as_text(value)}"]
    return arguments


def as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


# --- its file ---


def load(path: str | Path) -> Sweep:
    """Read and check a sweep file. Raises BadSetting with the sentence to show."""
    path = Path(path)
    try:
        return read(read_regular(path, LARGEST).decode(), path.name)
    except (OSError, NotRegular, UnicodeDecodeError) as error:
        raise BadSetting("cannot read {path}: {error}", path=path, error=error) from None


def _title_of(path: Path) -> str:
    try:
        return load(path).title
    except BadSetting:
        return path.stem


title_of = FileCache(_title_of, 500)  # of a sweep file; its file name if the file is damaged


def read(text: str, file: str) -> Sweep:
    """Parse a sweep from the text of its file, called `file`. Raises BadSetting."""
    if len(text) > LARGEST:
        values = {"file": file, "text": f"{len(text):,}", "largest": f"{LARGEST:,}"}
        raise BadSetting("{file} has {text} characters; a sweep has at most {largest}", **values)
    if DEEP.search(text):  # the parser takes memory by the square of a key's parts
        raise BadSetting("{file}: a key has at most {parts} parts", file=file, parts=PARTS)
    try:
        raw = tomllib.loads(text)
        _check_keys(file, raw, KEYS)
        name, hours = str(raw.get("name", Path(file).stem)), raw.get("budget_hours")
        axes = tuple(_axis(file, axis) for axis in raw.get("axes", []))
        sweep = Sweep(
            name=name,
            title=str(raw.get("title", "")).strip() or name,
            base=dict(raw.get("base", {})),
            axes=axes,
            seeds=tuple(int(seed) for seed in raw.get("seeds", [0])),
            form=raw.get("form", "table"),
            budget_hours=None if hours is None else float(hours),
            draw=_draw(file, raw.get("draw", {}), axes),
        )
        if sweep.form not in FORMS:
            raise BadSetting("{file}: form must be one of {forms}", file=file, forms=", ".join(FORMS))
        _check(file, sweep)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadSetting("cannot read {file}: {error}", file=file, error=error) from None
    except BadSetting:
        raise
    except (TypeError, ValueError, AttributeError, KeyError) as error:
        raise BadSetting(f"{file}: {error}") from None
    return sweep


def _check_keys(file: str, raw: Mapping[str, object], known: Collection[str]) -> None:
    if unknown := sorted(set(raw) - set(known)):
        values = {"file": file, "unknown": f"{unknown[0]!r}", "keys": ", ".join(sorted(known))}
        raise BadSetting("{file}: unknown key {unknown}; known: {keys}", **values)


def changed(sweep: Sweep, settings: Sequence[str]) -> Sweep:
    """Return another sweep, with its own runs, in which `key=value` settings apply to every cell. Raises BadSetting."""
    if not settings:
        return sweep
    pairs = [s.partition("=")[::2] for s in settings]
    new = {k.strip(): v.strip() for k, v in pairs}
    axes = []
    for axis in sweep.axes:  # also where an axis sets it itself
        values = [(b, s | {k: new[k] for k in s if k in new}, at) for b, s, at in axis.values]
        axes.append(replace(axis, values=tuple(values)))
    ending = "-".join(f"{k.rpartition('.')[2]}{v}" for k, v in new.items())
    variant = replace(
        sweep, name=_safe(f"{sweep.name}-{ending}".strip("-")), base={**sweep.base, **new}, axes=tuple(axes)
    )
    _check(sweep.name, variant)
    return variant


def _draw(file: str, raw: dict[str, Any], axes: Sequence[Axis]) -> Draw:
    """Return the axes of the figure; by default the last axis is x, or the matrix's columns."""
    _check_keys(f"{file}: [draw]", raw, ("x", "series", "rows", "columns", "measures"))
    columns = {a.name for a in axes} | {k for a in axes for v in a.values for k in v[2]}
    roles: dict[str, str] = {k: str(v) for k, v in raw.items() if k != "measures"}
    for name in roles.values():
        if name not in columns:
            there = ", ".join(sorted(columns))
            raise BadSetting(
                "{file}: [draw] names {name}, which is not one of {columns}", file=file, name=f"{name!r}", columns=there
            )
    measures = tuple(raw.get("measures", ["accuracy"]))
    if not measures or not set(measures) <= set(MEASURES):
        raise BadSetting("{file}: measures must be among {measures}", file=file, measures=", ".join(MEASURES))
    names = [a.name for a in axes] or [""]
    usual = {"x": names[-1], "series": names[0] if len(names) > 1 else "", "rows": names[0], "columns": names[-1]}
    return Draw(**usual | roles, measures=measures)


def _axis(file: str, raw: Mapping[str, object]) -> Axis:
    _check_keys(f"{file}: [[axes]]", raw, ("name", "key", "values"))
    values, key = raw.get("values"), raw.get("key")
    if not isinstance(values, list) or not values:
        raise BadSetting("{file}: every axis needs a list of values", file=file)
    name = str(raw.get("name", key))
    if key is not None:
        return Axis(name, tuple((as_text(v), {str(key): v}, {}) for v in values))
    if not all(isinstance(v, dict) and set(v) - {"at", "ignores"} == {"label", "set"} for v in values):
        raise BadSetting("{file}: axis {name} needs a key, or values of label and set", file=file, name=f"{name!r}")
    points = ((str(v["label"]), dict(v["set"]), dict(v.get("at", {}))) for v in values)
    ignores = {str(v["label"]): tuple(map(str, v["ignores"])) for v in values if "ignores" in v}
    return Axis(name, tuple(points), ignores)


def _check(file: str, sweep: Sweep) -> None:
    """Check that every cell's settings are valid, and that no two cells share a run name. Raises BadSetting."""
    count = math.prod([len(sweep.seeds), *(len(axis.values) for axis in sweep.axes)])
    if not 1 <= count <= MOST:
        raise BadSetting("{file}: {count} cells; a sweep has 1 to {most}", file=file, count=f"{count:,}", most=MOST)
    cells = sweep.cells()
    for cell in cells:
        try:
            datasets.check_name(config_of(cell).dataset)
        except (TypeError, BadSetting, UnknownName) as error:
            raise BadSetting(f"{file}: {error}") from None
    trained = {cell.run: cell for cell in cells}
    if any(trained[c.run].arguments() != c.arguments() for c in cells):
        raise BadSetting("{file}: two cells would have the same run name; use shorter labels", file=file)
    if len({(str(sorted(c.at.items())), c.seed) for c in cells}) < len(cells):
        raise BadSetting("{file}: two cells have the same values; remove one", file=file)


# --- how far it is ---


def status(sweep: Sweep) -> list[Row]:
    """Return a row per cell: its value on each axis, run, seed, status, seconds, scores, and `evaluation` if it was
    scored. Cells that share a run have a row each."""
    run_by_name = {run.name: run for run in runs.list_runs()}
    rows = []
    for cell in sweep.cells():
        run = run_by_name.get(cell.run)
        row: Row = {**cell.at, "run": cell.run, "seed": cell.seed, "status": "waiting"}
        if run is not None:
            row["status"] = run.status().get("status", "")
            lines = [line for line in run.metrics() if "images_per_s" not in line]
            row |= {k: v for k, v in (lines[-1] if lines else {}).items() if k not in row}
            if (evaluation := read_evaluation(run)) is not None:
                row |= {f"{m} test": s.value for m in SCORED if (s := evaluation.score("h", m)) is not None}
                row["evaluation"] = evaluation
        rows.append(row)
    return rows


def estimate(sweep: Sweep) -> float | None:
    """Estimate the seconds to train the remaining cells from the epochs of finished ones, or of a cell timed by
    `measure`. None if there is neither."""
    rows, todo, took = {row["run"]: row for row in status(sweep)}, list[int](), list[float]()
    for cell in sweep.trained():
        epochs, row = config_of(cell).epochs, rows[cell.run]
        if row["status"] != "done":
            todo.append(epochs)
        elif "seconds" in row:
            took.append(float(row["seconds"]) / max(1, epochs))
    if todo and not took:
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
            took.append(float(json_files.read_object(timing_path(sweep))["seconds"]))
    if todo and not took:
        return None
    return sum(epochs * statistics.fmean(took) + STARTING for epochs in todo)


def timing_path(sweep: Sweep) -> Path:
    """Return the path of a timed sweep's seconds per epoch."""
    return data_home() / "timings" / f"sweep-{_safe(sweep.name)}.json"


def trainings(sweep: Sweep) -> list[tuple[str, list[str]]]:
    """Return the run and the arguments of `train` for each cell to train, including stopped and failed ones."""
    rows = {row["run"]: row["status"] for row in status(sweep)}
    return [(c.run, c.arguments()) for c in sweep.trained() if rows[c.run] not in ("done", "running")]


def unscored(sweep: Sweep) -> list[str]:
    """Return the runs of finished cells whose test images have not been scored."""
    done = {row["run"]: row for row in status(sweep) if row["status"] == "done"}
    return [name for name, row in done.items() if any(f"{metric} test" not in row for metric in SCORED)]
