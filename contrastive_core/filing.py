"""Runs under other names, in the bin, and back. Torch-free.

A deleted run is moved to `.bin` and lies there until the bin is emptied.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from pathlib import Path

from contrastive_core import runs, store
from contrastive_core.runs import Run

__all__ = ["binned", "delete", "empty_bin", "rename", "restore"]


def delete(name: str) -> Path:
    """Move a user's run to the bin; returns where it lies. Raises ValueError for a shipped run,
    or one at work."""
    run = runs.load(name)
    if run.shipped:
        raise ValueError(f"{name} is shipped with the project and stays")
    if run.is_alive():
        raise ValueError(f"{name} is at work; stop it first")
    _keep_log(run)
    bin_ = runs.runs_home() / ".bin" / f"{name}-{secrets.token_hex(4)}"
    bin_.parent.mkdir(exist_ok=True)
    os.replace(run.path, bin_)
    return bin_


def binned() -> list[Path]:
    """Deleted runs, the last deleted first."""
    found = [p for p in (runs.runs_home() / ".bin").glob("*") if (p / "run.json").exists()]
    return sorted(found, key=lambda p: p.stat().st_ctime, reverse=True)


def restore(binned: Path) -> Run:
    """Bring a deleted run back under its name. Raises FileExistsError when that is taken."""
    name = binned.name.rsplit("-", 1)[0]
    if (runs.runs_home() / name).exists():
        raise FileExistsError(f"there is a run {name!r} already; rename it first")
    os.replace(binned, runs.runs_home() / name)
    return runs.load(name)


def rename(name: str, new: str) -> Run:
    """Give a user's run another name. Raises as `create` and `delete` do."""
    run = runs.load(name)
    runs.checked_name(new)
    if run.shipped or run.is_alive():
        raise ValueError(f"{name} is {'shipped' if run.shipped else 'at work'} and keeps its name")
    if (runs.runs_home() / new).exists() or (runs.SHIPPED / new).exists():
        raise FileExistsError(f"there is a run {new!r} already")
    _keep_log(run)
    os.rename(run.path, runs.runs_home() / new)
    store.write_json(runs.runs_home() / new / "run.json", {**run.manifest, "name": new}, seal=True)
    return runs.load(new)


def _keep_log(run: Run) -> None:
    """Move what its process wrote into the run's folder, which is about to change its name."""
    log = runs.runs_home() / ".jobs" / f"{run.name}.log"
    with contextlib.suppress(FileNotFoundError):
        os.replace(log, run.path / "log.txt")
    log.with_suffix(".json").unlink(missing_ok=True)


def empty_bin() -> None:
    """Remove what was deleted for good."""
    shutil.rmtree(runs.runs_home() / ".bin", ignore_errors=True)
