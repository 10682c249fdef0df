"""Several processes on this machine, as `--processes` starts them."""

import multiprocessing
import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.multiprocessing as mp

from contrastive_core.base.local_processes import environment_of
from contrastive_core.ops import collectives
from contrastive_core.ops.collectives import World

__all__ = ["forks", "spread", "started", "torchrun"]

Job = Callable[[World], Any]

# What a test's processes need, imported once, by the process that they are forked from; digits are scikit-learn's.
IMPORTED = [
    "sklearn.datasets",
    "sklearn.model_selection",
    "contrastive_core.train.loop",
    "contrastive_core.train.setup",
]


def forks() -> multiprocessing.context.ForkServerContext:
    """Processes that start in a moment. They have the environment of the first of them: hand over
    what a test sets."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(IMPORTED)
    return context


def _worker(rank: int, size: int, job: Job, folder: str, environment: dict[str, str]) -> None:
    rendezvous = Path(folder, "rendezvous")
    os.environ |= environment | environment_of(rank, size, rendezvous) | {"OMP_NUM_THREADS": "1"}
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
    folder.mkdir(mode=0o700, exist_ok=True)
    (folder / "rendezvous").unlink(missing_ok=True)
    forks()
    arguments = (size, job, str(folder), dict(os.environ))
    try:
        mp.start_processes(_worker, arguments, nprocs=size, start_method="forkserver")
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
            [sys.executable, *argv], env=os.environ | {"OMP_NUM_THREADS": "1", **env}, stdout=out, stderr=out
        )
