"""`--processes` on one machine: nobody else can join, and all processes end together."""

import os
import re
import signal
import socket
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import psutil
import pytest
from patience import wait
from worlds import spread, started

from contrastive_core import runs
from contrastive_core.base import local_processes
from contrastive_core.engine import process, training
from contrastive_core.ops import collectives
from contrastive_core.ops.collectives import World

SMALL = ["--device", "cpu", "--set", "encoder.width=0.25", "--set", "sample=100", "--set", "save_seconds=0"]
TRAIN = ["--processes", "2", "--method", "simclr", "--dataset", "digits", "--epochs", "2000", *SMALL]
LONG = 120.0  # seconds, on a busy machine


def tree(pid: int) -> list[psutil.Process]:
    return [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]


def listening(pid: int) -> set[str]:
    """Addresses on which a process and those below it listen."""
    found = set()
    for each in tree(pid):
        found |= {c.laddr.ip for c in each.net_connections("inet") if c.status == psutil.CONN_LISTEN or not c.raddr}
    return found


def has_saved(name: str) -> bool:
    return any((runs.runs_home() / name / "state").glob("*.sha256"))


def test_it_listens_on_the_loopback_interface_and_ends_when_asked_or_orphaned() -> None:
    training.start("two", TRAIN)
    wait(lambda: has_saved("two"))
    parent = process.pid_of("two")
    assert parent is not None
    assert len({each.environ().get("RANK") for each in tree(parent)} & {"0", "1"}) == 2
    assert listening(parent) == {"127.0.0.1"}
    training.stop("two")
    wait(lambda: process.pid_of("two") is None)
    run = runs.load("two")
    assert run.status()["status"] == "stopped"
    assert training.failure("two") is None
    epochs = run.status()["epoch"]

    training.start("two", ["--processes", "2", "--resume", "--device", "cpu"])
    wait(lambda: run.status()["epoch"] > epochs)
    parent = process.pid_of("two")
    assert parent is not None
    children = tree(parent)[1:]
    os.kill(parent, signal.SIGKILL)
    _, alive = psutil.wait_procs(children, LONG)
    assert not alive
    assert run.status()["status"] == "stopped"
    assert not run.is_claimed()


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 1)])
def test_a_signal_before_training_is_reported_once(number: int, status: int, tmp_path: Path) -> None:
    child = started("-m", "contrastive_core", "train", *TRAIN, log=tmp_path / "log")
    wait(lambda: len(tree(child.pid)) == 3 and all(is_importing(each) for each in tree(child.pid)))
    child.send_signal(number)
    assert child.wait(LONG) == status
    assert (tmp_path / "log").read_text().count("error: ") == 1


def is_importing(child: psutil.Process) -> bool:
    """Whether a child's command has begun: it imports torch."""
    return any("torch" in each.path for each in child.memory_maps()) or "RANK" not in child.environ()


def test_an_error_is_reported_once_and_no_file_is_left(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "contrastive_core", "train", "--processes", "2", "--dataset", "folder:/nowhere"]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"TMPDIR": str(tmp_path)})
    assert done.returncode == 2
    assert re.fullmatch(r"error: .*/nowhere.*\n", done.stderr), done.stderr
    assert not list(tmp_path.iterdir())


def test_the_first_process_that_is_killed_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    assert local_processes._exit_status([-signal.SIGKILL, 2], ()) == 2
    assert capfd.readouterr().err.startswith("error: the first process of 2 was ended by SIGKILL")
    assert local_processes._exit_status([2, 1, 2], ()) == 1
    assert local_processes._exit_status([0, -signal.SIGKILL], ()) == 1
    assert local_processes._exit_status([-signal.SIGINT] * 2, {signal.SIGINT}) == 130
    assert not capfd.readouterr().err


def unsure(world: World) -> str:
    """A further group in which the second process does not know the secret, as a stranger would not."""
    if world.rank == 1:
        os.environ[local_processes.RENDEZVOUS] += "?"
    try:
        collectives.new_group()
    except RuntimeError as error:
        return str(error)
    finally:
        os.environ[local_processes.RENDEZVOUS] = os.environ[local_processes.RENDEZVOUS].rstrip("?")
    return ""


def test_a_stranger_in_place_of_a_process_is_refused(tmp_path: Path) -> None:
    answers = spread(unsure, 2, tmp_path / "world")
    assert answers == [f"another program answers in place of process {other}" for other in (1, 0)]


def silent(world: World) -> str:
    """A further group in which the second process sends no proof."""
    collectives.PROOF_PATIENCE = timedelta(seconds=1)
    if world.rank == 1:
        collectives._check_peers = lambda group: None
    try:
        collectives.new_group()
    except RuntimeError as error:
        return str(error)
    return ""


def test_a_stranger_that_is_silent_is_not_waited_for(tmp_path: Path) -> None:
    first, second = spread(silent, 2, tmp_path / "world")
    assert "imed out" in first
    assert not second


def test_every_variable_names_the_loopback_interface() -> None:
    made = local_processes.environment_of(1, 2, "/x")
    name = made["GLOO_SOCKET_IFNAME"]
    assert "127.0.0.1" in {a.address for a in psutil.net_if_addrs()[name] if a.family == socket.AF_INET}
    assert made["NCCL_SOCKET_IFNAME"] == f"={name}"
