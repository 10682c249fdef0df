"""The command `contrastive-lab`: windows, the redirect file, completion, sentences."""

import importlib.util
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import psutil
import pytest

from contrastive_core.base.storage import ROOT, data_home
from contrastive_core.cli.main import COMMANDS
from contrastive_lab.desktop import command, serving


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line of a command that ends with status 2."""
    assert command.main(arguments) == 2
    line = capsys.readouterr().err
    assert line.startswith("error: ")
    assert line.count("\n") == 1
    return line


@pytest.fixture(autouse=True)
def signals() -> Iterator[None]:
    """The command listens to SIGTERM until its process ends; this one goes on."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


# --- the command line ----------------------------------------------------------------------------


def test_the_library_s_commands_are_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["evaluate"])
    assert "see contrastive-lab evaluate --help" in capsys.readouterr().err
    assert command.main(["list", "--json"]) == 0
    assert '"methods"' in capsys.readouterr().out
    assert all(name in command.parser().format_help() for name in COMMANDS)
    with pytest.raises(SystemExit) as end:
        command.main(["--version"])
    assert end.value.code == 0
    lines = capsys.readouterr().out.split("\n")
    assert {"Python", "contrastive-lab", "torch", "streamlit"} <= {line.split(" ")[0] for line in lines}


@pytest.mark.parametrize(
    ("line", "expected"),
    [("contrastive-lab simclr-d", "simclr-digits"), ("contrastive-lab compare --split te", "test")],
)
def test_the_shell_completes_commands_runs_and_options(line: str, expected: str, tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "_ARGCOMPLETE": "1",
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
        "_ARGCOMPLETE_STDOUT_FILENAME": str(tmp_path / "out"),
        "_ARGCOMPLETE_IFS": "\n",
    }
    subprocess.run([sys.executable, "-m", "contrastive_lab"], cwd=ROOT, env=environment, check=True)
    assert expected in (tmp_path / "out").read_text().split()


def test_a_thing_that_cannot_be_opened_starts_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "begin", lambda port: pytest.fail("a server was started"))
    assert "expected a run" in refused(capsys, "no-such-thing")


# --- bad surroundings ----------------------------------------------------------------------------


def test_a_port_in_use_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert f"port {port} cannot be used" in refused(capsys, "--no-window", "--port", str(port))
    assert "port 70000 cannot be used" in refused(capsys, "--no-window", "--port", "70000")


@pytest.mark.parametrize("name", ["HOME", "RUNS"])
def test_a_home_that_cannot_be_written_is_said(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(f"CONTRASTIVE_LAB_{name}", str(tmp_path / "file" / "home"))
    line = refused(capsys, "--no-window")
    assert "cannot be written" in line
    assert f"set CONTRASTIVE_LAB_{name} to a folder" in line


def test_another_users_home_is_left_alone(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 54321)
    assert "belongs to another user of this computer" in refused(capsys, "--no-window")


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="this system has no such modes")
def test_a_home_that_others_could_write_to_is_closed_to_them(tmp_path: Path) -> None:
    home = data_home()
    home.mkdir()
    home.chmod(0o777)
    serving.check_homes()
    assert home.stat().st_mode & 0o777 == 0o755
    assert {p.stat().st_mode & 0o777 for p in tmp_path.rglob("*") if p != home} == {0o700}


def test_a_proxy_is_not_asked_for_this_computer(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # nothing listens there
    monkeypatch.setenv("no_proxy", "")
    answering = HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    monkeypatch.setattr(BaseHTTPRequestHandler, "do_GET", answer, raising=False)
    threading.Thread(target=answering.serve_forever, daemon=True).start()
    server = serving.Server(
        process=subprocess.Popen([sys.executable, "-c", ""]), port=answering.server_port, token="a", log=Path()
    )
    try:
        assert serving.read_page(server, "/", seconds=2) == "session=1"
    finally:
        answering.shutdown()
        answering.server_close()
        server.process.wait()


def answer(request: BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    if request.path.endswith("token=a"):
        request.send_header("Set-Cookie", "session=1; Path=/; HttpOnly; SameSite=Strict")
    request.end_headers()
    request.wfile.write(request.headers.get("Cookie", "").encode())


@pytest.fixture
def display(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A display, no pywebview, and an empty folder of programs."""
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("DISPLAY", ":9")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    return programs


def program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_where_no_window_opens_it_says_why(display: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(serving.webbrowser, "open", asked.append)
    with pytest.raises(ValueError, match="no browser was found"):
        serving.open_window("http://127.0.0.1:1/", "file:///x.html")
    program(display / "chromium", "exit 1")  # one that cannot start is passed over
    monkeypatch.setattr(serving.webbrowser, "open", lambda link: asked.append(link) or True)
    assert serving.open_window("http://127.0.0.1:1/", "file:///x.html") is None
    assert asked == ["file:///x.html"] * 2
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match="there is no display"):
        serving.open_window("http://127.0.0.1:1/", "file:///x.html")
    assert serving.describe() == "none: there is no display"


def test_a_window_is_waited_for_until_it_is_closed(
    display: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "SOON", 0.2)
    wait_for, out = tmp_path / "close", tmp_path / "arguments"
    program(display / "google-chrome", f'echo "$@" > {out}; while [ ! -e {wait_for} ]; do /bin/sleep 0.05; done')
    wait = serving.open_window("http://127.0.0.1:1/?token=a", "file:///x.html")
    assert wait is not None
    assert "--app=file:///x.html" in out.read_text()
    assert "token" not in out.read_text()
    first = re.search(rf"--user-data-dir=({data_home() / 'scratch'}\S+)", out.read_text())
    second = serving.open_window("http://127.0.0.1:1/?token=a", "file:///x.html")
    assert second is not None
    assert first is not None
    assert first[1] not in out.read_text()  # Chromium would hand over to the window of that profile
    wait_for.touch()
    wait()
    second()
    assert list((data_home() / "scratch").iterdir()) == []


# --- what becomes of the server ------------------------------------------------------------------


class Records:
    """Stands for a server, and keeps what was done with it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, work: list[list[str]]) -> None:
        self.done: list[str] = []
        self.is_alive = lambda: False
        self.address, self.token = "http://127.0.0.1:1", "word"
        for name in ("check_homes", "wait_until_ready", "stop"):
            monkeypatch.setattr(serving, name, self._note(name))
        monkeypatch.setattr(serving, "begin", lambda port: self)
        monkeypatch.setattr(serving, "at_work", lambda: work.pop(0) if work else [])
        monkeypatch.setattr(command, "POLL", 0.0)

    def _note(self, name: str):
        return lambda *a, **k: self.done.append(name) or True


def test_closing_the_window_or_ctrl_c_ends_the_server(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    asked: list[tuple[str, str]] = []
    for wait in (lambda: None, interrupt):
        records = Records(monkeypatch, [])
        monkeypatch.setattr(
            serving, "open_window", lambda address, link, browser, wait=wait: asked.append((address, link)) or wait
        )
        assert command.main([]) == 0
        assert asked[-1] == ("http://127.0.0.1:1/?token=word", (data_home() / "app" / "open-1.html").resolve().as_uri())
        said = capsys.readouterr().err
        assert "Contrastive Lab is at http://127.0.0.1:1/?token=word" in said  # a browser in a cage
        assert "error" not in said
        assert records.done[-1] == "stop"


def test_runs_at_work_keep_the_server(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    work = [["mine"], ["mine"], ["mine"]]
    records = Records(monkeypatch, work)
    monkeypatch.setattr(serving, "open_window", lambda address, link, browser: lambda: None)
    assert command.main([]) == 0
    assert "Running: mine" in capsys.readouterr().err
    assert work == []
    monkeypatch.setattr(serving, "open_window", lambda *a: pytest.fail("a window was opened"))
    assert command.main(["--no-window"]) == 0
    assert "Ctrl-C ends it." in capsys.readouterr().err
    assert records.done[-1] == "stop"


BEGIN = (
    "from contrastive_lab.desktop import serving as s; s.check_homes(); "
    "print((b := s.begin()).process.pid, flush=True); input()"
)


def test_a_server_ends_when_the_command_was_killed_while_it_started() -> None:
    with subprocess.Popen([sys.executable, "-c", BEGIN], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as command:
        assert command.stdout is not None
        server = psutil.Process(int(command.stdout.readline()))
        command.kill()
        server.wait(60)


# --- the redirect file ---------------------------------------------------------------------------


def test_the_redirect_file_is_the_users_alone() -> None:
    address = "http://127.0.0.1:7/explore?on=a&token=x"
    data_home().mkdir(mode=0o755, exist_ok=True)
    (data_home() / "app").mkdir(mode=0o777, exist_ok=True)
    serving.check_homes()
    with serving.redirecting(address) as link:
        path = Path(unquote(urlsplit(link).path))
        assert 'content="0; url=http://127.0.0.1:7/explore?on=a&amp;token=x"' in path.read_text()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert not path.exists()
