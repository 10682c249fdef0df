"""Training as child processes of the app, which they outlive. Torch-free.

A job is a run folder whose process is the command line. The app starts it, watches its files and
asks it to stop by SIGTERM; a page that is closed, refreshed or opened twice changes nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from contrastive_core import runs, store
from contrastive_core.runs import Run

__all__ = [
    "arguments_of",
    "ask",
    "log_of",
    "queue",
    "resume",
    "start_next",
    "start_training",
    "stop",
    "working",
]

ROOT = Path(__file__).resolve().parent.parent


def start_training(name: str, arguments: Sequence[str]) -> None:
    """Start `train` for a new run called `name` at once.

    Args: arguments: of the command line after `train`, without `--run`.
    Raises: BadName, FileExistsError when the name is taken.
    """
    runs.checked_name(name)
    if (runs.runs_home() / name).exists() or name in {j["name"] for j in queue()}:
        raise FileExistsError(f"there is a run {name!r} already; choose another name")
    _spawn(name, ["train", "--run", name, *arguments])


def resume(name: str) -> None:
    """Go on with a stopped or failed run. Raises ValueError when it is at work or shipped."""
    run = runs.load(name)
    if run.shipped:
        raise ValueError(f"{name} is shipped with the project; clone it to train further")
    for _ in range(100):  # a process that has just been stopped takes a moment to end
        if run.is_alive() or not _starting(name):
            break
        time.sleep(0.1)
    if run.is_alive() or _starting(name):
        raise ValueError(f"{name} is at work already")
    _spawn(name, ["train", "--resume", "--run", name])


def ask(*arguments: str, seconds: float = 300) -> dict[str, Any]:
    """What the command line answers with `--json`, run to its end in a process of its own.

    Raises: ValueError with the sentence that it ended with.
    """
    command = [sys.executable, "-m", "contrastive_core", *arguments, "--json"]
    try:
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        raise ValueError(f"{arguments[0]} took more than {seconds:.0f} s") from None
    if done.returncode:
        raise ValueError((done.stderr.strip() or "it ended without a word").splitlines()[-1])
    return dict(json.loads(done.stdout))


def arguments_of(run: Run) -> list[str]:
    """Arguments of `train` that give this run's settings."""
    config, found = run.config, []
    for name in ("method", "dataset", "epochs", "seed", "loss", "encoder", "exclude", "relabel"):
        if config.get(name) is not None:
            found += [f"--{name}", str(config[name])]
    groups = {"loss_knobs": "loss", "method_knobs": "method", "encoder_knobs": "encoder"}
    for field, group in groups.items():
        for knob, value in (config.get(field) or {}).items():
            found += ["--set", f"{group}.{knob}={json.dumps(value).strip(chr(34))}"]
    for name in ("batch_size", "optimizer", "lr", "weight_decay", "schedule", "clip"):
        if config.get(name) is not None:
            found += ["--set", f"{name}={config[name]}"]
    return found


def stop(name: str) -> None:
    """Ask a run's process to save and end. A run that is not at work is left alone."""
    holder = store.lock_holder(runs.runs_home() / name / "lock") or _starting(name)
    if holder:
        with contextlib.suppress(ProcessLookupError):
            os.kill(holder, signal.SIGTERM)


def present(name: str, split: str = "test") -> None:
    """Make what the pages show of a run, in a process of its own, unless one is at it."""
    task = f"present.{name}.{split}"
    if not _starting(task):
        _spawn(task, ["present", runs.checked_name(name), "--split", split])


def presenting(name: str, split: str = "test") -> str | None:
    """The last thing that process said while it lives; None when it has ended."""
    task = f"present.{name}.{split}"
    if not _starting(task):
        return None
    return log_of(task, 1) or "starting"


def working() -> list[Run]:
    """Runs that a living process works on."""
    return [run for run in runs.list_runs() if run.is_alive()]


def starting() -> list[str]:
    """Names whose process has been started and has not made its run yet."""
    found = [p.stem for p in _jobs().glob("*.json")]
    return [n for n in found if _starting(n) and not (runs.runs_home() / n / "run.json").exists()]


def log_of(name: str, lines: int = 200) -> str:
    """The last lines that a run's process wrote."""
    try:
        text = (_jobs() / f"{name}.log").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return "\n".join(text.replace("\r", "\n").splitlines()[-lines:])


def failure(name: str) -> str | None:
    """Why a process ended before it made its run; None while it is well."""
    if _starting(name) or (runs.runs_home() / name / "run.json").exists():
        return None
    last = [line for line in log_of(name).splitlines() if line.strip()]
    return last[-1].removeprefix("error: ") if last else "the process ended without a word"


# --- a queue: one at a time ---------------------------------------------------------------------


def queue() -> list[dict[str, object]]:
    """Runs that wait for their turn, first come first: `name`, `arguments`."""
    with contextlib.suppress(FileNotFoundError, store.Damaged):
        return list(store.read_json(_jobs() / "queue" / "queue.json"))
    return []


def enqueue(name: str, arguments: Sequence[str]) -> None:
    """Train when what works now has ended. Raises as `start_training` does."""
    runs.checked_name(name)
    with store.lock(_jobs() / "queue" / "lock"):
        waiting = queue()
        taken = (runs.runs_home() / name).exists() or name in {j["name"] for j in waiting}
        if taken:
            raise FileExistsError(f"there is a run {name!r} already; choose another name")
        waiting.append({"name": name, "arguments": list(arguments)})
        store.write_json(_jobs() / "queue" / "queue.json", waiting)


def remove(name: str) -> None:
    """Take a waiting run out of the queue."""
    with store.lock(_jobs() / "queue" / "lock"):
        left = [j for j in queue() if j["name"] != name]
        store.write_json(_jobs() / "queue" / "queue.json", left)


def start_next() -> str | None:
    """Start the first waiting run if nothing works now; returns its name."""
    if working() or starting() or not queue():
        return None
    try:
        with store.lock(_jobs() / "queue" / "lock"):
            if not (waiting := queue()):
                return None
            first, *rest = waiting
            store.write_json(_jobs() / "queue" / "queue.json", rest)
    except store.Locked:
        return None
    name, arguments = str(first["name"]), first["arguments"]
    assert isinstance(arguments, list)
    _spawn(name, ["train", "--run", name, *map(str, arguments)])
    return name


# --- processes ---------------------------------------------------------------------------------


def _spawn(name: str, arguments: Sequence[str]) -> None:
    folder = _jobs()
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-u", "-m", "contrastive_core", *arguments]
    with (folder / f"{name}.log").open("wb") as log:
        child = subprocess.Popen(  # in a session of its own: it outlives the app
            command,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    about = {"pid": child.pid, "started": store.process_start(child.pid), "time": time.time()}
    store.write_json(folder / f"{name}.json", {**about, "command": command[1:]})
    _children[child.pid] = child


_children: dict[int, subprocess.Popen[bytes]] = {}  # so that ended ones are reaped


def _starting(name: str) -> int | None:
    """The living process that was started for a run, if any."""
    try:
        about = json.loads((_jobs() / f"{name}.json").read_text())
        pid = int(about["pid"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if pid in _children and _children[pid].poll() is not None:
        return None
    return pid if store.is_process(pid, about.get("started")) else None


def _jobs() -> Path:
    return runs.runs_home() / ".jobs"
