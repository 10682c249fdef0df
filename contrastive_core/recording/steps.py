"""A recorded step: the detached copies that the training thread makes on the tensors' device without waiting for a GPU,
and the rows that the recorder reads from them. Figures use all rows, and a sample is stored. Unusable rows are
counted."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from contrastive_core.base.errors import UnusableEmbedding
from contrastive_core.base.messages import N_, join, message
from contrastive_core.ops import collectives
from contrastive_core.pairs.types import describe

PER_ROW = ("labels", "ids", "losses")
MOST_ROWS = 8192  # of a step that are copied, and as many of its queue
LONGEST = 200  # characters of an id
logger = logging.getLogger("contrastive_core.watch")


class Omissions:
    """Counts of rows and steps missing from a recording, by reason; used by all threads. Each reason is logged once."""

    def __init__(self, name: str) -> None:
        self.name = name  # of the recording, for the log; "" logs nothing
        self.counts: Counter[tuple[str, str]] = Counter()
        self.remarks: list[str] = []
        self._lock = threading.Lock()

    def add(self, items: str, reason: str, count: int = 1) -> None:
        """Count `count` more `items` (rows, steps) as left out."""
        with self._lock:
            is_new = (items, reason) not in self.counts
            self.counts[items, reason] += count
        if is_new and self.name:
            logger.warning("%s: %s left out: %s", self.name, items, reason)

    def remark(self, sentence: str) -> None:
        """Add a remark to the note, once."""
        if sentence not in self.remarks:
            self.remarks.append(sentence)
            logger.warning("%s: %s", self.name, sentence)

    @property
    def note(self) -> str:
        """The counts and remarks as text; "" if nothing is left out."""
        with self._lock:
            parts = [
                message("{items} ({count}: {reason})", items=items, count=f"{count:,}", reason=reason)
                for (items, reason), count in self.counts.items()
            ]
        sentences = [message("Left out: {parts}.", parts=join("; ", parts))] if parts else []
        return join(" ", [*sentences, *self.remarks])


def reason_of(error: Exception) -> str:
    """Return the reason of an error, with the operating system's message if it has one."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


# --- copies, in the training thread ---


@dataclass(frozen=True, eq=False)
class StepCopy:
    """Copies of one step: a tensor of rows (n, d) or views (b, v, d), or one (n, d) for each view. For two towers: rows
    (n, d) and (m, d), with a pair of labels, ids and losses."""

    step: int
    views: tuple[Tensor, ...]
    queue: Tensor | None = None
    labels: Any = None
    ids: Any = None
    losses: Any = None
    temperature: Any = None
    bias: Any = None
    caller_loss: Any = None
    images_per_s: float = 0.0
    copied: torch.cuda.Event | None = None  # of a GPU, after the copies
    is_of_towers: bool = False
    is_whole: bool = True  # no row is left out
    processes: int = 1  # that have gathered these rows


def copy_step(
    step: int,
    views: Sequence[Any],
    images_per_s: float,
    omissions: Omissions,
    *,
    queue: Any = None,
    are_towers: bool = False,
    caller_loss: Any = None,
    **values: Any,
) -> StepCopy:
    """Copy the arguments of `Watch.step`, thinned to MOST_ROWS. Raises TypeError or ValueError if they are not rows."""
    tensors = _views(views, are_towers)
    counts = [t.shape[:-1].numel() for t in tensors]
    stride = max(1, -(-sum(counts) // MOST_ROWS))
    copies = tuple(z.detach()[::stride].clone() for z in tensors)
    if skipped := sum(counts) - sum(z.shape[:-1].numel() for z in copies):
        omissions.add("rows", N_("the step has more rows than the limit"), skipped)
    keys, lost = None, 0
    if queue is not None:
        queue = _rows("queue", queue)
        keys = queue.detach()[:: -(-len(queue) // MOST_ROWS) or 1].clone()
        if lost := len(queue) - len(keys):
            omissions.add(N_("rows of the queue"), N_("it has more rows than can be read"), lost)
    copied = None
    if copies[0].device.type == "cuda":
        copied = torch.cuda.Event()
        copied.record(torch.cuda.current_stream(copies[0].device))
    is_number = isinstance(caller_loss, (Tensor, np.generic, np.ndarray, float, int))
    ndim: int = getattr(caller_loss, "ndim", 0)
    if caller_loss is not None and (ndim or not is_number):
        text = message("caller_loss must be one number; got {loss}", loss=describe(caller_loss))
        omissions.add(N_("steps' losses"), text)
        caller_loss = None
    values["caller_loss"] = caller_loss
    for name, value in values.items():
        if not are_towers or name not in PER_ROW or value is None:
            values[name] = _copy(value, -1 if are_towers else len(tensors[0]), stride)
            continue
        is_pair = isinstance(value, (tuple, list)) and len(value) == 2 and all(map(_has_entries, value))
        pair = value if is_pair else (value, value)  # one value for both towers
        sizes = counts if is_pair else [counts[0]] * 2
        values[name] = tuple(_copy(part, count, stride) for part, count in zip(pair, sizes, strict=True))
    return StepCopy(
        step=step,
        views=copies,
        queue=keys,
        images_per_s=images_per_s,
        copied=copied,
        is_of_towers=are_towers,
        is_whole=not skipped and not lost,
        **values,
    )


def _views(views: Sequence[Any], are_towers: bool) -> list[Tensor]:
    """Return the row tensors of a step. Raises TypeError, UnusableEmbedding."""
    tensors = [_rows(message("rows {index}", index=i) if len(views) > 1 else "rows", z) for i, z in enumerate(views)]
    if not tensors:
        raise TypeError(N_("step takes rows (n, d) or views (images, views, d)"))
    shapes = ", ".join(str(tuple(t.shape)) for t in tensors)
    if are_towers:
        if len(tensors) != 2 or any(t.ndim != 2 for t in tensors) or tensors[0].shape[1] != tensors[1].shape[1]:
            raise UnusableEmbedding(
                "two towers need rows (n, d) and rows (m, d) of the same width; got {shapes}", shapes=shapes
            )
    elif len(tensors) > 1 and (tensors[0].ndim != 2 or len({t.shape for t in tensors}) > 1):
        raise UnusableEmbedding(
            "views must be rows (n, d) of the same shape, or belong to two towers; got {shapes}", shapes=shapes
        )
    return tensors


def _rows(name: str, z: Any) -> Tensor:
    if not isinstance(z, Tensor):
        if not hasattr(z, "__array__"):
            raise TypeError(message("{name} must be a tensor (n, d); got {z}", name=name, z=describe(z)))
        z = torch.from_numpy(np.array(z))
    if z.is_meta:
        raise UnusableEmbedding("{name} have no values: they are on the device meta", name=name)
    if z.ndim not in (2, 3) or not z.is_floating_point():
        values = {"name": name, "dtype": z.dtype, "shape": tuple(z.shape)}
        raise UnusableEmbedding(
            "{name} must be floating-point numbers (n, d) or (images, views, d); got {dtype} {shape}", **values
        )
    return z


def _has_entries(part: Any) -> bool:
    return part is None or (hasattr(part, "__len__") and not isinstance(part, str) and getattr(part, "ndim", 1) > 0)


def _copy(value: Any, n: int, stride: int) -> Any:
    """Copy a value that accompanies the rows; one with an entry per row is thinned like the rows."""
    if isinstance(value, (Tensor, np.ndarray)):
        part = value[::stride] if value.ndim and len(value) == n else value
        return part.detach().clone() if isinstance(part, Tensor) else part.copy()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return list(value[::stride] if len(value) == n else value)
    return value


def to_numpy(value: Any) -> np.ndarray:
    """Return a tensor, array or list of numbers as an array."""
    if isinstance(value, Tensor):
        value = value.cpu()
        return (value.float() if value.dtype == torch.bfloat16 else value).numpy()
    return np.asarray([v.item() if isinstance(v, Tensor) else v for v in value])


def gather_step(copy: StepCopy) -> StepCopy:
    """Gather the rows of all processes, but not the queue, in rank order. Every process calls it."""
    if collectives.is_single_process():
        return copy

    def gather(value: Any) -> np.ndarray | None:
        parts = collectives.all_gather_object(None if value is None else to_numpy(value))
        return None if any(part is None for part in parts) else np.concatenate(parts)

    values: dict[str, Any] = {}
    for name in PER_ROW:
        value = getattr(copy, name)
        values[name] = tuple(map(gather, value or (None, None))) if copy.is_of_towers else gather(value)
        if copy.is_of_towers and all(part is None for part in values[name]):
            values[name] = None
    loss = gather(None if copy.caller_loss is None else [copy.caller_loss])
    values |= {"caller_loss": None if loss is None else float(loss.mean()), "copied": None}
    views = tuple(collectives.all_gather(z) for z in copy.views)
    return replace(copy, views=views, processes=collectives.world().size, **values)


# --- rows, in the recorder's thread ---


@dataclass(frozen=True, eq=False)
class RecordedBatch:
    """Rows z (n, d) float64, each with image, view and label (n; −1: none) and an id. Optional: the caller's losses
    (n), the queue (k, d), and the learned τ and bias. For two towers `image` numbers the groups of partners, and `view`
    the towers."""

    z: Tensor
    image: np.ndarray
    view: np.ndarray
    labels: np.ndarray
    ids: np.ndarray
    losses: np.ndarray | None = None
    queue: Tensor | None = None
    temperature: float | None = None
    bias: float | None = None
    is_of_towers: bool = False

    def __len__(self) -> int:
        return len(self.z)

    @property
    def has_views(self) -> bool:
        return bool((self.view > 0).any())

    @property
    def has_labels(self) -> bool:
        return bool((self.labels >= 0).any())

    def shared_groups(self) -> np.ndarray:
        """Return the numbers of the groups that have rows in both towers."""
        return np.intersect1d(self.image[self.view == 0], self.image[self.view == 1])

    def take(self, rows: np.ndarray) -> RecordedBatch:
        """Return the rows selected by a mask (n)."""
        arrays = {k: getattr(self, k)[rows] for k in ("image", "view", "labels", "ids")}
        losses = None if self.losses is None else self.losses[rows]
        return replace(self, z=self.z[torch.from_numpy(rows)], losses=losses, **arrays)


def batch_of(copy: StepCopy, omissions: Omissions) -> RecordedBatch:
    """Return the usable rows of a step. Raises ValueError if there are none."""
    if any(not z.numel() for z in copy.views):
        raise ValueError(N_("it has no rows"))
    tau, bias = (None if x is None else float(to_numpy([x])[0]) for x in (copy.temperature, copy.bias))
    batch = (_rows_of_towers if copy.is_of_towers else _rows_of_views)(copy, omissions)
    batch = replace(batch, temperature=tau, bias=bias)
    if batch.queue is not None and not (finite := torch.isfinite(batch.queue).all(1)).all():
        omissions.add(N_("rows of the queue"), N_("not finite"), int((~finite).sum()))
        batch = replace(batch, queue=batch.queue[finite])
    lost = np.isin(batch.image, batch.image[~np.isfinite(batch.z.numpy()).all(1)])
    if lost.any():
        omissions.add("rows", N_("not finite, or another view of an image that is not finite"), int(lost.sum()))
        if lost.all():
            raise ValueError(N_("none of its rows is finite"))
        batch = batch.take(~lost)
    if batch.is_of_towers and not len(batch.shared_groups()):
        raise UnusableEmbedding("the two towers have no ids in common")
    return batch


def _rows_of_views(copy: StepCopy, omissions: Omissions) -> RecordedBatch:
    tensors = [z.cpu().double() for z in copy.views]
    z = torch.stack(tensors, 1) if len(tensors) > 1 else tensors[0]
    count, views = len(z), z.shape[1] if z.ndim == 3 else 1
    flat = z.reshape(-1, z.shape[-1])  # (n, d), image-major
    image, view = np.divmod(np.arange(len(flat)), views)
    ids = np.array([f"{copy.step}:{row}" for row in range(count)]) if copy.ids is None else _texts(copy.ids, count)
    if views == 1 and copy.ids is not None:
        image = group_numbers(ids)
        order = np.argsort(image, kind="stable")
        view[order] = np.arange(count) - np.searchsorted(image[order], image[order])
    return RecordedBatch(
        z=flat,
        image=image,
        view=view,
        labels=_labels(copy.labels, count, views, omissions),
        ids=np.repeat(ids, views),
        losses=_losses(copy.losses, count, views, len(tensors) > 1, omissions),
        queue=None if copy.queue is None else copy.queue.cpu().double(),
    )


def _rows_of_towers(copy: StepCopy, omissions: Omissions) -> RecordedBatch:
    """Return the rows of both towers, the first tower's first. Rows with an equal id are partners; rows of the second
    tower without an id are negatives. Without ids, row i belongs to row i, or, in towers of different size, rows share
    a label."""
    sizes = (len(copy.views[0]), len(copy.views[1]))
    if copy.queue is not None:
        omissions.add(N_("rows of the queue"), N_("two towers have no queue"), len(copy.queue))
    none = (None, None)
    labels = np.concatenate([_labels(x, n, 1, omissions) for x, n in zip(copy.labels or none, sizes, strict=True)])
    losses = [_losses(x, n, 1, False, omissions) for x, n in zip(copy.losses or none, sizes, strict=True)]
    values = np.concatenate([np.full(n, np.nan) if x is None else x for x, n in zip(losses, sizes, strict=True)])
    names = [f"{copy.step}:{row}" for row in range(sum(sizes))]
    if copy.ids is not None:
        known = [[] if x is None else _listed(x) for x in copy.ids]
        if len(known[0]) == len(known[1]) == sizes[0]:
            known[1] = [*known[1], *(f"{copy.step}:negative {row}" for row in range(1, sizes[1] - sizes[0] + 1))]
        ids = np.concatenate([_texts(x, n) for x, n in zip(known, sizes, strict=True)])
    elif sizes[0] == sizes[1]:
        ids = np.array(names[: sizes[0]] * 2)
    elif (labels >= 0).any():
        ids = np.array([str(y) if y >= 0 else name for name, y in zip(names, labels.tolist(), strict=True)])
    else:
        raise UnusableEmbedding("two towers of different sizes need ids or labels that say which rows belong together")
    return RecordedBatch(
        z=torch.cat([z.cpu().double() for z in copy.views]),
        image=group_numbers(ids),
        view=np.repeat([0, 1], sizes),
        labels=labels,
        ids=ids,
        losses=values if np.isfinite(values).any() else None,
        is_of_towers=True,
    )


def group_numbers(ids: np.ndarray) -> np.ndarray:
    """Return a number (n) for each id, in the order of first occurrence."""
    _, first, place = np.unique(ids, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[place]


def _texts(ids: Any, count: int) -> np.ndarray:
    """Return the caller's ids (count) as text. Raises UnusableEmbedding if their number differs."""
    given = _listed(ids)
    if len(given) != count:
        values = {"count": count, "given": len(given)}
        raise UnusableEmbedding("ids must be ({count},), one for each row or image; got {given}", **values)
    return np.array([str(getattr(i, "item", lambda i=i: i)())[:LONGEST] for i in given])


def _listed(ids: Any) -> list[Any]:
    return ids if isinstance(ids, list) else to_numpy(ids).tolist()


def _labels(given: object, count: int, views: int, omissions: Omissions) -> np.ndarray:
    """Return a label for each row (n); −1 for a row without one, and for all rows if the labels cannot be used."""
    labels = np.full(count, -1) if given is None else to_numpy(given)
    if labels.shape not in ((count,), (count * views,)) or labels.dtype.kind not in "iub":
        omissions.add(N_("steps' labels"), message("they must be whole numbers of shape ({count},)", count=count))
        labels = np.full(count, -1)
    labels = np.maximum(labels.astype(np.int64), -1)
    return labels if len(labels) == count * views else np.repeat(labels, views)


def _losses(given: object, count: int, views: int, view_major: bool, omissions: Omissions) -> np.ndarray | None:
    """Return the caller's losses, one per row (n). A loss per image is repeated for its rows. With several tensors of
    views, losses of all rows are in the tensors' order: the first view's first."""
    if given is None:
        return None
    losses = to_numpy(given).astype(np.float64)
    if losses.shape == (count,):
        return np.repeat(losses, views)
    if losses.shape != (count * views,):
        reason = message("their shape must be ({count},) or ({views},)", count=count, views=count * views)
        omissions.add(N_("steps' losses"), reason)
        return None
    return losses.reshape(views, count).T.ravel() if view_major else losses
