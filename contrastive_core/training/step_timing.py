"""How long an epoch will take: a few steps of training, timed and thrown away."""

from __future__ import annotations

import statistics
import time

import numpy as np

from contrastive_core.records.train_config import TrainConfig
from contrastive_core.training import monitor
from contrastive_core.training.loop import compute_step
from contrastive_core.training.optim import set_learning_rate
from contrastive_core.training.setup import TrainSetup, prepare

STEPS = 3


def seconds_per_epoch(config: TrainConfig) -> float:
    """Seconds of one epoch with its scoring, from a few steps on this computer. Raises: ValueError for settings that
    cannot be trained."""
    setup = prepare(config)
    setup.method.train()
    set_learning_rate(setup.optimizer, 0.0)
    batches = setup.loader.epoch(0)
    seconds = [_step(setup, index) for index in batches[: STEPS + 1]]
    started = time.perf_counter()
    h, z = monitor.embed(setup.method, setup.sample.images)
    monitor.scores(setup.method, setup.sample, setup.method.recipe, h, z)
    scoring = time.perf_counter() - started
    return statistics.median(seconds[1:] or seconds) * len(batches) + scoring


def _step(setup: TrainSetup, index: np.ndarray) -> float:
    """Seconds of one step; the value is read, so that a GPU has finished it."""
    started = time.perf_counter()
    step = compute_step(setup, setup.loader.batch(index))
    setup.optimizer.step()
    setup.method.after_step(step.pairs)
    step.loss.item()
    return time.perf_counter() - started
