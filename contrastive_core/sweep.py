"""Sweeps: a small TOML file says which settings vary; each cell is an ordinary run. Torch-free.

    name = "temperature"               # "": runs are called by their labels alone
    seeds = [0, 1, 2]                  # default: [0]
    form = "line"                      # how a page draws it: "table", "line" or "matrix"
    budget_hours = 6                   # no new cell is started later than this

    [base]                             # options and settings that every cell shares
    method = "simclr"
    dataset = "shapes"
    epochs = 8

    [[axes]]
    key = "loss.temperature"           # one setting ...
    values = [0.05, 0.1, 0.5]

    [[axes]]
    name = "head"                      # ... or named groups of settings
    values = [
      { label = "none", set = { "method.head" = "none" } },
      { label = "wide", set = { "method.head" = "nonlinear", "method.hidden" = 512 } },
    ]

Cells are the product of the axes and the seeds. A cell's run is named after sweep, cell and seed,
so a sweep that was cut off goes on where it was: done runs are kept, stopped ones are resumed.
"""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contrastive_core import runs
from contrastive_core.config import BadSetting, TrainConfig, with_settings

__all__ = ["Axis", "Cell", "Sweep", "estimate", "load", "run_sweep", "status"]

FORMS = ("table", "line", "matrix")
OPTIONS = ("method", "dataset", "epochs", "loss", "encoder", "exclude", "relabel", "root")
KEYS = {"name", "title", "seeds", "form", "budget_hours", "base", "axes"}


@dataclass(frozen=True)
class Axis:
    """One thing that varies: a label and the settings behind it, for each value."""

    name: str
    values: tuple[tuple[str, dict[str, Any]], ...]


@dataclass(frozen=True)
class Cell:
    """One run of a sweep: where it stands on each axis, its settings, its seed."""

    run: str
    at: dict[str, str]
    settings: dict[str, Any]
    seed: int

    def argv(self) -> list[str]:
        """Arguments of `python -m contrastive_core` that train this cell."""
        made = ["train", "--run", self.run, "--seed", str(self.seed)]
        for key, value in self.settings.items():
            if key in OPTIONS:
                made += [f"--{key}", str(value)]
            else:
                made += ["--set", f"{key}={_plain(value)}"]
        return made


@dataclass(frozen=True)
class Sweep:
    """What a sweep file says."""

    name: str
    title: str
    base: dict[str, Any]
    axes: tuple[Axis, ...]
    seeds: tuple[int, ...]
    form: str
    budget_hours: float | None

    def cells(self) -> list[Cell]:
        """Every cell and seed, in the order in which they are trained: one seed after the other."""
        made = []
        for seed in self.seeds:
            for combination in itertools.product(*(axis.values for axis in self.axes)):
                at = {a.name: v[0] for a, v in zip(self.axes, combination, strict=True)}
                settings = dict(self.base)
                for _, changed in combination:
                    settings |= changed
                made.append(Cell(self._run(list(at.values()), seed), at, settings, seed))
        return made

    def _run(self, labels: Sequence[str], seed: int) -> str:
        """Sweep, labels, seed; with an empty name labels only, and the seed if there are more."""
        ending = [f"s{seed}"] if self.name or len(self.seeds) > 1 else []
        text = "-".join([*filter(None, [self.name]), *labels, *ending])
        return re.sub(r"[^A-Za-z0-9._-]+", "_", text)[:64]


def load(path: str | Path) -> Sweep:
    """Read and check a sweep file. Raises BadSetting with the sentence to show."""
    path = Path(path)
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadSetting(f"cannot read {path}: {error}") from None
    if unknown := sorted(set(raw) - KEYS):
        raise BadSetting(f"{path.name}: unknown key {unknown[0]!r}; known: {', '.join(KEYS)}")
    axes = tuple(_axis(path.name, axis) for axis in raw.get("axes", []))
    found = Sweep(
        str(raw.get("name", path.stem)),
        str(raw.get("title", raw.get("name", path.stem))),
        dict(raw.get("base", {})),
        axes,
        tuple(raw.get("seeds", [0])),
        raw.get("form", "table"),
        raw.get("budget_hours"),
    )
    if found.form not in FORMS:
        raise BadSetting(f"{path.name}: form must be one of {', '.join(FORMS)}")
    _check(path.name, found)
    return found


def _axis(file: str, raw: dict[str, Any]) -> Axis:
    values, key = raw.get("values"), raw.get("key")
    if not isinstance(values, list) or not values:
        raise BadSetting(f"{file}: every axis needs a list of values")
    name = str(raw.get("name", key))
    if key is not None:
        return Axis(name, tuple((_plain(v), {str(key): v}) for v in values))
    if not all(isinstance(v, dict) and {"label", "set"} == set(v) for v in values):
        raise BadSetting(f"{file}: axis {name!r} needs a key, or values of label and set")
    return Axis(name, tuple((str(v["label"]), dict(v["set"])) for v in values))


def _check(file: str, sweep: Sweep) -> None:
    """Every cell's settings are understood, and no two cells share a run."""
    cells = sweep.cells()
    for cell in cells:
        options = {k: v for k, v in cell.settings.items() if k in OPTIONS}
        others = [f"{k}={_plain(v)}" for k, v in cell.settings.items() if k not in OPTIONS]
        try:
            with_settings(TrainConfig(**options, seed=cell.seed), others)
        except (TypeError, BadSetting) as error:
            raise BadSetting(f"{file}: {error}") from None
    if len({cell.run for cell in cells}) < len(cells):
        raise BadSetting(f"{file}: two cells would have the same run name; use shorter labels")


def status(sweep: Sweep) -> list[dict[str, Any]]:
    """A row per cell: where it stands on each axis, run, seed, status, seconds, scores."""
    known = {run.name: run for run in runs.list_runs()}
    rows = []
    for cell in sweep.cells():
        run = known.get(cell.run)
        row: dict[str, Any] = {**cell.at, "run": cell.run, "seed": cell.seed, "status": "waiting"}
        if run is not None:
            row["status"] = run.status().get("status", "")
            lines = [line for line in run.metrics() if "images_per_s" not in line]
            row |= {k: v for k, v in (lines[-1] if lines else {}).items() if k not in row}
        rows.append(row)
    return rows


def estimate(sweep: Sweep) -> float | None:
    """Seconds that the cells still to be trained will take, going by the cells that are done."""
    rows = status(sweep)
    took = [r["seconds"] for r in rows if r["status"] == "done" and "seconds" in r]
    left = sum(r["status"] != "done" for r in rows)
    return left * sum(took) / len(took) if took else None


def run_sweep(sweep: Sweep, report: Callable[[str], None] = print) -> list[dict[str, Any]]:
    """Train what is not done yet, one cell at a time. Returns `status` at the end.

    A cell that fails is reported and left; the next one starts. A stop stops the sweep too.
    """
    started, cells = time.monotonic(), sweep.cells()
    for i, cell in enumerate(cells):
        found = {r["run"]: r["status"] for r in status(sweep)}[cell.run]
        if found == "done":
            continue
        if sweep.budget_hours and time.monotonic() - started > 3600 * sweep.budget_hours:
            report(f"the budget of {sweep.budget_hours:g} hours is used up; run it again to go on")
            break
        left = estimate(sweep)
        about = "" if left is None else f", about {left / 60:.0f} min left"
        report(f"[{i + 1}/{len(cells)}] {cell.run}{about}")
        resume = [] if found == "waiting" else ["--resume"]
        argv = cell.argv() if not resume else ["train", "--run", cell.run, "--resume"]
        code = _train(argv)
        if code:
            report(f"{cell.run} ended with exit status {code}; going on with the next cell")
        elif {r["run"]: r["status"] for r in status(sweep)}[cell.run] == "stopped":
            report("stopped; run the sweep again to go on")
            break
    return status(sweep)


def _train(argv: list[str]) -> int:
    return subprocess.run([sys.executable, "-m", "contrastive_core", *argv]).returncode


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
