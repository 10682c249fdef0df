"""Progress of long work: a callback within a process, JSON lines between processes. Torch-free.

Long functions take `on_progress: OnProgress = ignore_progress` and call it with the name of the current
stage and the completed fraction of that stage, None if unknown. Functions with a single stage take
`on_fraction: OnFraction`. An exception from a callback stops the work. A child process writes each
call as a line `{"stage": …, "fraction": …}` into a file that its parent reads."""

import contextlib
import json
import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from contrastive_core.base.messages import N_, decode, encode, message

TAIL = 4096  # bytes read from a file's end to find its last complete line
LONGEST = 200  # maximum characters of a stage
SECONDS = 0.1  # between two lines of one stage
SOONEST = 3.0  # seconds of work before the remaining time is known


@dataclass(frozen=True)
class Progress:
    """The current stage and its fraction from 0 to 1, None if unknown. `since` (s since 1970) and `begun` are the time
    and fraction of the report after which fractions have only risen."""

    stage: str
    fraction: float | None = None
    since: float = field(default=0.0, compare=False)
    begun: float = field(default=0.0, compare=False)

    def then(self, stage: str, fraction: float | None) -> "Progress":
        """Return the next report."""
        if fraction is None or self.fraction is None or fraction < self.fraction:
            return Progress(stage, fraction, time.time(), fraction or 0.0)
        return Progress(stage, fraction, self.since, self.begun)

    @property
    def seconds_left(self) -> float | None:
        """The seconds until the fraction is 1, from its rate so far; None if unknown, as in the first seconds."""
        seconds = time.time() - self.since
        if self.fraction is None or not self.since or self.fraction <= self.begun or seconds <= SOONEST:
            return None
        return (1.0 - self.fraction) * seconds / (self.fraction - self.begun)


STARTING, ENDING = Progress(N_("starting")), Progress(N_("ending"), 1.0)  # before the first report, and after the last
OnProgress = Callable[[str, float | None], None]
OnFraction = Callable[[float], None]


def ignore_progress(stage: str, fraction: float | None, /) -> None:
    """Ignore a report of progress."""


def ignore_fraction(fraction: float, /) -> None:
    """Ignore a report of a fraction."""


def fraction_of(on_progress: OnProgress, stage: str) -> OnFraction:
    """Return a callback for the fractions of one stage with the name `stage`."""
    return lambda fraction: on_progress(stage, fraction)


def prefixed(on_progress: OnProgress, prefix: str) -> OnProgress:
    """Return a callback that adds `prefix` to the names of the stages of inner work: `prefix: stage`."""
    return lambda stage, fraction: on_progress(message("{prefix}: {stage}", prefix=prefix, stage=stage), fraction)


def one_bar(on_progress: OnProgress, stages: int) -> OnProgress:
    """Return a callback whose fractions rise once from 0 to 1 over the whole work. Each of at most `stages` stages, by
    name, gets the same share in the order in which it begins; its fractions fall back nowhere."""
    seen: list[str] = []
    reached = 0.0

    def report(stage: str, fraction: float | None, /) -> None:
        nonlocal reached
        if stage not in seen:
            seen.append(stage)
        reached = min(1.0, max(reached, (seen.index(stage) + (fraction or 0.0)) / stages))
        on_progress(stage, reached)

    return report


class ProgressFile:
    """An `OnProgress` that appends lines to a file, at most ten per second and stage. Lines that cannot be
    written, for example on a full disk, are dropped and the work continues."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._last, self._time = Progress(""), -math.inf

    def __call__(self, stage: str, fraction: float | None, /) -> None:
        before, now = self._last, time.monotonic()
        self._last = before.then(stage, fraction)
        if stage == before.stage and now - self._time < SECONDS and fraction != 1.0:
            return
        self._time = now
        record = {**vars(self._last), "stage": encode(stage) if len(stage) <= LONGEST else stage[:LONGEST]}
        with contextlib.suppress(OSError), self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")


def read_progress(path: Path) -> Progress | None:
    """Read the last complete line of a progress file; None if there is none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL))
            lines = file.read().split(b"\n")[:-1]  # the part after the last newline is incomplete
    except OSError:
        return None
    for line in reversed(lines):
        with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
            record = json.loads(line, object_hook=decode)
            stage, fraction = record["stage"], record.get("fraction")
            is_known = fraction is not None and not math.isnan(fraction)
            share = min(1.0, max(0.0, float(fraction))) if is_known else None
            start = float(record.get("since", 0.0)), float(record.get("begun", 0.0))
            return Progress(stage if isinstance(stage, str) else str(stage), share, *start)
    return None
