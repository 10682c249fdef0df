"""What a training run writes down as it goes: lines of metrics, and where it stands.

Only the first of several processes writes. Lines are kept for half a second and written together;
a step's line has `step`, `epoch`, `loss`, `lr`, `grad_norm`, `n_valid`, `images_per_s` and
`memory_mb`; an epoch's line has `epoch` (1 for the first), `step`, the mean `loss`,
`seconds` spent in all, and the scores of the sample.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

from contrastive_core.errors import Gone
from contrastive_core.runs import Run
from contrastive_core.training.state import TrainPosition

__all__ = ["MetricsLog", "OnProgress"]

FLUSH_SECONDS = 0.5

OnProgress = Callable[[dict[str, Any]], None]


class MetricsLog:
    """Collects lines and hands them to the run's files and to `on_progress`."""

    def __init__(self, run: Run, writes: bool, on_progress: OnProgress) -> None:
        self.run, self.writes, self.on_progress = run, writes, on_progress
        self.lines: list[dict[str, Any]] = []
        self.images = 0  # since the last line
        self.epochs = 0
        self.note = ""
        self.memory = 0  # bytes, as last measured
        self.position = TrainPosition()
        self.last_line = self.written = self.started = time.monotonic()

    def start(self, position: TrainPosition, epochs: int, note: str) -> None:
        """The run goes on from `position`; lines after it are cut off."""
        self.epochs, self.note = epochs, note
        if self.writes:
            self.run.cut_metrics(position.step)
        earlier = max((line.get("seconds", 0.0) for line in self.run.metrics()), default=0.0)
        self.last_line = self.written = time.monotonic()
        self.started = self.last_line - earlier
        self.position = position
        self.status("running")

    def step(self, position: TrainPosition, memory: int, values: dict[str, float]) -> None:
        """One optimizer step, after it was done."""
        now = time.monotonic()
        rate = self.images / max(now - self.last_line, 1e-9)
        self.images, self.last_line = 0, now
        self.position, self.memory = position, memory
        line = {"step": position.step, "epoch": position.epoch, **values}
        self._add({**line, "images_per_s": round(rate, 1), "memory_mb": memory >> 20})

    def epoch(self, position: TrainPosition, loss: float, values: dict[str, float]) -> None:
        """One epoch, after its last step, with its mean loss."""
        self.last_line = time.monotonic()  # scoring is not training
        seconds = round(self.last_line - self.started, 3)
        line = {"epoch": position.epoch + 1, "step": position.step, "loss": loss}
        line |= {"seconds": seconds, "memory_mb": self.memory >> 20}
        self.position = position.after_epoch()
        self._add({**line, **values})

    def status(self, status: str, reason: str = "") -> None:
        """Write everything, and how the run stands."""
        if not self.writes:
            return
        self.flush()
        where = {"epoch": self.position.epoch, "step": self.position.step, "epochs": self.epochs}
        self.run.set_status(status, reason=reason, note=self.note, **where)

    def failed(self, reason: str) -> None:
        """The run ends here. What cannot be written, to a full disk or a folder that is gone, is
        left."""
        with contextlib.suppress(OSError, Gone):
            self.status("failed", reason)

    def flush(self) -> None:
        """Write the lines collected so far."""
        if self.lines and self.writes:
            self.run.append_metrics(self.lines)
        self.lines = []
        self.written = time.monotonic()

    def _add(self, line: dict[str, Any]) -> None:
        self.lines.append(line)
        self.on_progress(line)
        if time.monotonic() - self.written > FLUSH_SECONDS:
            self.status("running")
