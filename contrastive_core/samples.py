"""Every sample of a split with its loss and what is odd about it: the Samples page and command.

A supervised method's rows are paired by class; a self-supervised one's by two augmented views of
each image (evaluation mode), drawn twice, so that the spread of augmentation can be told from that
of samples. The loss is taken on z, where training takes it; the lists on h, which holds more.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from contrastive_core import data, store
from contrastive_core.embedding_set import EmbeddingSet
from contrastive_core.findings import Findings
from contrastive_core.runs import Run
from contrastive_core.sample_losses import (
    Tell,
    per_sample,
    ranks,
    split_variance,
    training_estimate,
)

__all__ = [
    "COLUMNS", "SampleTable", "loss_over_snapshots", "per_sample", "read_table", "samples_of_run",
    "table_of", "training_estimate", "write_table",
]  # fmt: skip

COLUMNS = (
    "id", "label", "loss", "weight", "rank", "mislabelled", "false_negative", "duplicate",
    "outlier", "ambiguous", "nearest_positive", "nearest_negative",
)  # fmt: skip
VERSION = 2
DRAWS = 2  # of two views each: the least that shows what augmentation does
REPEATS = 4  # of random batches, for what training saw
WIDEST = 4096  # numbers of an image that are looked at for outliers


@dataclass(frozen=True, eq=False)
class SampleTable:
    """One row per sample, as columns (see COLUMNS).

    `extra` holds columns that explain them: hub, suggested (class), twin (id of the nearest row),
    leaked (it is of the other split), margin, loss_in_batches and its spread, loss_by_draw (n,
    draws). `facts` holds figures of the whole set.
    """

    columns: dict[str, np.ndarray]
    classes: tuple[str, ...]
    loss: str
    extra: dict[str, np.ndarray] = field(default_factory=dict)
    facts: dict[str, float] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.columns["id"])


def table_of(
    rows: EmbeddingSet,
    loss: str,
    knobs: dict[str, Any] | None = None,
    views: list[np.ndarray] | None = None,
    tell: Tell | None = None,
    *,
    features: EmbeddingSet | None = None,
    other: EmbeddingSet | None = None,
    pixels: np.ndarray | None = None,
    batch: int = 0,
) -> SampleTable:
    """The table of an embedding.

    Args:
        rows: what the loss is taken on; features: what is searched for oddities (default: rows);
            other: the other split in the space of `features`.
        views: draws of (n, v, d) augmented views, for self-supervised pairs.
        batch: images in a training batch; 0: no estimate of what training saw.
    Raises: ValueError when the loss has no pairs here; what `tell` raises stops the work.
    """
    from contrastive_core.findings import find

    draws: list[np.ndarray | None] = [*views] if views else [None]
    by_draw, weight = [], np.zeros(len(rows))
    for number, one in enumerate(draws):
        value, weight = per_sample(rows, loss, knobs, one, _part(tell, number, len(draws)))
        by_draw.append(np.where(weight > 0, value, np.nan))
    value = np.mean(by_draw, 0)
    searched = features or rows
    found = find(searched, other=other, pixels=pixels, supervised=views is None)
    columns = _columns(searched, value, weight, found)
    extra, facts = _explained(searched, found, other)
    extra["loss_by_draw"] = np.stack(by_draw, 1)
    if len(draws) > 1:
        facts |= {f"variance_{k}": v for k, v in split_variance(extra["loss_by_draw"]).items()}
    if batch:
        extra["loss_in_batches"], extra["loss_in_batches_spread"] = training_estimate(
            rows, loss, knobs, batch, REPEATS, views=draws[0]
        )
    return SampleTable(columns, rows.classes, loss, extra, facts)


def _part(tell: Tell | None, number: int, of: int) -> Tell | None:
    return None if tell is None else lambda share: tell((number + share) / of)


def _columns(
    rows: EmbeddingSet, value: np.ndarray, weight: np.ndarray, found: Findings
) -> dict[str, np.ndarray]:
    positive, negative = _nearest_of_each(rows, found.neighbours.index)
    labels = rows.labels if rows.labels is not None else np.full(len(rows), -1)
    names = np.array(rows.ids)
    columns = {
        "id": names,
        "label": np.array([rows.class_name(int(c)) if c >= 0 else "" for c in labels]),
        "loss": value,
        "weight": weight,
        "rank": ranks(value, weight),
        **{k: v for k, v in found.scores.items() if k in COLUMNS},
        "nearest_positive": np.where(positive >= 0, names[positive], ""),
        "nearest_negative": np.where(negative >= 0, names[negative], ""),
    }
    assert tuple(columns) == COLUMNS
    return columns


def _explained(
    rows: EmbeddingSet, found: Findings, other: EmbeddingSet | None
) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    """Columns and figures beyond COLUMNS."""
    twin = np.array(rows.ids)[np.where(found.leaked, 0, found.twin)]
    if other is not None:
        far = np.array(other.ids)[np.where(found.leaked, found.twin, 0)]
        twin = np.where(found.leaked, far, twin)
    extra = {"hub": found.scores["hub"], "twin": twin, "leaked": found.leaked}
    facts: dict[str, float] = {}
    if found.suggested is not None and rows.labels is not None:
        extra["suggested"] = np.array([rows.class_name(int(c)) for c in found.suggested])
        extra["margin"] = 1 - found.scores["mislabelled"]
        top = np.argsort(-found.scores["false_negative"])[: max(1, len(rows) // 20)]
        same = rows.labels[found.neighbours.index[top, 0]] == rows.labels[top]
        facts["false_negatives_of_same_class"] = float(same.mean())
    return extra, facts


def _nearest_of_each(rows: EmbeddingSet, near: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Nearest row of the same and of another label among the neighbours (n) each; −1: none."""
    if rows.labels is None:
        return np.full(len(rows), -1), near[:, 0]
    same = rows.labels[near] == rows.labels[:, None]  # (n, k)

    def first(mask: np.ndarray) -> np.ndarray:
        return np.where(mask.any(1), near[np.arange(len(near)), mask.argmax(1)], -1)

    return first(same), first(~same)


# --- of a run ----------------------------------------------------------------------------------


def samples_of_run(
    run: Run,
    loss: str | None = None,
    split: str = "train",
    tell: Tell | None = None,
    device: str = "auto",
) -> SampleTable:
    """The table of a run's split, cached by weights, loss and split.

    Labels are those that the run was trained with (`--relabel`); what it left out stays out.
    """
    from contrastive_core.embed import data_of, embed_run

    loss = loss or str(run.config.get("loss"))
    known = read_table(run, loss, split)
    if known is not None:
        return known
    whole = data_of(run, split)
    dataset = _as_trained(run, whole) if split == "train" else whole
    h, z = (_take(embed_run(run, split, w, device), dataset) for w in "hz")
    made = table_of(
        z, loss, _knobs(run, loss),
        None if _by_class(run, h) else _views(run, dataset, device),
        tell,
        features=h,
        other=_other(run, split, device),
        pixels=_pixels(dataset),
        batch=int(run.config.get("batch_size") or 0),
    )  # fmt: skip
    _keep(made, _path(run, loss, split))
    return made


def loss_over_snapshots(run: Run, loss: str | None = None) -> tuple[list[int], np.ndarray]:
    """Epochs, and the loss (epochs, s) by class of each sample of the run's snapshots on z.

    Raises: ValueError without snapshots or labels.
    """
    loss, epochs, found = loss or str(run.config.get("loss")), run.snapshots(), []
    if not epochs:
        raise ValueError(f"{run.name} has no snapshots")
    for epoch in epochs:
        one = run.snapshot(epoch)
        rows = EmbeddingSet(one["z"].astype(np.float32), one["labels"].astype(np.int64))
        value, weight = per_sample(rows, loss, _knobs(run, loss))
        found.append(np.where(weight > 0, value, np.nan))
    return epochs, np.stack(found)


def read_table(run: Run, loss: str, split: str) -> SampleTable | None:
    """The table if it has been made for these weights. Needs no torch."""
    try:
        found = store.read_npz(_path(run, loss, split))
        classes = tuple(found.pop("classes").tolist())
        extra = {k[6:]: v for k, v in found.items() if k.startswith("extra:")}
        facts = {k[5:]: float(v) for k, v in found.items() if k.startswith("fact:")}
        return SampleTable({k: found[k] for k in COLUMNS}, classes, loss, extra, facts)
    except (OSError, ValueError, KeyError):
        return None


def write_table(table: SampleTable, out: Path) -> None:
    """Write `.parquet` or `.csv`, one row per sample."""
    import pandas as pd

    from contrastive_core.figures import safe_cell

    frame = pd.DataFrame(table.columns)
    if out.suffix == ".csv":
        for name in ("id", "label", "nearest_positive", "nearest_negative"):
            frame[name] = [safe_cell(v) for v in frame[name]]
        store.write_bytes(out, frame.to_csv(index=False).encode())
    else:
        store.write_bytes(out, frame.to_parquet(index=False))


def _keep(table: SampleTable, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    extra = {f"extra:{k}": v for k, v in table.extra.items()}
    facts = {f"fact:{k}": np.array(v) for k, v in table.facts.items()}
    classes = np.array(table.classes, np.str_)
    store.write_npz(path, classes=classes, **table.columns, **extra, **facts)


def _path(run: Run, loss: str, split: str) -> Path:
    name = f"samples-{split}-{loss}-{run.weights_hash()[:16]}-v{VERSION}.npz"
    home = data.data_home() / "embeddings" / run.name if run.shipped else run.path / "embeddings"
    return home / name


def _knobs(run: Run, loss: str) -> dict[str, Any] | None:
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


def _views(run: Run, dataset: data.Dataset, device: str, seed: int = 0) -> list[np.ndarray]:
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
    z = torch.cat(found).numpy()  # (n, 2 · draws, d)
    return [np.ascontiguousarray(z[:, 2 * d : 2 * d + 2]) for d in range(DRAWS)]
