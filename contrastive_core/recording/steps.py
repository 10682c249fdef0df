"""Recorded training steps: detached copies that the training thread makes on the tensors' device. `copy_step` does not
wait for a GPU."""

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


@dataclass(frozen=True, eq=False)
class ProbeCopy:
    """The embedding of the probe set at a step, with labels and ids of its samples."""

    step: int
    h: np.ndarray  # (n, d)
    z: np.ndarray  # (n, e)
    labels: np.ndarray  # (n), −1 where there is none
    ids: np.ndarray  # (n) texts
    cosine_again: float = 1.0  # mean, of some rows with the same ones, embedded again


def copy_step(
    step: int,
    views: Sequence[Any],
    images_per_s: float,
    omissions: Omissions,
    *,
    queue: Any = None,
    are_towers: bool = False,
    **values: Any,
) -> StepCopy:
    """Copy the arguments of `Watch.step`, thinned to MOST_ROWS. Raises TypeError or ValueError if they are not rows."""
    tensors = _views(views, are_towers)
    counts = [t.shape[:-1].numel() for t in tensors]
    stride = max(1, -(-sum(counts) // MOST_ROWS))
    copies = tuple(z.detach()[::stride].clone() for z in tensors)
    if skipped := sum(counts) - sum(z.shape[:-1].numel() for z in copies):
        omissions.add("rows", N_("the step has more rows than the limit"), skipped)
    keys = None
    if queue is not None:
        queue = _rows("queue", queue)
        keys = queue.detach()[:: -(-len(queue) // MOST_ROWS) or 1].clone()
        if len(keys) < len(queue):
            omissions.add(N_("rows of the queue"), N_("it has more rows than can be read"), len(queue) - len(keys))
    copied = None
    if copies[0].device.type == "cuda":
        copied = torch.cuda.Event()
        copied.record(torch.cuda.current_stream(copies[0].device))
    loss = values.setdefault("caller_loss", None)
    is_number = isinstance(loss, (Tensor, np.generic, np.ndarray, float, int)) and getattr(loss, "ndim", 0) == 0
    if loss is not None and not is_number:
        values["caller_loss"] = None
        omissions.add(N_("steps' losses"), message("caller_loss must be one number; got {loss}", loss=describe(loss)))
    for name, value in values.items():
        if not are_towers:
            values[name] = _copy(value, len(tensors[0]), stride)
        else:
            values[name] = _copy_of_towers(value, counts, stride) if name in PER_ROW else _copy(value, -1, 1)
    return StepCopy(
        step=step,
        views=copies,
        queue=keys,
        images_per_s=images_per_s,
        copied=copied,
        is_of_towers=are_towers,
        is_whole=not skipped and (keys is None or queue is None or len(keys) == len(queue)),
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


def _copy(value: Any, n: int, stride: int) -> Any:
    """Copy a value that accompanies the rows; one with an entry per row is thinned like the rows."""
    if isinstance(value, (Tensor, np.ndarray)):
        part = value[::stride] if value.ndim and len(value) == n else value
        return part.detach().clone() if isinstance(part, Tensor) else part.copy()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return list(value[::stride] if len(value) == n else value)
    return value


def _copy_of_towers(value: Any, counts: list[int], stride: int) -> tuple[Any, Any] | None:
    """Copy a value with an entry per row, from a pair with one value per tower or from one value for both."""
    if value is None:
        return None
    is_pair = isinstance(value, (tuple, list)) and len(value) == 2
    for part in value if is_pair else ():
        has_entries = hasattr(part, "__len__") and not isinstance(part, str) and getattr(part, "ndim", 1) > 0
        is_pair = is_pair and (part is None or has_entries)
    if not is_pair:
        value, counts = (value, value), [counts[0]] * 2
    return _copy(value[0], counts[0], stride), _copy(value[1], counts[1], stride)


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
