"""A run is a folder that a person can read: settings, status, metrics, states, snapshots.

    run.json        what was asked: settings, seed, data fingerprint, versions (never changes)
    status.json     how it stands: queued, running, done, stopped or failed, and why
    metrics.jsonl   a line per step and per epoch
    changes.jsonl   a line per setting that was changed while it trained; requests.jsonl: what was asked for
    state/          all that a resume needs        weights.safetensors   the model
    snapshots/      the fixed sample's embedding   embeddings/           whole splits, cached
    meta.json       title, note, tags

Users' runs live in `runs_home()`, shipped ones, which nobody writes to, in `SHIPPED`. What is read
from and written to one folder is in run.py. Torch-free.
"""

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

from contrastive_core.base import json_files, safe_files
from contrastive_core.base.errors import BadName, Damaged, NoSuchRun
from contrastive_core.base.json_files import JsonObject
from contrastive_core.base.messages import N_, message, sentence
from contrastive_core.base.paths import ROOT, SHIPPED, runs_home
from contrastive_core.runs.run import FORMAT, Manifest, Run, manifests, stamp

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
DEVICE = re.compile(r"(?i)con|prn|aux|nul|(com|lpt)[0-9]")
PACKAGES = ("torch", "torchvision", "numpy", "scikit-learn")


def checked_name(name: str) -> str:
    """The name, if it is one plain file name. Raises BadName."""
    if not NAME.fullmatch(name) or name.endswith(".part"):
        raise BadName(
            "a run's name has up to 64 letters, digits, dots, dashes or underscores and starts with a letter or digit; "
            "got {name}",
            name=repr(name),
        )
    return name


def new_name(name: str) -> str:
    """The name, if a new run may have it: on every system a folder can. Raises BadName."""
    if checked_name(name).endswith(".") or DEVICE.fullmatch(name.partition(".")[0]):
        raise BadName("{name} is a reserved name on Windows; choose another", name=repr(name))
    return name


def check_free(name: str) -> None:
    """Raises: BadName; FileExistsError when a run has the name."""
    new_name(name)
    if os.path.lexists(runs_home() / name) or (SHIPPED / name).exists():
        text = N_("there is a run {name} already; choose another name, or --resume")
        raise FileExistsError(message(text, name=repr(name)))


def free_name(stem: str, used: Collection[str] = ()) -> str:
    """`stem`, or it with the first number from 2 on that is neither in `used` nor a run's name."""
    stem = stem[:58]
    names = itertools.chain([stem], (f"{stem}-{number}" for number in itertools.count(2)))
    homes = (runs_home(), SHIPPED)
    return next(name for name in names if name not in used and not any(os.path.lexists(h / name) for h in homes))


def stem_of(method: str, data: str, seed: Any, settings: Iterable[str] = ()) -> str:
    """A run's name without a number: method, data, what `settings` ("loss.temperature=0.2") set of the loss, seed. Of
    files the data are the folder's or the list's name."""
    data = Path(data.partition("#")[0]).name.removesuffix(".csv")
    data = re.sub(r"[^A-Za-z0-9]+", "-", data).strip("-")[-24:] or "data"
    pairs = [text.replace(" ", "").partition("=") for text in settings]
    of_loss = [f"{key.removeprefix('loss.')}{value}" for key, _, value in pairs if key.startswith("loss.")]
    return re.sub(r"[^A-Za-z0-9._-]+", "-", "-".join([method, data, *of_loss, f"s{seed}"]))


def default_run_name(report: Mapping[str, object]) -> str:
    """An imported run's name, made from what `OpenedCheckpoint.report` or `pretrained.about` reports."""
    text = str(report.get("file")).split(".")[0]
    if report.get("of_library", True):
        text = str(report["encoder"]).partition(":")[2] + "-random" * bool(report.get("random"))
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-._")[:50] or "import"


def create(name: str | None, config: JsonObject, fingerprint: str = "", **more: Any) -> Run:
    """Make a run's folder with its manifest, under a name or one of its settings. Raises BadName; FileExistsError."""
    if not name:
        method, data = (str(config.get(key, usual)) for key, usual in (("method", "run"), ("dataset", "data")))
        name = free_name(stem_of(method, data, config.get("seed", 0)))
    check_free(name)
    path = runs_home() / name
    created, versions = datetime.now(UTC).isoformat(timespec="seconds"), {p: package_version(p) for p in PACKAGES}
    about: JsonObject = {"format": FORMAT, "id": secrets.token_hex(8), "name": name, "created": created}
    about |= {key: config.get(key) for key in ("method", "loss", "dataset", "seed", "threads")}
    about |= {"data_fingerprint": fingerprint, "config": config, "git_commit": _git_commit()}
    about |= {"versions": versions | {"python": platform.python_version()}, **more}
    manifest = cast(Manifest, about)
    _place(path, manifest)
    return Run(path, manifest)


def _place(path: Path, manifest: Manifest) -> None:
    """Make the folder aside and move it to its name whole: of two processes one can do so, and a
    kill leaves no folder that blocks a name without being a run."""
    home = safe_files.make_folder(path.parent)
    aside = Path(tempfile.mkdtemp(dir=home, prefix=".new-"))
    try:
        json_files.write_json(aside / "run.json", manifest)
        json_files.write_json(aside / "status.json", {"status": "queued", "reason": "", **stamp()})
        os.rename(aside, path)
    except OSError as error:
        shutil.rmtree(aside, ignore_errors=True)
        if os.path.lexists(path):
            raise FileExistsError(message("there is a run {name} already", name=f"{path.name!r}")) from error
        raise
    safe_files.sync_folder(home)


def load(name: str) -> Run:
    """The run of that name, the user's or a shipped one. Raises BadName, NoSuchRun, Damaged."""
    checked_name(name)
    for home in (runs_home(), SHIPPED):
        if os.path.lexists(home / name / "run.json"):
            return Run(home / name, _manifest(home / name))
    names = [run.name for run in list_runs()]
    hint = message("known: {names}", names=", ".join(names[:20])) if names else N_("none so far")
    raise NoSuchRun("no run {name}; {hint}", name=f"{name!r}", hint=hint)


def list_runs() -> list[Run]:
    """All runs, the users' newest first, then the shipped; not those that cannot be used (`damaged`)."""
    users, shipped = (
        [run for path in folders(home) if isinstance(run := _open(path), Run)] for home in (runs_home(), SHIPPED)
    )
    return sorted(users, key=lambda r: str(r.manifest.get("created")), reverse=True) + shipped


def damaged() -> dict[str, str]:
    """Folders of runs that cannot be used, by name, and why: damaged, of another version, wrongly named."""
    paths = [*folders(runs_home()), *folders(SHIPPED)]
    return {
        ascii(path.name)[1:-1][:100]: sentence(error) for path in paths if isinstance(error := _open(path), Exception)
    }


def folders(home: Path) -> list[Path]:
    """Folders of runs below `home`, by name: those that hold a `run.json`, whatever it is."""
    try:
        names = sorted(os.listdir(home))
    except OSError:
        return []
    visible = (home / name for name in names if not name.startswith("."))
    return [path for path in visible if os.path.lexists(path / "run.json")]


def _open(path: Path) -> Run | Exception:
    try:
        checked_name(path.name)
        return Run(path, _manifest(path))
    except (BadName, Damaged) as error:
        return error


def _manifest(path: Path) -> Manifest:
    """A run's manifest. Raises Damaged, also where it cannot be read, and for a user's folder that is a link."""
    if path.parent != SHIPPED and path.is_symlink():
        raise Damaged("{path} is a link; move the run folder itself here", path=path)
    try:
        return manifests(path / "run.json").copy()
    except OSError as error:
        raise Damaged("{path} cannot be read: {reason}", path=path / "run.json", reason=error.strerror) from None


def package_version(package: str) -> str | None:
    """The version of a package; None where it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _git_commit() -> str | None:
    if not (ROOT / ".git").exists():
        return None
    try:
        command = ["git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD"]
        completed = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return completed.stdout.strip()
