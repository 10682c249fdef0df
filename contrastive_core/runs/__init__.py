"""A run is a folder of readable files: settings, status, metrics, states, snapshots.

    run.json        the request: settings, seed, data fingerprint, versions (never changes)
    status.json     the status: queued, running, done, stopped or failed, with the reason
    metrics.jsonl   a line per step and per epoch
    changes.jsonl   a line per setting changed during training; requests.jsonl: requested changes
    state/          data for a resume              weights.safetensors   the model
    snapshots/      the fixed sample's embedding   embeddings/           whole splits, cached
    meta.json       title, note, tags

Users' runs are in `runs_home()`; shipped runs, which are read-only, are in `SHIPPED`. Runs are named and created here;
run.py loads and lists them, and reads and writes the files of one. Torch-free."""

import contextlib
import itertools
import os
import platform
import re
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, cast

from contrastive_core.base import json_files, storage
from contrastive_core.base.errors import BadName
from contrastive_core.base.messages import N_, message
from contrastive_core.base.storage import ROOT, SHIPPED, runs_home
from contrastive_core.runs.records import FORMAT, Manifest
from contrastive_core.runs.run import Run, checked_name, damaged, list_runs, load, stamp

__all__ = ["Run", "checked_name", "create", "damaged", "free_name", "list_runs", "load", "new_name", "stem_of"]

DEVICE = re.compile(r"(?i)con|prn|aux|nul|(com|lpt)[0-9]")
PACKAGES = ("torch", "torchvision", "numpy", "scikit-learn")


def new_name(name: str) -> str:
    """Return the name if a new run may have it, as a folder on every system. Raises BadName."""
    if checked_name(name).endswith(".") or DEVICE.fullmatch(name.partition(".")[0]):
        raise BadName("{name} is a reserved name on Windows; choose another", name=repr(name))
    return name


def check_free(name: str) -> None:
    """Check that no run has the name. Raises BadName; FileExistsError if one has."""
    new_name(name)
    if os.path.lexists(runs_home() / name) or (SHIPPED / name).exists():
        text = N_("there is a run {name} already; choose another name, or --resume")
        raise FileExistsError(message(text, name=repr(name)))


def free_name(stem: str, used: Collection[str] = ()) -> str:
    """Return `stem`, with a number from 2 on if necessary, so that no run and no entry of `used` has the name."""
    stem = stem[:58]
    names = itertools.chain([stem], (f"{stem}-{number}" for number in itertools.count(2)))
    homes = (runs_home(), SHIPPED)
    return next(name for name in names if name not in used and not any(os.path.lexists(h / name) for h in homes))


def stem_of(method: str, data: str, seed: Any, settings: Iterable[str] = ()) -> str:
    """Return a run name without a number: method, data, loss settings among `settings` ("loss.temperature=0.2"), seed.
    For files, the data part is the name of the folder or list."""
    data = Path(data.partition("#")[0]).name.removesuffix(".csv")
    data = re.sub(r"[^A-Za-z0-9]+", "-", data).strip("-")[-24:] or "data"
    pairs = [text.replace(" ", "").partition("=") for text in settings]
    of_loss = [f"{key.removeprefix('loss.')}{value}" for key, _, value in pairs if key.startswith("loss.")]
    return re.sub(r"[^A-Za-z0-9._-]+", "-", "-".join([method, data, *of_loss, f"s{seed}"]))


def default_run_name(report: Mapping[str, object]) -> str:
    """Return a name for an imported run, from the report of `OpenedCheckpoint.report` or `pretrained.about`."""
    text = str(report.get("file")).split(".")[0]
    if report.get("of_library", True):
        text = str(report["encoder"]).partition(":")[2] + "-random" * bool(report.get("random"))
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-._")[:50] or "import"


def create(name: str | None, config: Mapping[str, object], fingerprint: str = "", **more: Any) -> Run:
    """Create a run's folder and manifest, under `name` or an automatic name. Raises BadName; FileExistsError."""
    if not name:
        method, data = (str(config.get(key, usual)) for key, usual in (("method", "run"), ("dataset", "data")))
        name = free_name(stem_of(method, data, config.get("seed", 0)))
    check_free(name)
    commit = None
    if (ROOT / ".git").exists():
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            command = ["git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD"]
            completed = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True)
            commit = completed.stdout.strip()
    created, versions = datetime.now(UTC).isoformat(timespec="seconds"), {p: package_version(p) for p in PACKAGES}
    about: dict[str, object] = {"format": FORMAT, "id": secrets.token_hex(8), "name": name, "created": created}
    about |= {key: config.get(key) for key in ("method", "loss", "dataset", "seed", "threads")}
    about |= {"data_fingerprint": fingerprint, "config": {**config}, "git_commit": commit}
    about |= {"versions": versions | {"python": platform.python_version()}, **more}
    path, home = runs_home() / name, storage.make_folder(runs_home())
    # Renamed when complete: only one of two processes succeeds, and a killed one leaves no incomplete folder.
    aside = Path(tempfile.mkdtemp(dir=home, prefix=".new-"))
    try:
        json_files.write_json(aside / "run.json", about)
        json_files.write_json(aside / "status.json", {"status": "queued", "reason": "", **stamp()})
        os.rename(aside, path)
    except OSError as error:
        shutil.rmtree(aside, ignore_errors=True)
        if os.path.lexists(path):
            raise FileExistsError(message("there is a run {name} already", name=repr(name))) from error
        raise
    storage.sync_folder(home)
    return Run(path, cast(Manifest, about))


def package_version(package: str) -> str | None:
    """Return the version of a package; None if it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
