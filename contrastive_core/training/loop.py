"""One flat training loop: batch → pairs → loss → step → state, with everything written down.

A run ends as `done`, `stopped` (asked to), or `failed` (a NaN, a collapse, no memory, a full
disk, a folder that is gone), always with its reason and with the last good state to go on from.
"""

from __future__ import annotations

import math
import threading
import time
from contextlib import closing, nullcontext
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from contrastive_core.data.batch import Batch
from contrastive_core.device import autocast, memory_bytes
from contrastive_core.distributed import collectives
from contrastive_core.errors import CannotGoOn
from contrastive_core.pairs.types import Pairs
from contrastive_core.runs import Run, checkpoints
from contrastive_core.training import global_batch, monitor
from contrastive_core.training.epoch_totals import EpochTotals
from contrastive_core.training.failures import diverged, reason_of
from contrastive_core.training.metrics_log import MetricsLog, OnProgress
from contrastive_core.training.optim import learning_rate, set_learning_rate
from contrastive_core.training.save_and_resume import resume as resume_state
from contrastive_core.training.save_and_resume import save
from contrastive_core.training.setup import TrainSetup
from contrastive_core.training.state import TrainPosition
from contrastive_core.training.stop_signals import stop_signals

__all__ = ["train"]

COLLAPSED = 1e-4  # uniformity above −COLLAPSED: every embedding is the same point
LOG_EVERY_CUDA = 10  # steps between looks at a CUDA device, each of which waits for it


def train(
    setup: TrainSetup, run: Run, resume: bool = False, on_progress: OnProgress = lambda line: None
) -> str:
    """Train until the end, a signal, or a failure; returns the run's status.

    `on_progress` is called with every line of metrics. Raises: CannotGoOn after it has set the
    status to failed; Locked, with nothing changed, when another process trains the run.
    """
    rank0 = setup.world.is_rank0
    with (
        stop_signals() as stop,  # until the last word is written
        run.lock() if rank0 else nullcontext(),  # nobody sees an end without its reason
    ):
        training = _Training(
            setup, run, MetricsLog(run, rank0, on_progress), EpochTotals(setup.device), stop
        )
        return _until_the_end(training, resume)


@dataclass
class _Training:
    """A run at work."""

    setup: TrainSetup
    run: Run
    log: MetricsLog
    totals: EpochTotals
    stop: threading.Event
    saved: float = 0.0  # when, on the monotonic clock
    collapsed_epochs: int = 0  # in a row


class _Step(NamedTuple):
    """What one step computed, before the optimizer has used it."""

    pairs: Pairs
    loss: Tensor  # this process's part of it
    gradient_norm: Tensor
    n_valid: Tensor  # anchors of this process with a defined loss


def _until_the_end(t: _Training, resume: bool) -> str:
    """Train, and write down how it ended."""
    try:
        status = _epochs(t, resume)
    except (CannotGoOn, OSError, ValueError, torch.OutOfMemoryError) as error:
        reason = reason_of(error, t.setup)
        t.log.failed(reason)
        raise CannotGoOn(reason) from error
    except RuntimeError as error:
        if t.setup.world.size == 1:
            t.log.failed(f"{type(error).__name__}: {error}")
            raise
        t.log.failed("another process of the run ended; go on with --resume")
        raise CannotGoOn("another process of the run ended; go on with --resume") from error
    except BaseException as error:
        t.log.failed(f"{type(error).__name__}: {error}")
        raise
    t.log.status(
        status, "asked to stop; it goes on when it is resumed" if status == "stopped" else ""
    )
    return status


def _epochs(t: _Training, resume: bool) -> str:
    """Every epoch that is left; how it ended."""
    setup, epochs = t.setup, t.setup.config.epochs
    # not if it was killed before its first state; the first process's machine has the files
    if resume and collectives.broadcast_object(checkpoints.has_begun(t.run)):
        position, note = resume_state(setup, t.run, t.totals)
    else:
        position, note = TrainPosition(), ""
    t.log.start(position, epochs, note)
    t.saved = time.monotonic()
    setup.method.train()
    while position.epoch < epochs:
        indices = setup.loader.epoch(position.epoch)
        with closing(setup.loader.batches(indices[position.batch :])) as batches:
            for batch in batches:
                position, pairs = _one_batch(t, batch, position, len(indices))
                if position.batch < len(indices) and collectives.any_process(t.stop.is_set()):
                    save(setup, t.run, t.log, position, t.totals)
                    return "stopped"
        _after_epoch(t, position, pairs)
        position = position.after_epoch()
        stopped = position.epoch < epochs and collectives.any_process(t.stop.is_set())
        _save_if_due(t, position, stopped)
        if stopped:
            return "stopped"
    return "done"


def _one_batch(
    t: _Training, batch: Batch, position: TrainPosition, steps: int
) -> tuple[TrainPosition, Pairs]:
    """Train on a batch; the position after it. `steps`: of an epoch."""
    setup, config = t.setup, t.setup.config
    total, warmup = steps * config.epochs, round((config.warmup or 0) * steps)
    lr = learning_rate(position.step, total, config.lr or 0, config.schedule or "", warmup)
    set_learning_rate(setup.optimizer, lr)
    step = _compute(setup, batch)
    t.totals.add(step.loss, step.gradient_norm)
    log_it = should_log(setup.device, position.step)
    if log_it:
        loss, n_valid = _sum_over_processes(step.loss, step.n_valid)
        norm = float(step.gradient_norm)
        if not math.isfinite(loss) or not math.isfinite(norm):
            raise CannotGoOn(diverged(position.step + 1, loss, norm, lr))
    setup.optimizer.step()
    setup.method.after_step(step.pairs)
    position = position.after_batch()
    t.log.images += batch.global_rows.total
    if log_it:
        figures = {"loss": loss, "lr": lr, "grad_norm": norm, "n_valid": int(n_valid)}
        t.log.step(position, memory_bytes(setup.device), figures)
    return position, step.pairs


def _compute(setup: TrainSetup, batch: Batch) -> _Step:
    """Pairs, loss and gradients of one step."""
    config, method = setup.config, setup.method
    with autocast(setup.device, bool(config.amp)):
        pairs = method.pairs(batch, setup.generator)
    pairs = global_batch.global_pairs(pairs, by_label=method.needs_labels)
    output = setup.loss(pairs)
    loss = global_batch.local_value(output)
    setup.optimizer.zero_grad(set_to_none=True)
    loss.backward()
    parameters = [p for p in method.parameters() if p.requires_grad]
    global_batch.sum_gradients(parameters)
    norm = nn.utils.clip_grad_norm_(parameters, config.clip or math.inf)
    return _Step(pairs, loss.detach(), norm, (output.weight > 0).sum())


def should_log(device: torch.device, step: int) -> bool:
    """Whether this step is looked at: on CUDA not every one, since a look waits for the device."""
    return device.type != "cuda" or step % LOG_EVERY_CUDA == 0


def _sum_over_processes(*values: Tensor) -> list[float]:
    """Numbers summed over all processes, in one message."""
    return collectives.all_reduce_sum(torch.stack([v.float() for v in values])).tolist()


def _after_epoch(t: _Training, position: TrainPosition, pairs: Pairs) -> None:
    """Score and snapshot the fixed sample, and write the epoch's line."""
    setup, config = t.setup, t.setup.config
    mean_loss = t.totals.mean_loss()
    similarity = monitor.pair_similarity(pairs)
    if sums := t.totals.not_finite():
        raise CannotGoOn(diverged(position.step, *sums, config.lr or 0))
    t.totals.clear()
    if not setup.world.is_rank0:
        return
    amp = bool(config.amp)
    h, z = monitor.embed(setup.method, setup.sample.images, amp)
    scores = monitor.scores(setup.method, setup.sample, setup.method.recipe, h, z, amp)
    extra = {k: float(v) for k, v in setup.method.extra_metrics().items()}
    t.log.epoch(position, mean_loss, {**scores, **similarity, **extra})
    epoch, every = position.epoch + 1, config.snapshot_every
    if epoch == config.epochs or (every and epoch % every == 0):
        sample = setup.sample
        t.run.save_snapshot(epoch, index=sample.index, h=h, z=z, labels=sample.labels)
    one_point = scores.get("uniformity", -1.0) > -COLLAPSED
    t.collapsed_epochs = t.collapsed_epochs + 1 if one_point else 0
    if config.collapse_patience and t.collapsed_epochs >= config.collapse_patience:
        raise CannotGoOn(
            f"collapsed: for {t.collapsed_epochs} epochs all embeddings have been one point; try a "
            "lower learning rate, a longer warm-up (--set warmup=5), or stronger augmentations"
        )


def _save_if_due(t: _Training, position: TrainPosition, stopped: bool) -> None:
    """Save at the end, when asked to stop, and when the last state is old."""
    config = t.setup.config
    due = time.monotonic() - t.saved > config.save_seconds or position.epoch == config.epochs
    if collectives.any_process(due or stopped):
        save(t.setup, t.run, t.log, position, t.totals)
        t.saved = time.monotonic()
