"""The training loop: batch → pairs → loss → optimizer step → metrics → state. A run ends as `done`, `stopped` (on
request) or `failed` (a NaN, a collapse, no memory, a full disk, a missing folder), always with its reason and with the
last good state to resume from."""

import math
import signal
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from contrastive_core.data.batch_loader import Batch
from contrastive_core.data.streamed_images import unread_files
from contrastive_core.distributed import collectives
from contrastive_core.errors import CannotGoOn
from contrastive_core.losses._two_views import TwoViewLoss
from contrastive_core.messages import N_
from contrastive_core.pairs.types import Pairs
from contrastive_core.records.run import Run
from contrastive_core.records.train_config import TrainConfig
from contrastive_core.runs import checkpoints
from contrastive_core.training import collapse, global_batch, gradient_cache, monitor
from contrastive_core.training.failures import diverged, reason_of
from contrastive_core.training.metrics_log import MetricsLog, OnLines
from contrastive_core.training.optim import learning_rate, set_learning_rate
from contrastive_core.training.setup import TrainSetup, prepare
from contrastive_core.training.state import EpochTotals, StateWriter, TrainPosition, save
from contrastive_core.training.state import resume as resume_state

COLLAPSED = 1e-4  # uniformity above −COLLAPSED: every embedding is the same point
LOG_EVERY_DEVICE = 10  # steps between logged ones on CUDA and MPS: reading a figure waits for the device
TIMED_STEPS = 3  # for an estimate of an epoch's time


def train(
    setup: TrainSetup,
    run: Run,
    resume: bool = False,
    on_lines: OnLines = lambda lines: None,
    stop_requested: threading.Event | None = None,
) -> str:
    """Train until the end, a signal, or a failure; returns the run's status. `on_lines` is called with the lines of
    metrics whenever they are written. `stop_requested` is set by a signal, also by one that came too late to stop the
    run. Raises: CannotGoOn after it has set the status to failed; Locked, with nothing changed, if another process
    trains the run."""
    is_rank0 = setup.world.is_rank0
    with (
        stop_signals(stop_requested) as stop,  # until the status is written
        run.lock() if is_rank0 else nullcontext(),  # released after the reason is written
    ):
        log = MetricsLog(run, setup.device, is_rank0, on_lines)
        watch = collapse.CollapseWatch(isinstance(setup.loss, TwoViewLoss))
        return _until_the_end(_Training(setup, run, log, EpochTotals(setup.device), stop, watch), resume)


@contextmanager
def stop_signals(given: threading.Event | None = None) -> Iterator[threading.Event]:
    """SIGTERM and Ctrl-C ask the loop to save and stop; a second Ctrl-C ends at once."""
    stop_requested = given or threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop_requested
        return

    def on_signal(number: int, frame: object) -> None:
        if stop_requested.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        stop_requested.set()

    before = {n: signal.signal(n, on_signal) for n in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop_requested
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass
class _Training:
    """A training in progress."""

    setup: TrainSetup
    run: Run
    log: MetricsLog
    totals: EpochTotals
    stop: threading.Event
    watch: collapse.CollapseWatch
    writer: StateWriter = field(default_factory=StateWriter)
    saved: float = 0.0  # when, on the monotonic clock
    collapsed_epochs: int = 0  # in a row


class _Step(NamedTuple):
    """The result of one step, before the optimizer step."""

    pairs: Pairs
    loss: Tensor  # this process's part of it
    gradient_norm: Tensor
    n_valid: Tensor  # anchors of this process with a defined loss

    def figures(self, world_size: int) -> tuple[float, float, float]:
        """Loss, anchors and gradient norm of all processes, read at once; all call it together."""
        loss, n_valid, norm = (x.float() for x in (self.loss, self.n_valid, self.gradient_norm))
        parts = torch.stack([loss, n_valid])
        if world_size > 1:
            parts = collectives.all_reduce_sum(parts)
        loss, n_valid, norm = torch.cat([parts, norm[None]]).tolist()
        return loss, n_valid, norm


def _until_the_end(t: _Training, resume: bool) -> str:
    """Train, and write the final status."""
    try:
        with t.writer:
            status = _epochs(t, resume)
    except (CannotGoOn, OSError, ValueError, torch.OutOfMemoryError) as error:
        reason = reason_of(error, t.setup)
        t.log.fail(reason)
        raise CannotGoOn(reason) from error
    except RuntimeError as error:
        if t.setup.world.size == 1:
            t.log.fail(f"{type(error).__name__}: {error}")
            raise
        t.log.fail("another process of the run ended; continue with --resume")
        raise CannotGoOn(N_("another process of the run ended; continue with --resume")) from error
    except BaseException as error:
        t.log.fail(f"{type(error).__name__}: {error}")
        raise
    t.log.status(status, N_("stopped; resume it to continue") if status == "stopped" else "")
    return status


def _epochs(t: _Training, resume: bool) -> str:
    """Train the remaining epochs. Returns the final status."""
    setup, epochs = t.setup, t.setup.config.epochs
    # no state yet if it was killed early; the files are on the machine of the first process
    if resume and collectives.broadcast_object(checkpoints.has_begun(t.run)):
        position, note = resume_state(setup, t.run, t.totals)
    else:
        position, note = TrainPosition(), ""
    t.log.start(position, epochs, note)
    for line in t.run.metrics() if resume else ():
        _look_for_collapse(t, line)
    t.saved = time.monotonic()
    setup.method.train()
    while position.epoch < epochs:
        indices = setup.loader.epoch(position.epoch)
        with closing(setup.loader.batches(indices[position.batch :])) as batches:
            for batch in batches:
                position, pairs = _one_batch(t, batch, position, len(indices))
                t.writer.check()
                if position.batch < len(indices) and should_stop(t):
                    _save(t, position)
                    return "stopped"
        _after_epoch(t, position, pairs)
        position = position.after_epoch()
        stopped = position.epoch < epochs and should_stop(t)
        due = stopped or time.monotonic() - t.saved > setup.config.save_seconds or position.epoch == epochs
        if collectives.any_process(due):
            _save(t, position)
        if stopped:
            return "stopped"
    return "done"


def _one_batch(t: _Training, batch: Batch, position: TrainPosition, steps: int) -> tuple[TrainPosition, Pairs]:
    """Train on a batch. Returns the position after it. `steps`: of an epoch."""
    setup, config = t.setup, t.setup.config
    total, warmup = steps * config.epochs, round((config.warmup or 0) * steps)
    lr = learning_rate(position.step, total, config.lr or 0, config.schedule or "", warmup)
    set_learning_rate(setup.optimizer, lr)
    log_it = should_log(setup.device, position.step)
    step = compute_step(setup, batch, log_it)
    t.totals.add(step.loss, step.gradient_norm)
    if log_it:
        loss, n_valid, norm = step.figures(setup.world.size)
        if not math.isfinite(loss) or not math.isfinite(norm):
            raise CannotGoOn(diverged(position.step + 1, loss, norm, lr))
    setup.optimizer.step()
    setup.method.after_step(step.pairs)
    position = position.after_batch()
    t.log.images += batch.global_rows.total
    if log_it:
        figures = {"loss": loss, "lr": lr, "grad_norm": norm, "n_valid": int(n_valid)}
        figures |= setup.method.step_metrics()
        figures |= collapse.spread_of(step.pairs, setup.loss, setup.method.card.needs_captions)
        _look_for_collapse(t, figures)
        t.log.step(position, figures)
    return position, step.pairs


def compute_step(setup: TrainSetup, batch: Batch, looks: bool = True) -> _Step:
    """Pairs, loss and gradients of one step; of several processes, those of their global batch. `looks`: the loss may
    read numbers to check its pairs, which waits for a device."""
    config, method, amp = setup.config, setup.method, bool(setup.config.amp)
    setup.optimizer.zero_grad(set_to_none=True)
    parts = gradient_cache.parts_of(batch, config.micro_batch, setup.world.size) if config.micro_batch else [batch]
    if len(parts) == 1:
        with torch.autocast(setup.device.type, torch.bfloat16, enabled=amp):
            pairs = method.pairs(batch, setup.generator)
        found = evaluate(setup, pairs, looks)
        setup.buckets.start()
        found.value.backward()
    else:
        evaluation = partial(evaluate, setup, looks=looks)
        scope = gradient_cache.StepScope(method, setup.generator, setup.device, amp, evaluation, setup.buckets.start)
        found = gradient_cache.backward(scope, batch, parts, setup.loss.needs_whole_batch)
    setup.buckets.finish()
    parameters = [p for p in method.parameters() if p.requires_grad]
    if config.clip:
        norm = nn.utils.clip_grad_norm_(parameters, config.clip)
    else:
        norm = nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])
    return _Step(found.pairs, found.value.detach(), norm, (found.output.weight > 0).sum())


def evaluate(setup: TrainSetup, pairs: Pairs, looks: bool) -> gradient_cache.StepLoss:
    """The loss of this process's anchors among the candidates of all processes."""
    is_alone = setup.world.size == 1
    if not is_alone:
        pairs = global_batch.global_pairs(pairs, by_label=setup.method.card.needs_labels)
    output = setup.loss(pairs) if looks else setup.loss.without_waiting(pairs)
    value = output.value if is_alone else global_batch.local_value(output)
    return gradient_cache.StepLoss(pairs, output, value)


def should_log(device: torch.device, step: int) -> bool:
    """Whether to read the figures of this step: on a device not of every one, since reading waits for it."""
    return device.type == "cpu" or step % LOG_EVERY_DEVICE == 0


def _after_epoch(t: _Training, position: TrainPosition, pairs: Pairs) -> None:
    """Score and snapshot the fixed sample, and add the epoch's line."""
    setup = t.setup
    means = mean_loss, _ = t.totals.means()
    similarity = monitor.pair_similarity(pairs)
    if not all(map(math.isfinite, means)):
        raise CannotGoOn(diverged(position.step, *means, setup.config.lr or 0))
    t.totals.clear()
    t.log.unread = unread_files(setup.dataset.images)
    collectives.on_rank0(partial(_log_epoch, t, position, {"loss": mean_loss, **similarity}))


def _log_epoch(t: _Training, position: TrainPosition, figures: dict[str, float]) -> None:
    """Add the line of an epoch and, where they are due, the scores and the snapshot of the fixed sample."""
    setup, config, epoch = t.setup, t.setup.config, position.epoch + 1
    is_scored, is_kept = (_is_due(epoch, n, config.epochs) for n in (config.monitor_every, config.snapshot_every))
    rows = monitor.embed_sample(setup.method, setup.sample, bool(config.amp)) if is_scored or is_kept else {}
    scores = _scores(setup, rows) if is_scored else {}
    _look_for_collapse(t, scores)
    extra = {k: float(v) for k, v in setup.method.extra_metrics().items()}
    t.log.epoch(position, {**figures, **scores, **extra})
    if is_kept:
        t.run.save_snapshot(epoch, index=setup.sample.index, labels=setup.sample.labels, **rows)
    if is_scored:
        _end_if_collapsed(t, scores)


def _scores(setup: TrainSetup, rows: dict[str, np.ndarray]) -> dict[str, float]:
    """The scores of the fixed sample's `rows`."""
    h, z, captions = rows["h"], rows["z"], {k: v for k, v in rows.items() if k.startswith("text_")}
    scores = monitor.scores(setup.method, setup.sample, setup.method.recipe, h, z, bool(setup.config.amp))
    return scores | (monitor.tower_scores(z, **captions) if captions else {}) | collapse.dimension_scores(z)


def _is_due(epoch: int, every: int | None, epochs: int) -> bool:
    """Whether this epoch's turn has come: of each `every` epochs, if it is not 0, and of the last."""
    return epoch == epochs or bool(every and epoch % every == 0)


def _end_if_collapsed(t: _Training, scores: dict[str, float]) -> None:
    """Raises: CannotGoOn if the embeddings have been one point for as long as the run's patience."""
    config = t.setup.config
    one_point = scores.get("uniformity", -1.0) > -COLLAPSED
    t.collapsed_epochs = t.collapsed_epochs + (config.monitor_every or 1) if one_point else 0
    if config.collapse_patience and t.collapsed_epochs >= config.collapse_patience:
        raise CannotGoOn(
            "collapsed: for {collapsed_epochs} epochs all embeddings have been one point. Likely reason: {reason}",
            collapsed_epochs=t.collapsed_epochs,
            reason=collapse.likely_reason(config, t.setup.method, t.setup.loss),
        )


def _look_for_collapse(t: _Training, line: dict[str, float]) -> None:
    """Say in the status that the embedding collapses, or take that back. Not of a method with labels, whose classes may
    rightly be points on a line."""
    before, setup = t.watch.is_collapsed, t.setup
    if setup.method.card.needs_labels:
        return
    t.watch.see(line)
    if t.watch.is_collapsed == before:
        return
    t.log.warning = "" if before else collapse.warning(t.watch, setup.config, setup.method, setup.loss)
    t.log.status("running")


def _save(t: _Training, position: TrainPosition) -> None:
    """Save the state, after the metrics that lead to it."""
    t.log.flush()
    save(t.setup, t.run, position, t.totals, t.writer)
    t.saved = time.monotonic()


def should_stop(t: _Training) -> bool:
    """Whether this process, or any other of the run, was asked to stop."""
    requested = t.stop.is_set()
    return requested if t.setup.world.size == 1 else collectives.any_process(requested)


def seconds_per_epoch(config: TrainConfig) -> float:
    """Seconds of an epoch and its scoring, from a few steps. Raises: ValueError for settings that cannot be trained."""
    setup = prepare(config)
    setup.method.train()
    set_learning_rate(setup.optimizer, 0.0)
    batches = setup.loader.epoch(0)
    seconds = [_seconds_of_step(setup, index) for index in batches[: TIMED_STEPS + 1]]
    started = time.perf_counter()
    _scores(setup, monitor.embed_sample(setup.method, setup.sample, bool(setup.config.amp)))
    scoring = time.perf_counter() - started
    return statistics.median(seconds[1:] or seconds) * len(batches) + scoring


def _seconds_of_step(setup: TrainSetup, index: np.ndarray) -> float:
    """Seconds of one step; the value is read, so that a GPU has finished it."""
    started = time.perf_counter()
    step = compute_step(setup, setup.loader.batch(index))
    setup.optimizer.step()
    setup.method.after_step(step.pairs)
    step.loss.item()
    return time.perf_counter() - started
