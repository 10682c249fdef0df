"""Rows that `watch` kept of single steps of somebody else's training, one file a step. Torch-free.

A bounded number of steps is kept, spread over the whole recording: when there are too many, every
second one goes. The newest is always there.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from contrastive_core.errors import Damaged
from contrastive_core.messages import N_
from contrastive_core.records.run import Run
from contrastive_core.storage import atomic, json_files

FOLDER = "rows"
SHAPES = {"image": ("iu", 1), "view": ("iu", 1), "labels": ("iu", 1), "ids": ("U", 1), "loss": ("f", 1)}
SHAPES |= {"z": ("f", 2), "queue": ("f", 2)}


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
    return [number for number, _ in atomic.numbered_files(run.path / FOLDER, "step-", ".npz")]


def path_of(run: Run, step: int) -> Path:
    return run.path / FOLDER / f"step-{step:09d}.npz"


def read(run: Run, step: int) -> StepRows:
    """The rows of a step. Raises Damaged; FileNotFoundError."""
    path = path_of(run, step)
    arrays = json_files.read_npz(path, shapes=SHAPES)
    rows = StepRows(**{name: arrays[name] for name in SHAPES})
    if any(len(arrays[name]) != len(rows.z) for name in SHAPES if name != "queue"):
        raise Damaged("{path} is damaged: {why}", path=path, why=N_("its arrays differ in length"))
    if len(rows.queue) and rows.queue.shape[1] != rows.z.shape[1]:
        raise Damaged("{path} is damaged: {why}", path=path, why=N_("its queue is not as wide as its rows"))
    if not np.isfinite(rows.z).all():
        raise Damaged("{path} is damaged: {why}", path=path, why=N_("its rows are not finite"))
    return rows


def write(run: Run, step: int, rows: StepRows) -> None:
    """Keep the rows of a step. Raises Gone; OSError."""
    arrays = {name: getattr(rows, name) for name in SHAPES}
    run.write(f"{FOLDER}/{path_of(run, step).name}", json_files.npz_bytes(**arrays))


def remove(run: Run, step: int) -> None:
    path_of(run, step).unlink(missing_ok=True)
