"""One server for all windows of a user, and for one folder of runs: started by the first, ended with the last, unless
runs are at work. A small file beside the caches names its process, port, token and the processes that hold a window
of it. It is read and written under a lock, and believed only while that process lives."""

import contextlib
import hashlib
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil

from contrastive_core.engine import queue, training
from contrastive_core.engine.process import OWN_SESSION
from contrastive_core.records import (
    BUNDLE,
    ROOT,
    Damaged,
    atomic,
    fields,
    is_process,
    json_files,
    list_of,
    lock,
    number,
    process_start,
    runs_home,
    text,
    whole,
)
from contrastive_lab.desktop import tickets

HOST = "127.0.0.1"
PATIENCE = 120.0  # seconds until a server answers, on a busy machine
LOCK_WAIT = 30.0
PROCESS = {"pid": whole(1, 2**31), "started": number()}
STATE = fields({**PROCESS, "port": whole(1, 65535), "token": text, "holders": list_of(fields(PROCESS))})


@dataclass(frozen=True)
class Server:
    """A process that serves the app; `holders` are processes that wait with a window of it."""

    pid: int
    started: float
    port: int
    token: str
    holders: list[dict[str, Any]] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.port}"

    def is_alive(self) -> bool:
        return is_process(self.pid, self.started)


# --- before it starts ----------------------------------------------------------------------------


def check_homes() -> None:
    """Make the folders that the app writes to. Raises ValueError where it cannot."""
    for folder, name in ((tickets.folder(), "HOME"), (runs_home(), "RUNS")):
        remedy = f"set CONTRASTIVE_LAB_{name} to a folder of your own that can be written"
        try:
            atomic.make_folder(folder)
            owner = folder.stat().st_uid
            atomic.write_bytes(folder / ".writable", b"")
            (folder / ".writable").unlink(missing_ok=True)
        except OSError as error:
            raise ValueError(f"{folder} cannot be written ({error.strerror}): {remedy}") from None
        if hasattr(os, "getuid") and owner != os.getuid():
            raise ValueError(f"{folder} belongs to another user of this computer: {remedy}")


def _checked_port(port: int | None) -> int:
    """A port that nothing listens on. Raises ValueError for one that cannot be had."""
    with socket.socket() as trial:
        if os.name == "posix":
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((HOST, port or 0))
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or "there is no such port"
            raise ValueError(f"port {port} cannot be used ({why}): name another, or leave --port out") from None
        return int(trial.getsockname()[1])


# --- start and join ------------------------------------------------------------------------------


def begin(port: int | None = None) -> tuple[Server, bool]:
    """The running server, or one that is being started; and whether it was started here. Args: port: of one that is
    started; None: any free one. Raises: ValueError for a port that cannot be had; OSError; Locked."""
    with _changing() as state:
        if state is not None:
            return state, False
        server = _start(_checked_port(port))
        _write(server)
        return server, True


def _start(port: int) -> Server:
    token = os.environ.get("CONTRASTIVE_LAB_TOKEN", "").strip()
    token = secrets.token_urlsafe(24) if token in ("", "new") else token
    command = [sys.executable, "-m", "contrastive_lab.desktop.server_process", str(os.getpid())]
    command += [str(process_start(os.getpid())), "run", str(BUNDLE / "app.py")]
    command += ["--server.address", HOST, "--server.port", str(port), "--server.headless", "true"]
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    with _log().open("wb") as log:
        process = subprocess.Popen(
            command,
            cwd=BUNDLE,  # of the folder that one happens to be in, no module is imported
            env={**os.environ, "CONTRASTIVE_LAB_TOKEN": token, "PYTHONPATH": path},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            **OWN_SESSION,  # Ctrl-C is for the command, which ends it
        )
    return Server(process.pid, process_start(process.pid) or time.time(), port, token)


def wait_until_ready(server: Server) -> None:
    """Until it answers. Raises ValueError with what it said if it ends instead."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if not server.is_alive():
            lines = _log().read_text("utf-8", "replace").strip().splitlines() or ["no word"]
            raise ValueError(f"the app could not start: {lines[-1]} (all of it: {_log()})")
        with contextlib.suppress(OSError):
            read_page(f"{server.address}/_stcore/health", seconds=2)
            return
        time.sleep(0.05)
    raise ValueError(f"the app does not answer at {server.address}; see {_log()}")


def read_page(address: str, seconds: float) -> str:
    """A page of this computer: no proxy that the environment names is asked. Raises OSError."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(address, timeout=seconds) as answer:
        return str(answer.read().decode())


# --- who holds it --------------------------------------------------------------------------------


def hold(server: Server, only_if_free: bool = False) -> bool:
    """Keep the server until `let_go`; with `only_if_free` not if another process does."""
    with _changing() as state:
        if state is None or state.pid != server.pid or (only_if_free and state.holders):
            return False
        holder = {"pid": os.getpid(), "started": process_start(os.getpid())}
        _write(replace(state, holders=[*state.holders, holder]))
        return True


def let_go(server: Server, started: bool = False) -> bool:
    """No longer hold it. True if it is to end: this process held or started it, and no other holds it now."""
    with _changing() as state:
        if state is None or state.pid != server.pid:
            return started
        others = [h for h in state.holders if h["pid"] != os.getpid()]
        _write(replace(state, holders=others))
        return not others and (started or len(others) < len(state.holders))


def is_held(pid: int) -> bool:
    """Whether a process waits with a window of the server with this process number."""
    server = _read()
    return server is not None and server.pid == pid and bool(server.holders)


def at_work() -> list[str]:
    """Names of runs that train, begin, or wait for their turn."""
    working = [run.name for run in training.working()]
    waiting = [job.name for job in queue.queue() if not job.blocked_reason()]
    return list(dict.fromkeys([*working, *training.starting(), *waiting]))


def stop(server: Server) -> None:
    """End the server: asked first, then made to."""
    if server.is_alive():
        process = psutil.Process(server.pid)
        with contextlib.suppress(psutil.NoSuchProcess):
            process.terminate()
            try:
                process.wait(5)
            except psutil.TimeoutExpired:
                process.kill()
    with _changing() as state:
        if state is None or state.pid == server.pid:
            _path().unlink(missing_ok=True)


# --- the file ------------------------------------------------------------------------------------


def _path() -> Path:
    """Of the server for these runs."""
    key = hashlib.sha256(os.fsencode(runs_home().resolve())).hexdigest()[:12]
    return tickets.folder() / f"server-{key}.json"


def _log() -> Path:
    return _path().with_suffix(".log")


@contextlib.contextmanager
def _changing() -> Iterator[Server | None]:
    """Hold the lock; gives the server that the file names, if it lives, with its living holders."""
    with lock(_path().with_suffix(".lock"), wait=LOCK_WAIT):
        yield _read()


def _read() -> Server | None:
    try:
        server = Server(**json_files.read_object(_path(), STATE))
    except (OSError, Damaged):
        return None
    holders = [h for h in server.holders if is_process(h["pid"], h["started"])]
    return replace(server, holders=holders) if server.is_alive() else None


def _write(server: Server) -> None:
    json_files.write_json(_path(), asdict(server))
