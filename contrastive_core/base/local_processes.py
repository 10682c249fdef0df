"""The processes of one command on this machine. Torch-free.

They rendezvous through a file in a private folder and communicate over the loopback interface. torchrun would listen
on every interface, without a secret, and exchange pickles."""

import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import psutil

RENDEZVOUS = "CONTRASTIVE_LAB_RENDEZVOUS"  # the rendezvous file; its path is the shared secret
PATIENCE = 30.0  # seconds to exit cleanly after another process has failed or the parent has ended
POLL = 0.05  # seconds between two checks of the processes
# The parent passes signals on, each once. Without a group of their own the children would get Ctrl-C twice.
OWN_GROUP = None if sys.platform == "win32" else 0


def environment_of(rank: int, size: int, rendezvous: str | Path) -> dict[str, str]:
    """Return the environment variables of one process, as in torchrun. Sockets use the loopback interface only."""
    interfaces = {(a.family, a.address): name for name, addresses in psutil.net_if_addrs().items() for a in addresses}
    if (loopback := interfaces.get((socket.AF_INET, "127.0.0.1"))) is None:  # lo, lo0, …
        raise OSError("several processes need the loopback interface, which this machine does not have")
    return {
        "RANK": str(rank),
        "WORLD_SIZE": str(size),
        "LOCAL_RANK": str(rank),
        "LOCAL_WORLD_SIZE": str(size),
        RENDEZVOUS: str(rendezvous),
        "GLOO_SOCKET_IFNAME": loopback,
        "NCCL_SOCKET_IFNAME": f"={loopback}",
        "NCCL_RAS_ENABLE": "0",  # NCCL's status service, which listens on a port
    }


def run_processes(count: int, arguments: Sequence[str]) -> int:
    """Run a command line in `count` processes and return the exit status. If one fails, the others end too."""
    command = [sys.executable, "-u", "-m", "contrastive_core", *arguments]
    shared = os.environ | {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")}  # as torchrun
    children: list[subprocess.Popen[bytes]] = []
    noted: list[int] = []

    def note(number: int, frame: object) -> None:
        if sys.platform != "win32":  # there the children receive Ctrl-C directly
            noted.append(number)

    with tempfile.TemporaryDirectory(prefix="contrastive-lab-") as folder, handled_signals(note):
        rendezvous = Path(folder, secrets.token_hex())
        try:
            for rank in range(count):
                environment = shared | environment_of(rank, count, rendezvous)
                # a closed standard input tells a child that its parent has ended
                child = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, process_group=OWN_GROUP)
                children.append(child)
            passed_on = _wait(children, noted)
        finally:
            for child in children:
                child.kill()
                child.wait()
    return _exit_status([child.returncode for child in children], passed_on)


@contextmanager
def handled_signals(handle: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    """Context in which `handle` gets the signals that would end this process."""
    names = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.signal(number, handle) for number in names}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _wait(children: Sequence[subprocess.Popen[bytes]], signals: list[int]) -> set[int]:
    """Wait until all processes have ended; return the signals passed on. After a failure the time is limited."""
    end: float | None = None
    passed_on: set[int] = set()
    while any(child.poll() is None for child in children):
        while signals:
            passed_on.add(number := signals.pop(0))
            for child in children:
                child.send_signal(number)
        if end is None and any(child.returncode for child in children):
            end = time.monotonic() + PATIENCE
        if end is not None and time.monotonic() > end:
            break
        time.sleep(POLL)
    return passed_on


def _exit_status(codes: Sequence[int], passed_on: Collection[int]) -> int:
    """Return the exit status of the process that failed by itself; processes that stop because of it exit with 2."""
    codes = [128 - code if -code in passed_on else code for code in codes]  # as in a shell
    if codes[0] < 0:  # it could not print a reason
        reason = signal.Signals(-codes[0]).name
        sys.stderr.write(f"error: the first process of {len(codes)} was ended by {reason}; continue with --resume\n")
    failed = [code for code in codes if code > 0]
    return next((code for code in failed if code != 2), 2) if failed else int(any(codes))


def end_with_parent() -> None:
    """End this process, as with SIGTERM, when its parent has ended."""

    def watch() -> None:
        while os.read(0, 1):
            pass
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(PATIENCE)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
