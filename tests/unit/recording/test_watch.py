"""Recording never disturbs a training: bit for bit the same, whatever goes wrong meanwhile."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from contrastive_core import runs, watch
from contrastive_core.base.storage import runs_home
from contrastive_core.recording import recorder as recorder_module
from contrastive_core.spaces import recorded_rows


def test_training_is_bit_equal_with_and_without() -> None:
    """In a process without the type checks of tests, which draw from Python's generator."""
    script = Path(__file__).with_name("bit_equal_script.py")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    run = runs.load("beside")
    assert len(run.metrics()) == 12 + 3
    assert run.snapshots() == [1, 5, 9]
    assert run.status() == {**run.status(), "status": "done", "note": ""}


def test_the_graph_is_left_alone() -> None:
    z = torch.randn(8, 2, 4, requires_grad=True)
    rows = z * 1
    with watch("detached", loss="nt_xent", every=1, strict=True) as w:
        w.step(rows)
        with torch.no_grad():
            rows.zero_()  # what the training does next with its memory is its own affair
    assert z.grad is None
    assert recorded_rows.read(w.run, 1).z.any()


def test_steps_that_are_recorded() -> None:
    with watch("every", loss="nt_xent", every=5, strict=True) as w:
        for _ in range(12):
            w.step(torch.randn(4, 2, 3))
    assert recorded_rows.steps(w.run) == [1, 5, 10]
    assert [line["step"] for line in w.run.metrics()] == [1, 5, 10]
    assert w.run.status()["step"] == 12
    assert w.run.status()["status"] == "done"
    with watch("numbered", loss="nt_xent", every=100, strict=True) as w:
        for step in (7, 99, 130, 131, 260):  # as the caller numbers them
            w.step(torch.randn(4, 2, 3), step=step)
    assert recorded_rows.steps(w.run) == [7, 130, 260]


def test_of_many_steps_a_bounded_number_is_kept(monkeypatch) -> None:
    monkeypatch.setattr(recorder_module, "KEPT", 6)
    with watch("many", loss="nt_xent", every=1, strict=True) as w:
        for _ in range(40):
            w.step(torch.randn(4, 2, 3))
    kept = recorded_rows.steps(w.run)
    assert len(kept) <= 7
    assert kept[0] == 1
    assert kept[-1] == 40
    gaps = np.diff(kept[:-1])
    assert (gaps == gaps[0]).all()
    assert len(w.run.metrics()) == 40


def test_a_slow_recorder_drops_and_counts(monkeypatch) -> None:
    monkeypatch.setattr(recorder_module, "WAITING", 4)
    held = recorder_module.threading.Event()
    record = recorder_module.Recorder._take
    monkeypatch.setattr(recorder_module.Recorder, "_take", lambda self, item: (held.wait(), record(self, item)))
    with watch("slow", loss="nt_xent", every=1) as w:
        for _ in range(30):
            w.step(torch.randn(4, 2, 3))
        held.set()
    dropped = 30 - len(w.run.metrics())
    assert 30 - recorder_module.WAITING - 1 <= dropped <= 30 - recorder_module.WAITING
    assert f"steps ({dropped}: earlier steps were still being recorded)" in w.run.status()["note"]


@pytest.mark.parametrize("error", [RuntimeError("no such\nthing"), KeyboardInterrupt()])
def test_how_the_training_ended(error: BaseException) -> None:
    w = watch("ended", loss="nt_xent")

    def train() -> None:
        with w:
            w.step(torch.randn(4, 2, 3))
            raise error

    with pytest.raises(type(error)):
        train()
    status = w.run.status()
    if isinstance(error, KeyboardInterrupt):
        assert status["status"] == "stopped"
    else:
        assert status["status"] == "failed"
        assert status["reason"] == "the training ended with RuntimeError: no such"
    assert len(w.run.metrics()) == 1


SCRIPT = """
import time, torch
from contrastive_core import watch
w = watch("killed", loss="nt_xent", every=1)
for step in range(3):
    w.step(torch.randn(4, 2, 3))
time.sleep(1000)
"""


def test_a_kill_leaves_what_was_recorded() -> None:
    """Nothing waits for the end: each step is on the disk as soon as it is taken."""
    child = subprocess.Popen([sys.executable, "-c", SCRIPT])
    deadline = time.monotonic() + 100
    lines: list[dict] = []
    while len(lines) < 3 and time.monotonic() < deadline and child.poll() is None:
        time.sleep(0.05)
        lines = runs.load("killed").metrics() if (runs_home() / "killed").exists() else []
    child.send_signal(signal.SIGKILL)
    child.wait()
    run = runs.load("killed")
    assert [line["step"] for line in run.metrics()] == [1, 2, 3]
    assert len(recorded_rows.steps(run)) >= 2
    assert run.status()["status"] == "failed"
    assert "The steps recorded before are kept" in run.status()["reason"]


def test_only_the_first_process_writes(monkeypatch) -> None:
    monkeypatch.setenv("RANK", "1")
    with watch("elsewhere", loss="nt_xent", every=1) as w:
        w.step(torch.randn(4, 2, 3))
        w.probe(lambda x: x, [torch.randn(4, 3)])
    assert w.run is None
    assert runs.list_runs() == [] or all(run.shipped for run in runs.list_runs())


def test_a_fork_does_not_write() -> None:
    with watch("forked", loss="nt_xent", every=1) as w:
        w.step(torch.randn(4, 2, 3))
        pid = os.fork()
        if not pid:
            w.step(torch.randn(4, 2, 3))
            w.close()
            os._exit(0)
        os.waitpid(pid, 0)
        assert w.run.is_alive()
    assert len(w.run.metrics()) == 1


def test_nobody_waits_for_the_status() -> None:
    """How far the training is stands in the status within two seconds, without a recorded step."""
    with watch("far", loss="nt_xent", every=1000) as w:
        deadline = time.monotonic() + 20
        for _ in range(10):
            w.step(torch.randn(4, 2, 3))
        while w.run.status()["step"] != 10 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert w.run.status()["step"] == 10


def test_settings_are_checked_at_once() -> None:
    for wrong in (
        {"loss": "no_such"},
        {"loss": "nt_xent", "margin": 1},
        {"every": 0},
        {"rows": 0},
        {"positives": "all"},
        {"split": "dev"},
        {"towers": ("image", "image")},
        {"towers": (" ", "text")},
    ):
        with pytest.raises(ValueError):  # noqa: PT011
            watch("wrong", **wrong)
    with pytest.raises(TypeError, match="temperature"):
        watch("wrong", temperature=0.1)
    with pytest.raises(ValueError, match="name"):
        watch("no/name")
