"""Tasks forked from a process that has imported torch: the same processes, started sooner."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest

from contrastive_core import runs
from contrastive_core.jobs import fork_server, process, results
from contrastive_core.jobs.task import Task

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks are safe on Linux only")


def wait(what: Callable[[], Any]) -> None:
    last = time.monotonic() + 300
    while not what():
        assert time.monotonic() < last, "took too long"
        time.sleep(0.02)


def environment() -> dict[str, str]:
    """That of a program which runs no tests."""
    return {k: v for k, v in os.environ.items() if k != "PYTEST_CURRENT_TEST"}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A server as the app has it after its first task; it has not imported anything yet."""
    monkeypatch.setattr(fork_server, "_enabled", True)
    monkeypatch.setattr(fork_server, "_environment", environment)
    monkeypatch.setattr(fork_server, "_server", None)
    first = subprocess.Popen([sys.executable, "-c", "pass"])
    fork_server.prepare(first.pid)
    first.wait()
    started = fork_server._server
    assert started is not None
    yield started
    started.end()
    fork_server.disable()


def task(name: str, *arguments: str) -> Task:
    return Task(name, arguments, process.folder().parent / name)


def test_a_task_is_a_fork_with_a_session_a_log_and_an_end(server: Any) -> None:
    embedding = results.embedding(runs.load("simclr-digits"), "train")  # test rows came along
    wait(fork_server.is_ready)
    embedding.start()
    pid = process.record_of(embedding.key)["pid"]  # type: ignore[index]
    assert psutil.Process(pid).ppid() == server.process.pid
    assert os.getsid(pid) == pid
    wait(lambda: not embedding.is_running())
    assert embedding.has_result()
    assert "1,437 rows" in process.log_of(embedding.key)
    wait(lambda: not psutil.pid_exists(pid))  # though nobody asked how it ended

    unknown = task("unknown", "evaluate", "no-such-run")
    wait(fork_server.is_ready)
    unknown.start()
    wait(lambda: not unknown.is_running())
    assert "no-such-run" in str(unknown.failure())


def test_another_environment_or_newer_code_is_not_served(
    server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not server.is_ready()
    assert server.is_alive()
    with monkeypatch.context() as patch:
        patch.setattr(
            fork_server, "_environment", lambda: {**environment(), "OMP_NUM_THREADS": "7"}
        )
        assert not server.is_ready()
    assert not server.is_alive()
    fork_server.prepare(os.getpid())
    following: Any = fork_server._server
    assert following is not server
    monkeypatch.setattr(fork_server, "_code", lambda: following.code + 1)
    assert not following.is_ready()
    assert not following.is_alive()


def test_without_a_server_a_task_is_started_the_ordinary_way(server: Any) -> None:
    server.end()
    listing = task("listing", "list")
    listing.start()
    pid = process.record_of(listing.key)["pid"]  # type: ignore[index]
    assert psutil.Process(pid).ppid() == os.getpid()
    assert fork_server._server is not server  # another one, for the next task
    wait(lambda: not listing.is_running())
    assert "nt_xent" in process.log_of("listing")


def test_programs_ask_for_it_and_it_ends_with_them() -> None:
    code = (
        "import os; from contrastive_core.jobs import fork_server as f; f.prepare(os.getpid()); "
        "assert f._server is None; f.enable(); f.prepare(os.getpid()); print(f._server.process.pid)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    wait(lambda: not _lives(int(ended.stdout)))


def _lives(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
