"""A real browser and a real server, for the benchmarks and for the tests in tests/browser."""

from __future__ import annotations

import os
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

from contrastive_lab.desktop import window

__all__ = ["ROOT", "chromium", "find_browser", "free_port", "is_local", "p95", "serving"]

ROOT = Path(__file__).resolve().parents[1]
QUIET = ("--no-sandbox", "--disable-background-networking", "--disable-component-update")
PATIENCE = 60  # seconds until a server answers, on a busy machine
LOCAL = ("http://127.0.0.1", "ws://127.0.0.1", "about:", "data:", "blob:")


def find_browser() -> str | None:
    """Path of an installed Chromium, Chrome or Edge: the first that the app would open too."""
    return next(window.chromiums(), None)


def is_local(url: str) -> bool:
    return url.startswith(LOCAL)


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=find_browser(), args=list(QUIET))
        yield browser
        browser.close()


@contextmanager
def serving(
    script: Path, home: Path, *arguments: str, environment: dict[str, str] | None = None
) -> Iterator[str]:
    """Streamlit with a script on 127.0.0.1; gives the address. Runs and caches lie in `home`."""
    port, log = free_port(), home / "server.log"
    homes = {"CONTRASTIVE_LAB_HOME": f"{home}/home", "CONTRASTIVE_LAB_RUNS": f"{home}/runs"}
    command = [sys.executable, "-m", "streamlit", "run", str(script)]
    settings = ["--server.headless", "true", "--server.port", str(port)]
    with log.open("wb") as out:
        server = subprocess.Popen(
            [*command, *settings, "--", *arguments],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), **homes, **(environment or {})},
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_for(f"http://127.0.0.1:{port}/_stcore/health", server, log)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(20)


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
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise TimeoutError(f"no answer from {address}: {log.read_text()[-2000:]}")


def p95(values: list[float]) -> float:
    return sorted(values)[min(len(values) - 1, int(0.95 * len(values)))]
