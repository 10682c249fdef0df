"""The running server: this computer only, and no page elsewhere may speak through it."""

from __future__ import annotations

import http.client
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).resolve().parents[2]


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
    listening = []
    for name in ("tcp", "tcp6"):
        table = Path(f"/proc/net/{name}")
        if not table.exists():
            continue
        for line in table.read_text().splitlines()[1:]:
            local, state = line.split()[1], line.split()[3]
            if state == "0A" and int(local.split(":")[1], 16) == address[1]:
                listening.append(local.split(":")[0])
    assert listening == ["0100007F"]


def test_usage_statistics_are_off() -> None:
    text = (ROOT / ".streamlit" / "config.toml").read_text()
    assert re.search(r"gatherUsageStats\s*=\s*false", text)
    assert re.search(r'address\s*=\s*"127\.0\.0\.1"', text)
