"""Rows for the Loss Lab: views of real images through an encoder, a snapshot, or loaded vectors.

The encoder is frozen: what moves when a knob is dragged is the loss's view of it. Torch-free at
import.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from contrastive_core.data.datasets import Dataset
from contrastive_core.embeddings import ref
from contrastive_core.embeddings.embedding_set import EmbeddingSet
from contrastive_core.loss_lab.memory import Memory, bank_of, label_name, queue_of
from contrastive_core.runs import Run

__all__ = ["MEMORIES", "SNAPSHOT", "LabBatch", "batch_of", "snapshots_of"]

SNAPSHOT = "snapshot:"
SHOWN = 6  # snapshots that are offered at most, the first and the last among them
MEMORIES = ("queue", "bank")
PER_QUERY = 3  # rows of a memory beside each query: a quarter of the columns are its own


@dataclass(frozen=True, eq=False)
class LabBatch:
    """Rows (b, v, d) of the views of b images, with what is known of the images."""

    rows: np.ndarray
    labels: np.ndarray  # (b)
    thumbs: np.ndarray | None  # (b · v, c, h, w) uint8, image-major, then the memory's
    classes: tuple[str, ...]
    ids: list[str]
    memory: Memory | None = None

    def name(self, row: int) -> str:
        """A row, image-major, in words: its class, image and view."""
        b, v = divmod(row, self.rows.shape[1])
        view = ("abcdefgh"[v] if v < 8 else f".{v}") if self.rows.shape[1] > 1 else ""
        return f"{label_name(self, b)} #{b}{view}"

    @property
    def told(self) -> str:
        """What is to be known of these rows: whose memory it is, and which have no direction."""
        parts = [self.memory.told] if self.memory else []
        zero = int((~self.rows.any(-1)).sum())
        if self.memory is not None:
            zero += int((~self.memory.rows.any(-1)).sum())
        if zero:
            parts.append(
                f"{zero} of these rows are zero vectors: they have no direction, so every cosine "
                "with them counts as 0 and no gradient reaches them."
            )
        return " ".join(parts)


def snapshots_of(run: Run) -> dict[str, str]:
    """Sources that a run's snapshots give, first to last, with their names."""
    epochs = run.snapshots()
    if len(epochs) > SHOWN:
        epochs = [epochs[round(q)] for q in np.linspace(0, len(epochs) - 1, SHOWN)]
    told = {epochs[0]: ", the first", epochs[-1]: ", the last"} if len(epochs) > 1 else {}
    return {f"{SNAPSHOT}{e}": f"Snapshot: z after epoch {e}{told.get(e, '')}" for e in epochs}


def batch_of(
    run: Run, source: str, images: int, views: int, seed: int, split: str, memory: str = ""
) -> LabBatch:
    """Augmented views of `images` images of a run's data set, by class, through an encoder.

    Args:
        source: "z", "h", "random" or "pixels"; "snapshot:EPOCH" for rows of the run's fixed sample
            and "file:KEY" for loaded vectors, of both images · views rows.
        memory: "queue" or "bank": the images are training images, and rows stand beside them.
    Raises: ValueError when there are no such rows.
    """
    if source.startswith("file:"):
        space = ref.of_vectors(source.removeprefix("file:"))
        try:
            found = space.rows()
        except FileNotFoundError:
            raise ValueError("These vectors are not kept here; open their file again.") from None
        assert found is not None  # loaded vectors need no making
        return _batch_of_vectors(found, ref.pictures(space), images * views, seed)
    dataset = _dataset(run, "train" if memory or source.startswith(SNAPSHOT) else split)
    if source.startswith(SNAPSHOT):
        epoch = source.removeprefix(SNAPSHOT)
        return _batch_of_snapshot(run, epoch, dataset, images * views, seed)
    return _batch_of_images(run, source, dataset, images, views, seed, memory)


# --- images through an encoder -------------------------------------------------------------------


def _batch_of_images(
    run: Run, source: str, dataset: Dataset, images: int, views: int, seed: int, memory: str
) -> LabBatch:
    import torch

    from contrastive_core.data.augmentations import make_views, to_float
    from contrastive_core.evaluation.embed import load_model, random_encoder_of
    from contrastive_core.runs import checkpoints

    rng = np.random.default_rng(seed)
    order = rng.permutation(len(dataset))
    chosen, others = order[:images], order[images:]
    chosen = chosen[np.argsort(dataset.labels[chosen], kind="stable")]
    method = random_encoder_of(run, dataset) if source == "random" else load_model(run, dataset)
    method = method.cpu()
    weights = checkpoints.load_weights(run) if memory and source == "z" else {}
    generator = torch.Generator().manual_seed(seed)

    @torch.no_grad()
    def encode(x: Any) -> Any:
        if source == "pixels":
            return x.flatten(1) - 0.5
        rows = method.features(x)
        return rows if source == "h" else method.project(rows)

    def once(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        raw = torch.from_numpy(np.array(dataset.images[rows]))
        x = make_views(raw, method.recipe, 1, generator)[:, 0]
        return encode(x).numpy(), _pictures(x)

    raw = torch.from_numpy(np.array(dataset.images[chosen]))
    x = to_float(raw)[:, None] if views == 1 else make_views(raw, method.recipe, views, generator)
    rows = encode(x.flatten(0, 1)).reshape(len(chosen), views, -1).numpy()
    thumbs, kept = _pictures(x.flatten(0, 1)), None
    if memory == "queue":
        size = int(run.config.get("method_knobs", {}).get("queue", len(others)))
        kept = queue_of(weights, dataset, others, PER_QUERY * images, once, size, rng)
        if kept.thumbs is None:  # the run's own queue, and so its own keys
            rows = _with_keys(rows, method, weights, x)
    elif memory == "bank":
        kept = bank_of(weights, dataset, chosen, others, PER_QUERY * images, once)
    if kept is not None and kept.thumbs is not None:
        thumbs = np.concatenate([thumbs, kept.thumbs])
    ids = [dataset.ids[i] for i in chosen]
    return LabBatch(rows, np.asarray(dataset.labels[chosen]), thumbs, dataset.classes, ids, kept)


def _with_keys(rows: np.ndarray, method: Any, weights: Any, x: Any) -> np.ndarray:
    """Rows (b, v, d) with the second view's as the run's key encoder gives them."""
    import torch

    for part in ("key_encoder", "key_head"):
        start = f"{part}."
        own = {k.removeprefix(start): v for k, v in weights.items() if k.startswith(start)}
        getattr(method, part).load_state_dict(own)
    with torch.no_grad():
        rows[:, 1] = method.key_head(method.key_encoder(x[:, 1])).numpy()
    return rows


def _pictures(x: Any) -> np.ndarray:
    """Images (n, c, h, w) in [0, 1] as uint8."""
    found: np.ndarray = (x * 255).round().byte().numpy()
    return found


def _dataset(run: Run, split: str) -> Dataset:
    """A split of a run's data; for training, without what the run left out."""
    from contrastive_core.data.overrides import curated
    from contrastive_core.evaluation.embed import data_of

    found = data_of(run, split)
    if split != "train":
        return found
    return curated(found, run.config.get("exclude"), run.config.get("relabel"))


# --- rows that exist -----------------------------------------------------------------------------


def _batch_of_snapshot(run: Run, epoch: str, dataset: Dataset, rows: int, seed: int) -> LabBatch:
    """z of some images of the fixed sample, by class: the same images in every snapshot."""
    known = {str(e): e for e in run.snapshots()}
    if epoch not in known:
        raise ValueError(f"{run.name} has no snapshot of epoch {epoch}.")
    found = run.snapshot(known[epoch])
    at = np.sort(np.random.default_rng(seed).permutation(len(found["index"]))[:rows])
    at = at[np.argsort(found["labels"][at], kind="stable")]
    index = found["index"][at]
    if len(index) and int(index.max()) >= len(dataset):
        raise ValueError("The snapshot's images are not those of the data set as it is now.")
    z = np.ascontiguousarray(found["z"][at, None], np.float32)
    ids = [dataset.ids[i] for i in index]
    return LabBatch(z, found["labels"][at], np.asarray(dataset.images[index]), dataset.classes, ids)


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
