"""Runs that wait for their turn: one at a time on each device, whoever closes what. Torch-free.

A waiting run is a file in `.jobs/queue`: a kill loses none, and a damaged one hides no other. Who
adds a run starts it when its device is free; else a small process of its own, which outlives the
app, starts it later (`python -m contrastive_core queue`). A file is removed only after its training
was started, and a run's folder can be made only once: killed in between, nothing is lost and
nothing is trained twice.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from contrastive_core import jobs, runs, store

__all__ = [
    "Waiting",
    "broken",
    "enqueue",
    "go_on",
    "queue",
    "remove",
    "resume",
    "start_due",
    "work",
]

RUNNER = "queue-runner"  # its log's name
POLL_SECONDS = 0.5
PATIENCE = 20.0  # seconds to wait for another process that changes the queue


@dataclass(frozen=True)
class Waiting:
    """A run in the queue. `arguments` follow `train`; `hours` is the budget of its group: the
    cells of one sweep, asked for at one time."""

    number: int
    name: str
    arguments: tuple[str, ...]
    asked: float
    group: str = ""
    hours: float | None = None

    @property
    def resumes(self) -> bool:
        return "--resume" in self.arguments

    @property
    def device(self) -> str:
        return device_of(self.arguments)

    def held(self) -> str:
        """Why it is not started although its device is free, or nothing."""
        if self.hours is None or spent(self.group, self.asked) < 3600 * self.hours:
            return ""
        return f"the budget of {self.hours:g} h is used up; start the sweep again to go on"


def queue() -> list[Waiting]:
    """Waiting runs, first come first. Damaged files are left out; `broken` names them."""
    return [job for _, job in _files() if isinstance(job, Waiting)]


def broken() -> list[str]:
    """A sentence for each file of the queue that cannot be read."""
    return [str(job) for _, job in _files() if isinstance(job, Exception)]


def enqueue(name: str, arguments: Sequence[str]) -> None:
    """Train a new run as soon as its device is free.

    Args: arguments: of the command line after `train`, without `--run`.
    Raises: BadName; FileExistsError when the name is taken, also by a run that waits.
    """
    runs.checked_name(name)
    with _changing():
        if jobs.is_taken(name) or name in {job.name for job in queue()}:
            raise FileExistsError(f"there is a run {name!r} already; choose another name")
        _add(name, arguments, time.time())
    go_on()


def resume(name: str) -> None:
    """Go on with a stopped or failed run as soon as its device is free.

    Raises: NoSuchRun; ValueError when it is shipped, done, at work, or waits already.
    """
    jobs.check_resumable(name)
    with _changing():
        if name in {job.name for job in queue()}:
            raise ValueError(f"{name} waits for its turn already")
        _add(name, _resuming(name), time.time())
    go_on()


def enqueue_group(
    group: str, wanted: Sequence[tuple[str, Sequence[str]]], hours: float | None = None
) -> list[str]:
    """Let many runs wait in this order: new ones, and those that can go on. Returns their names.

    Args: wanted: name and arguments of each; hours: after which no more of them is started.
    What is done, at work or waits already is left out.
    """
    asked, added = time.time(), []
    with _changing():
        for path, job in _files():
            if isinstance(job, Waiting) and job.group == group:
                path.unlink(missing_ok=True)  # asked for before: its hours begin anew
        for name, arguments in wanted:
            if jobs.pid_of(name) or name in {job.name for job in queue()}:
                continue
            if jobs.is_taken(name):
                if runs.load(name).status()["status"] not in ("stopped", "failed"):
                    continue
                arguments = _resuming(name)
            _add(name, arguments, asked, group, hours)
            added.append(name)
    go_on()
    return added


def _resuming(name: str) -> list[str]:
    return ["--resume", "--device", str(runs.load(name).config.get("device") or "auto")]


def remove(name: str) -> None:
    """Take a waiting run out of the queue; one that is not in it is left alone."""
    with _changing():
        for path, job in _files():
            if isinstance(job, Waiting) and job.name == name:
                path.unlink(missing_ok=True)


def go_on() -> None:
    """Start what can start now, and see to it that a process starts the rest. Any page may call
    it at any time."""
    if not _paths():
        return
    with contextlib.suppress(store.Locked):
        start_due()
    due = any(not job.held() for job in queue())
    at_it = jobs.pid_of(RUNNER) or store.lock_holder(_folder() / "runner.lock")
    if due and not at_it:
        jobs.spawn(RUNNER, ["queue"])


def start_due() -> list[str]:
    """Start the first waiting run of every device on which nothing works. Returns their names."""
    started = []
    with _changing():
        busy = _busy()
        for path, job in _files():
            if not isinstance(job, Waiting):
                continue
            if _has_begun(job):
                path.unlink(missing_ok=True)
            elif job.device not in busy and not job.held():
                about = {"device": job.device, "group": job.group, "asked": job.asked}
                jobs.spawn(job.name, ["train", "--run", job.name, *job.arguments], **about)
                path.unlink(missing_ok=True)  # last: a kill before this starts nothing twice
                busy.add(job.device)
                started.append(job.name)
    return started


def work(tell: Callable[[str], None] = lambda text: None) -> None:
    """Start waiting runs until none is left to start. One process at a time does this: another
    returns at once."""
    while any(not job.held() for job in queue()):  # again, for what came as the lock was let go
        try:
            with store.lock(_folder() / "runner.lock"):
                while any(not job.held() for job in queue()):
                    for name in start_due():
                        tell(f"{name} has been started")
                    time.sleep(POLL_SECONDS)
        except store.Locked:
            return


def spent(group: str, asked: float) -> float:
    """Seconds that the started runs of a group have taken so far."""
    return sum(
        max(0.0, min(time.time(), _last_sign(job["name"], job["time"])) - job["time"])
        for job in jobs.records()
        if group and job.get("group") == group and job.get("asked") == asked
    )


def device_of(arguments: Sequence[str]) -> str:
    """The device of a training with these arguments, as far as can be told without torch."""
    given = [b for a, b in pairwise(arguments) if a == "--device"]
    given += [a.removeprefix("--device=") for a in arguments if a.startswith("--device=")]
    name = given[-1] if given else "auto"
    if name == "auto":
        name = "cuda" if Path("/dev/nvidia0").exists() else "cpu"
    return "cuda:0" if name == "cuda" else name


# --- files -------------------------------------------------------------------------------------


def _folder() -> Path:
    return jobs.folder() / "queue"


@contextmanager
def _changing() -> Iterator[None]:
    with store.lock(_folder() / "lock", wait=PATIENCE):
        yield


def _add(
    name: str,
    arguments: Sequence[str],
    asked: float,
    group: str = "",
    hours: float | None = None,
) -> None:
    number = max([int(p.stem) for p in _paths()], default=0) + 1
    job = {"name": name, "arguments": list(arguments), "asked": asked}
    path = _folder() / f"{number:06d}.json"
    store.write_json(path, {**job, "group": group, "hours": hours}, seal=True)


def _paths() -> list[Path]:
    return sorted(p for p in _folder().glob("*.json") if p.stem.isdigit())


def _files() -> list[tuple[Path, Waiting | Exception]]:
    found: list[tuple[Path, Waiting | Exception]] = []
    for path in _paths():
        try:
            found.append((path, _job(int(path.stem), store.read_json(path))))
        except FileNotFoundError:
            continue  # started by another process since the folder was listed
        except (store.Damaged, OSError) as error:
            found.append((path, error))
        except (KeyError, TypeError, ValueError) as error:
            found.append((path, store.Damaged(f"{path} is damaged: {error!r}")))
    return found


def _job(number: int, held: dict[str, Any]) -> Waiting:
    arguments = tuple(str(a) for a in held["arguments"])
    hours = None if held.get("hours") is None else float(held["hours"])
    name, asked = runs.checked_name(held["name"]), float(held["asked"])
    return Waiting(number, name, arguments, asked, str(held.get("group") or ""), hours)


# --- what works --------------------------------------------------------------------------------


def _busy() -> set[str]:
    """Devices that a living training uses."""
    at_work = {
        device_of(["--device", str(r.config.get("device") or "auto")]) for r in jobs.working()
    }
    living = [j for j in jobs.records() if "device" in j and jobs.pid_of(j["name"])]
    return at_work | {str(j["device"]) for j in living}


def _has_begun(job: Waiting) -> bool:
    """Whether the run was started already, by a process that was killed before it could say so."""
    if jobs.pid_of(job.name):
        return True
    try:
        run = runs.load(job.name)
    except (ValueError, OSError):
        return False
    return not job.resumes or run.is_alive() or run.status().get("updated", 0) > job.asked


def _last_sign(name: str, started: float) -> float:
    """When a run last wrote its status; now, if it is at work."""
    if jobs.pid_of(name):
        return time.time()
    with contextlib.suppress(ValueError, OSError):
        return float(runs.load(name).status().get("updated") or started)
    return started
