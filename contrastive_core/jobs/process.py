"""Training as child processes of the app, which they outlive. Torch-free.

A job is a run folder whose process is the command line. The app starts it, watches its files and
asks it to stop by SIGTERM; a page that is closed, refreshed or opened twice changes nothing. What
waits for its turn is in waiting.py.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from contrastive_core import runs
from contrastive_core.paths import ROOT, SHIPPED, runs_home
from contrastive_core.runs import Run
from contrastive_core.storage.lock import is_process, lock_holder, process_start
from contrastive_core.storage.records import read_json, write_json
from contrastive_core.training.config import settings_of

__all__ = [
    "arguments_of",
    "ask",
    "at_work",
    "command_of",
    "damage_of",
    "dismiss",
    "failure",
    "failures",
    "gpus",
    "log_of",
    "present",
    "presenting",
    "starting",
    "stop",
    "working",
]

PATIENCE = 10.0  # seconds in which a process that was just stopped may end


def gpus() -> int:
    """How many NVIDIA GPUs this machine has; asked without torch."""
    return len(list(Path("/dev").glob("nvidia[0-9]*")))


def is_taken(name: str) -> bool:
    """Whether a run of that name exists, or its process is about to make it."""
    return any((home / name).exists() for home in (runs_home(), SHIPPED)) or bool(pid_of(name))


def check_resumable(name: str) -> None:
    """Raises: NoSuchRun; ValueError when the run is shipped, done or at work."""
    run = runs.load(name)
    if run.shipped:
        raise ValueError(f"{name} is shipped with the project; clone it to train further")
    if at_work(run):
        raise ValueError(f"{name} is at work already")
    if run.status()["status"] == "done":
        raise ValueError(f"{name} is done; clone it to train it for longer")


def at_work(run: Run) -> bool:
    """Whether a process works on a run, or is about to. One that has had its last word gets a
    moment to end."""
    end = time.monotonic() + PATIENCE
    while not run.is_claimed() and _is_ending(run) and time.monotonic() < end:
        time.sleep(0.1)
    return run.is_claimed() or pid_of(run.name) is not None


def _is_ending(run: Run) -> bool:
    """Whether its process lives, and has written the run's status since it was started."""
    record = _record(run.name)
    if record is None or not pid_of(run.name):
        return False
    return bool(run.status().get("updated", 0.0) > record["time"])


def ask(*arguments: str, seconds: float = 300, fine: Sequence[int] = (0,)) -> dict[str, Any]:
    """What the command line answers with `--json`, run to its end in a process of its own.

    Raises: ValueError with the sentence that it ended with, for an exit status that is not `fine`.
    """
    command = [sys.executable, "-m", "contrastive_core", *arguments, "--json"]
    try:
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        raise ValueError(f"{arguments[0]} took more than {seconds:.0f} s") from None
    if done.returncode not in fine or not done.stdout.strip():
        raise ValueError((done.stderr.strip() or "it ended without a word").splitlines()[-1])
    return dict(json.loads(done.stdout))


def damage_of(name: str) -> list[str]:
    """A sentence for each damaged file of a run; nothing is touched. Raises ValueError."""
    found = ask("verify", "--files", name, fine=(0, 1))
    return [str(line) for line in found["runs"][name]]


def arguments_of(run: Run) -> list[str]:
    """Arguments of `train` that give every setting of this run, whatever the defaults become."""
    return settings_of(run.config)


def command_of(run: Run, processes: int = 1, machines: int = 1) -> str:
    """The command line that trains this run anew, also with many processes or machines.

    With more than one, what belongs to the first machine (device, threads, bf16) is left out.
    """
    if processes * machines == 1:
        return f"python -m contrastive_core train {shlex.join(arguments_of(run))}"
    given = {k: v for k, v in run.config.items() if k not in ("device", "threads", "amp")}
    start = f"torchrun --nproc-per-node {processes}"
    if machines > 1:  # the same line on each machine, but for its rank
        start += f" --nnodes {machines} --node-rank $RANK --master-addr $FIRST --master-port 29500"
    return f"{start} -m contrastive_core train {shlex.join(settings_of(given))}"


def stop(name: str) -> None:
    """Ask a run's process to save and end. A run that is not at work here is left alone."""
    holder = lock_holder(runs_home() / name / "lock", here=True) or pid_of(name)
    if holder:
        with contextlib.suppress(ProcessLookupError):
            os.kill(holder, signal.SIGTERM)


def present(name: str, split: str = "test") -> None:
    """Make what the pages show of a run, in a process of its own, unless one is at it."""
    task = f"present.{name}.{split}"
    if not pid_of(task):
        spawn(task, ["present", runs.checked_name(name), "--split", split])


def presenting(name: str, split: str = "test") -> str | None:
    """The last thing that process said while it lives; None when it has ended."""
    task = f"present.{name}.{split}"
    if not pid_of(task):
        return None
    return log_of(task, 1) or "starting"


def working() -> list[Run]:
    """Runs that a living process works on."""
    return [run for run in runs.list_runs() if run.is_alive()]


def starting() -> list[str]:
    """Names whose process has been started and has not made its run yet."""
    return [n for n in _trainings() if pid_of(n) and not _made(n)]


def failures() -> dict[str, str]:
    """Trainings that ended before they had made a run, and why."""
    found = {n: failure(n) for n in _trainings()}
    return {n: why for n, why in found.items() if why is not None}


def dismiss(name: str) -> None:
    """Forget a training that could not start."""
    if failure(name) is not None:
        for ending in ("json", "log"):
            (folder() / f"{name}.{ending}").unlink(missing_ok=True)


def log_of(name: str, lines: int = 200) -> str:
    """The last lines that a run's process wrote."""
    for path in (folder() / f"{name}.log", runs_home() / name / "log.txt"):
        with contextlib.suppress(OSError):
            text = path.read_text(encoding="utf-8", errors="replace")
            return "\n".join(text.replace("\r", "\n").splitlines()[-lines:])
    return ""


def failure(name: str) -> str | None:
    """Why a process ended before it made its run; None while it is well."""
    if _record(name) is None or pid_of(name) or _made(name):
        return None
    last = [line for line in log_of(name).splitlines() if line.strip()]
    said = [line for line in last if line.startswith("error: ")] or last  # torchrun adds a trace
    return said[-1].removeprefix("error: ") if said else "the process ended without a word"


# --- processes ---------------------------------------------------------------------------------


def folder() -> Path:
    """Where processes' logs and numbers are kept."""
    return runs_home() / ".jobs"


def spawn(name: str, arguments: Sequence[str], **about: Any) -> None:
    """Start the command line in a session of its own, its output in a log called `name`."""
    folder().mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-u", "-m", "contrastive_core", *arguments]
    with (folder() / f"{name}.log").open("wb") as log:
        child = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    _children[child.pid] = child
    known = {"pid": child.pid, "started": process_start(child.pid), "time": time.time()}
    write_json(folder() / f"{name}.json", {**known, "command": command[1:], **about})


_children: dict[int, subprocess.Popen[bytes]] = {}  # so that ended ones are reaped


def records() -> list[dict[str, Any]]:
    """What is known of every process that was started: `name`, `pid`, `time`, `command`, …"""
    found = []
    for path in sorted(folder().glob("*.json")):
        if record := _record(path.stem):
            found.append({**record, "name": path.stem})
    return found


def pid_of(name: str) -> int | None:
    """The living process that was started for a run, if any."""
    record = _record(name)
    if record is None:
        return None
    pid = record["pid"]
    if pid in _children and _children[pid].poll() is not None:
        return None
    return pid if is_process(pid, record.get("started")) else None


def _record(name: str) -> dict[str, Any] | None:
    try:
        record = dict(read_json(folder() / f"{name}.json"))
        return {**record, "pid": int(record["pid"]), "time": float(record["time"])}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _trainings() -> list[str]:
    return [r["name"] for r in records() if "train" in r.get("command", [])[2:4]]


def _made(name: str) -> bool:
    return (runs_home() / name / "run.json").exists()
