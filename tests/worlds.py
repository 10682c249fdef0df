"""Several processes on this machine, as torchrun would start them."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.multiprocessing as mp

from benchmarks.browser import free_port
from contrastive_core.distributed import collectives
from contrastive_core.distributed.collectives import World

__all__ = ["spread", "started", "torchrun"]

Job = Callable[[World], Any]


def _worker(rank: int, size: int, port: int, job: Job, folder: str) -> None:
    os.environ |= {
        "RANK": str(rank),
        "WORLD_SIZE": str(size),
        "LOCAL_RANK": str(rank),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "OMP_NUM_THREADS": "1",
    }
    torch.set_num_threads(1)
    world = collectives.init_process_group()
    try:
        torch.save(job(world), f"{folder}/{rank}.pt")
    except Exception:
        Path(folder, f"{rank}.err").write_text(traceback.format_exc())
        os._exit(1)
    collectives.all_gather_object(None)
    collectives.destroy_process_group()
    os._exit(0)  # gloo's threads can abort an exit by the usual way


def spread(job: Job, size: int, folder: Path) -> list[Any]:
    """Run `job(world)` in `size` processes; what each returned. Fails with their traces."""
    folder.mkdir(exist_ok=True)
    try:
        mp.spawn(_worker, (size, free_port(), job, str(folder)), nprocs=size)
    except Exception as error:
        traces = [p.read_text() for p in sorted(folder.glob("*.err"))]
        raise AssertionError("\n".join(traces) or str(error)) from None
    return [torch.load(folder / f"{r}.pt", weights_only=False) for r in range(size)]


def torchrun(*argv: str, log: Path, **env: str) -> subprocess.Popen:
    """torchrun with these arguments; what it says goes to `log`."""
    return started("-m", "torch.distributed.run", *argv, log=log, **env)


def started(*argv: str, log: Path, **env: str) -> subprocess.Popen:
    """Python with these arguments; what it says goes to `log`."""
    with log.open("w") as out:
        return subprocess.Popen(
            [sys.executable, *argv],
            env=os.environ | {"OMP_NUM_THREADS": "1", **env},
            stdout=out,
            stderr=out,
        )
