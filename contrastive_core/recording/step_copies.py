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

MOST_ROWS = 8192  # of a step that are copied, and as many of its queue


@dataclass(frozen=True, eq=False)
class StepCopy:
    """Copies of one step: a tensor of rows (n, d) or views (b, v, d), or one (n, d) for each view;
    `skipped` rows and `queue_skipped` keys were too many and are not among them."""

    step: int
    views: tuple[Tensor, ...]
    queue: Tensor | None = None
    labels: Any = None
    ids: Any = None
    losses: Any = None
    temperature: Any = None
    caller_loss: Any = None
    images_per_s: float = 0.0
    skipped: int = 0
    queue_skipped: int = 0
    copied: torch.cuda.Event | None = None  # of a GPU, after the copies


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
    tensors = [_rows(message("rows {index}", index=i) if len(views) > 1 else "rows", z) for i, z in enumerate(views)]
    if not tensors:
        raise TypeError(N_("step takes rows (n, d) or views (images, views, d)"))
    if len(tensors) > 1 and (tensors[0].ndim != 2 or len({t.shape for t in tensors}) > 1):
        shapes = ", ".join(str(tuple(t.shape)) for t in tensors)
        raise UnusableEmbedding("several views must be rows (n, d) of one shape; got {shapes}", shapes=shapes)
    n, each = len(tensors[0]), tensors[0].shape[1] if tensors[0].ndim == 3 else len(tensors)
    stride = max(1, -(-n * each // MOST_ROWS))
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
    values = {name: _copy(value, n, stride) for name, value in values.items()}
    skipped = (n - len(copies[0])) * each
    return StepCopy(
        step,
        copies,
        keys,
        images_per_s=images_per_s,
        skipped=skipped,
        queue_skipped=queue_skipped,
        copied=copied,
        **values,
    )


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
    for name in ("labels", "ids", "losses"):
        value = getattr(copy, name)
        parts = collectives.all_gather_object(None if value is None else to_numpy(value))
        changed[name] = None if any(part is None for part in parts) else np.concatenate(parts)
    return replace(copy, **changed)
