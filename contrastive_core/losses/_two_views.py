"""Base class of losses over dimensions: two views of each image, and terms of the whole batch, which have no value per
sample. The distance of an image's two views is added to its anchors; all other terms are shared."""

from abc import abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor

from contrastive_core.base.messages import message
from contrastive_core.base.progress import OnFraction, ignore_fraction
from contrastive_core.losses._base import Loss
from contrastive_core.pairs.types import NO_ROW, Masks, Pairs


class Views(NamedTuple):
    """Rows (k, d) of first and second views, and a mask (k) of 0 and 1: whether they are two views of one image."""

    a: Tensor
    b: Tensor
    known: Tensor

    @property
    def number(self) -> Tensor:
        """The number n of images with two views, at least 1."""
        return self.known.sum().clamp_min(1)

    def centered(self, rows: Tensor) -> Tensor:
        """Subtract the mean over the images from rows (k, d); 0 at places without an image."""
        known = self.known[:, None]
        return (rows - (known * rows).sum(0) / self.number) * known


class Terms(NamedTuple):
    """The terms of the batch (a scalar), the term of each image (k), and the parts for display, detached."""

    shared: Tensor
    own: Tensor
    parts: dict[str, Tensor]


class TwoViewLoss(Loss):
    """A loss over the dimensions of two views of each image."""

    @abstractmethod
    def terms(self, views: Views, seed: int) -> Terms:
        """Return the terms; the loss of image i is shared + own_i. `seed`: of random values in the loss."""

    def check(self, pairs: Pairs) -> str | None:
        if pairs.by_id and bool(two_views(pairs).known.any() & (pairs.candidate_rows != NO_ROW).all()):
            return None
        return message(
            "{title} compares the dimensions of two views of each image: choose views of one image. In a file, both "
            "views of an image have the same id (choose rows that share an id); in code, use pairs.from_views",
            title=self.card.title,
        )

    def per_anchor(self, scores: Tensor, masks: Masks, pairs: Pairs) -> tuple[Tensor, Tensor]:
        value, weight = self.over_blocks(pairs)
        return value + 0 * scores.sum(), weight  # the loss does not depend on scores

    def over_blocks(self, pairs: Pairs, on_fraction: OnFraction = ignore_fraction) -> tuple[Tensor, Tensor]:
        views = two_views(pairs)
        shared, own, _ = self.terms(views, pairs.seed)
        enough = (views.known.sum() > 1).to(own.dtype)  # one image has no variance
        rows, order = pairs.candidate_rows.sort()
        place = torch.searchsorted(rows, pairs.anchor_rows.contiguous())
        row = order[place.clamp_max(len(rows) - 1)]  # (n): the index of each anchor among the candidates
        value = shared + _at_both(views.known * own)[row]
        return value, enough * _at_both(views.known)[row]

    def details(self, scores: Tensor, masks: Masks, pairs: Pairs) -> dict[str, Tensor]:
        with torch.no_grad():
            return self.terms(two_views(pairs), pairs.seed).parts


def two_views(pairs: Pairs) -> Views:
    """Return adjacent candidates as first and second views (k = m − 1 rows), marked if they belong to one image."""
    z, view, group = pairs.candidates, pairs.candidate_views, pairs.candidate_groups
    known = (view[:-1] == 0) & (view[1:] == 1) & (group[:-1] == group[1:])  # not the last and first row of two towers
    return Views(z[:-1], z[1:], known.to(z.dtype))


def off_diagonal(matrix: Tensor) -> Tensor:
    """Return Σ_{i≠j} M_ij² of a matrix (d, d)."""
    return (matrix - torch.diag(matrix.diagonal())).square().sum()


def _at_both(value: Tensor) -> Tensor:
    """Copy the values (m − 1) of images to both of their rows: (m)."""
    none = value.new_zeros(1)
    return torch.cat([value, none]) + torch.cat([none, value])
