"""Train one cell of a sweep in this process."""

from __future__ import annotations

import contextlib
import dataclasses
import shlex

import torch

from contrastive_core.errors import CannotGoOn, Locked
from contrastive_core.messages import sentence
from contrastive_core.records import runs
from contrastive_core.records.run import Run
from contrastive_core.records.sweep_grid import Cell, config_of
from contrastive_core.records.train_config import from_dict
from contrastive_core.training import loop
from contrastive_core.training.setup import manifest_of, prepare


def train_cell(cell: Cell, device: str = "auto") -> str:
    """Train a cell, or go on with it where it was stopped; a cell that is done is left alone.
    Returns: why it could not be trained; "" where it is done. Raises: CannotGoOn where it was stopped meanwhile;
    Locked where another process trains it."""
    run: Run | None = None
    with contextlib.suppress(ValueError, OSError):
        run = runs.load(cell.run)
    if run is not None and run.status().get("status") == "done":
        return ""
    try:
        status = _train(cell, run, device)
    except Locked:
        raise
    except (CannotGoOn, ValueError, OSError, RuntimeError, torch.OutOfMemoryError) as error:
        return sentence(error) or type(error).__name__
    if status == "stopped":
        raise CannotGoOn("{run} was stopped; the same command goes on with it", run=cell.run)
    return ""


def _train(cell: Cell, run: Run | None, device: str) -> str:
    if run is not None:
        return loop.train(prepare(from_dict(run.manifest["config"])), run, resume=True)
    setup = prepare(dataclasses.replace(config_of(cell), device=device))
    about = manifest_of(setup, shlex.join(["python", "-m", "contrastive_core", *cell.argv()]))
    run = runs.create(cell.run, setup.config.to_dict(), setup.dataset.fingerprint, **about)
    return loop.train(setup, run, resume=False)
