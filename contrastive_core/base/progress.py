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

from contrastive_core.base.messages import decode, encode, message

TAIL = 4096  # bytes read from a file's end to find its last complete line
LONGEST = 200  # maximum characters of a stage
SECONDS = 0.1  # between two lines of one stage


@dataclass(frozen=True)
class Progress:
    """The current stage and its fraction from 0 to 1, None if unknown. `since` (s since 1970) and `begun` are the time
    and fraction of the report after which fractions have only risen."""

    stage: str
    fraction: float | None = None
    since: float = field(default=0.0, compare=False)
    begun: float = field(default=0.0, compare=False)


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
        self._stage, self._time = "", -math.inf
        self._last, self._start = math.inf, {"since": 0.0, "begun": 0.0}

    def __call__(self, stage: str, fraction: float | None, /) -> None:
        now = time.monotonic()
        if fraction is None or fraction < self._last:
            self._start = {"since": time.time(), "begun": fraction or 0.0}
        self._last = math.inf if fraction is None else fraction
        if stage == self._stage and now - self._time < SECONDS and fraction != 1.0:
            return
        self._stage, self._time = stage, now
        record = {"stage": encode(stage) if len(stage) <= LONGEST else stage[:LONGEST], "fraction": fraction}
        record |= self._start
        with contextlib.suppress(OSError), self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")


def read_progress(path: Path) -> Progress | None:
    """Read the last complete line of a progress file; None if there is none."""
    lines = _bytes(path, -TAIL).split(b"\n")[:-1]  # the part after the last newline is incomplete
    return next(filter(None, map(_progress, reversed(lines))), None)


def first_progress(path: Path) -> Progress | None:
    """Read the first line of a progress file; None if there is none."""
    line, end, _ = _bytes(path, TAIL).partition(b"\n")
    return _progress(line) if end else None


def _bytes(path: Path, count: int) -> bytes:
    """Read the first bytes of a file, or the last if `count` is negative; b"" if it cannot be read."""
    try:
        with path.open("rb") as file:
            if count < 0:
                file.seek(max(0, os.fstat(file.fileno()).st_size + count))
            return file.read(abs(count))
    except OSError:
        return b""


def _progress(line: bytes) -> Progress | None:
    try:
        record = json.loads(line, object_hook=decode)
        stage, fraction = record["stage"], record.get("fraction")
        is_known = fraction is not None and not math.isnan(fraction)
        stage = stage if isinstance(stage, str) else str(stage)
        start = float(record.get("since", 0.0)), float(record.get("begun", 0.0))
        return Progress(stage, min(1.0, max(0.0, float(fraction))) if is_known else None, *start)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
