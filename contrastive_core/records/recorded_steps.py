"""Rows that `watch` kept of single steps of somebody else's training, one file a step. Torch-free.

A bounded number of steps is kept, spread over the whole recording: when there are too many, every
second one goes. The newest is always there.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from contrastive_core.errors import Damaged
from contrastive_core.messages import N_, message
from contrastive_core.records.run import Run
from contrastive_core.storage import json_files

__all__ = ["StepRows", "path_of", "read", "remove", "steps", "write"]

FOLDER = "rows"


@dataclass(frozen=True, eq=False)
class StepRows:
    """Rows z (n, d) float32 of one step: of which image each is (n), counted from 0, which view of
    it (n), label (n; −1: none), id (n), and its loss (n; NaN: not taken or undefined). queue (k, d)
    holds older keys that the queries met."""

    z: np.ndarray
    image: np.ndarray
    view: np.ndarray
    labels: np.ndarray
    ids: np.ndarray
    loss: np.ndarray
    queue: np.ndarray

    @property
    def has_views(self) -> bool:
        """Whether some image has two rows."""
        return len(np.unique(self.image)) < len(self.image)


def steps(run: Run) -> list[int]:
    """Steps of which rows are kept, rising; none of a run that is no recording."""
    names = [p.stem.removeprefix("step-") for p in (run.path / FOLDER).glob("step-*.npz")]
    return sorted(int(name) for name in names if name.isascii() and name.isdigit())


def path_of(run: Run, step: int) -> Path:
    return run.path / FOLDER / f"step-{step:09d}.npz"


def read(run: Run, step: int) -> StepRows:
    """The rows of a step. Raises Damaged; FileNotFoundError."""
    path = path_of(run, step)
    arrays = json_files.read_npz(path)
    if why := _not_rows(arrays):
        raise Damaged("{path} is damaged: {why}", path=path, why=why)
    return StepRows(**{name: arrays[name] for name in StepRows.__dataclass_fields__})


def write(run: Run, step: int, rows: StepRows) -> None:
    """Keep the rows of a step. Raises Gone; OSError."""
    arrays = {name: getattr(rows, name) for name in StepRows.__dataclass_fields__}
    run.write(f"{FOLDER}/{path_of(run, step).name}", json_files.npz_bytes(**arrays))


def remove(run: Run, step: int) -> None:
    path_of(run, step).unlink(missing_ok=True)


def _not_rows(arrays: dict[str, np.ndarray]) -> str:
    """Why arrays are none; "" if they are."""
    if missing := StepRows.__dataclass_fields__.keys() - arrays.keys():
        return message("it has no {missing}", missing=f"{min(missing)!r}")
    z, queue = arrays["z"], arrays["queue"]
    if any(a.ndim != 2 or a.dtype.kind != "f" for a in (z, queue)):
        return N_("its rows are not rows of numbers")
    each = {k: arrays[k] for k in ("image", "view", "labels", "ids", "loss")}
    if any(a.ndim != 1 or len(a) != len(z) for a in each.values()):
        return N_("its arrays differ in length")
    if any(each[k].dtype.kind not in "iu" for k in ("image", "view", "labels")):
        return N_("its images, views and labels are not whole numbers")
    if each["ids"].dtype.kind != "U" or each["loss"].dtype.kind != "f":
        return N_("its ids are not text, or its losses not numbers")
    if len(queue) and queue.shape[1] != z.shape[1]:
        return N_("its queue is not as wide as its rows")
    return "" if np.isfinite(z).all() else N_("its rows are not finite")
