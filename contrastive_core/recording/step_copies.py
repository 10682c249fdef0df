"""Detached copies of a step's tensors, made by the training thread on the tensors' device. Nothing waits here: a copy
on a GPU is queued behind the training's own work, and the recorder's thread reads it once it is done."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from contrastive_core.distributed import collectives
from contrastive_core.errors import UnusableEmbedding
from contrastive_core.messages import N_, message
from contrastive_core.pairs.checks import describe

PER_ROW = ("labels", "ids", "losses")
MOST_ROWS = 8192  # of a step that are copied, and as many of its queue


@dataclass(frozen=True, eq=False)
class StepCopy:
    """Copies of one step: a tensor of rows (n, d) or views (b, v, d), or one (n, d) for each view; of two towers rows
    (n, d) and (m, d), with a pair of labels, ids and losses. `skipped` rows and `queue_skipped` keys were too many and
    are not among them."""

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
    skipped: int = 0
    queue_skipped: int = 0
    copied: torch.cuda.Event | None = None  # of a GPU, after the copies
    is_of_towers: bool = False


@dataclass(frozen=True, eq=False)
class ProbeCopy:
    """The embedding of the probe set at a step, with labels and ids of its samples."""

    step: int
    h: np.ndarray  # (n, d)
    z: np.ndarray  # (n, e)
    labels: np.ndarray  # (n), −1 where there is none
    ids: np.ndarray  # (n) texts


def copy_step(step: int, views: Sequence[Any], images_per_s: float, queue: Any = None, **values: Any) -> StepCopy:
    """Copy the arguments of `Watch.step`. Raises TypeError, ValueError if they are not rows."""
    tensors = _tensors(views)
    if len(tensors) > 1 and (tensors[0].ndim != 2 or len({t.shape for t in tensors}) > 1):
        shapes = ", ".join(str(tuple(t.shape)) for t in tensors)
        raise UnusableEmbedding("several views must be rows (n, d) of one shape; got {shapes}", shapes=shapes)
    n, each = len(tensors[0]), tensors[0].shape[1] if tensors[0].ndim == 3 else len(tensors)
    stride = max(1, -(-n * each // MOST_ROWS))
    values = {name: _copy(value, n, stride) for name, value in values.items()}
    return _copied(step, tensors, stride, queue, images_per_s=images_per_s, **values)


def copy_towers(step: int, views: Sequence[Any], images_per_s: float, queue: Any = None, **values: Any) -> StepCopy:
    """The same of a step of two towers. Raises TypeError, ValueError if they are not rows of two of one width."""
    tensors = _tensors(views)
    if len(tensors) != 2 or any(t.ndim != 2 for t in tensors) or tensors[0].shape[1] != tensors[1].shape[1]:
        shapes = ", ".join(str(tuple(t.shape)) for t in tensors)
        raise UnusableEmbedding(
            "two towers take rows (n, d) of the one and rows (m, d) of the other, equally wide; got {shapes}",
            shapes=shapes,
        )
    sizes = (len(tensors[0]), len(tensors[1]))
    stride = max(1, -(-sum(sizes) // MOST_ROWS))
    values = {k: _pair(v, sizes, stride) if k in PER_ROW else _copy(v, -1, 1) for k, v in values.items()}
    return _copied(step, tensors, stride, queue, images_per_s=images_per_s, is_of_towers=True, **values)


def _tensors(views: Sequence[Any]) -> list[Tensor]:
    tensors = [_rows(message("rows {index}", index=i) if len(views) > 1 else "rows", z) for i, z in enumerate(views)]
    if not tensors:
        raise TypeError(N_("step takes rows (n, d) or views (images, views, d)"))
    return tensors


def _copied(step: int, tensors: Sequence[Tensor], stride: int, queue: Any, **values: Any) -> StepCopy:
    copies = tuple(z.detach()[::stride].clone() for z in tensors)
    keys, queue_skipped = None, 0
    if queue is not None:
        queue = _rows("queue", queue)
        keys = queue.detach()[:: -(-len(queue) // MOST_ROWS) or 1].clone()
        queue_skipped = len(queue) - len(keys)
    copied = None
    if copies[0].device.type == "cuda":
        copied = torch.cuda.Event()
        copied.record(torch.cuda.current_stream(copies[0].device))
    skipped = sum(z.shape[:-1].numel() - copy.shape[:-1].numel() for z, copy in zip(tensors, copies, strict=True))
    return StepCopy(step, copies, keys, skipped=skipped, queue_skipped=queue_skipped, copied=copied, **values)


def _pair(value: Any, sizes: tuple[int, int], stride: int) -> tuple[Any, Any] | None:
    """What was given for each tower, copied; one value is that of both."""
    if value is None:
        return None
    is_pair = isinstance(value, (tuple, list)) and len(value) == 2 and all(map(_is_many, value))
    a, b = value if is_pair else (value, value)
    return _copy(a, sizes[0], stride), _copy(b, sizes[1], stride)


def _is_many(value: Any) -> bool:
    return value is None or (hasattr(value, "__len__") and not isinstance(value, str) and getattr(value, "ndim", 1) > 0)


def _rows(name: str, z: Any) -> Tensor:
    if not isinstance(z, Tensor):
        if not hasattr(z, "__array__"):
            raise TypeError(message("{name} must be a tensor (n, d); got {z}", name=name, z=describe(z)))
        z = torch.from_numpy(np.array(z))
    if z.ndim not in (2, 3) or not z.is_floating_point():
        values = {"name": name, "dtype": z.dtype, "shape": tuple(z.shape)}
        raise UnusableEmbedding(
            "{name} must be floating-point numbers (n, d) or (images, views, d); got {dtype} {shape}", **values
        )
    return z


def _copy(value: Any, n: int, stride: int) -> Any:
    """Copy a value that comes with the rows; one with an entry per row is thinned like the rows."""
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
    """Gather the rows, not the queue, of all processes in the order of ranks; every process calls it."""
    if collectives.is_single_process():
        return copy
    changed: dict[str, Any] = {"views": tuple(collectives.all_gather(z) for z in copy.views), "copied": None}
    for name in PER_ROW:
        value = getattr(copy, name)
        if copy.is_of_towers:
            pair = tuple(map(_gather_values, (None, None) if value is None else value))
            changed[name] = None if all(part is None for part in pair) else pair
        else:
            changed[name] = _gather_values(value)
    return replace(copy, **changed)


def _gather_values(value: Any) -> np.ndarray | None:
    """What comes with the rows of all processes, one behind the other; None where one has none."""
    parts = collectives.all_gather_object(None if value is None else to_numpy(value))
    return None if any(part is None for part in parts) else np.concatenate(parts)
