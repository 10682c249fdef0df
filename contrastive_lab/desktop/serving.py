"""The server process of one app start: start it, wait until it is ready, and stop it.

As a program, `python -m contrastive_lab.desktop.serving`, it checks that the app works here and prints JSON for
`doctor`."""

import contextlib
import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.parse import urlsplit

from contrastive_core.base import storage
from contrastive_core.base.storage import BUNDLE, ROOT, data_home, runs_home
from contrastive_core.engine import queue, training
from contrastive_core.engine.process import OWN_SESSION
from contrastive_lab.components.shared.mount import COMPONENTS, PARTS
from contrastive_lab.desktop import window

HOST = "127.0.0.1"
PATIENCE = 120.0  # seconds until a server answers, on a busy machine
REDIRECT = """<!doctype html>
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url={address}">
<title>Contrastive Lab</title>
<p><a href="{address}">Contrastive Lab</a></p>
"""


@dataclass(frozen=True)
class Server:
    """A process that serves the app."""

    process: subprocess.Popen[bytes]
    port: int
    token: str
    log: Path

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.port}"

    def is_alive(self) -> bool:
        return self.process.poll() is None


def folder() -> Path:
    """Return the folder of the command's window files, for this user alone."""
    return data_home() / "app"


@contextlib.contextmanager
def redirecting(address: str) -> Iterator[str]:
    """Yield the address of a file that redirects to `address`; it is removed at the end. Raises OSError.

    All users of a computer can see the command lines of processes. A browser is therefore started with a file that only
    its owner can read, as in Jupyter, and not with the token."""
    path = folder() / f"open-{urlsplit(address).port}.html"
    storage.write_bytes(path, REDIRECT.format(address=escape(address)).encode())
    try:
        yield path.resolve().as_uri()
    finally:
        path.unlink(missing_ok=True)


def check_homes() -> None:
    """Create the folders that the app writes to. Raises ValueError if that fails."""
    for home, name in ((folder(), "HOME"), (runs_home(), "RUNS")):
        remedy = f"set CONTRASTIVE_LAB_{name} to a folder of your own that can be written"
        try:
            storage.make_folder(home)
            owner = home.stat().st_uid
            storage.write_bytes(home / ".writable", b"")
            (home / ".writable").unlink(missing_ok=True)
        except OSError as error:
            raise ValueError(f"{home} cannot be written ({error.strerror}): {remedy}") from None
        if hasattr(os, "getuid") and owner != os.getuid():
            raise ValueError(f"{home} belongs to another user of this computer: {remedy}")
    folder().chmod(0o700)
    caches = data_home()
    if hasattr(os, "getuid") and caches.stat().st_uid == os.getuid() and caches.stat().st_mode & 0o022:
        caches.chmod(caches.stat().st_mode & 0o7755)  # what others write there would be taken for the user's own


def begin(port: int | None = None) -> Server:
    """Start a server. Args: port: None for any free one. Raises: ValueError for a port that cannot be used; OSError."""
    with socket.socket() as trial:
        if os.name == "posix":
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((HOST, port or 0))
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or "there is no such port"
            raise ValueError(f"port {port} cannot be used ({why}): name another, or leave --port out") from None
        port = int(trial.getsockname()[1])
    token = os.environ.get("CONTRASTIVE_LAB_TOKEN", "").strip()
    token = secrets.token_urlsafe(24) if token in ("", "new") else token
    command = [sys.executable, "-m", "contrastive_lab.server", "run", str(BUNDLE / "app.py")]
    command += ["--server.address", HOST, "--server.port", str(port), "--server.headless", "true"]
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    log = folder() / f"server-{port}.log"
    with storage.new_file(log) as out:
        process = subprocess.Popen(
            command,
            cwd=BUNDLE,  # of the folder that one happens to be in, no module is imported
            env={**os.environ, "CONTRASTIVE_LAB_TOKEN": token, "PYTHONPATH": path},
            stdin=subprocess.PIPE,  # its end tells the server that this process is gone
            stdout=out,
            stderr=subprocess.STDOUT,
            **OWN_SESSION,  # Ctrl-C is for the command, which ends it
        )
    return Server(process=process, port=port, token=token, log=log)


def wait_until_ready(server: Server) -> None:
    """Wait until the server answers. Raises ValueError with its last output if it ends instead."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if not server.is_alive():
            lines = server.log.read_text("utf-8", "replace").strip().splitlines() or ["no word"]
            raise ValueError(f"the app could not start: {lines[-1]} (all of it: {server.log})")
        with contextlib.suppress(OSError):
            read_page(server, "/_stcore/health", seconds=2)
            return
        time.sleep(0.05)
    raise ValueError(f"the app does not answer at {server.address}; see {server.log}")


def read_page(server: Server, path: str, seconds: float) -> str:
    """Return a page of a server, without a proxy from the environment. Raises OSError."""
    jar = urllib.request.HTTPCookieProcessor(CookieJar())
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), jar)
    opener.open(f"{server.address}/?token={server.token}", timeout=seconds).close()  # for the cookie
    with opener.open(server.address + path, timeout=seconds) as answer:
        return str(answer.read().decode())


def at_work() -> list[str]:
    """Return the names of runs that are training, starting, or queued."""
    working = [run.name for run in training.working()]
    waiting = [job.name for job in queue.queue() if not job.blocked_reason()]
    return list(dict.fromkeys([*working, *training.starting(), *waiting]))


def stop(server: Server) -> None:
    """Terminate the server; kill it after five seconds."""
    server.process.terminate()
    try:
        server.process.wait(5)
    except subprocess.TimeoutExpired:
        server.process.kill()
        server.process.wait()
    server.log.unlink(missing_ok=True)


# --- the check of `doctor` -------------------------------------------------------------------------


def find_problem() -> str:
    """Return the first fault in a sentence; "" if everything works. The user's data are not touched."""
    missing = [part for part in PARTS if not (COMPONENTS / part / "main.js").is_file()]
    if missing:
        return f"browser parts are missing: {', '.join(missing)}"
    with tempfile.TemporaryDirectory() as folder:
        for name in ("HOME", "RUNS"):
            os.environ[f"CONTRASTIVE_LAB_{name}"] = str(Path(folder) / name.lower())
        try:
            check_homes()
            server = begin()
            try:
                wait_until_ready(server)
                page = read_page(server, "/", seconds=20)
                return "" if "<script" in page else "its server answers without a page"
            finally:
                stop(server)
        except (OSError, ValueError) as error:
            return f"its server does not work: {error}"


if __name__ == "__main__":
    print(json.dumps({"window": window.describe(), "problem": find_problem()}))
