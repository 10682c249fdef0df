"""Runs that several benchmarks share, trained by the command line as a user would."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import torch

from contrastive_core import runs
from contrastive_core.compare.embed import embed_run
from contrastive_core.data.augmentations import to_float
from contrastive_core.data.dataset import Dataset
from contrastive_core.metrics import create
from contrastive_core.runs.run import Run
from contrastive_core.spaces.embedding_set import EmbeddingSet

__all__ = ["knn", "rows_of", "synchronize", "trained"]


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


def rows_of(encoder: torch.nn.Module, dataset: Dataset, device: torch.device | str = "cpu") -> EmbeddingSet:
    """h of every image, in evaluation mode and float32."""
    encoder.eval()
    with torch.no_grad():
        parts = [
            encoder(to_float(torch.from_numpy(np.array(dataset.images[i : i + 500])).to(device))).float().cpu().numpy()
            for i in range(0, len(dataset), 500)
        ]
    return EmbeddingSet(np.concatenate(parts), np.asarray(dataset.labels, np.int64), split=dataset.split, layer="h")


def synchronize(device: torch.device) -> None:
    """Wait until the device has done what it was asked."""
    if device.type != "cpu":
        torch.accelerator.synchronize(device)
