"""The thread that takes figures of what was handed over, and writes the recording.

The training thread never waits for it: of a queue that is full, what is handed over is dropped, and
counted. What goes wrong here is logged once and told in the run's status; the training goes on.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
import time
from collections import Counter
from typing import Any

import numpy as np

from contrastive_core.embeddings.embedding_set import EmbeddingSet
from contrastive_core.errors import Gone
from contrastive_core.ops.thread_pool import without_pool
from contrastive_core.recording import figures
from contrastive_core.recording.handed import HandedProbe, HandedStep
from contrastive_core.recording.rows import batch_of, sample_of
from contrastive_core.recording.settings import Settings
from contrastive_core.runs import Run, recorded

__all__ = ["LeftOut", "Recorder"]

WAITING = 4  # steps that may wait to be recorded
STATUS_SECONDS = 1.0  # between two looks at how far the training is
KEPT = 400  # steps of which rows are kept, at most
GONE = "the recording's folder was moved or deleted"
CLOSE_SECONDS = 120.0  # for what still waits when the recording is closed

logger = logging.getLogger("contrastive_core.watch")


class LeftOut:
    """What a recording does not hold, and why: counted by all threads, each reason logged once."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self.remarks: list[str] = []
        self.name = "watch"
        self._lock = threading.Lock()

    def __call__(self, what: str, why: str, count: int = 1) -> None:
        """Add to what is left out: `count` of `what`."""
        with self._lock:
            new = (what, why) not in self.counts
            self.counts[what, why] += count
        if new:
            logger.warning("%s: %s left out: %s", self.name, what, why)

    def remark(self, sentence: str) -> None:
        """What a reader should know besides; said once."""
        if sentence not in self.remarks:
            self.remarks.append(sentence)
            logger.warning("%s: %s", self.name, sentence)

    @property
    def note(self) -> str:
        """All of it, in sentences; "" where nothing is left out."""
        with self._lock:
            parts = [f"{count:,} {what} ({why})" for (what, why), count in self.counts.items()]
        sentences = [f"Left out: {'; '.join(parts)}."] if parts else []
        return " ".join([*sentences, *self.remarks])


class Recorder:
    """Takes what `put` is given and writes it into the run's folder, in its own thread."""

    def __init__(self, run: Run, settings: Settings, left_out: LeftOut) -> None:
        self.run, self.settings, self.left_out = run, settings, left_out
        self.step = 0  # how far the training is; the training thread sets it
        self.error: Exception | None = None  # the first, for `strict`
        self._queue: queue.Queue[HandedStep | HandedProbe | None] = queue.Queue(WAITING)
        self._said: tuple[int, str] = (-1, "")
        self._said_at = 0.0
        self._steps: list[int] = []  # of which rows are kept
        self._recorded, self._stride = 0, 1
        self._width, self._had_labels = 0, False
        self._probe: dict[str, int] = {}  # place of each id of the probe set
        self._thread = threading.Thread(target=self._work, name=f"watch {run.name}", daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def put(self, item: HandedStep | HandedProbe) -> None:
        """Hand something over; where too much waits, it is dropped."""
        if not self._thread.is_alive():
            self.left_out("steps", GONE)
            return
        try:
            self._queue.put_nowait(item)
        except queue.Full:
            self.left_out("steps", "those before were still being recorded")

    def wait(self) -> None:
        """Until all that was handed over is recorded."""
        self._queue.join()

    def close(self) -> None:
        """Record what waits, then end the thread."""
        last = time.monotonic() + CLOSE_SECONDS
        while self._thread.is_alive() and time.monotonic() < last:
            with contextlib.suppress(queue.Full):
                self._queue.put(None, timeout=0.1)
                self._thread.join(last - time.monotonic())

    # --- the thread ---

    def _work(self) -> None:
        with without_pool():
            while self._next():
                pass

    def _next(self) -> bool:
        """Take one item, or look how far the training is; False at the end."""
        item: HandedStep | HandedProbe | None
        try:
            item = self._queue.get(timeout=STATUS_SECONDS / 2)
        except queue.Empty:
            self._say_how_far()
            return True
        try:
            return item is not None and self._take(item)
        finally:
            self._queue.task_done()

    def _take(self, item: HandedStep | HandedProbe) -> bool:
        """Record it; False where there is nothing to write into any more."""
        try:
            self._record(item)
        except Gone:
            self.left_out("steps", GONE)
            return False
        except OSError as error:
            self._failed(item, error.strerror or str(error), error)
        except Exception as error:
            self._failed(item, str(error) or type(error).__name__, error)
        self._say_how_far()
        return True

    def _failed(self, item: HandedStep | HandedProbe, why: str, error: Exception) -> None:
        self.error = self.error or error
        self.left_out("steps" if isinstance(item, HandedStep) else "probes", why)
        logger.debug("step %s", item.step, exc_info=error)

    def _say_how_far(self) -> None:
        """The run's status, at most once a second and only where it has changed."""
        now, state = time.monotonic(), (self.step, self.left_out.note)
        if state == self._said or now - self._said_at < STATUS_SECONDS:
            return
        self._said_at = now
        try:
            self.run.set_status("running", step=self.step, note=self.left_out.note)
            self._said = state
        except (OSError, ValueError) as error:  # Gone is one: the next step ends the recording
            self.left_out("status", str(getattr(error, "strerror", None) or error))

    def _record(self, item: HandedStep | HandedProbe) -> None:
        if isinstance(item, HandedStep):
            self._record_step(item)
        else:
            self._record_probe(item)

    # --- a step ---

    def _record_step(self, handed: HandedStep) -> None:
        batch = batch_of(handed, self.left_out)
        self._look_for_changes(handed.step, batch.z.shape[1], batch.has_labels)
        settings, problem = self.settings, None
        try:
            found = figures.measure(batch, settings.loss, settings.positives, settings.rows)
        except ValueError as error:  # the loss cannot use them; the rows can be kept
            problem = error
            found = figures.measure(batch, None, settings.positives, settings.rows)
        line: dict[str, Any] = {"step": handed.step, **found.values}
        if handed.caller_loss is not None:
            line["caller_loss"] = float(np.asarray(handed.caller_loss.cpu()))
        line["images_per_s"] = round(handed.images_per_s, 1)
        self.run.append_metrics([line])
        rows = sample_of(batch, found.loss, settings.rows, self.left_out)
        recorded.write(self.run, handed.step, rows)
        self._thin_out(handed.step)
        if problem is not None:
            self.left_out("steps' losses", str(problem))
            self.error = self.error or problem

    def _look_for_changes(self, step: int, width: int, has_labels: bool) -> None:
        if self._width and width != self._width:
            self.left_out.remark(f"Rows are {width} wide from step {step:,}, before {self._width}.")
        self._width = width
        if self._had_labels and not has_labels:
            self.left_out("steps' labels", "they were missing")
        self._had_labels = self._had_labels or has_labels

    def _thin_out(self, step: int) -> None:
        """Keep every `stride`-th recorded step, and the newest."""
        if self._steps and (self._recorded - 1) % self._stride:
            recorded.remove(self.run, self._steps.pop())
        self._steps.append(step)
        self._recorded += 1
        if len(self._steps) > KEPT:
            self._stride *= 2
            for old in self._steps[1:-1:2]:
                recorded.remove(self.run, old)
            self._steps = [*self._steps[0:-1:2], self._steps[-1]]

    # --- the probe set ---

    def _record_probe(self, probe: HandedProbe) -> None:
        """A snapshot of the samples of the first probe, found by their ids."""
        kept, index = self._places(probe)
        finite = np.isfinite(probe.z).all(1) & np.isfinite(probe.h).all(1)
        if lost := int((~finite[kept]).sum()):
            self.left_out("rows of the probe set", "not finite", lost)
        index, kept = index[finite[kept]], kept[finite[kept]]
        if len(kept) < 2:
            raise ValueError("fewer than two of its rows can be used")
        none = np.full(len(probe.z), -1)
        labels = none if probe.labels is None else np.where(probe.labels < 0, -1, probe.labels)
        ids = np.array(probe.ids or [str(i) for i in range(len(probe.z))])
        self.run.save_snapshot(
            probe.step, index=index, h=probe.h[kept], z=probe.z[kept], labels=labels[kept],
            ids=ids[kept],
        )  # fmt: skip
        known = labels[kept] if (labels[kept] >= 0).any() else None
        rows = EmbeddingSet(probe.z[kept].astype(np.float32), known)
        self.run.append_metrics([{"step": probe.step, **figures.probe_figures(rows)}])

    def _places(self, probe: HandedProbe) -> tuple[np.ndarray, np.ndarray]:
        """Which rows are kept, and the place of each in the first probe."""
        ids = list(probe.ids or map(str, range(len(probe.z))))
        if not self._probe:
            self._probe = {name: place for place, name in enumerate(dict.fromkeys(ids))}
        rows: dict[int, int] = {}
        for row, name in enumerate(ids):
            place = self._probe.get(name)
            if place is None:
                self.left_out("rows of the probe set", "the first probe had no such ids")
            elif place in rows:
                self.left_out("rows of the probe set", "their id stands there already")
            else:
                rows[place] = row
        if missing := len(self._probe) - len(rows):
            self.left_out(
                "rows of the probe set", "the first probe had them, a later one not", missing
            )
        index = np.array(sorted(rows), np.int64)
        return np.array([rows[place] for place in index.tolist()], np.int64), index
