"""A run's folder: status, metrics, snapshots, and the user's title, note and tags. Runs are loaded and listed by name.
Torch-free.

__init__.py creates runs; records.py says what their JSON files hold. Reading raises for a damaged file only where a
docstring says so. All writing goes through `write`, which raises Gone if the folder was moved or deleted."""

import contextlib
import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np

from contrastive_core.base import json_files, storage
from contrastive_core.base.errors import BadName, Damaged, Gone, NoSuchRun
from contrastive_core.base.json_files import MAX_RECORD, JsonObject, Schema, read_object
from contrastive_core.base.lock import is_locked, is_process, lock, process_start
from contrastive_core.base.memory import npz_bytes, read_npz
from contrastive_core.base.messages import N_, message, sentence
from contrastive_core.base.storage import SHIPPED, FileCache, is_regular, runs_home
from contrastive_core.data.captions import CAPTIONS_FILE
from contrastive_core.runs.records import (
    CHANGE,
    FORMAT,
    MANIFEST,
    META,
    METRICS,
    REQUEST,
    STATUS,
    Change,
    Manifest,
    Meta,
    Request,
    Status,
)

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def read_manifest(path: Path) -> Manifest:
    """Return the content of a `run.json`. Raises Damaged; OSError."""
    try:
        return cast(Manifest, read_object(path, MANIFEST, MAX_RECORD))
    except Damaged:
        number = read_object(path, limit=MAX_RECORD).get("format")
        if isinstance(number, int) and number != FORMAT:
            values = {"path": path, "number": number, "format": FORMAT}
            raise Damaged("{path} has the run format {number}; this version reads {format}", **values) from None
        raise


NOT_STARTED: Status = {"status": "queued", "reason": ""}  # of a run without a status.json
NOW = "snapshots/now.npz"  # the embedding of the fixed sample since the last snapshot, while it trains
MAX_SNAPSHOT = 128 << 20  # bytes: 15,000 rows of 4,096 numbers in float16
SNAPSHOT = {"index": ("iu", 1), "labels": ("iu", 1), "h": ("f", 2), "z": ("f", 2)}


@dataclass(frozen=True)
class Run:
    """One run folder. Only the manifest is kept in memory."""

    path: Path
    manifest: Manifest = field(repr=False, hash=False)

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def shipped(self) -> bool:
        return self.path.parent == SHIPPED

    @property
    def is_recording(self) -> bool:
        """Return whether this is a recording by `watch` of an external training loop: rows, but no weights."""
        return "recording" in self.manifest

    @property
    def has_towers(self) -> bool:
        """Return whether the run also has a text tower, trained on captions."""
        return bool(self.manifest.get("captions"))

    @property
    def unit(self) -> str:
        """The unit of its snapshot numbers: epoch, or step in a recording."""
        return "step" if self.is_recording else "epoch"

    @property
    def config(self) -> JsonObject:
        """The settings of the training."""
        config = self.manifest.get("config")
        return dict(config) if isinstance(config, dict) else {}

    @property
    def data_key(self) -> str:
        """The key shared by all runs on the same images."""
        return data_key(self.config.get("dataset"), self.config.get("root"))

    @property
    def weights(self) -> Path:
        return self.path / "weights.safetensors"

    def weights_hash(self) -> str:
        """Return the SHA-256 of the weights' file. Raises ValueError if the run has none (yet)."""
        if self.is_recording:
            raise ValueError(
                message("{name} is a recording: it has rows of a training loop and no weights", name=self.name)
            )
        try:
            return _hashes(self.weights)
        except FileNotFoundError:
            raise ValueError(message("{name} has no weights yet", name=self.name)) from None

    def captions_hash(self) -> str:
        """Return the SHA-256 of the captions.csv beside the images; "" if there is none."""
        name = str(self.config.get("dataset"))
        if not name.startswith("folder:"):
            return ""
        with contextlib.suppress(OSError, ValueError, RuntimeError):
            path = Path(name.removeprefix("folder:")).expanduser() / CAPTIONS_FILE
            return _hashes(path) if is_regular(path) else ""
        return ""

    def write(self, name: str, data: bytes | memoryview) -> None:
        """Write one of the run's files atomically. Raises Gone; OSError."""
        path = self.path / name
        self.check_present()
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            storage.write_bytes(path, data, parents=False)
        except FileNotFoundError:
            raise self._gone() from None

    def check_present(self) -> None:
        """Check that the folder still contains this run. Raises Gone if it was moved, deleted or replaced."""
        try:
            is_same = manifests(self.path / "run.json").get("id") == self.manifest.get("id")
        except Damaged:
            return
        except OSError:
            raise self._gone() from None
        if not is_same:
            raise self._gone()

    def _gone(self) -> Gone:
        return Gone("the folder of {name} was renamed, moved or deleted: {path}", name=self.name, path=self.path)

    def status(self) -> Status:
        """Return `status`, `reason`, `epoch`, `epochs`, `step`, `updated`. A run is `failed` if its process died while
        it was running or its status is damaged."""
        current = self._read_status()
        if current == NOT_STARTED:
            return current
        while current["status"] in ("running", "queued") and not self._is_worked_on(current):
            if (again := self._read_status()) == current:
                reason = N_("its process ended unexpectedly. Resume continues from its last state")
                if self.is_recording:
                    reason = N_("its process ended unexpectedly. The steps recorded before are kept")
                return {**current, "status": "failed", "reason": reason}
            current = again  # it had its last word between the two looks
        return current

    def _read_status(self) -> Status:
        """Return the content of the status file; `failed` with the reason if it is damaged."""
        try:
            return cast(Status, json_files.read_object(self.path / "status.json", STATUS, MAX_RECORD))
        except FileNotFoundError:
            return NOT_STARTED.copy()
        except (Damaged, OSError) as error:
            return {"status": "failed", "reason": str(error).removeprefix(f"{self.path}/")}

    def _is_worked_on(self, status: Status) -> bool:
        """Return whether a process trains the run, or the process that created it is about to."""
        pid = status.get("pid") if status["status"] == "queued" else None
        return self.is_alive() or bool(pid and is_process(pid, status.get("started")))

    def set_status(self, status: str, reason: str = "", **values: Any) -> None:
        """Write the status. Other previous values are kept. Raises Gone."""
        before: dict[str, object] = {}
        with contextlib.suppress(OSError, Damaged):
            before = json_files.read_object(self.path / "status.json", STATUS, MAX_RECORD)
        now = before | {"status": status, "reason": reason, **stamp(), **values}
        self.write("status.json", json_files.json_bytes(now))

    def is_alive(self) -> bool:
        """Return whether a living process works on the run."""
        return is_locked(self.path / "lock")

    def is_claimed(self) -> bool:
        """Return whether a living process works on the run, or has created it and is about to."""
        return self._is_worked_on(self._read_status())

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the run against other processes while inside. Raises Locked; Gone; NotRegular for linked folders."""
        self.check_present()
        with lock(self.path / "lock"):
            try:
                self.check_present()
            except Gone:
                with contextlib.suppress(OSError):  # the lock has made its folder anew
                    if {p.name for p in self.path.iterdir()} <= {"lock"}:
                        (self.path / "lock").unlink(missing_ok=True)
                        self.path.rmdir()
                raise
            for folder in (self.path, self.path / "state", self.path / "snapshots"):
                storage.check_links(folder)
                storage.tidy(folder)
            yield

    def metrics(self) -> list[JsonObject]:
        """Return all lines written so far, except damaged ones."""
        return self._lines("metrics.jsonl", METRICS, json_files.MAX_LINES)

    def append_metrics(self, lines: Iterable[dict[str, float]]) -> None:
        """Append lines to the metrics. Raises Gone; OSError."""
        self.check_present()
        json_files.append_lines(self.path / "metrics.jsonl", lines)

    def cut_metrics(self, step: int) -> None:
        """Drop lines after `step`, and snapshots after the last complete epoch. Raises Gone."""
        lines = self.metrics()
        kept_lines = [line for line in lines if line.get("step", 0) <= step]
        if len(kept_lines) < len(lines):
            self.write("metrics.jsonl", json_files.lines_bytes(kept_lines))
        last = max((x.get("epoch", 0) for x in kept_lines if "images_per_s" not in x), default=0)
        for epoch, path in self._snapshot_files():
            if epoch > last:
                path.unlink(missing_ok=True)

    def changes(self) -> list[Change]:
        """Return the changes by step, without those withdrawn by a resume. `config` has the initial values."""
        return [change for change in self.logged_changes() if not change.get("withdrawn")]

    def logged_changes(self) -> list[Change]:
        """Return all changes by step, including withdrawn ones."""
        lines = self._lines("changes.jsonl", CHANGE)
        return sorted(cast(list[Change], lines), key=lambda change: change["step"])

    def requests(self) -> list[Request]:
        """Return the requested changes: `id`, `name` and `to` of each."""
        return cast(list[Request], self._lines("requests.jsonl", REQUEST))

    def append_changes(self, changes: Iterable[Change]) -> None:
        """Append changes to the log. Raises OSError."""
        json_files.append_lines(self.path / "changes.jsonl", map(dict, changes))

    def _lines(self, name: str, schema: Schema, limit: int = MAX_RECORD) -> list[JsonObject]:
        """Return the intact lines of a file; [] if it cannot be read."""
        try:
            return json_files.read_lines(self.path / name, schema, limit)
        except (Damaged, OSError):
            return []

    def save_snapshot(
        self,
        epoch: int,
        *,
        index: np.ndarray,
        h: np.ndarray,
        z: np.ndarray,
        labels: np.ndarray,
        ids: np.ndarray | None = None,
    ) -> None:
        """Save the embedding of the fixed sample after `epoch`, in float16. Args: ids: of a recording's rows.
        Raises Gone."""
        arrays = {"index": index, "labels": labels, "h": h.astype(np.float16), "z": z.astype(np.float16)}
        data = npz_bytes(**arrays, **({} if ids is None else {"ids": ids}))
        self.write(f"snapshots/{self._snapshot_name(epoch)}", data)
        (self.path / NOW).unlink(missing_ok=True)

    def snapshots(self) -> list[int]:
        """Return the epochs (in a recording: steps) with a snapshot, ascending."""
        return [epoch for epoch, _ in self._snapshot_files()]

    def snapshot(self, epoch: int) -> dict[str, np.ndarray]:
        """Return `index`, `labels` (n), `h` and `z` (n, d) float32 of one epoch. Raises Damaged; FileNotFoundError."""
        path = self.snapshot_path(epoch)
        arrays = read_npz(path, MAX_SNAPSHOT, shapes=SNAPSHOT)
        n, *lengths = (len(arrays[name]) for name in ("index", "h", "z"))
        if lengths != [n, n] or len(arrays["labels"]) not in (0, n):
            raise Damaged("{path} is damaged: {why}", path=path, why=N_("its arrays differ in length"))
        return {k: v.astype(np.float32) if v.dtype == np.float16 else v for k, v in arrays.items()}

    def snapshot_path(self, epoch: int) -> Path:
        """Return the path of an epoch's snapshot."""
        return self.path / "snapshots" / self._snapshot_name(epoch)

    def _snapshot_name(self, number: int) -> str:
        return f"{self.unit}-{number:04d}.npz"

    def _snapshot_files(self) -> list[tuple[int, Path]]:
        return storage.numbered_files(self.path / "snapshots", f"{self.unit}-", ".npz")

    def meta(self) -> Meta:
        """Return the user's `title`, `note` and `tags` of the run; {} if the file is damaged."""
        with contextlib.suppress(OSError, Damaged):
            return cast(Meta, json_files.read_object(self.path / "meta.json", META, MAX_RECORD))
        return {}

    def set_meta(self, **values: Any) -> None:
        """Change some of the user's values. A damaged file is kept beside the new one. Raises Gone."""
        before: dict[str, object] = {}
        try:
            before = json_files.read_object(self.path / "meta.json", META, MAX_RECORD)
        except FileNotFoundError:
            pass
        except Damaged:
            with contextlib.suppress(Damaged):  # no ordinary file, or a huge one: it holds no notes
                self.write("meta.damaged.json", json_files.read_bytes(self.path / "meta.json", MAX_RECORD))
        self.write("meta.json", json_files.json_bytes({**before, **values}))


manifests = FileCache(read_manifest, 20_000)  # some kilobytes each
_hashes = FileCache(storage.sha256_file, 10_000)  # a page asks for many


def data_key(dataset: str | None, root: str | None) -> str:
    """Return the key of a data set that is read from the folder `root`, or from the default one."""
    return f"{dataset} {root or ''}".strip()


def stamp() -> Status:
    """Return the current process and time, for a status."""
    pid = os.getpid()
    return {"pid": pid, "started": process_start(pid), "updated": time.time()}


# --- runs by name ---


def checked_name(name: str) -> str:
    """Return the name if it is a plain file name. Raises BadName."""
    if not NAME.fullmatch(name) or name.endswith(".part"):
        raise BadName(
            "a run's name has up to 64 letters, digits, dots, dashes or underscores, and no spaces. It starts with a "
            "letter or digit; got {name}",
            name=repr(name),
        )
    return name


def load(name: str) -> Run:
    """Return the user's or shipped run with a name. Raises BadName, NoSuchRun, Damaged."""
    checked_name(name)
    for home in (runs_home(), SHIPPED):
        if os.path.lexists(home / name / "run.json"):
            return _open(home / name)
    names = [run.name for run in list_runs()]
    hint = message("known: {names}", names=", ".join(names[:20])) if names else N_("none so far")
    raise NoSuchRun("no run {name}; {hint}", name=f"{name!r}", hint=hint)


def list_runs() -> list[Run]:
    """Return all usable runs: the user's, newest first, then the shipped ones. `damaged` lists the others."""
    homes = (runs_home(), SHIPPED)
    users, shipped = ([run for run in _all_in(home).values() if isinstance(run, Run)] for home in homes)
    return sorted(users, key=lambda r: str(r.manifest.get("created")), reverse=True) + shipped


def damaged() -> dict[str, str]:
    """Return why runs cannot be used, by folder name: damaged, of another version, or wrongly named."""
    found = _all_in(runs_home()) | _all_in(SHIPPED)
    return {
        ascii(path.name)[1:-1][:100]: sentence(error) for path, error in found.items() if isinstance(error, Exception)
    }


def _all_in(home: Path) -> dict[Path, Run | Exception]:
    """Return the runs in the folders below `home` with a run.json, or why they cannot be used, by path."""
    found: dict[Path, Run | Exception] = {}
    with contextlib.suppress(OSError):
        for name in sorted(os.listdir(home)):
            if not name.startswith(".") and os.path.lexists(home / name / "run.json"):
                try:
                    found[home / name] = _open(home / name)
                except (BadName, Damaged) as error:
                    found[home / name] = error
    return found


def _open(path: Path) -> Run:
    """Return the run in a folder. Raises BadName; Damaged, also if it cannot be read, or a user's folder is a link."""
    checked_name(path.name)
    if path.parent != SHIPPED and path.is_symlink():
        raise Damaged("{path} is a link; move the run folder itself here", path=path)
    try:
        return Run(path, manifests(path / "run.json").copy())
    except OSError as error:
        raise Damaged("{path} cannot be read: {reason}", path=path / "run.json", reason=error.strerror) from None
