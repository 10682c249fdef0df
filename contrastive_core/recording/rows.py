"""Rows of a copied step from which figures can be computed; unusable rows are left out. Rows are flat and image-major
where they came as views; rows (n, d) that share an id are views of one image."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from contrastive_core.errors import UnusableEmbedding
from contrastive_core.messages import N_, message
from contrastive_core.recording.omissions import Omissions
from contrastive_core.recording.step_copies import StepCopy, to_numpy
from contrastive_core.records.recorded_rows import StepRows

LONGEST = 200  # characters of an id


@dataclass(frozen=True, eq=False)
class RecordedBatch:
    """Rows z (n, d) float64: image, view and label (n; −1: none) of each, its id; the caller's losses (n) where there
    are some, the queue (k, d), τ and the bias that go along. Of two towers `image` numbers the groups of partners, and
    `view` the towers (tower_rows.py)."""

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

    def take(self, rows: np.ndarray) -> RecordedBatch:
        """Some rows, by a mask (n)."""
        arrays = {k: getattr(self, k)[rows] for k in ("image", "view", "labels", "ids")}
        losses = None if self.losses is None else self.losses[rows]
        return replace(self, z=self.z[torch.from_numpy(rows)], losses=losses, **arrays)


def batch_of(copy: StepCopy, omissions: Omissions) -> RecordedBatch:
    """The rows of a step of one encoder. Raises ValueError where none can be used."""
    tensors = [z.cpu().double() for z in copy.views]
    z = torch.stack(tensors, 1) if len(tensors) > 1 else tensors[0]
    count, views = len(z), z.shape[1] if z.ndim == 3 else 1
    flat = z.reshape(-1, z.shape[-1])  # (n, d), image-major
    if not flat.numel():
        raise ValueError(N_("it has no rows"))
    image, view = np.divmod(np.arange(len(flat)), views)
    ids = _ids(copy, count)
    if views == 1 and copy.ids is not None:
        image, view = _views_by_id(ids)
    labels = labels_of(copy.labels, count, views, omissions)
    losses = losses_of(copy.losses, count, views, len(tensors) > 1, omissions)
    queue = None if copy.queue is None else copy.queue.cpu().double()
    tau, bias = (None if x is None else float(to_numpy([x])[0]) for x in (copy.temperature, copy.bias))
    batch = RecordedBatch(flat, image, view, labels, np.repeat(ids, views), losses, queue, tau, bias)
    return finite_rows(batch, omissions)


def sample_of(batch: RecordedBatch, loss: np.ndarray, rows: int, omissions: Omissions) -> StepRows:
    """About `rows` rows: all views of images spread evenly over the batch. `loss`: (n) of each row, NaN for none."""
    _, first = np.unique(batch.ids, return_index=True)
    own = np.isin(batch.image, batch.image[first])  # images whose id no other before has: the lab finds them by it
    if lost := int((~own).sum()):
        omissions.add(N_("rows of a sample"), N_("their image's id is already recorded"), lost)
    batch, loss = batch.take(own), loss[own]
    images = np.unique(batch.image)
    if batch.is_of_towers and len(batch) > rows:  # partners first: a row alone says little
        images = np.intersect1d(batch.image[batch.view == 0], batch.image[batch.view == 1])
    each = max(1, round(int(np.isin(batch.image, images).sum()) / len(images)))
    count = min(len(images), max(1, rows // each))
    chosen = images[np.linspace(0, len(images) - 1, count).round().astype(np.int64)]
    kept = np.isin(batch.image, chosen)
    order = np.lexsort((batch.view[kept], batch.image[kept]))
    part, value = batch.take(kept), loss[kept][order].astype(np.float32)
    queue = np.zeros((0, part.z.shape[1]), np.float32)
    if batch.queue is not None:
        at = np.linspace(0, len(batch.queue) - 1, min(rows, len(batch.queue))).astype(np.int64)
        queue = batch.queue[torch.from_numpy(at)].float().numpy()
    z, view = part.z.float().numpy()[order], part.view[order].astype(np.int64)
    image = np.unique(part.image[order], return_inverse=True)[1].astype(np.int64)
    return StepRows(z, image, view, part.labels[order], part.ids[order], value, queue)


def _ids(copy: StepCopy, count: int) -> np.ndarray:
    """An id for each image, as text; without any, step and place."""
    if copy.ids is None:
        return np.array([f"{copy.step}:{row}" for row in range(count)])
    return texts_of(copy.ids, count)


def texts_of(ids: object, count: int) -> np.ndarray:
    """The caller's ids (count) as text. Raises UnusableEmbedding for another number of them."""
    given = ids if isinstance(ids, list) else to_numpy(ids).tolist()
    if len(given) != count:
        values = {"count": count, "given": len(given)}
        raise UnusableEmbedding("ids must be ({count},), one for each row or image; got {given}", **values)
    return np.array([str(getattr(i, "item", lambda i=i: i)())[:LONGEST] for i in given])


def _views_by_id(ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Image and view (n) each of rows that share an id, in the order in which ids first come."""
    _, first, place = np.unique(ids, return_index=True, return_inverse=True)
    image = np.argsort(np.argsort(first))[place]
    view, count = np.zeros(len(ids), np.int64), np.zeros(len(first), np.int64)
    for row, number in enumerate(image):
        view[row], count[number] = count[number], count[number] + 1
    return image, view


def labels_of(given: object, count: int, views: int, omissions: Omissions) -> np.ndarray:
    """A label for each row (n); −1 where it has none, as for all if they cannot be used."""
    none = np.full(count * views, -1)
    if given is None:
        return none
    labels = to_numpy(given)
    if labels.shape not in ((count,), (count * views,)) or labels.dtype.kind not in "iub":
        omissions.add(N_("steps' labels"), message("they must be ({count},) whole numbers", count=count))
        return none
    labels = np.maximum(labels.astype(np.int64), -1)
    return labels if len(labels) == len(none) else np.repeat(labels, views)


def losses_of(given: object, count: int, views: int, view_major: bool, omissions: Omissions) -> np.ndarray | None:
    """The caller's losses, one for each row (n); of an image, all its rows have the same. For
    several tensors of views, losses of all rows come as these do: the first view's first."""
    if given is None:
        return None
    losses = to_numpy(given).astype(np.float64)
    if losses.shape == (count,):
        return np.repeat(losses, views)
    if losses.shape != (count * views,):
        reason = message("they must be ({count},) or ({views},)", count=count, views=count * views)
        omissions.add(N_("steps' losses"), reason)
        return None
    return losses.reshape(views, count).T.ravel() if view_major else losses


def finite_rows(batch: RecordedBatch, omissions: Omissions) -> RecordedBatch:
    """Without images of which a row is not finite. Raises ValueError where none is left."""
    bad = ~np.isfinite(batch.z.numpy()).all(1)
    if batch.queue is not None and not (finite := torch.isfinite(batch.queue).all(1)).all():
        omissions.add(N_("rows of the queue"), N_("not finite"), int((~finite).sum()))
        batch = replace(batch, queue=batch.queue[finite])
    if not bad.any():
        return batch
    lost = np.isin(batch.image, batch.image[bad])
    omissions.add("rows", N_("not finite, or a view of one that is not"), int(lost.sum()))
    if lost.all():
        raise ValueError(N_("none of its rows is finite"))
    return batch.take(~lost)
