"""An adviser on digits whose trainings are played: what each setting is worth is given."""

from __future__ import annotations

from typing import Any

import numpy as np

from contrastive_core.advice.held_out import HeldOutScores
from contrastive_core.advice.planning import AdviceRequest, make_plan
from contrastive_core.advice.search import Search
from contrastive_core.data import datasets
from contrastive_core.records.advice import Plan
from contrastive_core.records.sweep_grid import Cell

__all__ = ["Played", "made", "played"]


def made(minutes: float = 10, choose: tuple[str, ...] = ("temperature",), **more: Any) -> Plan:
    dataset = datasets.load("digits", "train")
    return make_plan(AdviceRequest("digits", minutes, choose, "a", **more), dataset, 1.0)


class Played(Search):
    """Trainings whose share right is `effect(settings)`, the same images being hard each time."""

    effect = staticmethod(lambda settings: 0.8)
    dies_at = 10**9
    seconds = 5.0

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.trained: list[str] = []

    def _train_and_score(self, cell: Cell) -> HeldOutScores:
        if len(self.trained) >= self.dies_at:
            raise KeyboardInterrupt
        self.trained.append(cell.run)
        settings = {k.removeprefix("method."): v for k, v in cell.settings.items()}
        share = self.effect({**cell.settings, **settings})
        if share is None:
            return HeldOutScores(cell.run, failure="it broke")
        key = cell.run.split("-")[-3]
        hard = np.random.default_rng(0).random(len(self.rows))  # the same order of difficulty in each run
        epochs = int(cell.settings["epochs"])
        noise = np.random.default_rng([epochs, cell.seed, len(key), int(key, 16)]).random(len(self.rows))
        right = (0.9 * hard + 0.1 * noise < share).astype(np.float64)
        return HeldOutScores(cell.run, {"knn": float(right.mean())}, self.seconds, right)


def played(plan: Plan, **more: Any) -> Played:
    search = type("Case", (Played,), more)(plan, datasets.load("digits", "train"))
    return search
