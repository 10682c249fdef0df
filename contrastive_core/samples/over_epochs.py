"""The loss of samples over a run's snapshots, which follow a fixed part of its training set."""

from __future__ import annotations

import numpy as np

from contrastive_core.embeddings.embedding_set import EmbeddingSet
from contrastive_core.runs import Run
from contrastive_core.samples.losses import per_sample
from contrastive_core.samples.table import keep_arrays, knobs_of, path_of

__all__ = ["follow", "loss_over_snapshots"]


def loss_over_snapshots(run: Run, loss: str | None = None) -> dict[str, np.ndarray]:
    """`epochs` (e), `index` (s) of the run's fixed sample, and `loss` (e, s) by class on z.

    Raises: ValueError without snapshots or labels.
    """
    loss, epochs, found = loss or str(run.config.get("loss")), run.snapshots(), []
    if not epochs:
        raise ValueError(f"{run.name} has no snapshots")
    for epoch in epochs:
        one = run.snapshot(epoch)
        labels = one["labels"].astype(np.int64)
        if (labels < 0).all():
            raise ValueError("its images have no classes, by which snapshots are compared")
        value, weight = per_sample(
            EmbeddingSet(one["z"].astype(np.float32), labels), loss, knobs_of(run, loss)
        )
        found.append(np.where(weight > 0, value, np.nan))
    index = np.asarray(one["index"], np.int64)
    return {"epochs": np.array(epochs), "index": index, "loss": np.stack(found)}


def follow(run: Run, loss: str) -> None:
    """Keep the loss over the snapshots that there are now, unless it is kept; why it cannot be had
    is kept too, so that a page can say it. Of many processes all do it, the first writes."""
    from contrastive_core.distributed import collectives

    path = path_of(run, "snapshots", loss, "train")
    if not run.snapshots() or collectives.any_process(path.exists()):
        return
    try:
        made = loss_over_snapshots(run, loss)
    except ValueError as error:
        made = {"why": np.array(str(error))}
    if collectives.world().is_rank0:
        keep_arrays(path, **made)
