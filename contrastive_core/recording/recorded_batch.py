"""The rows of a recorded step: figures use all of them, and a sample is stored. Unusable rows are counted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from contrastive_core.base.errors import UnusableEmbedding
from contrastive_core.base.messages import N_, message
from contrastive_core.recording.steps import Omissions, StepCopy, to_numpy
from contrastive_core.spaces.recorded_rows import StepRows

LONGEST = 200  # characters of an id


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
    both = [zip(values or (None, None), sizes, strict=True) for values in (copy.labels, copy.losses)]
    labels = np.concatenate([_labels(x, n, 1, omissions) for x, n in both[0]])
    losses = [_losses(x, n, 1, False, omissions) for x, n in both[1]]
    values = np.concatenate([np.full(n, np.nan) if x is None else x for x, n in zip(losses, sizes, strict=True)])
    if copy.ids is not None:
        known = [[] if x is None else _listed(x) for x in copy.ids]
        if len(known[0]) == len(known[1]) == sizes[0]:
            known[1] = [*known[1], *(f"{copy.step}:negative {row}" for row in range(1, sizes[1] - sizes[0] + 1))]
        ids = np.concatenate([_texts(x, n) for x, n in zip(known, sizes, strict=True)])
    elif sizes[0] == sizes[1]:
        ids = np.array([f"{copy.step}:{row}" for row in range(sizes[0])] * 2)
    elif (labels >= 0).any():
        ids = np.array([str(y) if y >= 0 else f"{copy.step}:{row}" for row, y in enumerate(labels.tolist())])
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


def sample_of(batch: RecordedBatch, loss: np.ndarray, rows: int, omissions: Omissions) -> StepRows:
    """Select about `rows` rows: all views of images spread evenly over the batch. `loss`: (n), NaN for none."""
    _, first = np.unique(batch.ids, return_index=True)
    own = np.isin(batch.image, batch.image[first])  # images whose id no other before has: the lab finds them by it
    if lost := int((~own).sum()):
        omissions.add(N_("rows of a sample"), N_("their image's id is already recorded"), lost)
    batch, loss = batch.take(own), loss[own]
    images = np.unique(batch.image)
    if batch.is_of_towers:  # partners first: one group of them is always kept
        images = np.concatenate([shared := batch.shared_groups(), np.setdiff1d(images, shared)])
    count = min(len(images), max(1, rows * len(images) // len(batch)))
    chosen = images[np.linspace(0, len(images) - 1, count).round().astype(np.int64)]
    kept = np.isin(batch.image, chosen)
    order = np.lexsort((batch.view[kept], batch.image[kept]))
    part, value = batch.take(kept), loss[kept][order].astype(np.float32)
    queue = np.zeros((0, part.z.shape[1]), np.float32)
    if batch.queue is not None:
        at = np.linspace(0, len(batch.queue) - 1, min(rows, len(batch.queue))).astype(np.int64)
        queue = batch.queue[torch.from_numpy(at)].float().numpy()
    return StepRows(
        z=part.z.float().numpy()[order],
        image=np.unique(part.image[order], return_inverse=True)[1].astype(np.int64),
        view=part.view[order].astype(np.int64),
        labels=part.labels[order],
        ids=part.ids[order],
        loss=value,
        queue=queue,
    )


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
    none = np.full(count * views, -1)
    if given is None:
        return none
    labels = to_numpy(given)
    if labels.shape not in ((count,), (count * views,)) or labels.dtype.kind not in "iub":
        omissions.add(N_("steps' labels"), message("they must be whole numbers of shape ({count},)", count=count))
        return none
    labels = np.maximum(labels.astype(np.int64), -1)
    return labels if len(labels) == len(none) else np.repeat(labels, views)


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
