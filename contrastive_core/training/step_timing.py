"""How long an epoch will take: a few steps of training, timed and thrown away."""

from __future__ import annotations

import statistics
import time

from contrastive_core.device import autocast
from contrastive_core.training import monitor
from contrastive_core.training.config import TrainConfig
from contrastive_core.training.optim import set_learning_rate
from contrastive_core.training.setup import Prepared, prepare

__all__ = ["seconds_per_epoch"]

STEPS = 3


def seconds_per_epoch(config: TrainConfig) -> float:
    """Seconds of one epoch with its scoring, from a few steps on this computer.

    Raises: ValueError for settings that cannot be trained.
    """
    p = prepare(config)
    p.method.train()
    set_learning_rate(p.optimizer, 0.0)
    plan = p.plan(0)
    took = [_step(p, index) for index in plan[: STEPS + 1]]
    started = time.perf_counter()
    h, z = monitor.embed(p.method, p.sample.images)
    monitor.scores(p.method, p.sample, p.method.recipe, h, z)
    scoring = time.perf_counter() - started
    return statistics.median(took[1:] or took) * len(plan) + scoring


def _step(p: Prepared, index: object) -> float:
    """Seconds of one step; the value is read, so that a GPU has finished it."""
    started = time.perf_counter()
    with autocast(p.device, bool(p.config.amp)):
        pairs = p.method.pairs(p.batch(index), p.generator)  # type: ignore[arg-type]
    value = p.loss(pairs).value
    p.optimizer.zero_grad(set_to_none=True)
    value.backward()
    p.optimizer.step()
    p.method.after_step(pairs)
    value.item()
    return time.perf_counter() - started
