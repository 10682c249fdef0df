"""A batch for the Loss Lab: real images, their rows, who is compared with whom, and what it costs.

The encoder is frozen: what moves when a knob is dragged is the loss's view of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from contrastive_core.runs import Run

__all__ = ["PAIRINGS", "SOURCES", "LabBatch", "LabView", "batch_of", "view_of"]

SOURCES = {
    "z": "the run's projection z",
    "h": "the run's backbone h",
    "random": "an untrained encoder",
    "pixels": "raw pixels",
}
PAIRINGS = {
    "views": "two views of each image (self-supervised)",
    "classes": "all views of a class (supervised)",
    "queue": "query against key and queue (MoCo)",
    "bank": "image against a memory bank (Inst Disc)",
}


@dataclass(frozen=True, eq=False)
class LabBatch:
    """Rows (b, v, d) of the views of b images, with what is known of the images."""

    rows: np.ndarray
    labels: np.ndarray  # (b)
    thumbs: np.ndarray  # (b · v, c, h, w) uint8, image-major
    classes: tuple[str, ...]
    ids: list[str]


@dataclass(frozen=True, eq=False)
class LabView:
    """A loss on a batch, as the browser draws it."""

    scores: np.ndarray  # (n, w) float32
    mask: np.ndarray  # (n, w) uint8: 0 not comparable, 1 positive, 2 negative, 3 self
    kernel: dict[str, Any] | None
    row_thumbs: list[int]
    column_thumbs: list[int]
    names: list[str]
    column_names: list[str]
    score_name: str
    value: float
    n_valid: int
    per_anchor: np.ndarray
    weight: np.ndarray  # (n, w) on pairs
    grad: np.ndarray  # (n, w)
    extras: dict[str, Any] = field(default_factory=dict)
    reason: str = ""


def batch_of(run: Run, source: str, images: int, views: int, seed: int, split: str) -> LabBatch:
    """Augmented views of `images` images of a run's data set, by class, through an encoder."""
    import torch

    from contrastive_core.embed import data_of, load_model, random_encoder_of
    from contrastive_core.views import make_views, to_float

    dataset = data_of(run, split)
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(len(dataset))[:images]
    chosen = chosen[np.argsort(dataset.labels[chosen], kind="stable")]
    method = random_encoder_of(run, dataset) if source == "random" else load_model(run, dataset)
    method = method.cpu()
    generator = torch.Generator().manual_seed(seed)
    raw = torch.from_numpy(np.array(dataset.images[chosen]))
    x = make_views(raw, method.recipe, views, generator)  # (b, v, c, h, w)
    if views == 1:
        x = to_float(raw)[:, None]
    flat = x.flatten(0, 1)
    with torch.no_grad():
        if source == "pixels":
            rows = flat.flatten(1) - 0.5
        else:
            rows = method.features(flat)
            rows = rows if source == "h" else method.project(rows)
    return LabBatch(
        rows.reshape(len(chosen), views, -1).numpy(),
        np.asarray(dataset.labels[chosen]),
        (flat * 255).round().to(torch.uint8).numpy(),
        dataset.classes,
        [dataset.ids[i] for i in chosen],
    )


def view_of(batch: LabBatch, pairing: str, loss: str, knobs: dict[str, Any]) -> LabView:
    """The anatomy of a loss on a batch. Raises ValueError for a loss that cannot use the pairs."""
    import torch

    from contrastive_core import losses

    made = losses.create(loss, **knobs)
    pairs, rows, columns = _pairs(batch, pairing)
    anatomy = made.anatomy(pairs)
    mask = torch.zeros(anatomy.scores.shape, dtype=torch.uint8)
    for number, part in enumerate((anatomy.positive, anatomy.negative, anatomy.self_pair), 1):
        mask[part] = number
    extras = {k: v.numpy() if hasattr(v, "numpy") else v for k, v in anatomy.extras.items()}
    scores = {"dot": "similarity", "distance": "distance", "squared_distance": "squared distance"}
    kind = anatomy.score_kind
    unit = getattr(made, "normalise", False)
    return LabView(
        anatomy.scores.float().numpy(),
        mask.numpy(),
        made.kernel(),
        rows,
        columns,
        [_name(batch, r) for r in rows],
        [_name(batch, c) for c in columns],
        "cosine similarity" if unit and kind == "dot" else scores.get(kind, kind),
        float(anatomy.output.value),
        anatomy.output.n_valid,
        anatomy.output.per_anchor.numpy(),
        anatomy.weight.numpy(),
        anatomy.grad_scores.numpy(),
        extras,
        "" if anatomy.output.n_valid else _why(anatomy),
    )


def _pairs(batch: LabBatch, pairing: str) -> tuple[Any, list[int], list[int]]:
    """Pairs, and which thumbnail each anchor and each candidate has."""
    import torch

    from contrastive_core import pairs

    z = torch.from_numpy(batch.rows)  # (b, v, d)
    b, v, _ = z.shape
    every = list(range(b * v))
    if pairing == "views":
        return pairs.from_views(z), every, every
    if pairing == "classes":
        return pairs.from_views(z, torch.from_numpy(batch.labels)), every, every
    if v < 2:
        raise ValueError("a query and a key need two views of each image")
    q, k = z[:, 0], z[:, 1]
    if pairing == "bank":
        return pairs.from_bank(q, torch.arange(b), k), every[::v], every[1::v]
    if pairing != "queue":
        raise ValueError(f"a pairing is one of {', '.join(PAIRINGS)}; got {pairing!r}")
    half = max(1, b // 4)  # a quarter of the images are queries, the other keys stand in the queue
    keys = every[1::v]
    made = pairs.from_queue(q[:half], k[:half], k[half:])
    return made, every[::v][:half], keys[:half] + keys[half:]


def _name(batch: LabBatch, thumb: int) -> str:
    b, v = divmod(thumb, batch.rows.shape[1])
    label = int(batch.labels[b])
    what = batch.classes[label] if 0 <= label < len(batch.classes) else "no label"
    return f"{what} #{b}{'abcdefgh'[v] if batch.rows.shape[1] > 1 else ''}"


def _why(anatomy: Any) -> str:
    if not bool(anatomy.positive.any()):
        return "No anchor has a positive in this batch, so the loss is undefined for all of them."
    if not bool(anatomy.negative.any()):
        return "No anchor has a negative in this batch: all its images belong together."
    return "The loss is undefined for every anchor of this batch."
