"""A batch for the Loss Lab: real images, their rows, who is compared with whom, and what it costs.

The encoder is frozen: what moves when a knob is dragged is the loss's view of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from contrastive_core import spaces
from contrastive_core.embedding_set import EmbeddingSet
from contrastive_core.runs import Run

__all__ = [
    "DERIVATIVES",
    "PAIRINGS",
    "SOURCES",
    "LabBatch",
    "LabView",
    "batch_of",
    "view_of",
]

SOURCES = {
    "z": "Projection z",
    "h": "Backbone h",
    "random": "Untrained encoder",
    "pixels": "Raw pixels",
    "file": "A file of vectors",
}
PAIRINGS = {
    "views": "Views of one image",
    "classes": "Images of one class",
    "queue": "Key and queue (MoCo)",
    "bank": "Memory bank (Inst Disc)",
}

DERIVATIVES = {  # of losses on distances, which papers and notes leave to the reader
    "pair_contrastive": r"""\frac{\partial L}{\partial x_1} = \begin{cases}
        x_1-x_2 & \text{positive}\\
        -\frac{\varepsilon-D}{D}\,(x_1-x_2) & \text{negative, } 0<D<\varepsilon\\
        0 & \text{negative, } D\ge\varepsilon \text{ or } D=0
        \end{cases}\qquad D=\lVert x_1-x_2\rVert""",
}


@dataclass(frozen=True, eq=False)
class LabBatch:
    """Rows (b, v, d) of the views of b images, with what is known of the images."""

    rows: np.ndarray
    labels: np.ndarray  # (b)
    thumbs: np.ndarray | None  # (b · v, c, h, w) uint8, image-major; vectors have none
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
    """Augmented views of `images` images of a run's data set, by class, through an encoder; for the
    source "file:KEY" as many rows of loaded vectors. Raises ValueError when there are none."""
    if source.startswith("file:"):
        space = spaces.of_vectors(source.removeprefix("file:"))
        try:
            found = space.rows()
        except FileNotFoundError:
            raise ValueError("These vectors are not kept here; open their file again.") from None
        assert found is not None  # loaded vectors need no making
        return _batch_of_vectors(found, spaces.pictures(space), images * views, seed)
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


def _batch_of_vectors(
    found: EmbeddingSet, pictures: np.ndarray | None, rows: int, seed: int
) -> LabBatch:
    """Some rows of loaded vectors, by class. Rows that share an id, each id as often as any other,
    are views of one image; every other row is an image of one view."""
    ids, place = np.unique(np.array(found.ids), return_inverse=True)
    v = len(found) // len(ids)
    views = np.arange(len(found))[:, None]  # (b, v) row numbers
    if v > 1 and (np.bincount(place) == v).all():
        views = np.argsort(place, kind="stable").reshape(len(ids), v)
    labels = np.full(len(found), -1) if found.labels is None else found.labels
    views = views[np.random.default_rng(seed).permutation(len(views))][
        : max(1, rows // views.shape[1])
    ]
    views = views[np.argsort(labels[views[:, 0]], kind="stable")]
    known = labels[views[:, 0]]
    classes = found.classes or tuple(map(str, range(int(known.max(initial=-1)) + 1)))
    return LabBatch(
        np.ascontiguousarray(found.features[views], np.float32),
        known,
        None if pictures is None else np.asarray(pictures[views.ravel()]),
        classes,
        [found.ids[i] for i in views[:, 0]],
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
        "" if anatomy.output.n_valid else _why(anatomy, batch, pairing),
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
    if pairing not in PAIRINGS:
        raise ValueError(f"a pairing is one of {', '.join(PAIRINGS)}; got {pairing!r}")
    asked = torch.arange(0, b, 4)  # every fourth image is a query, so that each class has some
    rows, keys = [i * v for i in asked.tolist()], every[1::v]
    if pairing == "bank":
        return pairs.from_bank(q[asked], asked, k), rows, keys
    rest = [i for i in range(b) if i % 4]  # the keys of the others stand in the queue
    made = pairs.from_queue(q[asked], k[asked], k[rest])
    return made, rows, [keys[i] for i in [*asked.tolist(), *rest]]


def _name(batch: LabBatch, thumb: int) -> str:
    b, v = divmod(thumb, batch.rows.shape[1])
    label = int(batch.labels[b])
    what = batch.classes[label] if 0 <= label < len(batch.classes) else "no label"
    what = f"class {what}" if what.isdigit() else what
    return f"{what} #{b}{_view(v) if batch.rows.shape[1] > 1 else ''}"


def _view(v: int) -> str:
    return "abcdefgh"[v] if v < 8 else f".{v}"


def _why(anatomy: Any, batch: LabBatch, pairing: str) -> str:
    if not bool(anatomy.positive.any()):
        told = "No anchor has a positive in this batch, so the loss is undefined for all of them. "
        if pairing == "views" and batch.rows.shape[1] == 1:
            return told + "There is one view of each image; compare images of one class instead."
        if pairing == "classes" and (batch.labels < 0).all():
            return told + "These rows have no labels."
        return told + "Take a larger batch."
    if not bool(anatomy.negative.any()):
        return "No anchor has a negative in this batch: all its images belong together."
    return "The loss is undefined for every anchor of this batch."
