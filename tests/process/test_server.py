"""The running server: this computer only, and no page elsewhere may speak through it."""

import http.client
import itertools
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest
from patience import PATIENCE, SLOW
from streamlit.runtime.scriptrunner.script_runner import ScriptRunner
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData

from contrastive_core.base.storage import ROOT
from contrastive_lab import server as request_checks
from contrastive_lab.desktop import serving

UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec_WebSocket_Version": "13",
    "Sec_WebSocket_Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


@pytest.fixture
def address(filled_app: str) -> tuple[str, int]:
    parts = urlsplit(filled_app)
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


def test_every_request_is_held_to_the_names_of_this_computer(address: tuple[str, int]) -> None:
    for path in ("/", "/_stcore/health", "/_stcore/host-config", "/runs"):
        for host in ("evil.example", "127.0.0.1.evil.example", f"evil@127.0.0.1:{address[1]}", ""):
            assert status(address, path, Host=host) in (400, 403)
        assert status(address, path) == status(address, path, Host=f"localhost:{address[1]}") == 200
        assert status(address, path, Origin="http://evil.example") == 403
    own = {"Host": f"localhost:{address[1]}", "Origin": f"http://localhost:{address[1]}"}
    for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example"):
        assert status(address, "/_stcore/stream", **UPGRADE, **own | {"Host": host}) == 403
    assert status(address, "/_stcore/stream", **UPGRADE, **own) == 101


def test_another_origin_may_not_open_the_socket(address: tuple[str, int]) -> None:
    own, odd = f"http://{address[0]}:{address[1]}", ("http://[", "http://[::1", "http://[x]:a", "http://\xe4", "", "//")
    for origin in ("http://evil.example", f"http://evil.example:{address[1]}", "null", *odd):
        assert status(address, "/_stcore/stream", Origin=origin, **UPGRADE) == 403
        assert status(address, "/", Origin=origin) == 403
    assert status(address, "/_stcore/stream", **UPGRADE) == 403  # from no page at all
    assert status(address, "/_stcore/stream", Origin=own, **UPGRADE) == 101


@pytest.mark.parametrize("path", ["/", "/nowhere", "/_stcore/upload_file/a/b"])
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


# --- other users of this computer ----------------------------------------------------------------

ROUTES = [
    "/",
    "/runs",
    "/?token=wrong",
    "/?token=",
    "/static/index.html",
    "/static/../",
    "/media/x.png",
    "/component/x/y.js",
    "/_stcore/health",
    "/_stcore/script-health-check",
    "/_stcore/metrics",
    "/_stcore/host-config",
    "/_stcore/allowed-message-origins",
    "/_stcore/upload_file/a/b",
    "/_stcore/bidi-components/x/y.js",
]
METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"]


@pytest.fixture(scope="module")
def guarded(serve: Callable[..., str]) -> tuple[str, int]:
    """A server with a token."""
    parts = urlsplit(serve(ROOT / "app.py", environment={"CONTRASTIVE_LAB_TOKEN": "a word"}))
    return str(parts.hostname), int(parts.port or 0)


def test_with_a_token_only_its_address_opens_the_app(guarded: tuple[str, int]) -> None:
    origin = f"http://{guarded[0]}:{guarded[1]}"
    opened = answer(guarded, "/runs?on=a&token=a+word&b=%C3%A4")
    assert opened.status == 200
    assert 'http-equiv="refresh" content="0; url=/runs?on=a&amp;b=%C3%A4"' in opened.read().decode()
    cookie = opened.headers["Set-Cookie"]
    assert cookie.startswith(f"contrastive-lab-{guarded[1]}=")
    assert {"HttpOnly", "SameSite=Strict"} <= set(cookie.split("; "))
    assert "word" not in cookie
    shown = cookie.split(";")[0]
    assert len(shown.partition("=")[2]) >= 32
    assert status(guarded, "/", Cookie=shown) == 200
    assert status(guarded, "/_stcore/health", Cookie=shown) == 200
    assert status(guarded, "/_stcore/stream", Origin=origin, Cookie=shown, **UPGRADE) == 101
    assert status(guarded, "/", Cookie=f"{shown}x") == 403
    assert status(guarded, "/", Cookie=f"{shown.partition('=')[0]}=a word") == 403
    assert status(guarded, "/", Cookie=f"{shown.partition('=')[0]}=a%20word") == 403
    assert status(guarded, "/?token=a+word", Host="evil.example") == 403
    assert status(guarded, "/?token=a+word", Origin="http://evil.example") == 403


def test_no_route_answers_without_the_token(guarded: tuple[str, int]) -> None:
    for path, method in itertools.product(ROUTES, METHODS):
        connection = http.client.HTTPConnection(*guarded, timeout=20)
        connection.request(method, path)
        refused = connection.getresponse()
        assert refused.status == 403, path
        assert "Set-Cookie" not in refused.headers
        if method != "HEAD":
            assert "<p>Open the address with its token, which was printed at the start.</p>" in refused.read().decode()
    origin = f"http://{guarded[0]}:{guarded[1]}"
    for path in ("/_stcore/stream", "/_stcore/stream?token=a+word"):
        assert status(guarded, path, Origin=origin, **UPGRADE) == 403


def test_a_refusal_is_in_the_browsers_language(guarded: tuple[str, int]) -> None:
    text = answer(guarded, "/", **{"Accept-Language": "zh-CN,zh;q=0.9"}).read().decode()
    assert '<html lang="zh">' in text
    assert "token" in text
    assert "Open the address" not in text


def test_a_browser_follows_the_redirect_file(guarded: tuple[str, int], page: Any, monkeypatch, tmp_path: Path) -> None:
    """The strict cookie comes with the second request, although a file led to the first."""
    monkeypatch.setenv("CONTRASTIVE_LAB_HOME", str(tmp_path))
    with serving.redirecting(f"http://{guarded[0]}:{guarded[1]}/methods?token=a+word") as link:
        page.goto(link)
        page.locator("h1").first.wait_for(timeout=SLOW)
    assert page.url.startswith(f"http://{guarded[0]}:{guarded[1]}/methods")
    assert "token" not in page.url


def test_no_proxy_is_believed(address: tuple[str, int]) -> None:
    for name in ("X-Forwarded-For", "X-Forwarded-Proto", "Forwarded"):
        assert status(address, "/", **{name: "127.0.0.1"}) == 403
        own = f"http://{address[0]}:{address[1]}"
        assert status(address, "/_stcore/stream", Origin=own, **UPGRADE, **{name: "127.0.0.1"}) == 403


def as_user(user: int, work: Callable[[], object]) -> Any:
    """What `work` gives in a process of another user."""
    if not hasattr(os, "fork") or os.getuid():
        pytest.skip("only root can become another user")
    if not request_checks.CONNECTIONS[0].exists():
        pytest.skip("this system does not say whose connections are")
    reader, writer = os.pipe()
    if not (child := os.fork()):
        try:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
            os.write(writer, json.dumps(work()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as said:
        text = said.read()
    os.waitpid(child, 0)
    return json.loads(text)


def asked_from(source: str, address: tuple[str, int], path: str, **headers: str) -> tuple[int, str]:
    """Status and text of a request from an address of this computer, by IPv6 where it has colons."""
    family = socket.AF_INET6 if ":" in source else socket.AF_INET
    host = f"::ffff:{address[0]}" if ":" in source else address[0]
    with socket.socket(family) as one:
        one.settimeout(20)
        one.bind((source, 0))
        one.connect((host, address[1]))
        lines = [f"GET {path} HTTP/1.1", f"Host: {address[0]}:{address[1]}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        one.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        answer = http.client.HTTPResponse(one)
        answer.begin()
        return answer.status, "" if answer.status == 101 else answer.read().decode()


@pytest.mark.parametrize("source", ["127.0.0.1", "127.0.0.2", "::ffff:127.0.0.1", "::ffff:127.0.0.3"])
def test_another_user_is_refused_whatever_it_shows(
    source: str, address: tuple[str, int], guarded: tuple[str, int]
) -> None:
    cookie = answer(guarded, "/?token=a+word").headers["Set-Cookie"].split(";")[0]
    lie = {"X_Forwarded_For": "127.0.0.1", "X_Forwarded_Proto": "http"}

    def ask() -> list[tuple[int, str]]:
        found = [asked_from(source, address, path) for path in ROUTES]
        found += [asked_from(source, guarded, path, Cookie=cookie) for path in ("/", "/?token=a+word")]
        for to in (address, guarded):
            found.append(asked_from(source, to, "/", Cookie=cookie, **lie))
            origin = f"http://{to[0]}:{to[1]}"
            found.append(asked_from(source, to, "/_stcore/stream", Origin=origin, Cookie=cookie, **UPGRADE, **lie))
            found.append(asked_from(source, to, "/_stcore/stream", Origin=origin, Cookie=cookie, **UPGRADE))
        return found

    refused = as_user(65534, ask)
    assert {status for status, _ in refused} == {403}
    assert all("is running for another user of this computer" in text for _, text in refused[: len(ROUTES) + 2])
    assert asked_from(source, guarded, "/", Cookie=cookie)[0] == 200


def test_whoever_has_closed_the_connection_is_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    if not request_checks.CONNECTIONS[0].exists():
        pytest.skip("this system does not say whose connections are")
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        accepted, own = server.accept()
        assert request_checks.is_own_connection(own, server.getsockname())
        assert request_checks.is_own_connection((own[0], own[1] ^ 1), server.getsockname()) is None
        assert request_checks.is_own_connection(("127.0.0.2", own[1]), server.getsockname()) is None
        with monkeypatch.context() as patch:
            patch.setattr(request_checks.os, "getuid", lambda: 54321)
            patch.setattr(request_checks, "ROOT_USER", 54321)
            assert request_checks.is_own_connection(own, server.getsockname()) is False
        client.close()
        assert not request_checks.is_own_connection(own, server.getsockname())
        accepted.close()


def test_only_the_loopback_is_listened_on(address: tuple[str, int]) -> None:
    """By the server and by every process below it, on any port, over either protocol."""
    every = psutil.net_connections("inet")
    listening = [c for c in every if c.status == psutil.CONN_LISTEN]
    server = psutil.Process(next(c.pid for c in listening if c.laddr.port == address[1]))
    tree = {server.pid, *(child.pid for child in server.children(recursive=True))}
    assert {c.laddr.ip for c in listening if c.pid in tree} == {"127.0.0.1"}


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


def test_the_server_imports_the_app_without_a_warning() -> None:
    """`streamlit run` imports app.py before its runtime exists: what caches asks for one, and is imported later."""
    done = subprocess.run(
        [sys.executable, "-c", "import app"], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0
    assert "No runtime found" not in done.stderr


def test_a_late_timer_of_a_page_that_was_left_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would empty the page that the session has moved to: Streamlit checks only whether a fragment is known, and
    the strip of activity is known on every page."""
    ran: list[RerunData] = []
    monkeypatch.setattr(ScriptRunner, "_run_script", lambda self, rerun_data: ran.append(rerun_data))
    request_checks.skip_late_timers()
    runner = SimpleNamespace(_pages_manager=SimpleNamespace(current_page_script_hash="samples"))
    late = RerunData(page_script_hash="train", fragment_id_queue=["strip"], is_auto_rerun=True)
    wanted = [replace(late, page_script_hash="samples"), replace(late, is_auto_rerun=False)]
    for one in (late, *wanted):
        ScriptRunner._run_script(runner, one)  # type: ignore[arg-type]
    assert ran == wanted
