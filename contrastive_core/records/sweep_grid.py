"""What a sweep consists of: axes, cells, and what is drawn along what. Torch-free."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from contrastive_core.records.train_config import TrainConfig, with_settings
from contrastive_core.storage.json_files import JsonObject

__all__ = ["Axis", "Cell", "Draw", "Sweep", "arguments_of", "as_text", "config_of"]

OPTIONS = ("method", "dataset", "epochs", "loss", "encoder", "exclude", "relabel", "root")


@dataclass(frozen=True)
class Axis:
    """One thing that varies: a label and the settings behind it, for each value."""

    name: str
    values: tuple[tuple[str, JsonObject, JsonObject], ...]  # label, settings, at
    ignores: dict[str, tuple[str, ...]] = field(default_factory=dict)  # by label: settings


@dataclass(frozen=True)
class Draw:
    """What is drawn along what: names of axes, or of an axis value's `at`."""

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
    """What a sweep file says."""

    name: str
    title: str
    base: JsonObject
    axes: tuple[Axis, ...]
    seeds: tuple[int, ...]
    form: str
    budget_hours: float | None
    draw: Draw = field(default_factory=Draw)

    def cells(self) -> list[Cell]:
        """Every cell and seed, in the order in which they are trained: one seed after the other.

        Cells of the same settings, but for what one of their values ignores, share a run."""
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
