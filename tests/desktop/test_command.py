"""The command `contrastive-lab`: windows, tickets, shortcuts, completion, sentences."""

from __future__ import annotations

import configparser
import os
import plistlib
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from PIL import Image

from contrastive_core.cli.main import COMMANDS
from contrastive_core.paths import ROOT, data_home
from contrastive_lab.desktop import command, serving, shortcut, tickets, window


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


def test_version_names_what_matters(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        command.main(["--version"])
    assert end.value.code == 0
    lines = capsys.readouterr().out.split("\n")
    assert {"Python", "contrastive-lab", "torch", "streamlit"} <= {x.split(" ")[0] for x in lines}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("contrastive-lab tr", "train"),
        ("contrastive-lab simclr-d", "simclr-digits"),
        ("contrastive-lab --no", "--no-window"),
        ("contrastive-lab evaluate --met", "--metrics"),
        ("contrastive-lab compare --split te", "test"),
    ],
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


def test_a_proxy_is_not_asked_for_this_computer(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # nothing listens there
    monkeypatch.setenv("no_proxy", "")
    answering = HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    monkeypatch.setattr(BaseHTTPRequestHandler, "do_GET", answer, raising=False)
    threading.Thread(target=answering.serve_forever, daemon=True).start()
    try:
        assert isinstance(serving.read_page(f"http://127.0.0.1:{answering.server_port}/", seconds=2), str)
    finally:
        answering.shutdown()
        answering.server_close()


def answer(request: BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.end_headers()


def test_without_a_display_there_is_no_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match="there is no display"):
        window.open_window("http://127.0.0.1:1/")
    assert window.describe() == "none: there is no display"


@pytest.fixture
def display(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A display, no pywebview, and an empty folder of programs."""
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("DISPLAY", ":9")
    monkeypatch.setattr(window, "_has_webview", lambda: False)
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    return programs


def program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_without_a_browser_it_says_so(display: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window.webbrowser, "open", lambda address: False)
    with pytest.raises(ValueError, match="no browser was found"):
        window.open_window("http://127.0.0.1:1/")


def test_a_browser_that_cannot_start_is_passed_over(display: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(display / "chromium", "exit 1")
    asked: list[str] = []
    monkeypatch.setattr(window.webbrowser, "open", lambda address: not asked.append(address))
    assert window.open_window("http://127.0.0.1:1/") is None
    assert asked == ["http://127.0.0.1:1/"]


def test_a_window_is_waited_for_until_it_is_closed(
    display: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window, "SOON", 0.2)
    wait_for, out = tmp_path / "close", tmp_path / "arguments"
    program(display / "google-chrome", f'echo "$@" > {out}; while [ ! -e {wait_for} ]; do /bin/sleep 0.05; done')
    wait = window.open_window("http://127.0.0.1:1/explore?a=b")
    assert wait is not None
    assert "--app=http://127.0.0.1:1/explore?a=b" in out.read_text()
    assert f"--user-data-dir={data_home() / 'app' / 'window'}" in out.read_text()
    wait_for.touch()
    wait()


# --- what becomes of the server ------------------------------------------------------------------


class Records:
    """Stands for a server, and keeps what was done with it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, work: list[list[str]]) -> None:
        self.done: list[str] = []
        self.server = serving.Server(os.getpid(), 0.0, 1, "word")
        for name in ("check_homes", "wait_until_ready", "hold", "stop"):
            monkeypatch.setattr(serving, name, self._note(name))
        monkeypatch.setattr(serving, "begin", lambda port: (self.server, True))
        monkeypatch.setattr(serving, "let_go", lambda server, started: started)
        monkeypatch.setattr(serving, "at_work", lambda: work.pop(0) if work else [])
        monkeypatch.setattr(command, "POLL", 0.0)
        monkeypatch.setattr(command.tickets, "issue", lambda: "ticket")

    def _note(self, name: str):
        return lambda *a, **k: self.done.append(name) or True


def test_closing_the_window_ends_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    records = Records(monkeypatch, [])
    asked: list[str] = []
    monkeypatch.setattr(window, "open_window", lambda address, browser: asked.append(address) or (lambda: None))
    assert command.main([]) == 0
    assert asked == ["http://127.0.0.1:1/?ticket=ticket"]  # nobody else sees the token
    assert records.done[-1] == "stop"


def test_runs_at_work_keep_the_server(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    work = [["mine"], ["mine"], ["mine"]]
    records = Records(monkeypatch, work)
    monkeypatch.setattr(window, "open_window", lambda address, browser: lambda: None)
    assert command.main([]) == 0
    assert "Running: mine" in capsys.readouterr().err
    assert work == []
    assert records.done[-1] == "stop"


def test_ctrl_c_ends_cleanly(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    records = Records(monkeypatch, [])

    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(window, "open_window", lambda address, browser: interrupt)
    assert command.main([]) == 0
    assert records.done[-1] == "stop"
    assert capsys.readouterr().err == ""


def test_the_state_of_a_server_that_died_is_not_believed() -> None:
    serving.check_homes()
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    serving._write(serving.Server(ended.pid, time.time(), 1, "word"))
    with serving._changing() as state:
        assert state is None
    serving._path().write_text("{}")
    with serving._changing() as state:
        assert state is None


BEGIN = (
    "from contrastive_lab.desktop import serving as s; s.check_homes(); print(s.begin()[0].pid, flush=True); input()"
)


def test_a_server_ends_when_the_command_was_killed_while_it_started() -> None:
    with subprocess.Popen([sys.executable, "-c", BEGIN], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as command:
        assert command.stdout is not None
        server = psutil.Process(int(command.stdout.readline()))
        command.kill()
        server.wait(60)


def test_the_last_to_let_go_ends_it() -> None:
    serving.check_homes()
    began = serving.process_start(os.getpid())
    server = serving.Server(os.getpid(), began, 1, "word")
    other = {"pid": os.getppid(), "started": serving.process_start(os.getppid())}
    serving._write(serving.Server(os.getpid(), began, 1, "word", [other]))
    assert not serving.hold(server, only_if_free=True)
    assert serving.hold(server)
    assert serving.is_held(os.getpid())
    assert not serving.let_go(server)  # the other holds it still
    serving._write(server)
    assert not serving.let_go(server)  # it was neither started nor held here
    assert serving.hold(server, only_if_free=True)
    assert serving.let_go(server)
    assert not serving.is_held(os.getpid())


# --- tickets -------------------------------------------------------------------------------------


def test_a_ticket_is_taken_once_and_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    ticket, late = tickets.issue(), tickets.issue()
    assert tickets.redeem(ticket)
    assert not tickets.redeem(ticket)
    monkeypatch.setattr(tickets, "SECONDS", -1)
    assert not tickets.redeem(late)
    for made_up in ("", "x" * 32, "../../../etc/passwd", "a/b"):
        assert not tickets.redeem(made_up)


@pytest.mark.skipif(not tickets.CONNECTIONS.exists(), reason="this system does not say")
def test_another_users_connection_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client:
            own = client.getsockname()[1]
            assert tickets.is_own_connection(own, port)
            assert not tickets.is_own_connection(port, own + 1)
            monkeypatch.setattr(os, "getuid", lambda: 54321)
            assert not tickets.is_own_connection(own, port)


# --- shortcuts -----------------------------------------------------------------------------------

COMMAND = ["/opt/my apps/päth/python", "-m", "contrastive_lab"]


def test_a_desktop_entry_for_linux(tmp_path: Path) -> None:
    entry = configparser.RawConfigParser(interpolation=None)
    entry.optionxform = str  # type: ignore[method-assign,assignment]
    entry.read(shortcut.linux(tmp_path, COMMAND), "utf-8")
    about = entry["Desktop Entry"]
    assert shlex.split(about["Exec"]) == [*COMMAND, "%f"]
    assert about["Terminal"] == "false"
    assert list(tmp_path.rglob(f"{about['Icon']}.svg"))


def test_an_application_for_macos(tmp_path: Path) -> None:
    app = shortcut.macos(tmp_path, COMMAND)
    about = plistlib.loads((app / "Contents" / "Info.plist").read_bytes())
    script = app / "Contents" / "MacOS" / about["CFBundleExecutable"]
    assert os.access(script, os.X_OK)
    assert shlex.split(script.read_text().splitlines()[1])[1:4] == COMMAND
    icon = app / "Contents" / "Resources" / f"{about['CFBundleIconFile']}.icns"
    with Image.open(icon) as image:
        assert image.width >= 256


def test_a_shortcut_for_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[list[str]] = []
    ended = SimpleNamespace(returncode=0, stderr="")
    monkeypatch.setattr(shortcut.subprocess, "run", lambda c, **k: called.append(c) or ended)
    link = shortcut.windows(tmp_path / "O'Neil", COMMAND)
    script = called[0][-1]
    assert str(link).replace("'", "''") in script
    assert "$s.Arguments = '-m contrastive_lab'" in script
    with Image.open(data_home() / "app" / "icon.ico") as image:
        assert image.width >= 64


def test_the_shortcut_is_put_where_this_system_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert command.main(["--install-shortcut"]) == 0
    assert (tmp_path / "applications" / "contrastive-lab.desktop").exists()
