"""Renaming, deleting and restoring runs, copying runs from other folders, and the integrity of a run's files: JSON by
schema, weights and states by SHA-256. Torch-free except for weights.

A deleted run is moved to `.bin` until the bin is emptied. During a move nothing is started from the queue, so no
training loses its folder. A run opened by its path may have been downloaded: its folder and neighboring files may
contain links, pipes and files that other programs trust. Only regular files are copied, links are not followed, and
nothing is written to the original folder."""

import contextlib
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from contrastive_core import runs
from contrastive_core.base import json_files, storage
from contrastive_core.base.errors import BadName, BadSetting, Damaged
from contrastive_core.base.json_files import Schema
from contrastive_core.base.messages import N_, message, printable, sentence
from contrastive_core.base.storage import SHIPPED, open_regular, runs_home
from contrastive_core.engine import process, queue, training
from contrastive_core.runs.records import CHANGE, CHECK, CHECK_FILE, MARK, META, METRICS, REQUEST, STATUS
from contrastive_core.runs.run import Run, read_manifest
from contrastive_core.spaces import recorded_rows

MOST = 100_000  # maximum files of a copied run
GROWING = ("status.json", "metrics.jsonl", "weights.safetensors")  # files that change in training


def delete(name: str) -> Path:
    """Move a user's run to the bin; return its new path. Raises ValueError as `_at_rest` does."""
    with _at_rest(name) as run:
        _keep_log(run)
        bin_ = storage.make_folder(_bin()) / f"{name}-{secrets.token_hex(4)}"
        os.replace(run.path, bin_)
    return bin_


def _bin() -> Path:
    return runs_home() / ".bin"


def binned() -> list[Path]:
    """Return the deleted runs, the most recently deleted first. Symbolic links are left out."""
    found = [] if _bin().is_symlink() else [path.parent for path in _bin().glob("*/run.json")]
    own = (path for path in found if not path.is_symlink())
    return sorted(own, key=lambda path: path.stat().st_ctime, reverse=True)


def restore(binned: Path) -> Run:
    """Restore a deleted run under its name. Raises FileExistsError; FileNotFoundError if it is no longer in the bin."""
    name = binned.name.rsplit("-", 1)[0]
    if not binned.exists():
        raise FileNotFoundError(message("{name} is no longer in the bin", name=name))
    if (runs_home() / name).exists():
        raise FileExistsError(message("there is a run {name} already; rename it first", name=f"{name!r}"))
    os.replace(binned, runs_home() / name)
    return runs.load(name)


def rename(name: str, new: str) -> Run:
    """Rename a user's run. Raises the errors of `create` and `delete`."""
    runs.new_name(new)
    with _at_rest(name) as run:
        if training.is_taken(new) or new in queue.waiting_names():
            raise FileExistsError(message("there is a run {new} already", new=f"{new!r}"))
        _keep_log(run)
        os.rename(run.path, runs_home() / new)
        json_files.write_json(runs_home() / new / "run.json", {**run.manifest, "name": new})
    return runs.load(new)


@contextlib.contextmanager
def _at_rest(name: str) -> Iterator[Run]:
    """Context with a user's run that stays inactive. Raises ValueError for a shipped, running or queued one."""
    training.at_work(runs.load(name))  # may wait for an ending process, so check before taking the lock
    with queue.changing():
        run = runs.load(name)
        if run.shipped:
            raise ValueError(message("{name} is shipped with the project and stays as it is", name=name))
        if training.at_work(run):
            raise ValueError(message("{name} is running; stop it before you rename or delete it", name=name))
        if name in queue.waiting_names():
            text = N_("{name} is queued; remove it from the queue before you rename or delete it")
            raise ValueError(message(text, name=name))
        yield run


def _keep_log(run: Run) -> None:
    """Move the end of the process's log into the run's folder before it is renamed."""
    if log := process.log_bytes(run.name):
        run.write(process.LOG, log)
    process.forget(run.name)


def empty_bin() -> None:
    """Delete the runs in the bin permanently."""
    shutil.rmtree(_bin(), ignore_errors=True)


# --- runs of other folders ---------------------------------------------------------------------------


def own_run(folder: Path) -> Run:
    """Return the user's or shipped run in this folder; for another folder, its copy among the user's runs, made again
    if the original has changed. Raises: Damaged; BadSetting if it is too large; OSError."""
    if folder.parent in (runs_home().resolve(), SHIPPED.resolve()):
        return runs.load(folder.name)
    manifest = read_manifest(folder / "run.json")
    for run in runs.list_runs():
        has_manifest = not run.shipped and {**run.manifest, "name": None} == {**manifest, "name": None}
        if has_manifest and all(_stamp(run.path / name) == _stamp(folder / name) for name in GROWING):
            return run
    files, home = list(_files(folder)), storage.make_folder(runs_home())
    size = sum((folder / name).stat(follow_symlinks=False).st_size for name in files)
    if len(files) > MOST or size > shutil.disk_usage(home).free // 2:
        values = {"files": f"{len(files):,}", "size": f"{size / 1e9:,.1f}", "home": home}
        text = N_("{path} has {files} files of {size} GB, which is too much to copy to {home}")
        raise BadSetting(text, path=printable(folder), **values)
    try:
        stem = runs.new_name(folder.name)
    except BadName:
        stem = "run"
    aside = Path(tempfile.mkdtemp(dir=home, prefix=".new-"))
    try:
        for name in files:
            storage.make_folder((aside / name).parent)
            with open_regular(folder / name) as source, storage.new_file(aside / name) as copy:
                shutil.copyfileobj(source, copy, 1 << 20)
            about = (folder / name).stat()
            os.utime(aside / name, ns=(about.st_atime_ns, about.st_mtime_ns))
        name = queue.free_name(stem)
        json_files.write_json(aside / "run.json", {**manifest, "name": name})
        os.rename(aside, home / name)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    storage.sync_folder(home)
    return runs.load(name)


def _stamp(path: Path) -> tuple[int, int] | None:
    with contextlib.suppress(FileNotFoundError):
        about = path.stat(follow_symlinks=False)
        return about.st_size, about.st_mtime_ns
    return None


def _files(folder: Path, inside: str = "") -> Iterator[str]:
    """Yield the names of a run's regular files, including those in its subfolders (one level)."""
    with os.scandir(folder / inside) as entries:
        for entry in entries:
            name = f"{inside}/{entry.name}" if inside else entry.name
            if entry.name.startswith(".") or name == "lock":
                continue
            if entry.is_file(follow_symlinks=False):
                yield name
            elif entry.is_dir(follow_symlinks=False) and not inside:
                yield from _files(folder, entry.name)


# --- the integrity of a run's files ---


def _check_lines(path: Path, schema: Schema) -> None:
    if bad := json_files.damaged_lines(path, schema):
        numbers = ", ".join(map(str, bad[:10])) + (", …" if len(bad) > 10 else "")
        raise Damaged("damaged lines are skipped and the others are read: {numbers}", numbers=numbers)


READERS: dict[str, Callable[[Path], object]] = {  # of a run's small files
    "run.json": read_manifest,
    "status.json": partial(json_files.read_object, schema=STATUS),
    "meta.json": partial(json_files.read_object, schema=META),
    "metrics.jsonl": partial(_check_lines, schema=METRICS),
    CHECK_FILE: partial(json_files.read_object, schema=CHECK),
    "changes.jsonl": partial(_check_lines, schema=CHANGE),
    "requests.jsonl": partial(_check_lines, schema=REQUEST),
    "marks.jsonl": partial(_check_lines, schema=MARK),
}


def damage(run: Run) -> list[str]:
    """List the damaged files of a run, one sentence each, without changing anything."""
    from contrastive_core.runs import checkpoints

    snapshots = [(run.path / "snapshots" / f"{run.unit}-{epoch:04d}.npz", epoch) for epoch in run.snapshots()]
    steps = recorded_rows.steps(run)
    files: list[tuple[Path, Callable[[], object]]] = [
        *((path, partial(run.snapshot, epoch)) for path, epoch in snapshots),
        *((recorded_rows.path_of(run, step), partial(recorded_rows.read, run, step)) for step in steps),
        *((path, partial(checkpoints.read_state, path)) for path in checkpoints.state_manifests(run)),
        *([(run.weights, partial(checkpoints.load_weights, run))] if run.weights.exists() else []),
    ]
    return damaged_records(run) + [text for path, read in files if (text := _problem(run, path, read))]


def damaged_records(run: Run) -> list[str]:
    """List the damaged small files of a run, fast enough for a page."""
    files = [(run.path / name, partial(read, run.path / name)) for name, read in READERS.items()]
    return [text for path, read in files if (text := _problem(run, path, read))]


def _problem(run: Run, path: Path, read: Callable[[], object]) -> str:
    """Describe the damage of a file; "" for an intact or a missing one."""
    try:
        read()
    except FileNotFoundError:
        return ""
    except (ValueError, KeyError, TypeError, OSError) as error:
        why = sentence(error)
        inside = why.replace(f"{run.path}/", "")
        return inside if inside != why else f"{path.relative_to(run.path)}: {why}"
    return ""
