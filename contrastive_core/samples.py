"""Every sample of a run's split with its loss and what is odd about it: the Samples page, the
command.

A supervised method's rows are paired by class; a self-supervised one's by two augmented views of
each image (evaluation mode), drawn twice, so that the spread of augmentation can be told from that
of samples. The loss is taken on z, where training takes it; the lists on h, which holds more.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from contrastive_core import data
from contrastive_core.embedding_set import EmbeddingSet
from contrastive_core.runs import Run
from contrastive_core.sample_losses import Tell, per_sample
from contrastive_core.sample_table import (
    SampleTable,
    keep_arrays,
    keep_table,
    path_of,
    read_arrays,
    read_table,
)
from contrastive_core.tabulate import table_of

__all__ = ["Stage", "compared", "knobs_of", "loss_over_snapshots", "rows_of", "samples_of_run"]

DRAWS = 2  # of two views each: the least that shows what augmentation does
WIDEST = 4096  # numbers of an image that are looked at for outliers
Stage = Callable[[str, float], None]


def samples_of_run(
    run: Run,
    loss: str | None = None,
    split: str = "train",
    tell: Stage | None = None,
    device: str = "auto",
) -> SampleTable:
    """The table of a run's split, cached by weights, loss and split; also its views, and the loss
    over its snapshots.

    Labels are those that the run was trained with (`--relabel`); what it left out stays out.
    Args: tell: hears what is at work and the share of it that is done; what it raises stops it.
    """
    loss = loss or str(run.config.get("loss"))
    known = read_table(path_of(run, "samples", loss, split), loss)
    if known is not None:
        return known
    say = tell or _silent
    say("embedding", 0.0)
    dataset, h, z = rows_of(run, split, device)
    views = None
    if not _by_class(run, h):
        views = _views(run, dataset, device, lambda share: say("augmented views", share))
        keep_arrays(path_of(run, "views", "z", split), views=views[0])
    made = table_of(
        z, loss, knobs_of(run, loss), views,
        lambda share: say("loss of every sample", share),
        features=h,
        other=_other(run, split, device),
        pixels=_pixels(dataset),
        batch=int(run.config.get("batch_size") or 0),
    )  # fmt: skip
    if split == "train" and run.snapshots():
        say("loss over snapshots", 0.0)
        keep_arrays(path_of(run, "snapshots", loss, split), **loss_over_snapshots(run, loss))
    keep_table(made, path_of(run, "samples", loss, split))
    return made


def _silent(what: str, share: float) -> None:
    """Nobody asks how far it is."""


def rows_of(
    run: Run, split: str, device: str = "auto"
) -> tuple[data.Dataset, EmbeddingSet, EmbeddingSet]:
    """A split as the run was trained on it, with its h and z."""
    from contrastive_core.embed import data_of, embed_run

    dataset = data_of(run, split)
    dataset = _as_trained(run, dataset) if split == "train" else dataset
    h, z = (_take(embed_run(run, split, w, device), dataset) for w in "hz")
    return dataset, h, z


def compared(run: Run, split: str) -> tuple[EmbeddingSet, np.ndarray | None]:
    """What a run's loss compares: rows of z, and views (n, v, d) where it pairs those."""
    _, h, z = rows_of(run, split)
    if _by_class(run, h):
        return z, None
    found = read_arrays(path_of(run, "views", "z", split))
    if found is None:
        raise ValueError(f"the augmented views of {run.name} have not been made")
    return z, found["views"]


def loss_over_snapshots(run: Run, loss: str | None = None) -> dict[str, np.ndarray]:
    """`epochs` (e), `index` (s) of the run's fixed sample, and `loss` (e, s) by class on z.

    Raises: ValueError without snapshots or labels.
    """
    loss, epochs, found = loss or str(run.config.get("loss")), run.snapshots(), []
    if not epochs:
        raise ValueError(f"{run.name} has no snapshots")
    for epoch in epochs:
        one = run.snapshot(epoch)
        rows = EmbeddingSet(one["z"].astype(np.float32), one["labels"].astype(np.int64))
        value, weight = per_sample(rows, loss, knobs_of(run, loss))
        found.append(np.where(weight > 0, value, np.nan))
    index = np.asarray(one["index"], np.int64)
    return {"epochs": np.array(epochs), "index": index, "loss": np.stack(found)}


def knobs_of(run: Run, loss: str) -> dict[str, Any] | None:
    """The run's settings of a loss, if it was trained with it."""
    return run.config.get("loss_knobs") if loss == run.config.get("loss") else None


def _by_class(run: Run, rows: EmbeddingSet) -> bool:
    """Whether rows are paired by class: the method does so, and there are classes."""
    from contrastive_core import methods

    return rows.labels is not None and methods.get(str(run.config["method"])).needs_labels


def _as_trained(run: Run, dataset: data.Dataset) -> data.Dataset:
    """The training set as the run saw it, as far as the files that changed it are still there."""
    from contrastive_core.curation import curated

    files = (run.config.get(k) for k in ("exclude", "relabel"))
    return curated(dataset, *(f if f and Path(f).exists() else None for f in files))


def _take(rows: EmbeddingSet, dataset: data.Dataset) -> EmbeddingSet:
    """The rows of the samples of `dataset`, with its labels."""
    at = {name: i for i, name in enumerate(rows.ids)}
    found = rows.take([at[name] for name in dataset.ids])
    known = bool((np.asarray(dataset.labels) >= 0).any())
    labels = np.asarray(dataset.labels, np.int64) if known else None
    return dataclasses.replace(found, labels=labels)


def _other(run: Run, split: str, device: str) -> EmbeddingSet | None:
    """The other split, or None where the data have none."""
    from contrastive_core.embed import embed_run

    try:
        return embed_run(run, "test" if split == "train" else "train", "h", device)
    except (ValueError, FileNotFoundError):
        return None


def _pixels(dataset: data.Dataset) -> np.ndarray:
    """Images as rows (n, p) float32, thinned where they are large."""
    images = np.asarray(dataset.images)  # (n, c, h, w)
    step = 1
    while images[0, :, ::step, ::step].size > WIDEST:
        step += 1
    thin = images[:, :, ::step, ::step]
    return thin.reshape(len(thin), -1).astype(np.float32) / 255


def _views(
    run: Run, dataset: data.Dataset, device: str, tell: Tell, seed: int = 0
) -> list[np.ndarray]:
    """Draws of z (n, 2, d): two augmented views of each image, in evaluation mode."""
    import torch

    from contrastive_core.embed import load_model
    from contrastive_core.views import make_views

    method = load_model(run, dataset, device)
    where = next(method.parameters()).device
    generator, found = torch.Generator().manual_seed(seed), []
    with torch.no_grad():
        for start in range(0, len(dataset), 256):
            images = torch.from_numpy(np.array(dataset.images[start : start + 256])).to(where)
            x = make_views(images, method.recipe, 2 * DRAWS, generator)
            z = method.project(method.features(x.flatten(0, 1)))
            found.append(z.unflatten(0, x.shape[:2]).float().cpu())
            tell(min(1.0, (start + 256) / len(dataset)))
    z = torch.cat(found).numpy()  # (n, 2 · draws, d)
    return [np.ascontiguousarray(z[:, 2 * d : 2 * d + 2]) for d in range(DRAWS)]
