"""The thread that computes the figures of copied steps and writes the recording. The training thread never waits for
it: if the queue is full, a copy is dropped and counted. An error here is logged once and shown in the run's status, and
the training continues."""

import contextlib
import queue
import threading
import time
from dataclasses import dataclass

import numpy as np
import torch

from contrastive_core.base.errors import BadSetting, Gone
from contrastive_core.base.json_files import json_bytes
from contrastive_core.base.messages import N_, join, message
from contrastive_core.losses import Loss
from contrastive_core.recording import figures
from contrastive_core.recording.criterion import Declaration
from contrastive_core.recording.figures import ProbeCopy
from contrastive_core.recording.loop_checks import CheckCopy, LoopFindings
from contrastive_core.recording.steps import Omissions, RecordedBatch, StepCopy, batch_of, logger, reason_of
from contrastive_core.runs.records import CHECK_FILE
from contrastive_core.runs.run import Run
from contrastive_core.runs.run_metrics import turned
from contrastive_core.spaces import recorded_rows
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.recorded_rows import StepRows
from contrastive_core.spaces.towers import are_tower_names

WAITING = 4  # steps in the queue
STATUS_SECONDS = 1.0  # between two updates of the status
LINES = 1000  # of metrics that are kept to see whether the training has turned
KEPT = 400  # steps of which rows are kept, at most
GONE = N_("the recording's folder was moved or deleted")
CLOSE_SECONDS = 120.0  # to record the queued copies when the recording is closed
OF_PROBE = N_("rows of the probe set")


@dataclass(frozen=True)
class WatchSettings:
    """The arguments of `watch`, checked before the training begins."""

    declared: Declaration
    loss: Loss | None  # None: the caller's `losses=` alone
    every: int
    rows: int
    positives: str
    dataset: str
    split: str
    classes: tuple[str, ...]
    gather: bool
    strict: bool
    towers: tuple[str, str] | None = None  # the names of two encoders
    check: bool = True
    accumulate: int = 1

    def __post_init__(self) -> None:
        for name in ("every", "rows", "accumulate"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise BadSetting("{name} must be a whole number from 1; got {value}", name=name, value=f"{value!r}")
        for name, choices in (("positives", ("auto", "views", "labels", "keys")), ("split", ("train", "test"))):
            if (value := getattr(self, name)) not in choices:
                text = N_("{name} must be one of {choices}; got {value}")
                raise BadSetting(text, name=name, choices=", ".join(choices), value=repr(value))
        if self.towers is not None and not are_tower_names(self.towers):
            text = N_("towers must be two different names, such as {example}; got {value}")
            raise BadSetting(text, example=repr(("image", "text")), value=repr(self.towers))


class Recorder:
    """Writes the copies passed to `put` into the run's folder, in its own thread."""

    def __init__(self, run: Run, settings: WatchSettings, omissions: Omissions) -> None:
        self.run, self.settings, self.omissions = run, settings, omissions
        self.step = 0  # of the training; the training thread sets it
        self.error: Exception | None = None  # the first, for `strict`
        self.findings = LoopFindings(settings.loss, settings.positives, settings.accumulate)
        self._queue: queue.Queue[StepCopy | ProbeCopy | CheckCopy | None] = queue.Queue(WAITING)
        self._last_status, self._status_time = (-1, ""), 0.0
        self._steps, self._recorded, self._stride = list[int](), 0, 1  # steps of which rows are kept
        self._width, self._had_labels = 0, False
        self._lines, self._labeled = list[dict[str, float]](), 0
        self._turn, self._has_turned = "", False  # the sentence as long as it holds; whether the console had it
        self._probe: dict[str, int] = {}  # place of each id of the probe set
        self._thread = threading.Thread(target=self._work, name=message("watch {name}", name=run.name), daemon=True)
        self._thread.start()

    def put(self, item: StepCopy | ProbeCopy | CheckCopy) -> None:
        """Queue a copy; drop it if the queue is full."""
        try:
            if self._thread.is_alive():
                self._queue.put_nowait(item)
            else:
                self.omissions.add("steps", GONE)
        except queue.Full:
            if not isinstance(item, CheckCopy):
                self.omissions.add("steps", N_("earlier steps were still being recorded"))

    def wait(self) -> None:
        """Wait until all queued copies are recorded."""
        self._queue.join()

    def close(self) -> None:
        """Record the queued copies, then end the thread."""
        last = time.monotonic() + CLOSE_SECONDS
        while self._thread.is_alive() and time.monotonic() < last:
            with contextlib.suppress(queue.Full):
                self._queue.put(None, timeout=0.1)
                self._thread.join(last - time.monotonic())

    def _work(self) -> None:
        while True:
            try:
                item = self._queue.get(timeout=STATUS_SECONDS / 2)
            except queue.Empty:
                self._update_status()
                continue
            try:
                if item is None or not self._take(item):
                    return
            finally:
                self._queue.task_done()

    def _take(self, item: StepCopy | ProbeCopy | CheckCopy) -> bool:
        """Record an item. Return False if the folder is gone."""
        try:
            if isinstance(item, StepCopy):
                self._record_step(item)
            elif isinstance(item, CheckCopy):
                self.findings.add(item)
            else:
                self._record_probe(item)
                if self.settings.check:
                    self.findings.add_probe(item)
            if (news := self.findings.news()) and news not in self.omissions.note:
                logger.warning("%s: %s", self.omissions.name, news)
            if news or isinstance(item, CheckCopy):
                self.run.write(CHECK_FILE, json_bytes(self.findings.record()))
        except Gone:
            self.omissions.add("steps", GONE)
            return False
        except Exception as error:
            self.error = self.error or error
            kinds = {StepCopy: "steps", CheckCopy: N_("checks of the loss")}
            self.omissions.add(kinds.get(type(item), "probes"), reason_of(error))
            logger.debug("step %s", item.step, exc_info=error)
        self._update_status()
        return True

    def _update_status(self) -> None:
        """Write the run's status, at most once a second and only if it has changed."""
        now, state = time.monotonic(), (self.step, self.omissions.note + self._turn)
        if state == self._last_status or now - self._status_time < STATUS_SECONDS:
            return
        self._status_time = now
        try:
            self.tell("running")
            self._last_status = state
        except (OSError, ValueError) as error:  # Gone is one: the next step ends the recording
            self.omissions.add("status", reason_of(error))

    def _record_step(self, copy: StepCopy) -> None:
        if copy.copied is not None:
            copy.copied.synchronize()
        batch = batch_of(copy, self.omissions)
        width = batch.z.shape[1]
        if self._width and width != self._width:
            text = N_("From step {step} on, rows have {width} dimensions; before, they had {earlier}.")
            self.omissions.remark(message(text, step=f"{copy.step:,}", width=width, earlier=self._width))
        if self._had_labels and not batch.has_labels:
            self.omissions.add(N_("steps' labels"), N_("they were missing"))
        self._width, self._had_labels = width, self._had_labels or batch.has_labels
        settings = self.settings
        try:
            loss, values = figures.measure(batch, settings.loss, settings.positives, settings.rows)
        except ValueError as error:  # the loss cannot use them; the rows can be kept
            self.omissions.add(N_("steps' losses"), str(error))
            self.error = self.error or error
            loss, values = figures.measure(batch, None, settings.positives, settings.rows)
        if copy.caller_loss is not None:
            values["caller_loss"] = float(copy.caller_loss)
        self._log({"step": copy.step, **values, "images_per_s": round(copy.images_per_s, 1)})
        recorded_rows.write(self.run, copy.step, sample_of(batch, loss, settings.rows, self.omissions))
        if self._steps and (self._recorded - 1) % self._stride:  # the newest, and every `stride`-th, are kept
            recorded_rows.remove(self.run, self._steps.pop())
        self._steps.append(copy.step)
        self._recorded += 1
        if len(self._steps) > KEPT:
            self._stride *= 2
            for old in self._steps[1:-1:2]:
                recorded_rows.remove(self.run, old)
            self._steps = [*self._steps[0:-1:2], self._steps[-1]]

    def _record_probe(self, probe: ProbeCopy) -> None:
        """Save a snapshot of the samples of the first probe, matched by id."""
        self._probe = self._probe or {name: place for place, name in enumerate(dict.fromkeys(probe.ids.tolist()))}
        rows: dict[int, int] = {}  # by their places in the first probe
        for row, name in enumerate(probe.ids.tolist()):
            place = self._probe.get(name)
            if place is None:
                self.omissions.add(OF_PROBE, N_("the first probe had no such ids"))
            elif place in rows:
                self.omissions.add(OF_PROBE, N_("their id is already recorded"))
            else:
                rows[place] = row
        if missing := len(self._probe) - len(rows):
            self.omissions.add(OF_PROBE, N_("the first probe had them, but a later one did not"), missing)
        index = np.array(sorted(rows), np.int64)
        kept = np.array([rows[place] for place in index.tolist()], np.int64)
        finite = (np.isfinite(probe.z).all(1) & np.isfinite(probe.h).all(1))[kept]
        if lost := int((~finite).sum()):
            self.omissions.add(OF_PROBE, N_("not finite"), lost)
        index, kept = index[finite], kept[finite]
        if len(kept) < 2:
            raise ValueError(N_("fewer than two of its rows can be used"))
        h, z, labels = probe.h[kept], probe.z[kept], probe.labels[kept]
        self.run.save_snapshot(probe.step, index=index, h=h, z=z, labels=labels, ids=probe.ids[kept])
        scores = figures.scores_of(EmbeddingSet(z, labels if (labels >= 0).any() else None), "uniformity", "rankme")
        values = {f"probe_{name}": value for name, value in scores.items()}
        self._log({"step": probe.step, **values}, int((labels >= 0).sum()))

    def _log(self, line: dict[str, float], labeled: int | None = None) -> None:
        """Write a line of metrics, and detect whether a score has turned. `labeled`: labeled rows of the probe set."""
        self.run.append_metrics([line])
        self._lines = [*self._lines[len(self._lines) > LINES :: 1 + (len(self._lines) > LINES)], line]
        self._labeled = labeled or self._labeled
        self._turn = turned(self._lines, self._labeled)
        if self._turn and not self._has_turned:
            self._has_turned = True
            logger.warning("%s: %s", self.omissions.name, self._turn)

    def tell(self, status: str, reason: str = "") -> None:
        """Write the run's status with a note. Raises Gone; OSError."""
        note = join(". ", filter(None, [self._turn, self.omissions.note]))
        self.run.set_status(status, reason, step=self.step, note=note, is_warned=bool(self._turn))


def sample_of(batch: RecordedBatch, loss: np.ndarray, rows: int, omissions: Omissions) -> StepRows:
    """Select about `rows` rows: all views of images spread evenly over the batch. `loss`: (n), NaN for none."""
    _, first = np.unique(batch.ids, return_index=True)
    own = np.isin(batch.image, batch.image[first])  # images whose id no other before has: the lab finds them by it
    if lost := int((~own).sum()):
        omissions.add(N_("rows of a sample"), N_("their image's id is already recorded"), lost)
    batch, loss = batch.take(own), loss[own]
    images = np.unique(batch.image)
    if batch.is_of_towers:  # partners first: one group of them is always kept
        images = np.concatenate([shared := batch.shared_groups(), np.setdiff1d(images, shared)])
    count = min(len(images), max(1, rows * len(images) // len(batch)))
    chosen = images[np.linspace(0, len(images) - 1, count).round().astype(np.int64)]
    kept = np.isin(batch.image, chosen)
    order = np.lexsort((batch.view[kept], batch.image[kept]))
    part = batch.take(kept)
    queue = np.zeros((0, part.z.shape[1]), np.float32)
    if batch.queue is not None:
        at = np.linspace(0, len(batch.queue) - 1, min(rows, len(batch.queue))).astype(np.int64)
        queue = batch.queue[torch.from_numpy(at)].float().numpy()
    return StepRows(
        z=part.z.float().numpy()[order],
        image=np.unique(part.image[order], return_inverse=True)[1].astype(np.int64),
        view=part.view[order].astype(np.int64),
        labels=part.labels[order],
        ids=part.ids[order],
        loss=loss[kept][order].astype(np.float32),
        queue=queue,
    )
