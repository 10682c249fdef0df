"""Temporary folders of killed processes: the next one removes them, and only them."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from contrastive_core.base.lock import YOUNG, scratch_folder
from contrastive_core.base.storage import ROOT, data_home

CHILD = """
import sys, time
from contrastive_core.base.lock import scratch_folder
with scratch_folder() as folder:
    (folder / "weights.safetensors").write_bytes(bytes(1000))
    print(folder, flush=True)
    time.sleep(600)
"""


def start() -> tuple[subprocess.Popen[str], Path]:
    child = subprocess.Popen([sys.executable, "-c", CHILD], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    return child, Path(child.stdout.readline().strip())


def test_what_a_killed_import_leaves_is_removed_by_the_next() -> None:
    killed, left = start()
    running, used = start()
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert left.parent == data_home() / "scratch"
    old = left.stat().st_mtime - 2 * YOUNG
    for folder in (left, used):
        os.utime(folder, (old, old))
    with scratch_folder() as own:
        assert not left.exists()
        assert (used / "weights.safetensors").exists()
        assert own.stat().st_mode & 0o777 == 0o700
        assert len(list((data_home() / "locks").iterdir())) == 2  # who holds these two
    assert not own.exists()
    running.kill()
    running.wait()
