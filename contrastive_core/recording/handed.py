"""What the training thread hands over: detached copies, made where the tensors lie.

Nothing waits here: a copy on a GPU is queued behind the training's own work, and the recorder's
thread fetches it once it is done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from contrastive_core.distributed import collectives
from contrastive_core.pairs.checks import describe

__all__ = ["MOST_ROWS", "HandedProbe", "HandedStep", "gathered", "hand_over", "numbers"]

MOST_ROWS = 8192  # of a step that are copied, and as many of its queue


@dataclass(frozen=True, eq=False)
class HandedStep:
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
    copied: Any = None  # the GPU's event after the copies

    def wait(self) -> None:
        """Until the copies are made; by the recorder's thread."""
        if self.copied is not None:
            self.copied.synchronize()


@dataclass(frozen=True, eq=False)
class HandedProbe:
    """The embedding of the probe set at a step, and what is known of its samples."""

    step: int
    h: np.ndarray  # (n, d)
    z: np.ndarray  # (n, e)
    labels: np.ndarray | None  # (n)
    ids: tuple[str, ...]  # () where the loader gives none


def hand_over(step: int, views: Sequence[Any], images_per_s: float, **given: Any) -> HandedStep:
    """Copies of what `Watch.step` got. Raises TypeError, ValueError for what are no rows."""
    tensors = tuple(
        _rows(f"rows {i}" if len(views) > 1 else "rows", z) for i, z in enumerate(views)
    )
    if not tensors:
        raise TypeError("step takes rows (n, d) or views (images, views, d)")
    if len(tensors) > 1 and (tensors[0].ndim != 2 or len({t.shape for t in tensors}) > 1):
        shapes = ", ".join(str(tuple(t.shape)) for t in tensors)
        raise ValueError(f"several views must be rows (n, d) of one shape; got {shapes}")
    n, each = len(tensors[0]), tensors[0].shape[1] if tensors[0].ndim == 3 else len(tensors)
    stride = max(1, -(-n * each // MOST_ROWS))
    queue = None if given.get("queue") is None else _rows("queue", given["queue"])
    keys = None if queue is None else queue.detach()[:: -(-len(queue) // MOST_ROWS) or 1].clone()
    given = {k: v for k, v in given.items() if k != "queue"}
    given = {name: _copy(value, n, stride) for name, value in given.items()}
    copies = tuple(z.detach()[::stride].clone() for z in tensors)
    return HandedStep(
        step, copies, keys, images_per_s=images_per_s,
        skipped=(n - len(copies[0])) * each,
        queue_skipped=0 if queue is None or keys is None else len(queue) - len(keys),
        copied=_event(copies[0]), **given,
    )  # fmt: skip


def _rows(name: str, z: Any) -> Tensor:
    if not isinstance(z, Tensor):
        if not hasattr(z, "__array__"):
            raise TypeError(f"{name} must be a tensor (n, d); got {describe(z)}")
        z = torch.from_numpy(np.array(z))
    if z.ndim not in (2, 3) or not z.is_floating_point():
        raise ValueError(
            f"{name} must be floating-point numbers (n, d) or (images, views, d); got "
            f"{z.dtype} {tuple(z.shape)}"
        )
    return z


def _copy(value: Any, n: int, stride: int) -> Any:
    """A copy of what goes along with rows; one entry for each is thinned as they are."""
    if isinstance(value, Tensor):
        value = value.detach()
        return (value[::stride] if value.ndim and len(value) == n else value).clone()
    if isinstance(value, np.ndarray):
        return (value[::stride] if value.ndim and len(value) == n else value).copy()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return list(value[::stride] if len(value) == n else value)
    return value


def _event(z: Tensor) -> Any:
    if z.device.type != "cuda":
        return None
    event = torch.cuda.Event()
    event.record(torch.cuda.current_stream(z.device))
    return event


def numbers(value: Any) -> np.ndarray:
    """Any tensor, array or list of numbers on the CPU."""
    if isinstance(value, Tensor):
        value = value.cpu()
        return (value.float() if value.dtype == torch.bfloat16 else value).numpy()
    return np.asarray([v.item() if isinstance(v, Tensor) else v for v in value])


def gathered(handed: HandedStep) -> HandedStep:
    """The rows of all processes, in the order of ranks; every process calls. The queue, which is
    alike everywhere, stays."""
    if collectives.is_single_process():
        return handed
    changed: dict[str, Any] = {
        "views": tuple(collectives.all_gather(z) for z in handed.views),
        "copied": None,
    }
    for name in ("labels", "ids", "losses"):
        value = getattr(handed, name)
        parts = collectives.all_gather_object(None if value is None else numbers(value))
        whole = all(part is not None for part in parts)
        changed[name] = np.concatenate(parts) if whole else None
    return HandedStep(**{**vars(handed), **changed})
