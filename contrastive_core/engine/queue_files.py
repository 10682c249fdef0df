"""The queue's files: a waiting run each, so that a kill loses none and damage hides no other. What is done with them
is in queue.py. Torch-free."""

import contextlib
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from contrastive_core.engine import process
from contrastive_core.engine.process import ProcessRecord
from contrastive_core.errors import Damaged
from contrastive_core.messages import message
from contrastive_core.records import runs
from contrastive_core.storage import json_files
from contrastive_core.storage.lock import lock

PATIENCE = 20.0  # seconds to wait for another process that changes the queue


@dataclass(frozen=True)
class Waiting:
    """A run in the queue. `arguments` follow `train`; `hours` is the budget of its group, the cells of one sweep."""

    path: Path
    name: str
    arguments: tuple[str, ...]
    asked_at: float
    group: str = ""
    hours: float | None = None

    @property
    def resumes(self) -> bool:
        return "--resume" in self.arguments

    @property
    def device(self) -> str:
        return device_of(self.arguments)

    def blocked_reason(self) -> str:
        """Why it is not started although its device is free, or nothing."""
        if self.hours is None or spent(self.group, self.asked_at) < 3600 * self.hours:
            return ""
        return message("the budget of {hours} h is used up; start the sweep again to continue", hours=f"{self.hours:g}")


def queue() -> list[Waiting]:
    """Waiting runs, first come first. Damaged files are left out; `broken` names them."""
    return [job for job in files() if isinstance(job, Waiting)]


def waiting_names() -> set[str]:
    """The names of waiting runs."""
    return {job.name for job in queue()}


def broken() -> list[str]:
    """A sentence for each file of the queue that cannot be read."""
    return [str(job) for job in files() if isinstance(job, Exception)]


def spent(group: str, asked_at: float) -> float:
    """Seconds that the started runs of a group have taken so far."""
    mine = [r for r in process.records() if group and (r.get("group"), r.get("asked")) == (group, asked_at)]
    return sum(max(0.0, min(time.time(), _last_sign(r)) - r["time"]) for r in mine)


def device_of(arguments: Sequence[str]) -> str:
    """The device of a training with these arguments, as far as can be told without torch."""
    devices = [b for a, b in pairwise(arguments) if a == "--device"]
    devices += [a.removeprefix("--device=") for a in arguments if a.startswith("--device=")]
    name = devices[-1] if devices else "auto"
    if name == "auto":
        name = "cuda" if Path("/dev/nvidia0").exists() else "cpu"
    return "cuda:0" if name == "cuda" else name


def folder() -> Path:
    """Where waiting runs lie."""
    return process.folder() / "queue"


@contextmanager
def changing() -> Iterator[None]:
    """One process at a time changes the queue. Raises Locked."""
    with lock(folder() / "lock", wait=PATIENCE):
        yield


def add(name: str, arguments: Sequence[str], asked_at: float, group: str = "", hours: float | None = None) -> None:
    """Put a run at the end of the queue."""
    number = max([int(p.stem) for p in _paths()], default=0) + 1
    job = {"name": name, "arguments": list(arguments), "asked": asked_at, "group": group, "hours": hours}
    json_files.write_json(folder() / f"{number:06d}.json", job)


def files() -> list[Waiting | Exception]:
    """Return the queued run of each file in order, or the reason why it cannot be read."""
    entries: list[Waiting | Exception] = []
    for path in _paths():
        with contextlib.suppress(FileNotFoundError):  # started by another process since the folder was listed
            entries.append(_job(path))
    return entries


def _paths() -> list[Path]:
    return sorted(p for p in folder().glob("*.json") if p.stem.isdigit())


def _job(path: Path) -> Waiting | Exception:
    """Return the content of a file, or the reason why it cannot be read. Raises FileNotFoundError."""
    try:
        held = json_files.read_json(path)
        name, arguments = runs.checked_name(held["name"]), tuple(str(a) for a in held["arguments"])
        hours = None if held.get("hours") is None else float(held["hours"])
        return Waiting(path, name, arguments, float(held["asked"]), str(held.get("group") or ""), hours)
    except FileNotFoundError:
        raise
    except (Damaged, OSError) as error:
        return error
    except (KeyError, TypeError, ValueError) as error:
        return Damaged("{path} is damaged: {error}", path=path, error=f"{error!r}")


def _last_sign(record: ProcessRecord) -> float:
    """Return when a run last wrote its status; now for an active run."""
    if process.pid_of(record["key"]):
        return time.time()
    with contextlib.suppress(ValueError, OSError):
        return float(runs.load(record["key"]).status().get("updated") or record["time"])
    return record["time"]
