"""The training loop: batch → pairs → loss → optimizer step → metrics → state. A run ends as `done`, `stopped` (on
request) or `failed`, with its reason and the last good state to resume from."""

import contextlib
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn

from contrastive_core.base.device import memory_bytes
from contrastive_core.base.errors import CannotGoOn, Diverged, Elsewhere, Gone
from contrastive_core.base.messages import N_, join, message
from contrastive_core.data.batch_loader import Batch
from contrastive_core.data.image_cache import unread_files
from contrastive_core.losses._two_views import TwoViewLoss
from contrastive_core.ops import collectives
from contrastive_core.pairs.types import Pairs
from contrastive_core.runs import checkpoints
from contrastive_core.runs.records import Change
from contrastive_core.runs.run import Run
from contrastive_core.runs.run_metrics import turned
from contrastive_core.train import large_batches, monitor
from contrastive_core.train.changes import LiveChanges
from contrastive_core.train.monitor import SHORTLY, CollapseWatch, likely_reason
from contrastive_core.train.optim import learning_rate, set_learning_rate
from contrastive_core.train.setup import TrainSetup
from contrastive_core.train.state import StateWriter, TrainPosition, diverged, epoch_means, new_totals, reason_of, save
from contrastive_core.train.state import resume as resume_state

COLLAPSED = 1e-4  # uniformity above −COLLAPSED: every embedding is the same point
FLUSH_SECONDS = 0.5  # between two writes of lines
STATUS_SECONDS = 2.0  # between two writes of the status
LOG_EVERY_DEVICE = 10  # steps between logged ones on CUDA and MPS: reading a figure waits for the device

Line = dict[str, float]
OnLines = Callable[[list[Line]], None]


class MetricsLog:
    """Collects lines of metrics, and passes them to the run's files and to `on_lines`."""

    def __init__(self, setup: TrainSetup, run: Run, on_lines: OnLines) -> None:
        self.setup, self.run, self.on_lines, self.writes = setup, run, on_lines, setup.world.is_rank0
        self.watch = CollapseWatch(isinstance(setup.loss, TwoViewLoss))
        self.one_point_epochs = 0  # in a row
        self.lines: list[Line] = []
        self.images = 0  # since the last line
        self.memory = 0  # peak, in MB, as last measured: in the first lines and at every epoch
        self.note = ""  # of the resumed state
        self.warning = ""  # of a collapse, as long as it lasts
        self.scored: list[Line] = []  # lines of epochs with a kNN
        self.turn = ""  # that the kNN has fallen, as long as it lasts
        self.unread = ""  # of files that could not be decoded
        self.position = TrainPosition()
        self.last_line = self.last_flush = self.last_status = self.started = time.monotonic()

    def start(self, position: TrainPosition, note: str) -> None:
        """Start or continue at `position`; later lines are removed."""
        self.note = note
        if self.writes:
            self.run.cut_metrics(position.step)
        lines = self.run.metrics()
        earlier = max((line.get("seconds", 0.0) for line in lines), default=0.0)
        self.last_line = time.monotonic()
        self.started = self.last_line - earlier
        self.position = position
        self.status("running")
        for line in lines:
            self._look_for_collapse(line)
            self._look_for_turn(line)

    def step(self, position: TrainPosition, values: Line) -> None:
        """Add the line of one optimizer step."""
        now = time.monotonic()
        rate = self.images / max(now - self.last_line, 1e-9)
        self.images, self.last_line, self.position = 0, now, position
        line: Line = {"step": position.step, "epoch": position.epoch, **values}
        self._add({**line, "images_per_s": round(rate, 1)})

    def epoch(self, position: TrainPosition, values: Line) -> None:
        """Add the line of one epoch, after its last step."""
        self.images, self.last_line = 0, time.monotonic()  # scoring is not training
        seconds = round(self.last_line - self.started, 3)
        self.position, self.memory = position.after_epoch(), 0
        line = {"epoch": position.epoch + 1, "step": position.step, "seconds": seconds, **values}
        self._look_for_turn(line)
        self._add(line)

    def status(self, status: str, reason: str = "", is_diverged: bool = False) -> None:
        """Write all collected lines and the run's status."""
        self.flush()
        self.last_status = time.monotonic()
        if self.writes:
            place = {"epoch": self.position.epoch, "step": self.position.step, "epochs": self.setup.config.epochs}
            note = join(". ", filter(None, [self.note, self.unread, self.warning, self.turn]))
            told = {"note": note, "is_warned": bool(self.warning or self.turn), "is_diverged": is_diverged}
            self.run.set_status(status, reason=reason, **told, **place)

    def flush(self) -> None:
        """Write the lines collected so far, with the peak memory."""
        lines, self.lines = self.lines, []
        self.last_flush = time.monotonic()
        if not lines:
            return
        self.memory = self.memory or memory_bytes(self.setup.device) >> 20
        lines = [{**line, "memory_mb": self.memory} for line in lines]
        if self.writes:
            self.run.append_metrics(lines)
        self.on_lines(lines)

    def _add(self, line: Line) -> None:
        self.lines.append(line)
        self._look_for_collapse(line)
        now = time.monotonic()
        if now - self.last_status >= STATUS_SECONDS:
            self.status("running")
        elif now - self.last_flush >= FLUSH_SECONDS:
            self.flush()

    def _look_for_collapse(self, line: Line) -> None:
        """Add a warning to the status if the embedding collapses, or withdraw it. Methods with labels are exempt,
        because their classes may correctly become points on a line."""
        before, setup = self.watch.is_collapsed, self.setup
        if setup.method.card.needs_labels:
            return
        self.watch.see(line)
        if self.watch.is_collapsed != before:
            changes = [one for one in self.run.changes() if line["step"] - one["step"] <= SHORTLY]
            reason = likely_reason(setup.config, setup.method, setup.loss, changes)
            self.warning = "" if before else message(self.watch.in_words, reason=reason)
            self.status("running")

    def _look_for_turn(self, line: Line) -> None:
        if "knn_train_sample" in line:
            self.scored.append(line)
            self.turn = turned(self.scored, int((self.setup.sample.labels >= 0).sum()), "epoch")


def train(
    setup: TrainSetup,
    run: Run,
    resume: bool = False,
    on_lines: OnLines = lambda lines: None,
    stop_requested: threading.Event | None = None,
) -> str:
    """Train until the end, a signal, or a failure; return the run's status. `on_lines` is called with the lines of
    metrics whenever they are written. `stop_requested` is set by a signal, even by one too late to stop the run.
    Raises: CannotGoOn after it has set the status to failed; Locked, with nothing changed, if another process trains
    the run."""
    is_rank0 = setup.world.is_rank0
    with (
        stop_signals(stop_requested) as stop,  # until the status is written
        run.lock() if is_rank0 else nullcontext(),  # released after the reason is written
    ):
        log = MetricsLog(setup, run, on_lines)
        try:
            with StateWriter() as writer:
                status = _train(setup, run, log, writer, stop, resume)
        except BaseException as error:
            is_known = isinstance(error, (CannotGoOn, OSError, ValueError, torch.OutOfMemoryError))
            reason = reason_of(error, setup) if is_known else f"{type(error).__name__}: {error}"
            is_torn = not is_known and isinstance(error, RuntimeError) and setup.world.size > 1
            if is_torn:
                reason = N_("another process of the run ended; continue with --resume")
            with contextlib.suppress(OSError, Gone):  # a full disk, a missing folder
                log.status("failed", reason, isinstance(error, Diverged))
            if is_torn and not is_rank0:
                raise Elsewhere from error
            if is_known or is_torn:
                raise CannotGoOn(reason) from error
            raise
        log.status(status, N_("stopped; resume it to continue") if status == "stopped" else "")
        return status


def _train(
    setup: TrainSetup, run: Run, log: MetricsLog, writer: StateWriter, stop: threading.Event, resume: bool
) -> str:
    """Train the remaining epochs. Returns the final status."""
    config, loader, method = setup.config, setup.loader, setup.method
    totals, changes = new_totals(setup.device), LiveChanges(setup, run)
    position, note, saved_changes = TrainPosition(), "", list[Change]()
    # no state yet if it was killed early; the files are on the machine of the first process
    if resume and collectives.broadcast_object(checkpoints.has_begun(run)):
        position, note, saved_changes = resume_state(setup, run, totals)
    withdrawn = changes.start(position.step, saved_changes)
    log.start(position, join(". ", filter(None, [note, withdrawn])))
    looks, saved = monitor.Looks(setup, run), time.monotonic()
    method.train()
    while position.epoch < config.epochs:
        order = loader.epoch(position.epoch)  # the rows of each batch
        steps, warmup = len(order), round((config.warmup or 0) * len(order))
        with closing(loader.batches(order[position.batch :])) as batches:
            for batch in batches:
                peak = changes.values["lr"]
                lr = learning_rate(position.step, steps * config.epochs, peak, config.schedule or "", warmup)
                set_learning_rate(setup.optimizer, lr)
                logs = should_log(setup.device, position.step)
                output = compute_step(setup, batch, looks=logs)  # forward, loss, backward
                norm = output.gradient_norm
                totals += torch.stack([output.loss, norm, torch.ones_like(norm)]).to(totals)
                if logs:
                    parts = collectives.all_reduce_sum(torch.stack([output.loss.float(), output.n_valid.float()]))
                    loss, n_valid, length = torch.cat([parts, norm[None].float()]).tolist()  # one wait for the device
                    if not math.isfinite(loss) or not math.isfinite(length):
                        raise diverged(position.step + 1, loss, length, lr)
                setup.optimizer.step()
                method.after_step(output.pairs)
                position = position.after_batch()
                log.images += batch.global_rows.total
                if logs:
                    figures = {"loss": loss, "lr": lr, "grad_norm": length, "n_valid": int(n_valid)}
                    spread = monitor.spread_of(output.pairs, setup.loss, method.card.needs_captions)
                    log.step(position, {**figures, **method.step_metrics(), **spread})
                writer.check()
                looks.after(position.step)
                if position.batch < steps and should_stop(stop, changes, position.step):
                    log.flush()
                    save(setup, run, position, totals, writer, changes.taken)
                    return "stopped"
        similarity = monitor.pair_similarity(output.pairs)
        figures = {"loss": epoch_means(totals, position.step, changes.values["lr"])[0], **similarity}
        totals.zero_()
        log.unread = unread_files(setup.dataset.images)
        collectives.on_rank0(partial(_log_epoch, setup, run, log, position, figures))
        position = position.after_epoch()
        stopped = position.epoch < config.epochs and should_stop(stop, changes, position.step)
        due = stopped or time.monotonic() - saved > config.save_seconds or position.epoch == config.epochs
        if any(is_due for (is_due,) in collectives.all_gather_ints(int(due))):
            log.flush()
            save(setup, run, position, totals, writer, changes.taken)
            saved = time.monotonic()
        if stopped:
            return "stopped"
    return "done"


def _log_epoch(
    setup: TrainSetup, run: Run, log: MetricsLog, position: TrainPosition, figures: dict[str, float]
) -> None:
    """Log an epoch and, when they are due, the scores and the snapshot of the fixed sample."""
    config, epoch = setup.config, position.epoch + 1
    is_scored, is_kept = (  # each so many epochs, if not 0, and the last
        epoch == config.epochs or bool(every and epoch % every == 0)
        for every in (config.monitor_every, config.snapshot_every)
    )
    rows = monitor.embed_sample(setup.method, setup.sample, bool(config.amp)) if is_scored or is_kept else {}
    scores = monitor.sample_scores(setup.method, setup.sample, rows, bool(config.amp)) if is_scored else {}
    extra = {k: float(v) for k, v in setup.method.extra_metrics().items()}
    log.epoch(position, {**figures, **scores, **extra})
    if is_kept:
        run.save_snapshot(epoch, index=setup.sample.index, labels=setup.sample.labels, h=rows["h"], z=rows["z"])
    if not is_scored:
        return
    log.one_point_epochs += config.monitor_every or 1
    log.one_point_epochs *= scores.get("uniformity", -1.0) > -COLLAPSED
    if config.collapse_patience and log.one_point_epochs >= config.collapse_patience:
        raise CannotGoOn(
            "collapsed: for {collapsed_epochs} epochs all embeddings have been one point. Likely reason: {reason}",
            collapsed_epochs=log.one_point_epochs,
            reason=likely_reason(config, setup.method, setup.loss),
        )


class StepOutput(NamedTuple):
    """The result of one step, before the optimizer step."""

    pairs: Pairs
    loss: Tensor  # this process's part of it
    gradient_norm: Tensor  # the same on every process
    n_valid: Tensor  # anchors of this process with a defined loss


def compute_step(setup: TrainSetup, batch: Batch, looks: bool = True) -> StepOutput:
    """Compute pairs, loss and gradients of one step; with several processes, those of their global batch. `looks`: the
    loss may read numbers to check its pairs, which waits for a device."""
    config, method, size = setup.config, setup.method, setup.world.size

    def evaluate(pairs: Pairs) -> large_batches.StepLoss:
        """Compute the loss of this process's anchors among the candidates of all processes."""
        if size > 1:
            pairs = large_batches.global_pairs(pairs, by_label=method.card.needs_labels)
        output = setup.loss(pairs) if looks else setup.loss.without_waiting(pairs)
        return pairs, output, output.value if size == 1 else large_batches.local_value(output)

    setup.optimizer.zero_grad(set_to_none=True)
    parts = large_batches.parts_of(batch, config.micro_batch, size) if config.micro_batch else [batch]
    if len(parts) == 1:
        with torch.autocast(setup.device.type, torch.bfloat16, enabled=bool(config.amp)):
            pairs = method.pairs(batch, setup.generator)
        pairs, output, value = evaluate(pairs)
        setup.buckets.start()
        value.backward()
    else:
        pairs, output, value = large_batches.backward(setup, batch, parts, evaluate)
    setup.buckets.finish()
    parameters = [p for p in method.parameters() if p.requires_grad]
    if config.clip:
        norm = nn.utils.clip_grad_norm_(parameters, config.clip)
    else:
        norm = nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])
    return StepOutput(pairs, value.detach(), norm.detach(), (output.weight > 0).sum())


def should_log(device: torch.device, step: int) -> bool:
    """Return whether to read the figures of this step. On a GPU only some steps do, because reading waits for it."""
    return device.type == "cpu" or step % LOG_EVERY_DEVICE == 0


def should_stop(stop: threading.Event, changes: LiveChanges, step: int) -> bool:
    """Return whether any process of the run was asked to stop after `step` steps. Otherwise apply the settings that
    change before the next step. One small message carries both."""
    due = changes.due(step + 1)
    answers = collectives.all_gather_ints(int(stop.is_set()), int(bool(due)))
    if answers[0][1]:
        changes.take(step + 1, collectives.broadcast_object(due))
    return any(is_set for is_set, _ in answers)


@contextmanager
def stop_signals(given: threading.Event | None = None) -> Iterator[threading.Event]:
    """Set the event on SIGTERM and Ctrl-C, so the loop saves and stops; a second Ctrl-C ends at once."""
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
