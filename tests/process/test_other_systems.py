"""Windows and macOS, as far as another system can try them: no module needs what only POSIX has,
and folders are where each system's documentation puts them."""

import subprocess
import sys
from pathlib import Path

import platformdirs
import pytest
from platformdirs.macos import MacOS
from platformdirs.windows import Windows

from contrastive_core.base import storage
from contrastive_core.base.storage import ROOT
from contrastive_lab.desktop import serving

# For this project's modules alone, what Windows' Python lacks is taken away: modules, and names of
# the others. Libraries keep theirs, since those that lie here are of this system.
ON_WINDOWS = """
import builtins, pkgutil, sys, types
OWN = ("contrastive_core", "contrastive_lab", "__main__")
LACKING = {"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "posix", "syslog"}
NAMES = {
    "os": "getuid geteuid getgid getegid getpgid fork forkpty killpg setsid setuid setgid nice "
    "wait mkfifo mknod chown lchown fchmod statvfs getloadavg sysconf uname sched_getaffinity "
    "sched_setaffinity pread pwrite posix_fallocate posix_fadvise O_NONBLOCK O_CLOEXEC O_NOFOLLOW "
    "O_DIRECTORY O_SYNC WNOHANG register_at_fork",
    "signal": "SIGHUP SIGKILL SIGALRM SIGUSR1 SIGUSR2 SIGCHLD SIGPIPE SIGSTOP alarm setitimer "
    "pthread_sigmask sigwait pause",
    "socket": "AF_UNIX SO_REUSEPORT socketpair_",
}
usual = builtins.__import__

def without(name):
    real = usual(name)
    kept = types.ModuleType(name)
    gone = NAMES[name].split()
    kept.__dict__.update({k: v for k, v in vars(real).items() if k not in gone})
    return kept

poorer = {}
def imported(name, globals=None, locals=None, fromlist=(), level=0):
    if (globals or {}).get("__name__", "").split(".")[0] in OWN and not level:
        if name.split(".")[0] in LACKING:
            raise ImportError(f"No module named {name!r}")
        if name in NAMES:
            return poorer[name]
    return usual(name, globals, locals, fromlist, level)

for name in NAMES:
    poorer[name] = without(name)
builtins.__import__ = imported
"""
IMPORTS = """
import importlib
import contrastive_core, contrastive_lab
count = 2  # these
for package in (contrastive_core, contrastive_lab):
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)
            count += 1
print(count)
"""
USED = """
from pathlib import Path
import torch
from contrastive_core.base import device, lock, sandbox
from contrastive_core.base.local_processes import handled_signals
from contrastive_core.train.loop import stop_signals
from contrastive_lab import server
from contrastive_lab.desktop import command, serving
assert not hasattr(command.signal, "SIGHUP") and not hasattr(serving.os, "getuid")
assert device.memory_bytes(torch.device("cpu")) > 1 << 20
sandbox._cap(sandbox.Limits(1 << 30))
serving.check_homes()
with handled_signals(command._interrupt), stop_signals(), serving.redirecting("http://127.0.0.1:1/") as link:
    assert link.startswith("file://")
server.CONNECTIONS = (Path("/not/there"),)
assert server.is_own_connection(("127.0.0.1", 1), ("127.0.0.1", 2)) is None
print("used")
"""


def on_windows(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", ON_WINDOWS + code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_no_module_needs_what_only_posix_has() -> None:
    assert int(on_windows(IMPORTS)) == sum(p.name != "__main__.py" for p in ROOT.glob("contrastive_*/**/*.py"))


def test_what_has_no_counterpart_is_done_without() -> None:
    assert on_windows(USED) == "used"


def test_the_trial_itself_takes_something_away() -> None:
    with pytest.raises(AssertionError, match="No module named 'fcntl'"):
        on_windows("import fcntl")
    with pytest.raises(AssertionError, match="has no attribute 'getuid'"):
        on_windows("import os; os.getuid()")


# --- folders -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("system", "variables", "expected"),
    [
        (MacOS, {"HOME": "/Users/jö"}, "/Users/jö/Library/Application Support/contrastive-lab"),
        (
            Windows,
            {"WIN_PD_OVERRIDE_LOCAL_APPDATA": "/C/Jö/AppData/Local", "LOCALAPPDATA": "/C/Jö/AppData/Local"},
            "/C/Jö/AppData/Local/contrastive-lab",
        ),
    ],
)
def test_data_lie_where_the_system_keeps_them(
    system: type, variables: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOME", "RUNS"):
        monkeypatch.delenv(f"CONTRASTIVE_LAB_{name}", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(platformdirs, "PlatformDirs", system)
    monkeypatch.setattr(
        "platformdirs.windows.get_win_folder", lambda name: variables[{"CSIDL_LOCAL_APPDATA": "LOCALAPPDATA"}[name]]
    )
    monkeypatch.setattr(storage, "is_checkout", lambda: False)
    assert storage.runs_home().as_posix() == f"{expected}/runs"
    assert storage.data_home().as_posix() == f"{expected}/cache"


# --- windows, locks ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("platform", "program"),
    [
        ("win32", "Files/Google/Chrome/Application/chrome.exe"),
        ("win32", "Local/Microsoft/Edge/Application/msedge.exe"),
        ("darwin", "home/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge"),
    ],
)
def test_browsers_are_found_where_they_are_installed(
    platform: str, program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"HOME": "home", "PROGRAMFILES": "Files", "LOCALAPPDATA": "Local"}.items():
        monkeypatch.setenv(name, str(tmp_path / value))
    monkeypatch.setattr(serving.sys, "platform", platform)
    (tmp_path / program).parent.mkdir(parents=True)
    (tmp_path / program).touch()
    assert str(tmp_path / program) in list(serving.chromiums())
