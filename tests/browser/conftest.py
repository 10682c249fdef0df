"""A real browser and a real server for tests: Chromium without a window, Streamlit on 127.0.0.1.

`page` is a blank page; `serve(script)` starts Streamlit with a script and gives its address. Where
there is no browser the test is skipped with the reason (in CI a skip is a failure).
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
QUIET = ("--no-sandbox", "--disable-background-networking", "--disable-component-update")
PATIENCE = 60  # seconds until a server answers, on a busy machine


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(item.path).is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip(f"no browser: none of {', '.join(BROWSERS)} is installed")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as p:
        chromium = p.chromium.launch(executable_path=path, args=list(QUIET))
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page whose errors fail the test, and which reaches nothing but this computer."""
    context = browser.new_context(viewport={"width": 1280, "height": 1000})
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.route(lambda url: not url.startswith(LOCAL), lambda route: route.abort())
    yield page
    context.close()
    assert not errors, errors


LOCAL = ("http://127.0.0.1", "ws://127.0.0.1", "about:", "data:", "blob:")


@pytest.fixture(scope="module")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., str]]:
    """serve(script, *arguments) starts Streamlit with a script; returns the address.

    The server has homes of its own, unless `environment` names others.
    """
    servers: list[subprocess.Popen[bytes]] = []

    def start(script: Path, *arguments: str, environment: dict[str, str] | None = None) -> str:
        home, port = tmp_path_factory.mktemp("server"), free_port()
        homes = {"CONTRASTIVE_LAB_HOME": f"{home}/home", "CONTRASTIVE_LAB_RUNS": f"{home}/runs"}
        log = home / "server.log"
        command = [sys.executable, "-m", "streamlit", "run", str(script)]
        settings = ["--server.headless", "true", "--server.port", str(port)]
        server = subprocess.Popen(
            [*command, *settings, "--", *arguments],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), **homes, **(environment or {})},
            stdout=log.open("wb"),
            stderr=subprocess.STDOUT,
        )
        servers.append(server)
        wait_for(f"http://127.0.0.1:{port}/_stcore/health", server, log)
        return f"http://127.0.0.1:{port}"

    yield start
    for server in servers:
        server.terminate()
    for server in servers:
        server.wait(20)


def free_port() -> int:
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
