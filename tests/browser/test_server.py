"""The running server: this computer only, and no page elsewhere may speak through it."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from contrastive_core.paths import ROOT

UPGRADE = {
    "Connection": "Upgrade", "Upgrade": "websocket", "Sec_WebSocket_Version": "13",
    "Sec_WebSocket_Key": "dGhlIHNhbXBsZSBub25jZQ==",
}  # fmt: skip


@pytest.fixture(scope="module")
def address(serve: Callable[..., str]) -> tuple[str, int]:
    parts = urlsplit(serve(ROOT / "app.py"))
    return str(parts.hostname), int(parts.port or 0)


def status(address: tuple[str, int], path: str, **headers: str) -> int:
    connection = http.client.HTTPConnection(*address, timeout=20)
    connection.putrequest("GET", path, skip_host="Host" in headers)
    for name, value in headers.items():
        connection.putheader(name.replace("_", "-"), value)
    connection.endheaders()
    return connection.getresponse().status


def test_its_own_name_is_served(address: tuple[str, int]) -> None:
    assert status(address, "/_stcore/health") == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example"])
def test_another_host_name_is_refused(address: tuple[str, int], host: str) -> None:
    """Everything an app shows and takes goes through the socket; files before it are public."""
    assert status(address, "/_stcore/stream", Host=host, **UPGRADE) == 403
    assert status(address, "/_stcore/stream", Host=f"localhost:{address[1]}", **UPGRADE) == 101


def test_another_origin_may_not_open_the_socket(address: tuple[str, int]) -> None:
    own = f"http://{address[0]}:{address[1]}"
    assert status(address, "/_stcore/stream", Origin="http://evil.example", **UPGRADE) != 101
    assert status(address, "/_stcore/stream", Origin=own, **UPGRADE) == 101


def test_only_the_loopback_is_listened_on(address: tuple[str, int]) -> None:
    """By the server and by every process below it, on any port, over either protocol."""
    server = holder(address[1])
    tree = [server, *descendants(server)]
    sockets = {s for pid in tree for s in sockets_of(pid)}
    listening = [(host, port) for host, port, inode in listeners() if inode in sockets]
    assert ("0100007F", address[1]) in listening
    assert {host for host, _ in listening} == {"0100007F"}


def listeners() -> list[tuple[str, int, str]]:
    """Address, port and inode of every listening TCP socket of this computer."""
    found = []
    for name in ("tcp", "tcp6"):
        table = Path(f"/proc/net/{name}")
        if not table.exists():
            pytest.skip("this system does not tell who listens")
        for line in table.read_text().splitlines()[1:]:
            local, state, inode = (line.split()[i] for i in (1, 3, 9))
            if state == "0A":
                host, port = local.split(":")
                found.append((host, int(port, 16), inode))
    return found


def sockets_of(pid: int) -> set[str]:
    found = set()
    for link in Path(f"/proc/{pid}/fd").glob("*"):
        with contextlib.suppress(OSError):
            name = os.readlink(link)
            if name.startswith("socket:["):
                found.add(name[8:-1])
    return found


def holder(port: int) -> int:
    """The process that listens on a port."""
    inodes = {inode for _, p, inode in listeners() if p == port}
    pids = (int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit())
    return next(pid for pid in pids if sockets_of(pid) & inodes)


def descendants(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [x for child in map(int, children) for x in (child, *descendants(child))]


def test_a_file_cannot_be_uploaded_from_elsewhere(address: tuple[str, int]) -> None:
    """No session, no token, another origin: nothing is taken."""
    connection = http.client.HTTPConnection(*address, timeout=20)
    headers = {"Origin": "http://evil.example", "Content-Type": "application/octet-stream"}
    for method in ("PUT", "POST"):
        connection.request(method, "/_stcore/upload_file/none/file", b"x" * 100, headers)
        answer = connection.getresponse()
        answer.read()
        assert answer.status >= 400
        assert answer.getheader("Access-Control-Allow-Origin") != "*"


@pytest.mark.parametrize(
    "path",
    ["/../README.md", "/static/../../README.md", "/app/static/../README.md", "/media/../../x",
     "/%2e%2e/%2e%2e/etc/passwd", "/component/../../../etc/passwd", "//etc/passwd"],
)  # fmt: skip
def test_no_path_leads_out_of_what_is_served(address: tuple[str, int], path: str) -> None:
    connection = http.client.HTTPConnection(*address, timeout=20)
    connection.putrequest("GET", path)
    connection.endheaders()
    body = connection.getresponse().read()
    assert b"# Contrastive Lab" not in body
    assert b"root:" not in body


def test_usage_statistics_are_off() -> None:
    text = (ROOT / ".streamlit" / "config.toml").read_text()
    assert re.search(r"gatherUsageStats\s*=\s*false", text)
    assert re.search(r'address\s*=\s*"127\.0\.0\.1"', text)
