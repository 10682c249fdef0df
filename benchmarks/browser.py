"""A real browser and a real server, for the benchmarks and for the tests of tests/browser."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from contrastive_core.engine import process
from contrastive_lab.desktop.serving import chromiums

__all__ = ["ROOT", "chromium", "end_tasks", "find_browser", "free_port", "homes_in", "is_local", "p95", "serving"]

ROOT = Path(__file__).resolve().parents[1]
SHELL = "chromium-headless-shell"  # Chromium without what draws windows: a page costs a third less
QUIET = (
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
)
PATIENCE = 60  # seconds until a server answers, on a busy machine
LOCAL = ("http://127.0.0.1", "ws://127.0.0.1", "about:", "data:", "blob:")


def find_browser() -> str | None:
    """Path of Chromium's own program for what has no window, else of an installed Chromium, Chrome
    or Edge: the first that the app would open too."""
    return shutil.which(SHELL) or next(chromiums(), None)


def is_local(url: str) -> bool:
    return url.startswith(LOCAL)


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser without a window, which finds no other computer."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=find_browser(), args=list(QUIET))
        yield browser
        browser.close()


@contextmanager
def serving(script: Path, home: Path, *arguments: str, environment: dict[str, str] | None = None) -> Iterator[str]:
    """Streamlit with a script on 127.0.0.1; gives the address. Runs and caches lie in `home`."""
    port, log = free_port(), home / "server.log"
    homes = {**homes_in(home), **(environment or {})}
    command = [sys.executable, "-m", "streamlit", "run", str(script)]
    settings = ["--server.headless", "true", "--server.port", str(port)]
    with log.open("wb") as out:
        server = subprocess.Popen(
            [*command, *settings, "--", *arguments],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), **homes},
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_for(f"http://127.0.0.1:{port}/_stcore/health", server, log)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(20)
        end_tasks(homes)


def homes_in(folder: Path) -> dict[str, str]:
    """The environment that names homes in a folder."""
    return {"CONTRASTIVE_LAB_HOME": f"{folder}/home", "CONTRASTIVE_LAB_RUNS": f"{folder}/runs"}


def end_tasks(homes: dict[str, str] | None = None) -> None:
    """End what was begun for a server's pages, which outlives it, in its homes or this process's.

    Raises: TimeoutError where a process does not end.
    """
    with mock.patch.dict(os.environ, homes or {}):
        for record in process.records():
            process.terminate(record["key"])
        end = time.monotonic() + PATIENCE
        while any(process.pid_of(record["key"]) for record in process.records()):
            if time.monotonic() > end:
                raise TimeoutError("a task of the server does not end")
            time.sleep(0.02)


def free_port() -> int:
    """A port of 127.0.0.1 that nothing listens on."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def wait_for(address: str, server: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if server.poll() is not None:
            raise RuntimeError(f"the server ended: {log.read_text()[-2000:]}")
        try:
            with urllib.request.urlopen(address, timeout=2):
                return
        except (urllib.error.URLError, OSError) as error:
            if getattr(error, "code", 0) == 403:  # it asks for a token
                return
            time.sleep(0.1)
    raise TimeoutError(f"no answer from {address}: {log.read_text()[-2000:]}")


def p95(values: list[float]) -> float:
    return sorted(values)[min(len(values) - 1, int(0.95 * len(values)))]
