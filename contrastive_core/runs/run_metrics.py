"""Facts about a training from a run's files: its metrics while they are written, its cost, the number of labeled
images behind its figures, and whether a score has fallen since its best. Torch-free. A run of a million steps has 200
MB of lines, so a bounded number of step lines, spread over the run, and the last few are kept. Epoch lines are all
kept.

A training has turned if a score was best at an earlier step and has fallen significantly since. The mean of the last
three values is compared with the best mean of three earlier values. The noise is estimated from the differences between
successive values (von Neumann 1941, Ann. Math. Stat. 12, 367), by their median so that the steep start does not count.
Its variance is doubled because successive values depend on each other. Of n fixed rows at least as many as the fall
changed, which bounds the variance from below. At the t-th value the level is 0.05 / t (t + 1), which sums to 0.05 over
the whole training. Falls below two points are not reported."""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import cast

import numpy as np

from contrastive_core.base import json_files
from contrastive_core.base.errors import Damaged, NotRegular
from contrastive_core.base.json_files import JsonObject
from contrastive_core.base.messages import N_, message
from contrastive_core.base.storage import open_regular
from contrastive_core.runs.records import CHECK, CHECK_FILE, METRICS, LoopCheck
from contrastive_core.runs.run import Run

KEPT = 600  # lines of steps, at most, and at least half as many once there have been so many
LAST = 20  # lines of the newest steps
CHUNK = 1 << 22  # bytes read at a time
STEP = b'"images_per_s"'  # only a step's line has it
LONGEST_LINE = 1 << 20  # bytes; what is longer is no line of ours
MOST_EPOCHS = 100_000  # lines of epochs
LONGEST_HEADER = 4 << 20  # bytes of a weights' header, above which the file is not looked into
LARGEST_SIDE = 1 << 40  # of a tensor
WINDOW = 3  # values of a mean
ALPHA, LEAST = 0.05, 0.02  # for a whole training; of a share
MEDIAN = 0.455  # of the square of a standard normal
SHARES = {  # by preference: of fixed rows, then of each step's own
    ("probe_knn",): N_("kNN of the probe set"),
    ("knn_train_sample",): N_("kNN of the training sample"),
    ("recall_1_forth", "recall_1_back"): N_("Recall@1 of the rows"),
    ("knn",): N_("kNN of the rows"),
}
FALLEN = N_("{score} was best at {unit} {best} ({before} %) and has fallen significantly to {now} % by {unit} {newest}")
OF_RANK = N_(
    "The effective rank was {before} at step {best} and is {now} at step {newest}, and the rows have become less "
    "uniform. Without labels or partners, this may be a collapse"
)

_object = partial(json_files.object_of, schema=METRICS)


class MetricsReader:
    """Incremental reader of a metrics file. `update` reads new lines; `steps` and `epochs` are lines as from
    `Run.metrics`, `latest` the newest steps."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._clear()

    def _clear(self) -> None:
        self.steps: list[JsonObject] = []
        self.latest: list[JsonObject] = []
        self.epochs: list[JsonObject] = []
        self._file: tuple[int, int] | None = None  # device and inode
        self._offset, self._count, self._stride = 0, 0, 1

    def update(self) -> MetricsReader:
        """Read the lines added since the last call, or all lines if the file was replaced or truncated."""
        rest, newest = b"", list[bytes]()  # lines of the newest steps, which are parsed only at the end
        try:
            with open_regular(self.path, json_files.MAX_LINES) as file:
                about = os.fstat(file.fileno())
                identity = (about.st_dev, about.st_ino)
                if identity != self._file or about.st_size < self._offset:
                    self._clear()
                self._file = identity
                file.seek(self._offset)
                while chunk := file.read(CHUNK):
                    *lines, rest = (rest + chunk).split(b"\n")
                    self._offset += sum(map(len, lines)) + len(lines)
                    if len(rest) > LONGEST_LINE:
                        self._offset, rest = self._offset + len(rest), b""
                    for line in lines:
                        if STEP in line:
                            newest = [*newest[-LAST:], line]
                        self._keep(line)
            self.latest = [*self.latest, *filter(None, map(_object, newest))][-LAST:]
        except (NotRegular, OSError):
            self._clear()
        return self

    def _keep(self, line: bytes) -> None:
        """Keep a line of an epoch, and every `stride`-th line of a step."""
        is_step = STEP in line
        is_kept = self._count % self._stride == 0 if is_step else len(self.epochs) < MOST_EPOCHS
        self._count += is_step
        if is_kept and (value := _object(line)):
            (self.steps if is_step else self.epochs).append(value)
        if len(self.steps) > KEPT:
            self.steps, self._stride = self.steps[::2], 2 * self._stride


def cost_of(run: Run) -> dict[str, float | None]:
    """Return `seconds` of training, `images_per_s` (median of steps), peak `memory_mb` and `parameters` of encoder and
    head, read from a run's files; None if not recorded."""
    lines = run.metrics()

    def values(name: str) -> list[float]:
        return sorted(value for line in lines if (value := line.get(name)))

    speeds, parameters = values("images_per_s"), None
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, MemoryError):
        with open_regular(run.weights) as file:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(length)) if length <= LONGEST_HEADER else {}
        shapes = [v["shape"] for k, v in header.items() if k.startswith(("encoder.", "head."))]
        if all(isinstance(n, int) and 0 <= n < LARGEST_SIDE for shape in shapes for n in shape[:9]):
            parameters = sum(math.prod(shape[:9]) for shape in shapes) or None
    return {
        "seconds": max(values("seconds"), default=None),
        "images_per_s": speeds[len(speeds) // 2] if speeds else None,
        "memory_mb": max(values("memory_mb"), default=None),
        "parameters": parameters,
    }


def read_loop_check(run: Run) -> LoopCheck | None:
    """Return the result of the checks of a recorded loop; None if missing or damaged (`verify` reports damage)."""
    try:
        return cast(LoopCheck, json_files.read_object(run.path / CHECK_FILE, CHECK))
    except (OSError, ValueError):
        return None


def labeled_images(run: Run) -> int:
    """Return the number of labeled images in the fixed sample; 0 without a snapshot."""
    try:
        return _labeled_images(run, (run.path / "snapshots").stat().st_mtime_ns)
    except (OSError, Damaged):
        return 0


@lru_cache(1000)
def _labeled_images(run: Run, mtime: int) -> int:
    """Count the labels of the newest snapshot; cached until the folder changes, because pages call every second."""
    epochs = run.snapshots()
    return int((run.snapshot(epochs[-1])["labels"] >= 0).sum()) if epochs else 0


def fall(values: Sequence[float], n: int | None = None, least: float = 0.0) -> tuple[int, float, float] | None:
    """Return the middle of the best window, its mean and that of the last window, if values (t) have fallen
    significantly by more than `least`; else None. `n`: the number of rows behind a share, if they are the same each
    time."""
    from scipy.special import stdtrit

    x = np.asarray(values, np.float64)
    if (t := len(x)) < 4 * WINDOW:
        return None
    means = np.convolve(x, np.full(WINDOW, 1 / WINDOW), "valid")
    best = int(means[: t - 2 * WINDOW + 1].argmax())
    fallen = float(means[best] - means[-1])
    variance = max(2 * float(np.median(np.diff(x) ** 2)) / MEDIAN / WINDOW, fallen / n if n else 0.0)
    if fallen <= max(least, 0.0) or fallen <= -stdtrit(2 * t / 3, ALPHA / (t * (t + 1))) * variance**0.5:
        return None
    return best + WINDOW // 2, float(means[best]), float(means[-1])


def turned(lines: Iterable[Mapping[str, float]], n: int | None = None, unit: str = "step") -> str:
    """Return a sentence with the step of the best score if it has fallen since; else "". Args: lines: of metrics, in
    the order of steps; n: labeled rows of the fixed sample; unit: "step" or "epoch", the unit of the lines."""
    every = [line for line in lines if line.get(unit) is not None]
    for names, score in SHARES.items():
        known = [line for line in every if all(line.get(name) is not None for name in names)]
        if len(known) < 4 * WINDOW:
            continue
        values = [sum(line[name] for name in names) / len(names) for line in known]
        is_fixed = names[0] in ("probe_knn", "knn_train_sample")
        if (found := fall(values, n if is_fixed else None, LEAST)) is None:
            return ""
        shares = {"before": f"{100 * found[1]:.1f}", "now": f"{100 * found[2]:.1f}"}
        steps = {"best": f"{known[found[0]][unit]:,}", "newest": f"{known[-1][unit]:,}"}
        return message(FALLEN, score=score, unit=message(unit), **shares, **steps)
    known = [line for line in every if line.get("rankme") is not None and line.get("uniformity") is not None]
    rank = fall([line["rankme"] for line in known])
    if rank is None or rank[2] > rank[1] / 2 or fall([-line["uniformity"] for line in known]) is None:
        return ""
    steps = {"best": f"{known[rank[0]]['step']:,}", "newest": f"{known[-1]['step']:,}"}
    return message(OF_RANK, before=f"{rank[1]:.1f}", now=f"{rank[2]:.1f}", **steps)
