"""A run is a folder that a person can read: settings, status, metrics, states, snapshots.

    run.json        what was asked: settings, seed, data fingerprint, versions (never changes)
    status.json     how it stands: queued, running, done, stopped or failed, and why
    metrics.jsonl   a line per step and per epoch
    state/          all that a resume needs        weights.safetensors   the model
    snapshots/      the fixed sample's embedding   embeddings/           whole splits, cached
    evaluation.json scores                         meta.json             title, note, tags

Users' runs live in `runs_home()`, shipped ones, which nobody writes to, in `SHIPPED`. Torch-free.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from contrastive_core import store

__all__ = [
    "BadName",
    "NoSuchRun",
    "Run",
    "create",
    "damaged",
    "list_runs",
    "load",
    "runs_home",
]

ROOT = Path(__file__).resolve().parent.parent
SHIPPED = ROOT / "checkpoints" / "shipped"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
PACKAGES = ("torch", "torchvision", "numpy", "scikit-learn")


class BadName(ValueError):
    """A run name that is not one plain file name."""


class NoSuchRun(ValueError):
    """There is no run of that name; the message lists some that exist."""


def runs_home() -> Path:
    """Where users' runs live: $CONTRASTIVE_LAB_RUNS, or `checkpoints/runs`."""
    return Path(os.environ.get("CONTRASTIVE_LAB_RUNS") or ROOT / "checkpoints" / "runs")


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
            return dict(store.read_json(self.path / "status.json"))
        except FileNotFoundError:
            return {}
        except (store.Damaged, ValueError, TypeError) as error:
            return {"status": "failed", "reason": str(error)}

    def _is_worked_on(self, found: dict[str, Any]) -> bool:
        """Whether a process trains it, or the one that made it is about to."""
        made = found.get("status") == "queued" and isinstance(found.get("pid"), int)
        return self.is_alive() or (made and store.is_process(found["pid"], found.get("started")))

    def set_status(self, status: str, reason: str = "", **values: Any) -> None:
        """Write how the run stands. Other values of before are kept."""
        before: dict[str, Any] = {}
        with contextlib.suppress(FileNotFoundError, store.Damaged):
            before = store.read_json(self.path / "status.json")
        now = {"status": status, "reason": reason, **_stamp()}
        store.write_json(self.path / "status.json", {**before, **now, **values})

    def is_alive(self) -> bool:
        """Whether a living process works on the run."""
        return store.lock_holder(self.path / "lock") is not None

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other processes from the run while inside. Raises store.Locked."""
        with store.lock(self.path / "lock"):
            for folder in (self.path, self.path / "state", self.path / "snapshots"):
                store.tidy(folder)
            yield

    # --- metrics and snapshots ---

    def metrics(self) -> list[dict[str, Any]]:
        """All lines written so far."""
        return store.read_lines(self.path / "metrics.jsonl")

    def append_metrics(self, lines: Iterable[dict[str, Any]]) -> None:
        store.append_lines(self.path / "metrics.jsonl", lines)

    def cut_metrics(self, step: int) -> None:
        """Drop lines after `step`, and snapshots after the last whole epoch left."""
        lines = self.metrics()
        kept = [line for line in lines if line.get("step", 0) <= step]
        if len(kept) < len(lines):
            text = "".join(json.dumps(line) + "\n" for line in kept)
            store.write_bytes(self.path / "metrics.jsonl", text.encode())
        last = max((x["epoch"] for x in kept if "images_per_s" not in x), default=0)
        for epoch, path in self._snapshot_files():
            if epoch > last:
                path.unlink(missing_ok=True)

    def save_snapshot(
        self, epoch: int, *, index: np.ndarray, h: np.ndarray, z: np.ndarray, labels: np.ndarray
    ) -> None:
        """Keep the embedding of the fixed sample after `epoch`, in float16."""
        store.write_npz(
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
        """`index`, `labels`, `h`, `z` (float32) of one epoch. Raises store.Damaged."""
        found = store.read_npz(self.path / "snapshots" / f"epoch-{epoch:04d}.npz")
        return {k: v.astype(np.float32) if v.dtype == np.float16 else v for k, v in found.items()}

    def _snapshot_files(self) -> list[tuple[int, Path]]:
        files = (self.path / "snapshots").glob("epoch-*.npz")
        return sorted((int(p.stem.removeprefix("epoch-")), p) for p in files)

    # --- title, note, tags ---

    def meta(self) -> dict[str, Any]:
        """What a person wrote about the run: `title`, `note`, `tags`."""
        with contextlib.suppress(FileNotFoundError, store.Damaged):
            return dict(store.read_json(self.path / "meta.json"))
        return {}

    def set_meta(self, **values: Any) -> None:
        store.write_json(self.path / "meta.json", {**self.meta(), **values})


# --- all runs ----------------------------------------------------------------------------------


def checked_name(name: str) -> str:
    """The name, if it is one plain file name. Raises BadName."""
    if not NAME.fullmatch(name) or name.endswith(".part"):
        raise BadName(
            f"a run's name has up to 64 letters, digits, dots, dashes or underscores and starts "
            f"with a letter or digit; got {name!r}"
        )
    return name


def create(name: str | None, config: dict[str, Any], fingerprint: str = "", **more: Any) -> Run:
    """Make a run's folder with its manifest. Without a name one is made from the settings.

    Raises: BadName; FileExistsError when the name is taken.
    """
    home = runs_home()
    name = checked_name(name) if name else _free_name(home, config)
    path = home / name
    if path.exists() or (SHIPPED / name).exists():
        raise FileExistsError(f"there is a run {name!r} already; choose another name, or --resume")
    manifest = {
        "id": secrets.token_hex(8),
        "name": name,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "method": config.get("method"),
        "loss": config.get("loss"),
        "dataset": config.get("dataset"),
        "data_fingerprint": fingerprint,
        "seed": config.get("seed"),
        "config": config,
        "threads": config.get("threads"),
        "versions": {p: _version(p) for p in PACKAGES} | {"python": platform.python_version()},
        "git_commit": _git_commit(),
        **more,
    }
    _place(path, manifest)
    return Run(path, manifest)


def _place(path: Path, manifest: dict[str, Any]) -> None:
    """Make the folder aside and move it to its name whole: of two processes one can do so, and a
    kill leaves no folder that blocks a name without being a run."""
    home = path.parent
    home.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(dir=home, prefix=".new-"))
    try:
        store.write_json(aside / "run.json", manifest, seal=True)
        store.write_json(aside / "status.json", {"status": "queued", "reason": "", **_stamp()})
        aside.chmod(0o755)
        os.rename(aside, path)
    except OSError as error:
        shutil.rmtree(aside, ignore_errors=True)
        if path.exists():
            raise FileExistsError(f"there is a run {path.name!r} already") from error
        raise
    store.sync_folder(home)


def load(name: str) -> Run:
    """The run of that name, the user's or a shipped one. Raises BadName, NoSuchRun, Damaged."""
    checked_name(name)
    for home in (runs_home(), SHIPPED):
        if (home / name / "run.json").is_file():
            manifest = store.read_json(home / name / "run.json")
            if not isinstance(manifest, dict):
                raise store.Damaged(f"{home / name / 'run.json'} is damaged: not an object")
            return Run(home / name, manifest)
    known = [run.name for run in list_runs()]
    hint = f"known: {', '.join(known[:20])}" if known else "there are none yet"
    raise NoSuchRun(f"no run {name!r}; {hint}")


def list_runs() -> list[Run]:
    """All runs, the users' newest first, then the shipped. A damaged one is left out."""
    found = []
    for home in (runs_home(), SHIPPED):
        here = []
        for path in sorted(home.glob("*/run.json")):
            with contextlib.suppress(store.Damaged, OSError):
                manifest = store.read_json(path)
                if isinstance(manifest, dict) and NAME.fullmatch(path.parent.name):
                    here.append(Run(path.parent, manifest))
        found += sorted(here, key=lambda r: str(r.manifest.get("created")), reverse=home != SHIPPED)
    return found


def damaged() -> dict[str, str]:
    """Runs whose manifest cannot be read, and why: `list_runs` leaves them out."""
    found = {}
    for path in sorted(p for h in (runs_home(), SHIPPED) for p in h.glob("*/run.json")):
        if not NAME.fullmatch(path.parent.name):
            continue
        try:
            if not isinstance(store.read_json(path), dict):
                found[path.parent.name] = f"{path} is damaged: not an object"
        except (store.Damaged, OSError) as error:
            found[path.parent.name] = str(error)
    return found


@lru_cache(10_000)
def _hash_of(path: Path, inode: int, size: int, mtime: int) -> str:
    """A file's hash; a page asks for many, and a file that is written anew is another inode."""
    return store.sha256_file(path)


def _stamp() -> dict[str, Any]:
    """Which process writes, and when."""
    pid = os.getpid()
    return {"pid": pid, "started": store.process_start(pid), "updated": time.time()}


def _free_name(home: Path, config: dict[str, Any]) -> str:
    data = re.sub(r"[^A-Za-z0-9]+", "-", str(config.get("dataset", "data"))).strip("-")[-24:]
    stem = f"{config.get('method', 'run')}-{data or 'data'}-s{config.get('seed', 0)}"
    for number in range(1, 100_000):
        name = stem if number == 1 else f"{stem}-{number}"
        if not (home / name).exists() and not (SHIPPED / name).exists():
            return name
    raise FileExistsError(f"too many runs named {stem}")


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _git_commit() -> str | None:
    if not (ROOT / ".git").exists():
        return None
    try:
        command = ["git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD"]
        found = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip()
