"""A process that has imported what most tasks need and forks one for each: it starts in hundredths
of a second, where importing torch anew takes seconds (benchmarks/task_start.py). Torch-free on the
side of whoever asks.

A program that starts tasks for as long as it lives (the app) calls `enable`; one that is about to
start one after the other (the adviser) calls `start`. Until the server is ready, and wherever there
is none, `fork` returns None and a task is started the ordinary way. Linux only: elsewhere a fork
without exec is not safe for the libraries. `multiprocessing.forkserver` does not serve: its
children import the program's main module again, and its parent waits for them at its end, where
tasks outlive the app.

    python -m contrastive_core.jobs.fork_server PID    (imports when process PID has ended)
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

from contrastive_core.paths import ROOT

__all__ = ["disable", "enable", "fork", "is_ready", "prepare", "start"]

# torch._dynamo: torch's optimizers import it, for two to four seconds
FIRST = ("torch", "torch._dynamo", "sklearn.linear_model", "contrastive_core.cli.analyses")
LATER = ("contrastive_core.cli.inspect", "contrastive_core.cli.samples", "umap")  # when it is idle
READY, BUSY = "ready", "busy"
IDLE = 600  # seconds without a task, after which it ends and its memory is free
STEP = 0.2  # seconds between two looks at the first task
PAUSE = 1.0  # seconds without a task, after which one of LATER is imported
PATIENCE = 20.0  # seconds that it is waited for: it may be a training

_lock = threading.Lock()
_enabled = False
_server: _ForkServer | None = None


def enable() -> None:
    """Let tasks of this process be forked, from the second on."""
    global _enabled
    _enabled = sys.platform == "linux"


def start(patience: float = 60.0) -> bool:
    """Let tasks be forked from the first on: start the server and wait until it is ready.

    For a program that is about to start several tasks, one after the other. Returns: whether it is
    ready within `patience` seconds; if not, tasks are started the ordinary way until it is.
    """
    enable()
    prepare(after=0)
    last = time.monotonic() + patience
    while _server is not None and _server.is_alive() and time.monotonic() < last:
        if is_ready():
            return True
        time.sleep(STEP)
    return False


def disable() -> None:
    """End the server; tasks at work go on, later ones are started the ordinary way."""
    global _enabled, _server
    with _lock:
        if _server:
            _server.end()
        _enabled, _server = False, None


def is_ready() -> bool:
    """Whether the next task would be forked."""
    with _lock:
        return _server is not None and _server.is_ready()


def fork(arguments: Sequence[str], log: Path) -> int | None:
    """Run the command line in a fork of the server, its output in `log`.

    Returns: the process; None where no server is ready.
    """
    with _lock:
        return _server.fork(arguments, log) if _server and _server.is_ready() else None


def prepare(after: int) -> None:
    """Start the server where it is enabled and none is at work; it imports when the process `after`
    has ended, which would have to share the processor with it."""
    global _server
    with _lock:
        if _enabled and (_server is None or not _server.is_alive()):
            _server = _ForkServer(after)


class _ForkServer:
    """The server's process, from outside. It ends with the process that started it."""

    def __init__(self, after: int) -> None:
        self.environment, self.code, self.state = _environment(), _code(), BUSY
        self.process = subprocess.Popen(
            [sys.executable, "-m", "contrastive_core.jobs.fork_server", str(after)],
            cwd=ROOT,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.requests, self.answers = self.process.stdin, self.process.stdout

    def end(self) -> None:
        self.process.kill()
        self.process.wait()

    def is_alive(self) -> bool:
        return self.process.poll() is None

    def is_ready(self) -> bool:
        """Whether it waits for a task, in the environment and with the code of this moment."""
        if self.is_alive() and (self.environment != _environment() or self.code != _code()):
            self.end()
        while self.is_alive() and select.select([self.answers], [], [], 0)[0]:
            if not (line := self.answers.readline()):
                break
            self.state = line.decode().strip()
        return self.is_alive() and self.state == READY

    def fork(self, arguments: Sequence[str], log: Path) -> int | None:
        request = json.dumps({"arguments": list(arguments), "log": str(log)})
        try:
            self.requests.write(f"{request}\n".encode())
            while (line := self.answers.readline().strip()) in (READY.encode(), BUSY.encode()):
                pass
            return int(line)
        except (OSError, ValueError):  # it has ended
            return None


def _environment() -> dict[str, str]:
    return dict(os.environ)


def _code() -> float:
    """When the newest file of the library was written: a server of older code is not asked."""
    folder = ROOT / "contrastive_core"
    return max((path.stat().st_mtime for path in folder.rglob("*.py")), default=0.0)


# --- in the server -----------------------------------------------------------------------------


def _serve(after: int) -> list[str]:
    """Fork whenever a line asks for it. Returns in a child only: its command line."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # ended children leave nothing behind
    answers = os.dup(1)
    os.dup2(2, 1)  # whatever a library prints while it is imported is no answer
    _wait_for(after)
    for name in FIRST:
        _import(name)
    later = [*LATER]
    while True:
        gc.freeze()  # what stands by now is never looked through again, and stays shared memory
        _say(answers, READY)
        while later and not _readable(PAUSE):
            _say(answers, BUSY)
            _import(later.pop(0))
            _say(answers, READY)
        if not _readable(IDLE) or not (line := sys.stdin.buffer.readline()):
            os._exit(0)
        request = json.loads(line)
        if (pid := os.fork()) == 0:
            os.close(answers)
            _detach(request["log"])
            return list(request["arguments"])
        _say(answers, str(pid))


def _wait_for(pid: int) -> None:
    """Until a process has ended, or PATIENCE."""
    last = time.monotonic() + PATIENCE
    while _is_at_work(pid) and time.monotonic() < last:
        if _readable(STEP):  # nobody asks before it is ready: the program has ended
            os._exit(0)


def _say(answers: int, line: str) -> None:
    os.write(answers, f"{line}\n".encode())


def _import(name: str) -> None:
    with contextlib.suppress(Exception):  # a task that needs it says what is wrong with it
        importlib.import_module(name)


def _is_at_work(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _readable(seconds: float) -> bool:
    """Whether a line, or the end of what is said, came within that time. A caller waits for the
    answer to each line, so that none is left in the buffer."""
    return bool(select.select([sys.stdin.buffer], [], [], seconds)[0])


def _detach(log: str) -> None:
    """In the child: what a process started anew would have."""
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDONLY)
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(null, 0)
    os.dup2(out, 1)
    os.dup2(out, 2)
    os.close(null)
    os.close(out)
    sys.stdout.reconfigure(write_through=True)  # type: ignore[union-attr]


if __name__ == "__main__":
    sys.argv = ["contrastive_core", *_serve(int(sys.argv[1]))]
    runpy.run_module("contrastive_core", run_name="__main__", alter_sys=True)
