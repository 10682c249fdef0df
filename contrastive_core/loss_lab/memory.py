"""What a query meets beside its own key in the Loss Lab: MoCo's queue, or Inst Disc's bank.

Weights that hold the run's own memory give it as training left it. Shipped runs keep encoder and
head only: then training images are encoded to stand in it, as training would have filled it.
Torch-free at import.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from contrastive_core.data.datasets import Dataset

__all__ = ["Memory", "bank_of", "label_name", "queue_of"]

# Rows (n, d) and pictures (n, c, h, w) uint8 of one augmented view of each of some images.
Encode = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
Weights = Mapping[str, Any]  # tensors by name; empty where rows are not the trained encoder's z


@dataclass(frozen=True, eq=False)
class Memory:
    """Rows (k, d) of a queue or bank that has `size` in all, with a picture (k, c, h, w) uint8 and
    a name of each; `query_slots` (b): where each query's slot stands in a bank."""

    rows: np.ndarray
    thumbs: np.ndarray | None
    names: list[str]
    size: int
    note: str  # whose rows these are, in a sentence
    query_slots: np.ndarray | None = None
    log_z: float | None = None


def queue_of(
    weights: Weights,
    dataset: Dataset,
    others: np.ndarray,
    count: int,
    encode: Encode,
    size: int,
    rng: np.random.Generator,
) -> Memory:
    """`count` keys of the run's queue, newest first, or of a queue made of the images `others`.

    Args: size: K, how many keys training keeps.
    """
    if int(weights.get("queue.enqueued", 0)):
        return _kept_queue(weights, count, rng)
    chosen = _by_class(dataset, others[: min(count, size)])
    rows, thumbs = encode(chosen)
    note = (
        f"{_missing(weights, 'queue')}, so other training images stand in it "
        f"({_of(len(chosen), size)} keys), each encoded once by this encoder, as training would "
        "have filled it."
    )
    names = [f"key {i} ({label_name(dataset, i)})" for i in chosen.tolist()]
    return Memory(rows, thumbs, names, size, note)


def _kept_queue(weights: Weights, count: int, rng: np.random.Generator) -> Memory:
    size = len(weights["queue.rows"])
    filled = min(size, int(weights["queue.enqueued"]))  # the rest is still as it was drawn
    ages = 1 + np.sort(rng.permutation(filled)[:count])
    rows = weights["queue.rows"][(int(weights["queue.pointer"]) - ages) % size].numpy()
    note = (
        f"The queue is the run's own as training left it: {_of(len(ages), filled)} keys, key 1 the "
        "newest. Keys come from the run's key encoder. Of an old key the image is not known."
    )
    return Memory(rows, None, [f"queue key {age}" for age in ages], size, note)


def bank_of(
    weights: Weights,
    dataset: Dataset,
    queries: np.ndarray,
    others: np.ndarray,
    count: int,
    encode: Encode,
) -> Memory:
    """The slots of the queries and of `count` other images: the run's own, or made of their images.

    Args: queries, others: row numbers in the training set; each has one slot.
    """
    slots = _by_class(dataset, np.concatenate([queries, others[:count]]))
    query_slots = np.array([int(np.flatnonzero(slots == q)[0]) for q in queries])
    size, share = len(dataset), f"{_of(len(slots), len(dataset))} slots, the queries' among them"
    names = [f"slot {i} ({label_name(dataset, i)})" for i in slots.tolist()]
    if len(weights.get("bank.rows", ())) == size:
        rows, log_z = weights["bank.rows"][slots].numpy(), float(weights["bank.log_z"])
        note = f"The bank is the run's own as training left it: {share}."
        pictures = np.asarray(dataset.images[slots])
        return Memory(
            rows, pictures, names, size, note, query_slots, None if log_z != log_z else log_z
        )
    rows, pictures = encode(slots)
    note = (
        f"{_missing(weights, 'bank')}, so its slots ({share}) are filled with one augmented "
        "view of each training image, encoded by this encoder, as training would have begun it."
    )
    return Memory(rows, pictures, names, size, note, query_slots)


def label_name(dataset: Any, i: int) -> str:
    """The class of a row, in words; of anything with `labels` and `classes`."""
    label = int(dataset.labels[i])
    name = dataset.classes[label] if 0 <= label < len(dataset.classes) else "no label"
    return f"class {name}" if name.isdigit() else str(name)


def _missing(weights: Weights, kind: str) -> str:
    """Why the run's own memory is not used."""
    if not weights:
        return f"A {kind} holds z of the trained encoder, which these vectors are not"
    return f"The run's weights hold no {kind} (shipped runs keep encoder and head only)"


def _by_class(dataset: Dataset, rows: np.ndarray) -> np.ndarray:
    return rows[np.lexsort((rows, dataset.labels[rows]))]


def _of(n: int, size: int) -> str:
    return f"all {n:,}" if n >= size else f"{n:,} of {size:,}"
