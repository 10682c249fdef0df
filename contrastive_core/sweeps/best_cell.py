"""Which of a sweep's settings is best by an accuracy, as far as its runs show it. Torch-free."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from contrastive_core.evaluation.best_setting import best_setting
from contrastive_core.evaluation.verdicts import SettingScores
from contrastive_core.records.evaluation import Evaluation
from contrastive_core.records.sweep_grid import Row, Sweep, value_of

DATA = ("dataset", "root")  # settings whose runs have other images


def verdict(sweep: Sweep, rows: Sequence[Row], accuracy: str) -> tuple[str, str]:
    """What paired tests show of the cells that are done, and what that rests on; "" where too few are done, or where
    they are not of the same images.
    Args: rows: those of `sweep_runner.status`; accuracy: a key of `cells.ACCURACIES`."""
    if any(key in settings for a in sweep.axes for _, settings, _ in a.values for key in DATA):
        return "", ""
    names, settings = [axis.name for axis in sweep.axes], dict[str, SettingScores]()
    first_of_run: dict[str, Row] = {}  # cells that share a run are one setting
    for row in rows:
        first_of_run.setdefault(row["run"], row)
    for row in first_of_run.values():
        if (value := value_of(row, "accuracy", accuracy)) is None:
            continue
        label = ", ".join(str(row[n]) if len(names) == 1 else f"{n} {row[n]}" for n in names)
        one = settings.setdefault(label, SettingScores(label))
        one.scores[row["seed"]] = value / 100
        if (right := _right(row.get("evaluation"), accuracy)) is not None:
            one.right[row["seed"]] = right
    return best_setting(names[0] if len(names) == 1 else "", list(settings.values()))


def _right(evaluation: Evaluation | None, accuracy: str) -> np.ndarray | None:
    metric, _, split = accuracy.partition(" ")
    score = evaluation.score("h", metric) if evaluation and split == "test" else None
    return None if score is None else score.per_sample
