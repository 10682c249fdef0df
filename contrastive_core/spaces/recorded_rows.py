"""Rows of a recording as an embedding: a snapshot of its probe set, or the rows of one step.

Their names, `recording:NAME@probe-STEP` and `recording:NAME@step-STEP`, refer to the same rows while the recording
grows. `watch` stores the rows of a bounded number of steps, spread over the whole recording. Torch-free."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from contrastive_core.base import storage
from contrastive_core.base.errors import Damaged, UnusableEmbedding
from contrastive_core.base.memory import npz_bytes, read_npz
from contrastive_core.base.messages import N_, message
from contrastive_core.runs import load
from contrastive_core.runs.run import Run
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.towers import are_tower_names, joined

T = TypeVar("T")
DAMAGED = N_("{path} is damaged: {why}")
PREFIX = "recording:"
PROBE, STEP = "probe", "step"
KEY = re.compile(rf"(?P<name>[^@]+)@(?P<kind>{PROBE}|{STEP})-(?P<number>[0-9]{{1,15}})")
FOLDER = "rows"
SHAPES = {"image": ("iu", 1), "view": ("iu", 1), "labels": ("iu", 1), "ids": ("U", 1), "loss": ("f", 1)}
SHAPES |= {"z": ("f", 2), "queue": ("f", 2)}


@dataclass(frozen=True)
class Recorded:
    """One snapshot of a recording's probe set (kind "probe"), or the rows of a step ("step")."""

    run: Run
    kind: str
    number: int

    @property
    def key(self) -> str:
        return f"{self.run.name}@{self.kind}-{self.number}"

    @property
    def title(self) -> str:
        return message("{name}, {rows}", name=self.run.name, rows=self.rows_title)

    @property
    def rows_title(self) -> str:
        template = N_("probe set at step {step}") if self.kind == PROBE else N_("rows of step {step}")
        return message(template, step=f"{self.number:,}")

    @property
    def content(self) -> str:
        """An identifier of these rows; another recording under the same name has a different one."""
        return f"{self.run.manifest.get('id')}-{self.kind}-{self.number}"

    @property
    def tower_names(self) -> Any:
        """The names of the recording's two towers; None for one encoder."""
        return self.run.manifest.get("recording", {}).get("towers")

    def rows(self, layer: str = "z") -> EmbeddingSet:
        """Return the rows; layer h is the first output of `encode`. Raises UnusableEmbedding; Damaged."""
        if self.kind == PROBE:
            arrays = self._read(self.run.snapshot)
            ids = arrays.get("ids", arrays["index"]).astype(str)
            return self._set(arrays["h" if layer == "h" else "z"], arrays["labels"], ids, {})
        rows = self._read(partial(read, self.run))
        losses = {"loss": rows.loss} if np.isfinite(rows.loss).any() else {}
        if (names := self.tower_names) is None:
            views = {"view": rows.view} if rows.has_views else {}
            return self._set(rows.z, rows.labels, rows.ids, views | losses)
        if not are_tower_names(names) or {*rows.view.tolist()} != {0, 1}:
            why = N_("its rows do not belong to two towers")
            raise Damaged(DAMAGED, path=path_of(self.run, self.number), why=why)
        sides, sets = [rows.view == 0, rows.view == 1], list[EmbeddingSet]()
        for at in sides:
            columns = {name: values[at] for name, values in losses.items()}
            sets.append(self._set(rows.z[at], rows.labels[at], numbered(rows.ids[at]), columns))
        return joined(sets[0], sets[1], (names[0], names[1]), *(rows.ids[at] for at in sides))

    def has_h(self) -> bool:
        """Return whether the probe set has rows h that differ from z."""
        arrays = self._read(self.run.snapshot) if self.kind == PROBE else {"h": 0, "z": 0}
        return not np.array_equal(arrays["h"], arrays["z"])

    def _read(self, read: Callable[[int], T]) -> T:
        """Return `read` of this step. Raises UnusableEmbedding if the step is no longer stored."""
        try:
            return read(self.number)
        except FileNotFoundError:
            name, number = self.run.name, f"{self.number:,}"
            raise UnusableEmbedding(
                "{name} does not keep the rows of step {number}; choose another step", name=name, number=number
            ) from None

    def _set(
        self, features: np.ndarray, labels: np.ndarray, ids: np.ndarray, columns: dict[str, np.ndarray]
    ) -> EmbeddingSet:
        dataset = self.run.config.get("dataset")
        return EmbeddingSet(
            features=np.ascontiguousarray(features, np.float32),
            labels=labels.astype(np.int64),
            ids=tuple(map(str, ids.tolist())),
            split=self.run.manifest.get("recording", {}).get("split", ""),
            layer="loaded",
            classes=tuple(self.run.manifest.get("classes") or ()),
            columns=columns,
            provenance={"dataset": str(dataset)} if dataset else {},
        )


def of_key(key: str) -> Recorded:
    """Parse the part of a name after the prefix. Raises UnusableEmbedding; NoSuchRun."""
    match = KEY.fullmatch(key)
    if match is None:
        raise UnusableEmbedding(
            "{key} does not specify rows of a recording; write NAME@probe-100 or NAME@step-50", key=f"{key!r}"
        )
    run = load(match["name"])
    if not run.is_recording:
        raise UnusableEmbedding("{name} is not a recording", name=run.name)
    return Recorded(run, match["kind"], int(match["number"]))


def kinds_of(run: Run) -> dict[str, list[int]]:
    """Return the steps with rows, ascending, by kind; kinds without rows are omitted."""
    kinds = {PROBE: run.snapshots(), STEP: steps(run)}
    return {kind: numbers for kind, numbers in kinds.items() if numbers}


def newest(run: Run) -> Recorded:
    """Return the newest snapshot of the probe set, or else the newest step. Raises UnusableEmbedding."""
    for kind, numbers in kinds_of(run).items():
        return Recorded(run, kind, numbers[-1])
    raise UnusableEmbedding("{name} has not recorded any rows", name=run.name)


def numbered(ids: np.ndarray) -> np.ndarray:
    """Return ids (n) as text; repeated ids get the suffix (2), (3) and so on."""
    counts, found = Counter[str](), []
    for name in ids.tolist():
        counts[name] += 1
        found.append(name if counts[name] == 1 else f"{name} ({counts[name]})")
    return np.array(found, np.str_)


# --- rows of single steps ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class StepRows:
    """Rows z (n, d) float32 of one step, each with an image (n) counted from 0, a view of it (n), a label (n; −1:
    none), an id (n), and a loss (n; NaN: not computed or undefined). queue (k, d) holds older keys that the queries
    were compared with."""

    z: np.ndarray
    image: np.ndarray
    view: np.ndarray
    labels: np.ndarray
    ids: np.ndarray
    loss: np.ndarray
    queue: np.ndarray

    @property
    def has_views(self) -> bool:
        """Return whether some image has two rows."""
        return len(np.unique(self.image)) < len(self.image)


def steps(run: Run) -> list[int]:
    """Return the steps with stored rows, ascending; empty for a run that is not a recording."""
    return [number for number, _ in storage.numbered_files(run.path / FOLDER, "step-", ".npz")]


def path_of(run: Run, step: int) -> Path:
    return run.path / FOLDER / f"step-{step:09d}.npz"


def read(run: Run, step: int) -> StepRows:
    """Return the rows of a step. Raises Damaged; FileNotFoundError."""
    path = path_of(run, step)
    arrays = read_npz(path, shapes=SHAPES)
    rows = StepRows(**{name: arrays[name] for name in SHAPES})
    is_even = all(len(arrays[name]) == len(rows.z) for name in SHAPES if name != "queue")
    fits = not len(rows.queue) or rows.queue.shape[1] == rows.z.shape[1]
    if not (is_even and fits and np.isfinite(rows.z).all()):
        raise Damaged(DAMAGED, path=path, why=N_("its rows are not finite, or differ in number or width"))
    return rows


def write(run: Run, step: int, rows: StepRows) -> None:
    """Store the rows of a step. Raises Gone; OSError."""
    arrays = {name: getattr(rows, name) for name in SHAPES}
    run.write(f"{FOLDER}/{path_of(run, step).name}", npz_bytes(**arrays))


def remove(run: Run, step: int) -> None:
    path_of(run, step).unlink(missing_ok=True)
