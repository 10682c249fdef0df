"""Questions that another process answers."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from contrastive_core.jobs import apart
from contrastive_core.paths import ROOT, runs_home
from contrastive_core.runs import load


def test_it_is_another_process_the_same_each_time() -> None:
    first = apart.call(os.getpid)
    assert first not in (os.getpid(), None)
    assert apart.call(os.getpid) == first


def test_the_homes_are_those_of_whoever_asks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        monkeypatch.setenv("CONTRASTIVE_LAB_RUNS", str(tmp_path / name))
        assert apart.call(runs_home) == tmp_path / name


def test_what_is_raised_there_is_raised_here() -> None:
    with pytest.raises(ValueError, match="no-such-run"):
        apart.call(load, "no-such-run")


def test_a_killed_process_is_said_to_be_and_replaced() -> None:
    before = apart.call(os.getpid)
    with pytest.raises(ValueError, match="ended from outside"):
        apart.call(os._exit, 1)
    assert apart.call(os.getpid) != before


@pytest.mark.parametrize("end", ["_exit(1)", "kill(os.getpid(), 9)"])
def test_it_ends_with_whoever_asks(end: str) -> None:
    code = (
        "import os\nfrom contrastive_core.jobs import apart\n"
        f"print(apart.call(os.getpid), flush=True)\nos.{end}"
    )
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE) as asker:
        assert asker.stdout is not None
        pid = int(asker.stdout.readline())
        with contextlib.suppress(psutil.NoSuchProcess):
            psutil.Process(pid).wait(timeout=apart.IDLE / 2)
