"""Runs under other names, in the bin, and back. Torch-free. A deleted run is moved to `.bin` and lies there until
the bin is emptied. While a run is moved nothing is started from the queue, so that no training finds its folder
gone."""

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from contrastive_core.engine import process, queue_files, training
from contrastive_core.messages import N_, message
from contrastive_core.paths import runs_home
from contrastive_core.records import runs
from contrastive_core.records.run import Run
from contrastive_core.storage import json_files


def delete(name: str) -> Path:
    """Move a user's run to the bin; returns where it lies. Raises ValueError as `_at_rest` does."""
    with _at_rest(name, N_("stays")) as run:
        _keep_log(run)
        bin_ = runs_home() / ".bin" / f"{name}-{secrets.token_hex(4)}"
        bin_.parent.mkdir(exist_ok=True)
        os.replace(run.path, bin_)
    return bin_


def binned() -> list[Path]:
    """Deleted runs, the last deleted first."""
    found = (path.parent for path in (runs_home() / ".bin").glob("*/run.json"))
    return sorted(found, key=lambda path: path.stat().st_ctime, reverse=True)


def restore(binned: Path) -> Run:
    """Bring a deleted run back under its name. Raises FileExistsError; FileNotFoundError, not in the bin."""
    name = binned.name.rsplit("-", 1)[0]
    if not binned.exists():
        raise FileNotFoundError(message("{name} is not in the bin any more", name=name))
    if (runs_home() / name).exists():
        raise FileExistsError(message("there is a run {name} already; rename it first", name=f"{name!r}"))
    os.replace(binned, runs_home() / name)
    return runs.load(name)


def rename(name: str, new: str) -> Run:
    """Give a user's run another name. Raises as `create` and `delete` do."""
    runs.checked_name(new)
    with _at_rest(name, N_("keeps its name")) as run:
        if training.is_taken(new) or new in queue_files.waiting_names():
            raise FileExistsError(message("there is a run {new} already", new=f"{new!r}"))
        _keep_log(run)
        os.rename(run.path, runs_home() / new)
        json_files.write_json(runs_home() / new / "run.json", {**run.manifest, "name": new})
    return runs.load(new)


@contextlib.contextmanager
def _at_rest(name: str, so: str) -> Iterator[Run]:
    """A user's run, kept at rest while inside. Raises ValueError for a shipped one, one at work, one that waits."""
    training.at_work(runs.load(name))  # this may wait for a process that ends; others need not
    with queue_files.changing():
        run = runs.load(name)
        if run.shipped:
            raise ValueError(message("{name} is shipped with the project and {so}", name=name, so=so))
        if training.at_work(run):
            raise ValueError(message("{name} is running and {so}; stop it first", name=name, so=so))
        if name in queue_files.waiting_names():
            text = message("{name} is queued and {so}; remove it from the queue first", name=name, so=so)
            raise ValueError(text)
        yield run


def _keep_log(run: Run) -> None:
    """Move what its process wrote into the run's folder, which is about to change its name."""
    log = process.folder() / f"{run.name}.log"
    with contextlib.suppress(FileNotFoundError):
        os.replace(log, run.path / "log.txt")
    process.forget(run.name)


def empty_bin() -> None:
    """Remove what was deleted for good."""
    shutil.rmtree(runs_home() / ".bin", ignore_errors=True)
