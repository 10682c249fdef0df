"""What a query meets beside its own key in the Loss Lab: MoCo's queue, or Inst Disc's bank. Weights that hold the run's
own memory give it as training left it. Shipped runs keep encoder and head only: then training images are encoded to
stand in it, as training would have filled it."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from contrastive_core.data.datasets import Dataset
from contrastive_core.messages import N_, message
from contrastive_core.records.lab_view import Memory, label_name

# Rows (n, d) and pictures (n, c, h, w) uint8 of one augmented view of each of some images.
Encode = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
Weights = Mapping[str, Any]  # tensors by name; empty where rows are not the trained encoder's z


def queue_of(
    weights: Weights,
    dataset: Dataset,
    others: np.ndarray,
    count: int,
    encode: Encode,
    size: int,
    rng: np.random.Generator,
) -> Memory:
    """`count` keys of the run's queue, newest first, or of one made of the images `others`. `size`: K in training."""
    if int(weights.get("queue.enqueued", 0)):
        return _kept_queue(weights, count, rng)
    chosen = _by_class(dataset, others[: min(count, size)])
    rows, thumbs = encode(chosen)
    note = message(
        "{missing}, so other training images stand in it ({of} keys), each encoded once by this encoder, as training "
        "would have filled it.",
        missing=_missing(weights, N_("queue")),
        of=_of(len(chosen), size),
    )
    names: list[str] = [
        message("key {index} ({label_name})", index=i, label_name=label_name(dataset, i)) for i in chosen.tolist()
    ]
    return Memory(rows, thumbs, names, size, note)


def _kept_queue(weights: Weights, count: int, rng: np.random.Generator) -> Memory:
    size = len(weights["queue.rows"])
    filled = min(size, int(weights["queue.enqueued"]))  # the rest is still as it was drawn
    ages = 1 + np.sort(rng.permutation(filled)[:count])
    rows = weights["queue.rows"][(int(weights["queue.pointer"]) - ages) % size].numpy()
    note = message(
        "This is the run's own queue after training: {of} keys, key 1 the newest. Keys come from the run's key "
        "encoder. The images of old keys are unknown.",
        of=_of(len(ages), filled),
    )
    names: list[str] = [message("queue key {age}", age=age) for age in ages]
    return Memory(rows, None, names, size, note)


def bank_of(
    weights: Weights, dataset: Dataset, queries: np.ndarray, others: np.ndarray, count: int, encode: Encode
) -> Memory:
    """The slots of the queries and of `count` other images: the run's own, or made of their images. `queries`,
    `others`: row numbers in the training set; each has one slot."""
    slots = _by_class(dataset, np.concatenate([queries, others[:count]]))
    query_slots = np.array([int(np.flatnonzero(slots == q)[0]) for q in queries])
    size, share = len(dataset), message("{of} slots, the queries' among them", of=_of(len(slots), len(dataset)))
    names: list[str] = [
        message("slot {index} ({label_name})", index=i, label_name=label_name(dataset, i)) for i in slots.tolist()
    ]
    if len(weights.get("bank.rows", ())) == size:
        rows, log_z = weights["bank.rows"][slots].numpy(), float(weights["bank.log_z"])
        note = message("This is the run's own memory bank after training: {share}.", share=share)
        pictures = np.asarray(dataset.images[slots])
        return Memory(rows, pictures, names, size, note, query_slots, None if log_z != log_z else log_z)
    rows, pictures = encode(slots)
    note = message(
        "{missing}, so its slots ({share}) are filled with one augmented view of each training image, encoded by this "
        "encoder, as training would have begun it.",
        missing=_missing(weights, N_("bank")),
        share=share,
    )
    return Memory(rows, pictures, names, size, note, query_slots)


def _missing(weights: Weights, kind: str) -> str:
    """Why the run's own memory is not used."""
    if not weights:
        return message("A {kind} contains z of the trained encoder, and these vectors are not z", kind=kind)
    return message("The run's weights hold no {kind} (shipped runs keep encoder and head only)", kind=kind)


def _by_class(dataset: Dataset, rows: np.ndarray) -> np.ndarray:
    return rows[np.lexsort((rows, dataset.labels[rows]))]


def _of(n: int, size: int) -> str:
    return message("all {n}", n=f"{n:,}") if n >= size else message("{n} of {size}", n=f"{n:,}", size=f"{size:,}")
