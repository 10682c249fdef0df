"""One run's folder: status, metrics, snapshots, and what a person wrote about it. Torch-free.

Runs are made, found and listed in runs.py.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from contrastive_core.errors import Damaged, Gone
from contrastive_core.paths import SHIPPED
from contrastive_core.storage import atomic, records
from contrastive_core.storage.lock import is_process, lock, lock_holder, process_start

__all__ = ["Run", "stamp"]


@dataclass(frozen=True)
class Run:
    """One run folder. Reading is cheap; nothing is kept in memory but the manifest."""

    path: Path
    manifest: dict[str, Any] = field(repr=False)

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def shipped(self) -> bool:
        return self.path.parent == SHIPPED

    @property
    def config(self) -> dict[str, Any]:
        return dict(self.manifest.get("config", {}))

    @property
    def weights(self) -> Path:
        return self.path / "weights.safetensors"

    def weights_hash(self) -> str:
        """SHA-256 of the weights' file. Raises ValueError when the run has none yet."""
        try:
            about = self.weights.stat()
        except FileNotFoundError:
            raise ValueError(f"{self.name} has no weights yet") from None
        return _hash_of(self.weights, about.st_ino, about.st_size, about.st_mtime_ns)

    # --- status ---

    def status(self) -> dict[str, Any]:
        """`status`, `reason`, `epoch`, `epochs`, `step`, `updated`. A run whose process died
        while it was running is `failed`."""
        found = self._written_status()
        while found.get("status") in ("running", "queued") and not self._is_worked_on(found):
            if (again := self._written_status()) == found:
                why = "its process ended without a word; Resume goes on from its last state"
                return {**found, "status": "failed", "reason": why}
            found = again  # it had its last word between the two looks
        return found or {"status": "queued", "reason": ""}

    def _written_status(self) -> dict[str, Any]:
        try:
            return dict(records.read_json(self.path / "status.json"))
        except FileNotFoundError:
            return {}
        except (Damaged, ValueError, TypeError) as error:
            reason = str(error).removeprefix(f"{self.path}/")
            return {"status": "failed", "reason": reason}

    def _is_worked_on(self, found: dict[str, Any]) -> bool:
        """Whether a process trains it, or the one that made it is about to."""
        made = found.get("status") == "queued" and isinstance(found.get("pid"), int)
        return self.is_alive() or (made and is_process(found["pid"], found.get("started")))

    def set_status(self, status: str, reason: str = "", **values: Any) -> None:
        """Write how the run stands. Other values of before are kept."""
        before: dict[str, Any] = {}
        with contextlib.suppress(FileNotFoundError, Damaged):
            before = records.read_json(self.path / "status.json")
        now = {"status": status, "reason": reason, **stamp()}
        records.write_json(self.path / "status.json", {**before, **now, **values})

    def is_alive(self) -> bool:
        """Whether a living process works on the run."""
        return lock_holder(self.path / "lock") is not None

    def is_claimed(self) -> bool:
        """Whether a living process works on the run, or has made it and is about to."""
        return self._is_worked_on(self._written_status())

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other processes from the run while inside. Raises Locked; Gone."""
        with lock(self.path / "lock"):
            if not (self.path / "run.json").exists():  # the lock has made its folder anew
                self._vanish()
                raise Gone(f"{self.name} was renamed or deleted before it could be trained")
            for folder in (self.path, self.path / "state", self.path / "snapshots"):
                atomic.tidy(folder)
            yield

    def _vanish(self) -> None:
        (self.path / "lock").unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self.path.rmdir()

    # --- metrics and snapshots ---

    def metrics(self) -> list[dict[str, Any]]:
        """All lines written so far, but for damaged ones."""
        return records.read_lines(self.path / "metrics.jsonl")

    def append_metrics(self, lines: Iterable[dict[str, Any]]) -> None:
        records.append_lines(self.path / "metrics.jsonl", lines)

    def cut_metrics(self, step: int) -> None:
        """Drop lines after `step`, and snapshots after the last whole epoch left."""
        lines = self.metrics()
        kept = [line for line in lines if line.get("step", 0) <= step]
        if len(kept) < len(lines):
            records.write_lines(self.path / "metrics.jsonl", kept)
        last = max((x["epoch"] for x in kept if "images_per_s" not in x), default=0)
        for epoch, path in self._snapshot_files():
            if epoch > last:
                path.unlink(missing_ok=True)

    def save_snapshot(
        self, epoch: int, *, index: np.ndarray, h: np.ndarray, z: np.ndarray, labels: np.ndarray
    ) -> None:
        """Keep the embedding of the fixed sample after `epoch`, in float16."""
        records.write_npz(
            self.path / "snapshots" / f"epoch-{epoch:04d}.npz",
            index=index,
            labels=labels,
            h=h.astype(np.float16),
            z=z.astype(np.float16),
        )

    def snapshots(self) -> list[int]:
        """Epochs of which there is a snapshot, rising."""
        return [epoch for epoch, _ in self._snapshot_files()]

    def snapshot(self, epoch: int) -> dict[str, np.ndarray]:
        """`index`, `labels`, `h`, `z` (float32) of one epoch. Raises Damaged."""
        found = records.read_npz(self.path / "snapshots" / f"epoch-{epoch:04d}.npz")
        return {k: v.astype(np.float32) if v.dtype == np.float16 else v for k, v in found.items()}

    def _snapshot_files(self) -> list[tuple[int, Path]]:
        files = (self.path / "snapshots").glob("epoch-*.npz")
        return sorted((int(p.stem.removeprefix("epoch-")), p) for p in files)

    # --- title, note, tags ---

    def meta(self) -> dict[str, Any]:
        """What a person wrote about the run: `title`, `note`, `tags`; {} where it is damaged."""
        with contextlib.suppress(FileNotFoundError, Damaged):
            return dict(records.read_json(self.path / "meta.json"))
        return {}

    def set_meta(self, **values: Any) -> None:
        """Write some of it. A damaged file is kept beside the new one."""
        path = self.path / "meta.json"
        before: dict[str, Any] = {}
        try:
            before = records.read_json(path)
        except FileNotFoundError:
            pass
        except Damaged:
            atomic.write_bytes(path.with_name("meta.damaged.json"), path.read_bytes())
        records.write_json(path, {**before, **values})


@lru_cache(10_000)
def _hash_of(path: Path, inode: int, size: int, mtime: int) -> str:
    """A file's hash; a page asks for many, and a file that is written anew is another inode."""
    return atomic.sha256_file(path)


def stamp() -> dict[str, Any]:
    """Which process writes, and when."""
    pid = os.getpid()
    return {"pid": pid, "started": process_start(pid), "updated": time.time()}
