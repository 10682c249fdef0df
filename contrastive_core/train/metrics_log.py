"""The metrics of a training run: lines in `metrics.jsonl`, and the run's status.

Only the first process writes. Lines are collected for half a second and written together. A step's line has `step`,
`epoch`, `loss`, `lr`, `grad_norm`, `n_valid`, `z_std` and `z_std_least` (see monitor.py; some losses add `z_scale`, two
towers `text_z_std`), `images_per_s` and `memory_mb`. An epoch's line has `epoch` (1 for the first), `step`, the mean
`loss`, the total `seconds`, and, when due, the scores of the sample, including `z_rank` and `z_correlation`."""

import contextlib
import time
from collections.abc import Callable

from contrastive_core.base.device import memory_bytes
from contrastive_core.base.errors import CannotGoOn, Gone
from contrastive_core.base.messages import join
from contrastive_core.losses._two_views import TwoViewLoss
from contrastive_core.runs.run import Run
from contrastive_core.runs.turning import turned
from contrastive_core.train.monitor import CollapseWatch, likely_reason, warning
from contrastive_core.train.setup import TrainSetup
from contrastive_core.train.state import TrainPosition

COLLAPSED = 1e-4  # uniformity above −COLLAPSED: every embedding is the same point
FLUSH_SECONDS = 0.5  # between two writes of lines
STATUS_SECONDS = 2.0  # between two writes of the status

Line = dict[str, float]
OnLines = Callable[[list[Line]], None]


class MetricsLog:
    """Collects lines of metrics, and passes them to the run's files and to `on_lines`."""

    def __init__(self, setup: TrainSetup, run: Run, on_lines: OnLines) -> None:
        self.setup, self.run, self.on_lines = setup, run, on_lines
        self.writes = setup.world.is_rank0
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

    def fail(self, reason: str, is_diverged: bool = False) -> None:
        """End the run as failed. Errors of a full disk or a missing folder are ignored."""
        with contextlib.suppress(OSError, Gone):
            self.status("failed", reason, is_diverged)

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
            self.warning = "" if before else warning(self.watch, setup.config, setup.method, setup.loss)
            self.status("running")

    def _look_for_turn(self, line: Line) -> None:
        if "knn_train_sample" in line:
            self.scored.append(line)
            self.turn = turned(self.scored, int((self.setup.sample.labels >= 0).sum()), "epoch")

    def end_if_collapsed(self, uniformity: float) -> None:
        """Raise CannotGoOn if the embedding has been one point for as many epochs as the run's patience."""
        config = self.setup.config
        self.one_point_epochs += config.monitor_every or 1
        self.one_point_epochs *= uniformity > -COLLAPSED
        if config.collapse_patience and self.one_point_epochs >= config.collapse_patience:
            raise CannotGoOn(
                "collapsed: for {collapsed_epochs} epochs all embeddings have been one point. Likely reason: {reason}",
                collapsed_epochs=self.one_point_epochs,
                reason=likely_reason(config, self.setup.method, self.setup.loss),
            )
