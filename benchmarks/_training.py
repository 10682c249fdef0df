"""Runs that several benchmarks share, trained by the command line as a user would."""

from __future__ import annotations

import os
import subprocess
import sys

import torch

from contrastive_core.evaluation.embed import embed_run
from contrastive_core.metrics import create
from contrastive_core.records import runs
from contrastive_core.records.run import Run

__all__ = ["knn", "synchronize", "trained"]


def trained(name: str, *argv: str, threads: int = 1) -> Run:
    """The run of that name, trained with these arguments of `train` unless it is there already."""
    try:
        run = runs.load(name)
        if run.status().get("status") == "done":
            return run
    except ValueError:
        pass
    given = ["--run", name, "--device", "cpu", "--set", f"threads={threads}"]
    done = subprocess.run(
        [sys.executable, "-m", "contrastive_core", "train", *argv, *given],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": str(threads)},
    )
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr.strip().splitlines()[-1]}")
    return runs.load(name)


def knn(run: Run, which: str = "h") -> float:
    """kNN accuracy (k = 20, τ 0.07) of the test images after the last epoch, in per cent."""
    train, test = (embed_run(run, split, which, "cpu") for split in ("train", "test"))
    return 100 * float(create("knn")(train, test).value)


def synchronize(device: torch.device) -> None:
    """Wait until the device has done what it was asked."""
    if device.type != "cpu":
        torch.accelerator.synchronize(device)
