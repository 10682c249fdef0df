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

__all__ = ["MetricsLog", "Report"]

FLUSH_SECONDS = 0.5

Report = Callable[[dict[str, Any]], None]


class MetricsLog:
    """Collects lines and hands them to the run's files and to `report`."""

    def __init__(self, run: Run, writes: bool, report: Report) -> None:
        self.run, self.writes, self.report = run, writes, report
        self.lines: list[dict[str, Any]] = []
        self.losses: list[float] = []
        self.images = 0
        self.epochs = 0
        self.note = ""
        self.memory = 0  # bytes, as last seen
        self.place = TrainPosition()
        self.looked = self.written = self.started = time.monotonic()

    def start(self, place: TrainPosition, epochs: int, note: str) -> None:
        """The run goes on from `place`; lines after it are cut off."""
        self.epochs, self.note = epochs, note
        if self.writes:
            self.run.cut_metrics(place.step)
        lines = self.run.metrics()
        earlier = max((line.get("seconds", 0.0) for line in lines), default=0.0)
        begun = [x for x in lines if "images_per_s" in x and x["epoch"] == place.epoch]
        self.losses = [x["loss"] for x in begun]
        self.looked = self.written = time.monotonic()
        self.started = self.looked - earlier
        self.place = place
        self.status("running")

    def step(self, place: TrainPosition, memory: int, **values: float) -> None:
        """One optimizer step, after it was done."""
        now = time.monotonic()
        rate = self.images / max(now - self.looked, 1e-9)
        self.images, self.looked = 0, now
        self.losses.append(values["loss"])
        self.place, self.memory = place, memory
        line = {"step": place.step, "epoch": place.epoch, **values}
        self._add({**line, "images_per_s": round(rate, 1), "memory_mb": memory >> 20})

    def epoch(self, place: TrainPosition, values: dict[str, float]) -> None:
        """One epoch, after its last step."""
        mean = sum(self.losses) / max(1, len(self.losses))
        self.losses.clear()
        self.looked = time.monotonic()  # scoring is not training
        seconds = round(self.looked - self.started, 3)
        line = {"epoch": place.epoch + 1, "step": place.step, "loss": mean, "seconds": seconds}
        line["memory_mb"] = self.memory >> 20
        self.place = place.after_epoch()
        self._add({**line, **values})

    def status(self, status: str, reason: str = "") -> None:
        """Write everything, and how the run stands."""
        if not self.writes:
            return
        self.flush()
        where = {"epoch": self.place.epoch, "step": self.place.step, "epochs": self.epochs}
        self.run.set_status(status, reason=reason, note=self.note, **where)

    def failed(self, reason: str) -> None:
        """The run ends here. What cannot be written (full disk, deleted folder) is left."""
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
        self.report(line)
        if time.monotonic() - self.written > FLUSH_SECONDS:
            self.status("running")
