"""The server process of one app start: start it, wait until it is ready, and stop it; and a window for it: the app's
own, else an app-mode browser window, else a browser tab.

As a program, `python -m contrastive_lab.desktop.serving`, it checks that the app works here and prints JSON for
`doctor`."""

import contextlib
import importlib.util
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import webbrowser
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from html import escape
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.parse import urlsplit

from contrastive_core.base import storage
from contrastive_core.base.lock import scratch_folder
from contrastive_core.base.storage import BUNDLE, ROOT, data_home, runs_home
from contrastive_core.engine import queue, training
from contrastive_core.engine.process import OWN_SESSION
from contrastive_lab.components.shared.mount import COMPONENTS, PARTS

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


# --- the window -------------------------------------------------------------------------------------

TITLE = "Contrastive Lab"
SIZE = (1440, 960)
NAMES = "chromium chromium-browser google-chrome google-chrome-stable microsoft-edge microsoft-edge-stable".split()
APPLICATIONS = ("Google Chrome", "Chromium", "Microsoft Edge")  # of macOS
PROGRAMS = (
    "Google/Chrome/Application/chrome.exe",
    "Microsoft/Edge/Application/msedge.exe",
    "Chromium/Application/chrome.exe",
)  # of Windows
SOON = 3.0  # seconds in which a browser that cannot start has ended
Window = Callable[[], None]  # waits until it is closed


def open_window(address: str, link: str, browser: bool = False) -> Window | None:
    """Open the app in the first available kind of window.

    Args: link: the address for a browser, which redirects to the app (serving.py); browser: open only in the browser.
    Returns: a function that waits until the window is closed; None for a browser, which does not report it.
    Raises: ValueError with the reason if nothing can be opened."""
    if not has_display():
        raise ValueError("there is no display here")
    if not browser:
        if importlib.util.find_spec("webview"):
            return partial(_webview, address, link)
        if wait := _app_mode(link):
            return wait
    with contextlib.suppress(webbrowser.Error, OSError):
        if webbrowser.open(link):
            return None
    raise ValueError("no browser was found")


def describe() -> str:
    """Describe the kind of window that would be opened."""
    if not has_display():
        return "none: there is no display"
    if importlib.util.find_spec("webview"):
        return "its own (pywebview)"
    if browser := next(chromiums(), None):
        return f"{browser} in app mode"
    try:
        return f"the browser ({webbrowser.get().name})"  # type: ignore[attr-defined]
    except (webbrowser.Error, AttributeError):
        return "none: no browser was found"


def has_display() -> bool:
    """Return whether a window can be shown, as far as the system tells."""
    if not sys.platform.startswith("linux"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def chromiums() -> Iterator[str]:
    """Yield browsers that can show a page in app mode."""
    if sys.platform == "darwin":
        folders = (Path("/Applications"), Path.home() / "Applications")
        places = (f / f"{a}.app/Contents/MacOS/{a}" for a in APPLICATIONS for f in folders)
    elif sys.platform == "win32":
        names = ("PROGRAMFILES", "PROGRAMFILES(X86)", "LOCALAPPDATA")
        roots = [Path(os.environ[name]) for name in names if os.environ.get(name)]
        places = (root / program for root in roots for program in PROGRAMS)
    else:
        places = (Path(executable) for n in NAMES if (executable := shutil.which(n)))
    return (str(place) for place in places if place.exists())


# --- kinds ---------------------------------------------------------------------------------------


def _webview(address: str, link: str) -> None:
    """Open an own window on the main thread, or another kind if its toolkit is missing."""
    import webview

    try:
        webview.settings["ALLOW_DOWNLOADS"] = True
        webview.create_window(TITLE, address, width=SIZE[0], height=SIZE[1])
        webview.start()
    except webview.WebViewException:
        if (wait := _app_mode(link)) is None:
            raise ValueError("pywebview has no toolkit to draw with") from None
        wait()


def _app_mode(link: str) -> Window | None:
    """Open a browser window in app mode with its own profile; with a shared profile Chromium would pass the page to a
    running process and end. None if no browser is found or each ends at once, as Chromium does for root."""
    for program in chromiums():
        with contextlib.ExitStack() as stack:
            command = [program, f"--app={link}", f"--user-data-dir={stack.enter_context(scratch_folder()) / 'window'}"]
            command += [f"--window-size={SIZE[0]},{SIZE[1]}", "--no-first-run", "--no-default-browser-check"]
            null = subprocess.DEVNULL
            try:
                process = subprocess.Popen(command, stdin=null, stdout=null, stderr=null, **OWN_SESSION)
                process.wait(SOON)
            except OSError:
                continue
            except subprocess.TimeoutExpired:
                return partial(_wait, process, stack.pop_all())
            if process.returncode == 0:  # it passed the page to a running one
                return partial(_wait, process, stack.pop_all())
    return None


def _wait(process: subprocess.Popen[bytes], profile: contextlib.ExitStack) -> None:
    """Wait until the window is closed; Ctrl-C closes it."""
    with profile:
        try:
            process.wait()
        except BaseException:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
            raise


if __name__ == "__main__":
    print(json.dumps({"window": describe(), "problem": find_problem()}))
