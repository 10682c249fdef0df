"""An adviser on digits whose trainings are played: what each setting is worth is given."""

from typing import Any

import numpy as np

from contrastive_core.advice.candidates import AdviceRequest, make_plan
from contrastive_core.advice.evidence import HeldOutScores
from contrastive_core.advice.plan import Plan
from contrastive_core.advice.search import Search
from contrastive_core.data import datasets
from contrastive_core.sweeps.sweep_file import Cell

__all__ = ["Played", "made", "played"]


def made(minutes: float = 10, choose: tuple[str, ...] | None = ("temperature",), pace: Any = 1.0, **more: Any) -> Plan:
    """A plan; `pace`: seconds of an epoch, or those by method."""
    request = AdviceRequest("digits", minutes, choose, "a", **more)
    paces = (lambda config: pace[config.method]) if isinstance(pace, dict) else lambda config: pace
    return make_plan(request, datasets.load("digits", "train"), paces)


class Played(Search):
    """Trainings whose share right is `effect(settings)`, the same images being hard each time."""

    effect = staticmethod(lambda settings: 0.8)
    dies_at = 10**9
    seconds = 5.0

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.trained: list[str] = []

    def _judge_references(self) -> None:
        """Nothing is computed without a training."""

    def train_and_score(self, cell: Cell) -> HeldOutScores:
        if len(self.trained) >= self.dies_at:
            raise KeyboardInterrupt
        self.trained.append(cell.run)
        share = self.effect({k.removeprefix("method."): v for k, v in cell.settings.items()} | cell.settings)
        if share is None:
            return HeldOutScores(cell.run, failure="it broke")
        key = cell.run.split("-")[-3]
        hard = np.random.default_rng(0).random(len(self.rows))  # the same order of difficulty in each run
        noise = np.random.default_rng([cell.seed, int(key, 16)]).random(len(self.rows))
        right = (0.9 * hard + 0.1 * noise < share).astype(np.float64)
        return HeldOutScores(cell.run, right=right, seconds=self.seconds)


def played(plan: Plan, **more: Any) -> Played:
    search = type("Case", (Played,), more)(plan, datasets.load("digits", "train"))
    return search
