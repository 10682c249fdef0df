"""A folder of runs that somebody else has made: hidden folders, planted queues and records, links, pipes. Nothing is
started, signaled or written outside, whether the folder is made one's own or one of its runs is opened."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from contrastive_core import runs
from contrastive_core.advice.plan import adviser_names, lock_of
from contrastive_core.base import json_files
from contrastive_core.base.errors import Damaged, LabError
from contrastive_core.base.lock import lock, process_start
from contrastive_core.base.memory import write_npz
from contrastive_core.base.storage import ROOT, data_home, runs_home
from contrastive_core.engine import client, process, queue, run_folders, training
from contrastive_core.engine.client import WorkerProcess
from contrastive_core.engine.jobs import Job
from contrastive_lab import activity
from contrastive_lab.desktop import command, serving

CONFIG = {"method": "simclr", "dataset": "digits", "seed": 0, "encoder": "small"}
TRAIN = ["train", "--run", "planted", "--dataset", "digits"]
Tree = dict[str, tuple[int, int, bytes]]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links and pipes need a POSIX system")


def tree(folder: Path) -> Tree:
    """Everything in a folder: kind, time of the last write and content."""
    found = {}
    for path in sorted(folder.rglob("*")):
        about = path.lstat()
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        found[str(path.relative_to(folder))] = (about.st_mode, about.st_mtime_ns, content)
    return found


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """What the attacker would like to change."""
    folder = tmp_path / "outside"
    (folder / "notes").mkdir(parents=True)
    for name in (".bashrc", "notes/.x.part", "notes/000001.sha256", "notes/epoch-0009.npz", "notes/plan.json"):
        (folder / name).write_text("mine\n")
    json_files.write_json(folder / "run.json", {"format": 1, "config": CONFIG, "name": "linked", "id": "x"})
    return folder


@pytest.fixture
def victim() -> Iterator[subprocess.Popen[bytes]]:
    """A process of the user's that has nothing to do with the project."""
    kill = os.kill  # tests put another in its place
    with subprocess.Popen(["sleep", "600"]) as child:
        yield child
        kill(child.pid, signal.SIGKILL)


@pytest.fixture
def hostile(tmp_path: Path, outside: Path, victim: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of runs, which is the user's from now on."""
    home = tmp_path / "downloads"
    monkeypatch.setenv("CONTRASTIVE_LAB_RUNS", str(home))
    who = {"pid": victim.pid, "started": process_start(victim.pid)}
    _planted_jobs(home / ".jobs", outside, who)
    for name in ("good", "held", "asked", "pipes"):
        run = runs.create(name, CONFIG)
        run.append_metrics([{"step": 1, "loss": 0.5}])
        run.set_status("stopped")
    (home / "good" / "weights.safetensors").write_bytes(b"weights")
    for name in ("embeddings", "snapshots", "state"):
        (home / "good" / name).symlink_to(outside / "notes")
    for name in ("metrics.jsonl", "log.txt", "meta.json"):
        (home / "good" / name).unlink(missing_ok=True)
        (home / "good" / name).symlink_to(outside / ".bashrc")
    (home / "good" / "lock").symlink_to(outside / ".bashrc")
    boot = Path("/proc/sys/kernel/random/boot_id")
    held = {**who, "boot": boot.read_text().strip() if boot.exists() else ""}
    (home / "held" / "lock").write_text(json.dumps(held))
    json_files.write_json(home / "held" / "status.json", {"status": "running", **who})
    json_files.write_json(home / "asked" / "status.json", {"status": "queued", "pid": victim.pid})
    for name in ("status.json", "log.txt", "lock", "metrics.jsonl"):
        (home / "pipes" / name).unlink(missing_ok=True)
        os.mkfifo(home / "pipes" / name)
    (home / "linked").symlink_to(outside)
    (home / ".advice" / "pipe").mkdir(parents=True)
    os.mkfifo(home / ".advice" / "pipe" / "plan.json")
    (home / ".advice" / "gone").mkdir()
    (home / ".advice" / "gone" / "plan.json").symlink_to("/nowhere")
    (home / ".advice" / "linked").symlink_to(outside / "notes")
    (home / ".sweeps").mkdir()
    os.mkfifo(home / ".sweeps" / "pipe.toml")
    (home / ".sweeps" / "link.toml").symlink_to(outside / ".bashrc")
    (home / ".bin").symlink_to(outside.parent)
    return home


def _planted_jobs(jobs: Path, outside: Path, who: dict[str, object]) -> None:
    """A queue, logs that are links, and records of somebody else's process, where they once lay."""
    for number, waiting in enumerate(("planted", "good")):
        entry = {"name": waiting, "arguments": TRAIN[3:], "asked": time.time(), "group": "", "hours": None}
        json_files.write_json(jobs / "queue" / f"{number:06d}.json", entry)
    known, unknown = {**who, "time": 1.0}, {"pid": who["pid"], "time": 1.0}
    for name, about in (("victim", known), ("nobody", unknown), ("queue-runner", {"pid": 2**30, "time": 1.0})):
        json_files.write_json(jobs / f"{name}.json", {**about, "command": TRAIN})
    for name in ("planted", "good", "worker", "queue-runner"):
        (jobs / f"{name}.log").symlink_to(outside / ".bashrc")


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Processes that were started, and signals that were sent."""
    seen: list[object] = []
    monkeypatch.setattr(process, "spawn", lambda key, arguments, **about: seen.append(arguments))
    monkeypatch.setattr(os, "kill", lambda pid, number: seen.append((pid, number)))
    return seen


def test_what_lists_such_a_home_starts_and_signals_nothing(
    hostile: Path, outside: Path, started: list[object], victim: subprocess.Popen[bytes]
) -> None:
    before, there = tree(outside), tree(hostile)
    assert {run.name for run in runs.list_runs() if not run.shipped} == {"good", "held", "asked", "pipes"}
    assert "is a link" in runs.damaged()["linked"]
    for name in ("good", "held", "asked", "pipes", "planted", "victim", "nobody"):
        queue.progress_of(name)
        process.log_of(name)
        process.terminate(name)
    assert runs.load("asked").status()["status"] == "failed"  # nobody says which process of that number it was
    queue.go_on()
    assert (queue.start_due(), queue.queue(), queue.broken(), queue.busy_devices()) == ([], [], [], [])
    assert (training.starting(), training.process_names("import")) == ([], [])
    assert not activity.activity().waiting
    assert run_folders.binned() == []
    assert adviser_names()
    for name in ("held", "asked", "good", "pipes"):
        training.stop(name)
    with (hostile / "held" / "lock").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # another user of the folder holds it, in the name of the victim
        with pytest.raises(ValueError, match="stop it there"):
            training.stop("held")
    assert (started, victim.poll()) == ([], None)
    assert (tree(outside), tree(hostile)) == (before, there)


@pytest.mark.parametrize("page", ["home", "train", "runs"])
def test_pages_of_such_a_home_start_nothing(
    page: str, hostile: Path, outside: Path, started: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    before, there = tree(outside), tree(hostile)
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(client, "warm_up", lambda: None)
    monkeypatch.setattr(Job, "start", lambda question, **_: None)
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=90).run()
    if page != "home":
        app.switch_page(f"pages/{page}.py").run()
    assert not app.exception
    assert started == []
    assert (tree(outside), tree(hostile)) == (before, there)


def test_the_worker_s_log_is_a_new_file_of_the_user_s_own(hostile: Path, outside: Path) -> None:
    before = tree(outside)
    folder = process.folder()
    folder.mkdir(parents=True)
    (folder / "_worker.log").symlink_to(outside / ".bashrc")  # even here
    (folder / "slow.log").symlink_to(outside / ".bashrc")
    WorkerProcess().end()
    process.spawn("slow", ["list"])
    for path in (folder / "_worker.log", folder / "slow.log"):
        assert path.lstat().st_mode & 0o777 == 0o600
        assert path.is_file()
        assert not path.is_symlink()
    assert tree(outside) == before
    assert data_home() in folder.parents


def test_nothing_is_written_or_moved_through_a_link(hostile: Path, outside: Path, started: list[object]) -> None:
    before = tree(outside.parent / "outside")
    run, rows = runs.load("good"), np.zeros((1, 2), np.float32)
    attempts = {
        "metrics": lambda: run.append_metrics([{"step": 2}]),
        "snapshot": lambda: run.save_snapshot(1, index=np.arange(1), h=rows, z=rows, labels=np.zeros(1, np.int64)),
        "embedding": lambda: write_npz(run.path / "embeddings" / "a.npz", z=rows),
        "below": lambda: json_files.write_json(run.path / "embeddings" / "new" / "a.json", {}),
        "lock": lambda: run.lock().__enter__(),
        "adviser": lambda: lock(lock_of("linked")).__enter__(),
        "bin": lambda: run_folders.delete("asked"),
        "pipe": lambda: lock(hostile / "pipes" / "lock").__enter__(),
    }
    for name, attempt in attempts.items():
        with pytest.raises((LabError, OSError), match=r"link|lock"):
            pytest.fail(f"{name}: {attempt()}")
    (run.path / "lock").unlink()
    with pytest.raises(LabError, match="is a link"), run.lock():  # what begins there removes old files
        pass
    run.set_meta(note="mine")  # the link is replaced, not what it leads to
    with pytest.raises(Damaged, match="is a link"):
        runs.load("linked")
    assert tree(outside.parent / "outside") == before


def test_a_downloaded_run_is_copied_and_its_folder_left_alone(
    hostile: Path, outside: Path, started: list[object], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    own = tmp_path / "own"
    monkeypatch.setenv("CONTRASTIVE_LAB_RUNS", str(own))
    before, there, places = tree(outside), tree(hostile), list[str]()
    monkeypatch.setattr(serving, "begin", lambda port: SimpleNamespace(port=port))
    for name in ("wait_until_ready", "stop"):
        monkeypatch.setattr(serving, name, lambda server: None)
    monkeypatch.setattr(command, "_show", lambda server, place, args: places.append(place))
    for name in ("good", "held", "pipes"):
        assert command.main([str(hostile / name), "--no-window"]) == 0
    assert os.environ["CONTRASTIVE_LAB_RUNS"] == str(own)
    assert [place.partition("run=")[2].partition("&")[0] for place in places] == ["good", "held", "pipes"]
    assert (tree(outside), tree(hostile)) == (before, there)
    copied = {str(path.relative_to(own)) for path in own.rglob("*") if not path.is_dir()}
    assert copied == {
        "good/run.json", "good/status.json", "good/weights.safetensors",
        "held/run.json", "held/status.json", "held/metrics.jsonl", "pipes/run.json"
    }  # fmt: skip
    assert all(not path.is_symlink() and path.stat().st_mode & 0o077 == 0 for path in own.rglob("*"))
    queue.go_on()
    assert (queue.queue(), started) == ([], [])
    assert "is still being trained" not in str(runs.load("held").status())
    assert not runs.load("held").is_alive()


def test_a_link_to_a_run_opens_the_run_itself(hostile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user has named it: what it leads to is copied."""
    monkeypatch.setenv("CONTRASTIVE_LAB_RUNS", str(tmp_path / "own"))
    (tmp_path / "link").symlink_to(hostile / "held")
    assert "run=held" in command.prepare(command.recognize(str(tmp_path / "link")))
    assert not (runs_home() / "held").is_symlink()


def test_homes_have_queues_of_their_own_and_one_home_has_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    names = {}
    for home in ("a", "b", "link"):
        monkeypatch.setenv("CONTRASTIVE_LAB_RUNS", str(tmp_path / home))
        if home == "a":
            queue.add("waits", [], 1.0)
        names[home] = queue.waiting_names()
    assert names == {"a": {"waits"}, "b": set(), "link": {"waits"}}
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to(tmp_path)
    assert queue.waiting_names() == set()  # it leads elsewhere now
