"""Every sample with its loss and what is odd about it: exact, over the whole set.

The loss of a sample is against all others of the split (rows in blocks: nothing n×n is kept), by
its class for a labelled loss; for a self-supervised one, over two augmented views of each image.
`training_estimate` is what random batches of the run's size would have said.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from contrastive_core import data, store
from contrastive_core.embedding_set import EmbeddingSet
from contrastive_core.runs import Run

__all__ = ["COLUMNS", "SampleTable", "per_sample", "read_table", "samples_of_run", "table_of"]

COLUMNS = (
    "id", "label", "loss", "weight", "rank", "mislabelled", "false_negative", "duplicate",
    "outlier", "ambiguous", "nearest_positive", "nearest_negative",
)  # fmt: skip
BLOCK = 512
VERSION = 1
Tell = Callable[[float], None]


@dataclass(frozen=True, eq=False)
class SampleTable:
    """One row per sample, as columns (see COLUMNS); `extra` explains some of them."""

    columns: dict[str, np.ndarray]
    classes: tuple[str, ...]
    loss: str

    def __len__(self) -> int:
        return len(self.columns["id"])


def per_sample(
    rows: EmbeddingSet,
    loss: str,
    knobs: dict[str, Any] | None = None,
    views: np.ndarray | None = None,
    tell: Tell = lambda share: None,
) -> tuple[np.ndarray, np.ndarray]:
    """Loss and weight (n) of each sample against all others.

    Args: views: (n, v, d) embeddings of augmented views, for self-supervised pairs; without them
        rows are paired by label. Raises: ValueError when neither is there.
    """
    import torch

    from contrastive_core import losses, pairs

    made = losses.create(loss, **(knobs or {}))
    if views is not None:
        z, v = torch.from_numpy(views), views.shape[1]
        whole = pairs.from_views(z)
    elif rows.labels is not None:
        z, v = torch.from_numpy(rows.features), 1
        whole = pairs.from_labels(z, torch.from_numpy(rows.labels))
    else:
        raise ValueError("without labels or augmented views no row has a positive")
    found, weight = [], []
    with torch.no_grad():
        for start in range(0, len(whole), BLOCK):
            out = made(_anchors(whole, slice(start, start + BLOCK)))
            found.append(out.per_anchor)
            weight.append(out.weight)
            tell(min(1.0, (start + BLOCK) / len(whole)))
    per_row, w = torch.cat(found).view(-1, v), torch.cat(weight).view(-1, v)
    value = (per_row * w).sum(1) / w.sum(1).clamp_min(1e-30)
    return value.double().numpy(), w.sum(1).double().numpy()


def training_estimate(
    rows: EmbeddingSet,
    loss: str,
    knobs: dict[str, Any],
    batch: int,
    repeats: int = 8,
    seed: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and spread (n) of each sample's loss over random batches of the run's size."""
    rng, n = np.random.default_rng(seed), len(rows)
    seen = np.full((repeats, n), np.nan)
    for r in range(repeats):
        order = rng.permutation(n)
        for part in np.array_split(order, max(1, round(n / max(2, batch)))):
            value, weight = per_sample(rows.take(part), loss, knobs)
            seen[r, part] = np.where(weight > 0, value, np.nan)
    return np.nanmean(seen, 0), np.nanstd(seen, 0)


def table_of(
    rows: EmbeddingSet,
    loss: str,
    knobs: dict[str, Any] | None = None,
    views: np.ndarray | None = None,
    tell: Tell = lambda share: None,
) -> SampleTable:
    """The table of an embedding. Raises ValueError when the loss has no pairs here."""
    from contrastive_core.findings import find

    value, weight = per_sample(rows, loss, knobs, views, tell)
    found = find(rows)
    positive, negative = _nearest_of_each(rows, found.neighbours.index)
    order = np.argsort(-np.where(weight > 0, value, -np.inf), kind="stable")
    rank = np.empty(len(rows), np.int64)
    rank[order] = np.arange(1, len(rows) + 1)
    labels = rows.labels if rows.labels is not None else np.full(len(rows), -1)
    names = np.array(rows.ids)
    columns = {
        "id": names,
        "label": np.array([rows.class_name(int(c)) if c >= 0 else "" for c in labels]),
        "loss": np.where(weight > 0, value, np.nan),
        "weight": weight,
        "rank": rank,
        **found.scores,
        "nearest_positive": np.where(positive >= 0, names[positive], ""),
        "nearest_negative": np.where(negative >= 0, names[negative], ""),
    }
    assert tuple(columns) == COLUMNS
    return SampleTable(columns, rows.classes, loss)


def samples_of_run(
    run: Run, loss: str | None = None, split: str = "train", tell: Tell = lambda share: None
) -> SampleTable:
    """The table of a run's split, cached by weights, loss and split."""
    loss = loss or str(run.config.get("loss"))
    known = read_table(run, loss, split)
    if known is not None:
        return known
    from contrastive_core.embed import data_of, embed_run

    own = run.config.get("loss_knobs") if loss == run.config.get("loss") else None
    rows = embed_run(run, split, "z")
    views = None
    if rows.labels is None:
        views = _views(run, data_of(run, split))
    made = table_of(rows, loss, own, views, tell)
    path = _path(run, loss, split)
    path.parent.mkdir(parents=True, exist_ok=True)
    store.write_npz(path, classes=np.array(made.classes, np.str_), **made.columns)
    return made


def read_table(run: Run, loss: str, split: str) -> SampleTable | None:
    """The table if it has been made for these weights. Needs no torch."""
    try:
        found = store.read_npz(_path(run, loss, split))
        classes = tuple(found.pop("classes").tolist())
        return SampleTable({k: found[k] for k in COLUMNS}, classes, loss)
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


def _path(run: Run, loss: str, split: str) -> Path:
    name = f"samples-{split}-{loss}-{run.weights_hash()[:16]}-v{VERSION}.npz"
    home = data.data_home() / "embeddings" / run.name if run.shipped else run.path / "embeddings"
    return home / name


def _views(run: Run, dataset: Any, seed: int = 0) -> np.ndarray:
    """z (n, 2, d) of two augmented views of each image, in evaluation mode."""
    import torch

    from contrastive_core.embed import load_model
    from contrastive_core.views import make_views

    method = load_model(run, dataset)
    device = next(method.parameters()).device
    generator, found = torch.Generator().manual_seed(seed), []
    with torch.no_grad():
        for start in range(0, len(dataset), 256):
            images = torch.from_numpy(np.array(dataset.images[start : start + 256])).to(device)
            x = make_views(images, method.recipe, 2, generator)
            found.append(method(x.flatten(0, 1)).unflatten(0, x.shape[:2]).float().cpu())
    return np.asarray(torch.cat(found).numpy())


def _anchors(whole: Any, rows: slice) -> Any:
    from contrastive_core.losses._base import slice_rows

    return slice_rows(whole, rows)


def _nearest_of_each(rows: EmbeddingSet, near: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Nearest row of the same and of another label among the neighbours (n) each; −1: none."""
    if rows.labels is None:
        return np.full(len(rows), -1), near[:, 0]
    same = rows.labels[near] == rows.labels[:, None]  # (n, k)
    pick = lambda mask: np.where(mask.any(1), near[np.arange(len(near)), mask.argmax(1)], -1)  # noqa: E731
    return pick(same), pick(~same)
