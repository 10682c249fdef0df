"""Which of a sweep's settings is best by an accuracy, as far as its runs show it. Torch-free."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from contrastive_core.evaluation.best_setting import best_setting
from contrastive_core.evaluation.verdicts import SettingScores
from contrastive_core.records.evaluation import Evaluation
from contrastive_core.records.sweep_cells import Row, value_of
from contrastive_core.records.sweep_grid import Sweep

DATA = ("dataset", "root")  # settings whose runs have other images


def verdict(sweep: Sweep, rows: Sequence[Row], accuracy: str) -> tuple[str, str]:
    """What paired tests show of the cells that are done, and what that rests on; "" where too few
    are done, or where they are not of the same images.

    Args: rows: those of `sweep_runner.status`; accuracy: a key of `cells.ACCURACIES`.
    """
    if any(key in settings for a in sweep.axes for _, settings, _ in a.values for key in DATA):
        return "", ""
    names, settings = [a.name for a in sweep.axes], dict[str, SettingScores]()
    runs = set[str]()  # cells that share a run are one setting
    for row in rows:
        value = value_of(row, "accuracy", accuracy)
        if value is None or row["run"] in runs:
            continue
        runs.add(row["run"])
        parts = [str(row[n]) if len(names) == 1 else f"{n} {row[n]}" for n in names]
        label = ", ".join(parts)
        one = settings.setdefault(label, SettingScores(label))
        one.scores[row["seed"]] = value / 100
        if (right := _right(row.get("evaluation"), accuracy)) is not None:
            one.right[row["seed"]] = right
    return best_setting(names[0] if len(names) == 1 else "", list(settings.values()))


def _right(evaluation: Evaluation | None, accuracy: str) -> np.ndarray | None:
    metric, _, split = accuracy.partition(" ")
    if evaluation is None or split != "test":
        return None
    score = evaluation.score("h", metric)
    return None if score is None else score.per_sample
