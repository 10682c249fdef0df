"""The cells of a sweep with what their seeds gave: each figure, their mean, and its interval.

Rows are those of `sweep_runner.status`. The 95 % interval of a mean is that over the seeds where there
are three; with fewer, of an accuracy, that of a share of so many images. Torch-free.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from contrastive_core.messages import N_, join, message
from contrastive_core.records.intervals import over_seeds, wilson
from contrastive_core.storage.json_files import JsonObject

__all__ = ["ACCURACIES", "Figure", "Row", "cells_of", "figure_of", "intervals_in_words", "value_of"]

ACCURACIES = {  # which figure of a row "accuracy" is
    "knn_train_sample": N_("kNN on the training sample, %"),
    "linear_probe test": N_("linear probe on test, %"),
    "knn test": N_("kNN on test, %"),
}

Row = JsonObject


@dataclass(frozen=True)
class Figure:
    """A measure of one cell: its seeds and their values, their mean, its interval, and of what that
    interval is: a number of seeds, or of images; both 0 where it is not known."""

    seeds: tuple[int, ...]
    values: tuple[float, ...]
    mean: float | None = None
    interval: tuple[float, float] | None = None
    of_seeds: int = 0
    of_images: int = 0

    @property
    def deviation(self) -> float | None:
        """The standard deviation over the seeds; None for one."""
        return statistics.stdev(self.values) if len(self.values) > 1 else None


def cells_of(rows: Sequence[Row], names: Sequence[str], accuracy: str, measures: Sequence[str]) -> list[Row]:
    """One row per combination of `names`: those, the `Figure` of each measure, and `seeds`, how
    many are done."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(n) for n in names), []).append(row)
    cells = []
    for at, members in groups.items():
        finished = [m for m in members if m["status"] == "done"]
        cell: Row = {**dict(zip(names, at, strict=True)), "seeds": len(finished)}
        cells.append(cell | {m: figure_of(finished, m, accuracy) for m in measures})
    return cells


def figure_of(members: Sequence[Row], measure: str, accuracy: str) -> Figure:
    """What the rows of one cell give together."""
    found = [(m, v) for m in members if (v := value_of(m, measure, accuracy)) is not None]
    if not found:
        return Figure((), ())
    seeds, values = tuple(m["seed"] for m, _ in found), tuple(v for _, v in found)
    mean = statistics.fmean(values)
    if interval := over_seeds(values):
        if measure == "accuracy":  # no share lies outside of 0 to 100 %
            interval = max(0.0, interval[0]), min(100.0, interval[1])
        return Figure(seeds, values, mean, interval, of_seeds=len(values))
    n = min(m.get("images", {}).get(accuracy, 0) for m, _ in found) if measure == "accuracy" else 0
    if not n:
        return Figure(seeds, values, mean)
    low, high = wilson(round(mean * n / 100), n)
    return Figure(seeds, values, mean, (100 * low, 100 * high), of_images=n)


def value_of(row: Row, measure: str, accuracy: str) -> float | None:
    """A measure of a row that is done; accuracies in per cent."""
    value = row.get(accuracy if measure == "accuracy" else measure)
    if row["status"] != "done" or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return 100 * float(value) if measure == "accuracy" else float(value)


def intervals_in_words(figures: Sequence[Figure], dot: str = "seed") -> str:
    """What the dots and intervals of some figures that are drawn together are of."""
    figures = [f for f in figures if f.mean is not None]
    seeds, images = {f.of_seeds for f in figures} - {0}, {f.of_images for f in figures} - {0}
    parts = []
    if any(len(f.values) > 1 for f in figures):
        parts.append(message("A dot is a {dot}, the line goes through their means.", dot=dot))
    if seeds:
        parts.append(message("Intervals: 95 % of the mean over {range} {dot}s.", range=_range(seeds), dot=dot))
    if images:
        parts.append(
            message(
                "Intervals of fewer {dot}s: 95 % of a share of {range} images; how much another seed "
                "would differ is not in them.",
                dot=dot,
                range=_range(images),
            )
            if seeds
            else message(
                "Intervals: 95 % of a share of {range} images; how much another seed would differ is not in them.",
                range=_range(images),
            )
        )
    if any(f.interval is None for f in figures):
        parts.append(message("Without an interval: fewer than three {dot}s, of which no spread is known.", dot=dot))
    return join(" ", parts)


def _range(numbers: set[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else message("{low} to {high}", low=f"{low:,}", high=f"{high:,}")
