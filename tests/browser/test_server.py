"""The running server: this computer only, and no page elsewhere may speak through it."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from patience import SLOW

from contrastive_core.paths import ROOT

UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec_WebSocket_Version": "13",
    "Sec_WebSocket_Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


@pytest.fixture
def address(shared_app: str) -> tuple[str, int]:
    parts = urlsplit(shared_app)
    return str(parts.hostname), int(parts.port or 0)


def answer(address: tuple[str, int], path: str, **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(*address, timeout=20)
    connection.putrequest("GET", path, skip_host="Host" in headers)
    for name, value in headers.items():
        connection.putheader(name.replace("_", "-"), value)
    connection.endheaders()
    return connection.getresponse()


def status(address: tuple[str, int], path: str, **headers: str) -> int:
    return answer(address, path, **headers).status


def test_its_own_name_is_served(address: tuple[str, int]) -> None:
    assert status(address, "/_stcore/health") == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example"])
def test_another_host_name_is_refused(address: tuple[str, int], host: str) -> None:
    own = {"Host": f"localhost:{address[1]}", "Origin": f"http://localhost:{address[1]}"}
    assert status(address, "/_stcore/stream", **UPGRADE, **own | {"Host": host}) == 403
    assert status(address, "/_stcore/stream", **UPGRADE, **own) == 101


@pytest.mark.parametrize("path", ["/", "/_stcore/health", "/_stcore/host-config", "/runs"])
def test_every_request_is_held_to_the_names_of_this_computer(address: tuple[str, int], path: str) -> None:
    for host in ("evil.example", "127.0.0.1.evil.example", f"evil@127.0.0.1:{address[1]}", ""):
        assert status(address, path, Host=host) in (400, 403)
    assert status(address, path, Host=f"localhost:{address[1]}") == 200
    assert status(address, path, Origin="http://evil.example") == 403


def test_another_origin_may_not_open_the_socket(address: tuple[str, int]) -> None:
    own = f"http://{address[0]}:{address[1]}"
    for origin in ("http://evil.example", f"http://evil.example:{address[1]}", "null"):
        assert status(address, "/_stcore/stream", Origin=origin, **UPGRADE) == 403
    assert status(address, "/_stcore/stream", **UPGRADE) == 403  # from no page at all
    assert status(address, "/_stcore/stream", Origin=own, **UPGRADE) == 101


@pytest.mark.parametrize("path", ["/", "/_stcore/health", "/nowhere", "/_stcore/upload_file/a/b"])
def test_no_page_may_frame_it_and_nothing_comes_from_elsewhere(address: tuple[str, int], path: str) -> None:
    headers = answer(address, path).headers
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["X-Content-Type-Options"] == "nosniff"
    rules = dict(rule.split(" ", 1) for rule in headers["Content-Security-Policy"].split("; "))
    assert rules["frame-ancestors"] == rules["object-src"] == "'none'"
    assert not any("http" in rule or "*" in rule for name, rule in rules.items() if name != "connect-src")
    assert "unsafe" not in rules["script-src"]
    assert answer(address, path, Host="evil.example").headers["X-Frame-Options"] == "DENY"


def test_no_other_page_steers_it_by_messages(address: tuple[str, int]) -> None:
    about = json.loads(answer(address, "/_stcore/host-config").read())
    assert about["allowedOrigins"] == []
    assert not about["enableCustomParentMessages"]


def test_the_pages_work_under_the_policy_and_fetch_nothing(address: tuple[str, int], page: Any) -> None:
    """A script, a picture or a style that the policy refuses would be named in the console."""
    refused: list[str] = []
    page.on("console", lambda m: refused.append(m.text) if "Content Security" in m.text else None)
    page.goto(f"http://{address[0]}:{address[1]}/")
    page.wait_for_selector("canvas", timeout=SLOW)
    assert refused == []
    page.evaluate("new Image().src = 'http://evil.example/x.png'")
    page.wait_for_function("true")
    page.wait_for_timeout(200)
    assert any("img-src" in text for text in refused)


def test_with_a_token_only_its_address_opens_the_app(serve: Callable[..., str]) -> None:
    parts = urlsplit(serve(ROOT / "app.py", environment={"CONTRASTIVE_LAB_TOKEN": "a word"}))
    own = (str(parts.hostname), int(parts.port or 0))
    origin = f"http://{own[0]}:{own[1]}"
    assert status(own, "/_stcore/health") == 200
    for path in ("/", "/?token=wrong", "/_stcore/host-config", "/static/../"):
        assert status(own, path) == 403
    assert status(own, "/_stcore/stream", Origin=origin, **UPGRADE) == 403
    opened = answer(own, "/?token=a+word")
    assert opened.status == 200
    cookie = opened.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    shown = cookie.split(";")[0]
    assert status(own, "/", Cookie=shown) == 200
    assert status(own, "/_stcore/stream", Origin=origin, Cookie=shown, **UPGRADE) == 101
    assert status(own, "/", Cookie=shown.replace("word", "sword")) == 403


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
    [
        "/../README.md",
        "/static/../../README.md",
        "/app/static/../README.md",
        "/media/../../x",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/component/../../../etc/passwd",
        "//etc/passwd",
    ],
)
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
