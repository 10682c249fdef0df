"""The loss of samples over a run's snapshots, which follow a fixed part of its training set."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from contrastive_core.distributed import collectives
from contrastive_core.messages import N_, message
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.run import Run
from contrastive_core.records.sample_table import keep_arrays, knobs_of, path_of
from contrastive_core.samples.losses import LossInputs, per_sample

__all__ = ["loss_over_snapshots", "update_snapshot_losses"]


def loss_over_snapshots(run: Run, loss: str | None = None, device: str = "auto") -> dict[str, np.ndarray]:
    """`epochs` (e), `index` (s) of the run's fixed sample, and `loss` (e, s) by class on z; of a
    recording, `ids` (s) of its probe set, and NaN where a snapshot lacks a sample.

    Raises: ValueError without snapshots or labels.
    """
    loss, epochs, by_epoch = loss or str(run.config.get("loss")), run.snapshots(), []
    if not epochs:
        raise ValueError(message("{name} has no snapshots", name=run.name))
    snapshots = [run.snapshot(epoch) for epoch in epochs]
    index = np.unique(np.concatenate([s["index"] for s in snapshots])).astype(np.int64)
    ids = index.astype(str)
    for snapshot in snapshots:
        labels = snapshot["labels"].astype(np.int64)
        if not len(labels) or (labels < 0).all():
            raise ValueError(N_("its images have no classes, by which snapshots are compared"))
        rows = EmbeddingSet(snapshot["z"].astype(np.float32), labels)
        value, weight = per_sample(LossInputs(rows, loss, knobs_of(run, loss), device=device))
        places, losses = np.searchsorted(index, snapshot["index"]), np.full(len(index), np.nan)
        losses[places] = np.where(weight > 0, value, np.nan)
        by_epoch.append(losses)
        ids[places] = snapshot.get("ids", ids[places])
    arrays = {"epochs": np.array(epochs), "index": index, "loss": np.stack(by_epoch)}
    return {**arrays, "ids": ids} if run.is_recording else arrays


def update_snapshot_losses(run: Run, loss: str, device: str = "auto", path: Path | None = None) -> None:
    """Keep the loss over the snapshots that there are now, unless it is kept; why it cannot be had
    is kept too, so that a page can say it. Of many processes all do it, the first writes."""
    path = path or path_of(run, "snapshots", loss, "train")
    if not run.snapshots() or collectives.any_process(path.exists()):
        return
    try:
        arrays = loss_over_snapshots(run, loss, device)
    except ValueError as error:
        arrays = {"why": np.array(str(error))}
    if collectives.world().is_rank0:
        keep_arrays(path, **arrays)
