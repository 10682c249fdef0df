"""`watch` for training loops: it never waits, uses no random numbers, and raises errors only if `strict`."""

from __future__ import annotations

import atexit
import contextlib
import os
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import nn

from contrastive_core.base.messages import N_, message
from contrastive_core.base.registry import knobs_of
from contrastive_core.ops import collectives
from contrastive_core.recording.criterion import Wrapped, declaration_of
from contrastive_core.recording.figures import embed_probe
from contrastive_core.recording.loop_checks import GradientCatcher
from contrastive_core.recording.recorder import Recorder, WatchSettings
from contrastive_core.recording.steps import Omissions, copy_step, gather_step, logger, reason_of
from contrastive_core.runs import create, free_name, new_name
from contrastive_core.runs.run import Run


def watch(
    name: str,
    loss: Any = None,
    *,
    every: int = 50,
    rows: int = 256,
    positives: str = "auto",
    dataset: str = "",
    split: str = "train",
    classes: Sequence[str] = (),
    gather: bool = False,
    strict: bool = False,
    towers: tuple[str, str] | None = None,
    check: bool = True,
    accumulate: int = 1,
    **knobs: Any,
) -> Watch:
    """Record a training loop: `with watch("my-run", loss="nt_xent") as w: ... w.step(z, labels=y, ids=index)`.

    It uses no random numbers and never stops the training unless `strict`.

    Args:
        name: of the run folder; "-2", "-3", ... is added if it is taken.
        loss: one of `contrastive_core.losses.names()`, its settings as `knobs`; or the loss module of lightly,
            pytorch-metric-learning, open_clip or sentence-transformers; None: only `losses=` of `step`.
        every: record every n-th step. rows: stored per recorded step, all views of an image counted.
        positives: "views" of an image, rows with the same "labels", "keys" (first view against the
            second ones), or "auto": those of the loss's paper, if the rows allow it.
        towers: names of two encoders, such as ("image", "text"): `step` takes rows (n, d) and (m, d).
            With `positives="keys"` only the rows of the first are anchors.
        dataset: the data set of the ids, which are sample ids or row numbers in `split`; the lab then shows the images.
        classes: names of the labels 0, 1, ... gather: under torch.distributed, rows of all processes; else of rank 0.
        strict: raise an error at the next step; otherwise it is logged once and noted in the recording.
        check: name known faults of the loop in the first 20 recorded steps and then in one of 200. It needs
            `caller_loss`, or `step` before the backward pass.
        accumulate: batches whose gradients add up, with each loss divided by this number.
    Raises: BadName; UnknownName; ValueError for an invalid setting."""
    declared = declaration_of(loss)
    settings = WatchSettings(
        declared=declared,
        loss=declared.loss(knobs),
        every=every,
        rows=rows,
        positives=declared.positives if positives == "auto" else positives,
        dataset=dataset,
        split=split,
        classes=tuple(map(str, classes)),
        gather=gather,
        strict=strict,
        towers=towers or declared.towers,
        check=check,
        accumulate=accumulate,
    )
    return Watch(new_name(name), settings)


class Watch:
    """A recording that grows during training. Close it, or use it as a context manager."""

    def __init__(self, name: str, settings: WatchSettings) -> None:
        self.settings, self.omissions = settings, Omissions(message("watch {name}", name=name))
        if settings.declared.remark:
            self.omissions.remark(settings.declared.remark)
        self.run: Run | None = None  # None where nothing is written: no rank 0, no disk
        self._recorder: Recorder | None = None
        self._catcher = GradientCatcher()
        self._steps, self._images, self._pid = 0, 0, os.getpid()
        self._last, self._since, self._closed = 0, time.monotonic(), False
        self._locks = contextlib.ExitStack()
        is_rank0 = collectives.world().is_rank0
        if collectives.is_single_process() and "RANK" in os.environ:  # the processes join each other later
            is_rank0 = os.environ["RANK"] == "0"
        if is_rank0:
            try:
                self._begin(name)
            except Exception as error:
                self.on_error(error, "recordings")
        atexit.register(self._close_at_exit)

    def _begin(self, name: str) -> None:
        settings, loss = self.settings, self.settings.loss
        knobs = {} if loss is None else {k: getattr(loss, k) for k in knobs_of(type(loss))}
        config = {"loss": settings.declared.name, "loss_knobs": knobs, "dataset": settings.dataset or None}
        about = {k: getattr(settings, k) for k in ("every", "rows", "positives", "split")}
        if settings.towers is not None:
            about["towers"] = [*settings.towers]
        run, own = None, name
        while run is None:
            try:
                run = create(own, config, recording=about, classes=[*settings.classes])
            except FileExistsError:
                if settings.strict:
                    raise
                own = free_name(name)  # again, where another process takes it meanwhile
        if own != name:
            self.omissions.remark(message("There was a run {name} already, so this is {own}.", name=name, own=own))
        self._locks.enter_context(run.lock())
        run.set_status("running", step=0, note=self.omissions.note)
        self.run, self._recorder = run, Recorder(run, settings, self.omissions)

    # --- what the loop calls ---

    def step(
        self,
        *views: Any,
        queue: Any = None,
        labels: Any = None,
        ids: Any = None,
        losses: Any = None,
        temperature: Any = None,
        bias: Any = None,
        caller_loss: Any = None,
        step: int | None = None,
    ) -> None:
        """Record a training step if it is due.

        Args:
            views: rows (n, d), where equal ids are views of one image; views (b, v, d); or one
                (n, d) for each view, as queries and keys.
            queue: (k, d) older keys; labels: (n) or (b) whole numbers, −1 for none; ids: (n) or
                (b) numbers or text; losses: (n) or (b), the caller's own; temperature: a learned τ;
                bias: that of SigLIP; caller_loss: the caller's loss of the batch.
                For two towers, labels, ids and losses are a pair, one for each tower, or one for both.
                Rows with an equal id are partners; without ids row i belongs to row i, and towers
                of different size pair rows of one label.
            step: the number of this step, ascending; default: the last one plus 1."""
        self._steps = self._steps + 1 if step is None else int(step)
        if self._pid != os.getpid():
            return  # a fork has neither the thread nor the lock
        if views and hasattr(views[0], "shape"):
            self._images += views[0].shape[0]
        self._hand_over_check()
        is_recorder = self._recorder is not None or (self.settings.gather and not self._closed)
        if not is_recorder or not self._is_due(self._steps):
            return
        now = time.monotonic()
        speed = self._images / max(now - self._since, 1e-9)
        self._images, self._since = 0, now
        values = {"labels": labels, "ids": ids, "losses": losses, "temperature": temperature, "bias": bias}
        try:
            copy = copy_step(
                self._steps,
                [torch.cat(z) if isinstance(z, tuple) else z for z in views],
                speed,
                self.omissions,
                queue=queue,
                are_towers=self.settings.towers is not None,
                caller_loss=caller_loss,
                **values,
            )
            if self.settings.gather:
                copy = gather_step(copy)
            if self._recorder is not None:
                self._recorder.put(copy)
                if self.settings.check:
                    self._catcher.begin(copy, views)
        except Exception as error:
            self.on_error(error, "steps")
        self._last = max(self._steps, 1)
        self._raise_if_strict()

    def _hand_over_check(self) -> None:
        """Tell the recorder the current step and pass on the check of the last one, whose backward pass is over."""
        if self._recorder is not None:
            self._recorder.step = self._steps
            if (check := self._catcher.take()) is not None:
                self._recorder.put(check)

    @property
    def records_next(self) -> bool:
        """Return whether the next step, numbered by this object, will be recorded."""
        return self._recorder is not None and self._is_due(self._steps + 1)

    def _is_due(self, step: int) -> bool:
        return self._last == 0 or step // self.settings.every > self._last // self.settings.every

    def probe(
        self,
        encode: Callable[[Any], Any],
        loader: Iterable[Any],
        model: nn.Module | None = None,
        step: int | None = None,
    ) -> None:
        """Embed a fixed set of at most 2,000 samples now, for maps and losses over time.

        Args:
            encode: a function of a batch's input that returns rows (n, d), or (h, z). A module, or that of a method,
                is in evaluation mode meanwhile, as is `model`.
            loader: batches x, (x, labels), (x, labels, ids) or mappings, in the same order each
                time unless there are ids. Its random numbers do not affect those of the training."""
        if self._recorder is None or self._pid != os.getpid():
            return
        try:
            self._recorder.put(embed_probe(self._steps if step is None else int(step), encode, loader, model))
        except Exception as error:
            self.on_error(error, "probes")
        self._raise_if_strict()

    def wrap(self, criterion: Callable[..., Any]) -> Any:
        """Wrap a loss module: each call is recorded as a step. See `recording.criterion`."""
        return Wrapped(self, criterion)

    # --- the end ---

    def close(self, status: str = "done", reason: str = "") -> None:
        """Record the queued steps and the final status. A second call does nothing."""
        if self._closed or self._pid != os.getpid():
            return
        self._closed = True
        atexit.unregister(self._close_at_exit)
        self._hand_over_check()
        recorder, self._recorder = self._recorder, None
        if recorder is None or self.run is None:
            return
        recorder.close()
        try:
            recorder.tell(status, reason)
        except (OSError, ValueError) as error:
            logger.warning("%s: its end could not be written: %s", self.omissions.name, error)
        self._locks.close()
        if self.settings.strict and recorder.error is not None and status == "done":
            raise recorder.error

    def _close_at_exit(self) -> None:
        self.close("stopped", N_("the training process ended without closing it"))

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is None:
            self.close()
        elif isinstance(error, KeyboardInterrupt):
            self.close("stopped", N_("it was interrupted from the keyboard"))
        else:
            text = str(error).strip().partition("\n")[0][:300]
            self.close(
                "failed", message("the training ended with {name}: {text}", name=type(error).__name__, text=text)
            )

    def on_error(self, error: Exception, items: str) -> None:
        """Count the items lost to an error; raise it if the recording is strict."""
        if self.settings.strict:
            raise error
        self.omissions.add(items, reason_of(error))

    def _raise_if_strict(self) -> None:
        if self.settings.strict and self._recorder is not None and (error := self._recorder.error) is not None:
            self._recorder.error = None
            raise error
