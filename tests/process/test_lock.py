"""Locks keep others out and know the dead; the next process removes the scratch folders of killed ones."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from contrastive_core.base.errors import Locked
from contrastive_core.base.lock import YOUNG, is_locked, is_process, lock, lock_holder, process_start, scratch_folder
from contrastive_core.base.storage import ROOT, data_home


def test_a_lock_keeps_others_out_and_knows_the_dead(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with lock(path):
        assert lock_holder(path) == os.getpid()
        assert path.read_bytes() == b""  # Windows could not read it
        assert is_locked(path)
        with pytest.raises(Locked, match=str(os.getpid())), lock(path):
            pass
        assert lock_holder(path) == os.getpid()
    assert lock_holder(path) is None
    assert not is_locked(path)


@pytest.mark.parametrize("left", ["dead", "other start", "no text"])
def test_a_lock_that_was_left_blocks_nobody(tmp_path: Path, left: str) -> None:
    """Another process, or one of another boot of the computer, may have the number now."""
    path = tmp_path / "lock"
    with lock(path):
        (text,) = (data_home() / "locks").iterdir()
        own = json.loads(text.read_text())
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    kept = {"dead": {**own, "pid": dead.pid}, "other start": {**own, "started": f"{own['started']}1"}, "no text": None}
    text.write_text(json.dumps(kept[left]))
    assert lock_holder(path) is None
    assert not is_locked(path)
    with lock(path):
        assert lock_holder(path) == os.getpid()


def test_a_holder_that_cannot_be_seen_still_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of another machine that shares the folder: it is not signalled, whatever the file says."""
    path = tmp_path / "lock"
    with lock(path):
        path.write_text(json.dumps({"pid": os.getpid(), "started": process_start(os.getpid())}))
        shutil.rmtree(data_home() / "locks")  # that one has its own
        assert is_locked(path)
        assert lock_holder(path) is None
        with monkeypatch.context() as patch:
            patch.setattr(sys, "platform", "win32")
            assert is_locked(path)
        with pytest.raises(Locked, match="another process"), lock(path):
            pass
    monkeypatch.setattr(sys, "platform", "win32")
    assert not is_locked(path)
    assert not is_locked(tmp_path / "none")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system itself keeps the time of a start")
def test_a_clock_that_is_set_makes_a_process_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's start, from which others count a process's, moves with the clock."""
    began, boot = process_start(os.getpid()), psutil.boot_time()
    monkeypatch.setattr("psutil._pslinux.boot_time", lambda: boot + 3600)
    assert is_process(os.getpid(), began)
    assert not is_process(os.getpid(), f"{began}1")
    assert not is_process(os.getpid(), None)


def test_a_look_at_a_lock_refuses_nobody(tmp_path: Path) -> None:
    """Whoever asks whether it is held may not keep a trainer from taking it."""
    path = tmp_path / "lock"
    with lock(path):
        pass
    pid = os.fork()
    if pid == 0:  # pragma: no cover
        while True:
            is_locked(path)
    try:
        for _ in range(50):
            with lock(path):
                pass
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_only_one_of_many_takes_a_lock(tmp_path: Path) -> None:
    """The first holds it until all have answered, however slowly they start."""
    script = (
        "import sys\n"
        "from contrastive_core.base.errors import Locked\n"
        "from contrastive_core.base.lock import lock\n"
        "try:\n"
        "    with lock(sys.argv[1]): print('got', flush=True); sys.stdin.read()\n"
        "except Locked: print('refused', flush=True)"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "lock")]
    pipe = subprocess.PIPE
    children = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(4)]
    outcomes = [child.stdout.readline().strip() for child in children if child.stdout]
    for child in children:
        child.communicate()  # closes its input: the holder goes on to its end
    assert sorted(outcomes) == ["got", "refused", "refused", "refused"]


# --- scratch folders ---

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
