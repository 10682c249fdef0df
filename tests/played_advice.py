"""An adviser on digits whose trainings are played: what each setting is worth is given."""

from __future__ import annotations

from typing import Any

import numpy as np

from contrastive_core.advice import plan as plans
from contrastive_core.advice.judge import Judged, keep
from contrastive_core.advice.search import Search
from contrastive_core.data import datasets

__all__ = ["Played", "made", "played"]


def made(
    minutes: float = 10, choose: tuple[str, ...] = ("temperature",), **more: Any
) -> plans.Plan:
    dataset = datasets.load("digits", "train")
    return plans.make("a", dataset, "simclr", list(choose), minutes, 20, 1.0, **more)


class Played(Search):
    """Trainings whose share right is `effect(settings)`, the same images being hard each time."""

    effect = staticmethod(lambda settings: 0.8)
    dies_at = 10**9
    seconds = 5.0

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.trained: list[str] = []

    def _trained(self, tried: Any, name: str, epochs: int, seed: int) -> Judged | None:
        if len(self.trained) >= self.dies_at:
            raise KeyboardInterrupt
        self.trained.append(name)
        share = self.effect({**tried.settings, "epochs": epochs})
        if share is None:
            self.failed[tried.label] = "it broke"
            return None
        hard = np.random.default_rng(0).random(
            len(self.rows)
        )  # the same order of difficulty in each run
        noise = np.random.default_rng([epochs, seed, len(tried.key), int(tried.key, 16)]).random(
            len(self.rows)
        )
        right = (0.9 * hard + 0.1 * noise < share).astype(np.float64)
        judged = Judged(name, {"knn": float(right.mean())}, self.seconds, right)
        keep(self.folder / "judged", judged)
        return judged


def played(plan: plans.Plan, **more: Any) -> Played:
    search = type("Case", (Played,), more)(plan, datasets.load("digits", "train"))
    return search
