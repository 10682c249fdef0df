"""`watch`: what a training loop calls. Nothing here waits, draws, or raises into the training."""

from __future__ import annotations

import atexit
import contextlib
import os
import time
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any

from torch import nn

from contrastive_core import losses
from contrastive_core.distributed import collectives
from contrastive_core.recording.handed import gathered, hand_over
from contrastive_core.recording.probe import embed_probe
from contrastive_core.recording.recorder import LeftOut, Recorder, logger
from contrastive_core.recording.settings import Settings
from contrastive_core.registry import knobs_of
from contrastive_core.runs import Run, checked_name, create

__all__ = ["Watch", "watch"]

TRIES = 1000  # names with a number behind them


def watch(
    name: str,
    loss: str | None = None,
    *,
    every: int = 50,
    rows: int = 256,
    positives: str = "auto",
    dataset: str = "",
    split: str = "train",
    classes: Sequence[str] = (),
    gather: bool = False,
    strict: bool = False,
    **knobs: Any,
) -> Watch:
    """Record somebody else's training: `with watch("my-run", loss="nt_xent", temperature=0.07) as
    w: ... w.step(z, labels=y, ids=index)`. It draws nothing, and never stops the training.

    Args:
        name: of the run folder; where it is taken, "-2", "-3", ... goes behind it.
        loss: one of `contrastive_core.losses.names()`, with its settings as `knobs`; None: only
            what is given to `step` as `losses=`.
        every: steps between two that are recorded; the first is.
        rows: kept of each recorded step, all views of an image counted.
        positives: "views" of an image, rows of one of the "labels", or "keys" (first view against
            the second ones); "auto": as the loss's paper pairs them, as far as there are both.
        dataset: whose sample ids, or row numbers of whose `split`, the ids are; the lab then shows
            the images. classes: names of the labels 0, 1, ...
        gather: under torch.distributed, rows of all processes; else those of rank 0.
        strict: raise what goes wrong, at the next step, in the place of a line in the log.
    Raises: BadName; UnknownName; ValueError for a setting that there is not. Whatever goes wrong
        later (a name that is taken, a full disk, rows that cannot be used) is logged once and told
        in the recording.
    """
    criterion = losses.create(loss, **knobs) if loss else None
    if knobs and criterion is None:
        raise TypeError(f"watch() got {', '.join(map(repr, knobs))}, but no loss that has it")
    settings = Settings(
        loss, criterion, every, rows, positives, dataset, split, tuple(map(str, classes)), gather,
        strict,
    )  # fmt: skip
    return Watch(checked_name(name), settings)


class Watch:
    """A recording that grows while somebody trains. Close it, or use it as a context manager."""

    def __init__(self, name: str, settings: Settings) -> None:
        self.settings, self.left_out = settings, LeftOut()
        self.left_out.name = f"watch {name}"
        self.run: Run | None = None  # None where nothing is written: no rank 0, no disk
        self._recorder: Recorder | None = None
        self._steps, self._images, self._pid = 0, 0, os.getpid()
        self._last, self._since, self._closed = 0, time.monotonic(), False
        self._locks = contextlib.ExitStack()
        if _is_rank0():
            try:
                self._begin(name)
            except Exception as error:
                self.on_error(error, "recordings")
        atexit.register(self._close_at_exit)

    def _begin(self, name: str) -> None:
        settings = self.settings
        knobs = knobs_of(type(settings.loss)) if settings.loss is not None else {}
        config = settings.config({k: getattr(settings.loss, k) for k in knobs})
        for number in range(1, TRIES):
            own = name if number == 1 else f"{name[:58]}-{number}"
            try:
                run = create(own, config, recording=settings.about(), classes=[*settings.classes])
                break
            except FileExistsError:
                if settings.strict:
                    raise
        else:
            raise FileExistsError(f"there are too many runs named {name}")
        if own != name:
            self.left_out.remark(f"There was a run {name} already, so this is {own}.")
        self._locks.enter_context(run.lock())
        run.set_status("running", step=0, note=self.left_out.note)
        self.run, self._recorder = run, Recorder(run, settings, self.left_out)

    # --- what the loop calls ---

    def step(
        self,
        *views: Any,
        queue: Any = None,
        labels: Any = None,
        ids: Any = None,
        losses: Any = None,
        temperature: Any = None,
        caller_loss: Any = None,
        step: int | None = None,
    ) -> None:
        """One step of the training.

        Args:
            views: rows (n, d), of which equal ids are views of one image; views (b, v, d); or one
                (n, d) for each view, as queries and keys.
            queue: (k, d) older keys; labels: (n) or (b) whole numbers, −1 for none; ids: (n) or
                (b) numbers or text; losses: (n) or (b), the caller's own; temperature: τ where it
                is learned; caller_loss: the loss of the batch, as the caller has it.
            step: the number of this step, rising; default: 1 more than before.
        """
        self._steps = self._steps + 1 if step is None else int(step)
        recorder, settings = self._recorder, self.settings
        if recorder is not None:
            recorder.step = self._steps
        if views and hasattr(views[0], "shape"):
            self._images += views[0].shape[0]
        if not self._is_due(self._steps) or (
            recorder is None and (self._closed or not settings.gather)
        ):
            return
        if self._pid != os.getpid():  # a fork: its thread and its lock are the parent's
            return
        try:
            self._hand_over(views, queue=queue, labels=labels, ids=ids, losses=losses,
                            temperature=temperature, caller_loss=caller_loss)  # fmt: skip
        except Exception as error:
            self.on_error(error, "steps")
        self._last = max(self._steps, 1)
        self._raise_if_strict()

    @property
    def records_next(self) -> bool:
        """Whether the next step, numbered by this object, will be recorded."""
        return self._recorder is not None and self._is_due(self._steps + 1)

    def _is_due(self, step: int) -> bool:
        return self._last == 0 or step // self.settings.every > self._last // self.settings.every

    def _hand_over(self, views: Sequence[Any], **given: Any) -> None:
        now = time.monotonic()
        speed = self._images / max(now - self._since, 1e-9)
        self._images, self._since = 0, now
        handed = hand_over(self._steps, views, speed, **given)
        if self.settings.gather:
            handed = gathered(handed)
        if self._recorder is not None:
            self._recorder.put(handed)

    def probe(
        self,
        encode: Callable[[Any], Any],
        loader: Iterable[Any],
        model: nn.Module | None = None,
        step: int | None = None,
    ) -> None:
        """Embed a fixed set of at most 2,000 samples now, for maps and losses over time.

        Args:
            encode: rows (n, d) of what a batch holds, or (h, z); a module, or a method of one, is
                in evaluation mode meanwhile, as is `model`.
            loader: batches x, (x, labels), (x, labels, ids) or mappings, in the same order each
                time unless there are ids. What it draws is not drawn from the training's numbers.
        """
        if self._recorder is None or self._pid != os.getpid():
            return
        try:
            at = self._steps if step is None else int(step)
            self._recorder.put(embed_probe(at, encode, loader, model))
        except Exception as error:
            self.on_error(error, "probes")
        self._raise_if_strict()

    def wrap(self, criterion: Callable[..., Any], **how: Any) -> Any:
        """The same loss module, each of whose calls is a step: see `recording.criterion`."""
        from contrastive_core.recording.criterion import Wrapped

        return Wrapped(self, criterion, **how)

    # --- the end ---

    def close(self, status: str = "done", reason: str = "") -> None:
        """Write what still waits, and how the recording ended. A second call does nothing."""
        if self._closed or self._pid != os.getpid():
            return
        self._closed = True
        atexit.unregister(self._close_at_exit)
        recorder, self._recorder = self._recorder, None
        if recorder is None or self.run is None:
            return
        recorder.close()
        try:
            self.run.set_status(status, reason, step=self._steps, note=self.left_out.note)
        except (OSError, ValueError) as error:
            logger.warning("%s: its end could not be written: %s", self.left_out.name, error)
        self._locks.close()
        if self.settings.strict and recorder.error is not None and status == "done":
            raise recorder.error

    def _close_at_exit(self) -> None:
        self.close("stopped", "the training's process ended without closing it")

    def __enter__(self) -> Watch:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        elif isinstance(error, KeyboardInterrupt):
            self.close("stopped", "it was stopped at the keyboard")
        else:
            text = str(error).strip().partition("\n")[0][:300]
            self.close("failed", f"the training ended with {type(error).__name__}: {text}")

    def on_error(self, error: Exception, what: str) -> None:
        if self.settings.strict:
            raise error
        text = getattr(error, "strerror", None) or str(error) or type(error).__name__
        self.left_out(what, text)

    def _raise_if_strict(self) -> None:
        recorder = self._recorder
        if self.settings.strict and recorder is not None and recorder.error is not None:
            error, recorder.error = recorder.error, None
            raise error


def _is_rank0() -> bool:
    """Whether this process writes: the first of those that joined, or will join, each other."""
    if collectives.is_single_process() and "RANK" in os.environ:
        return os.environ["RANK"] == "0"
    return collectives.world().is_rank0
