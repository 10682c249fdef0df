"""Nearest rows by lists: rows of one cluster side by side, and each query meets the nearest lists.

For many queries of a set in itself, where some of the true neighbors may be missed: the caller says
how many rows each query meets, and is told the share that is found (neighbors.py). Queries of one
cluster meet the same lists, those nearest to its center, so that all is products of matrices
(inverted lists: Jégou et al. 2011, IEEE PAMI 33, but queries grouped like rows).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from contrastive_core.ops.sampling import rows_of_sample
from contrastive_core.ops.top_k import best_of

__all__ = ["QUERIES", "Lists"]

PER_LIST = 40  # rows for each list that the clusters are made from
ROUNDS = 10  # of k-means
QUERIES = 1 << 17  # that are asked for at a time: of each list enough for a product of matrices
CELLS = 1 << 23  # of one product: 32 MB
ASSIGNED = 8192  # rows at a time whose list is found


class Lists:
    """Rows b (m, d) float32 in √m lists; a query meets the `visited` rows, about, of the lists
    nearest to its own."""

    def __init__(self, b: Tensor, k: int, visited: int, offset: Tensor | None = None) -> None:
        """Args: offset: (m), taken off the products (Euclidean rows)."""
        self.k, self.visited = k, min(len(b), max(visited, k + 1))
        self.centers = _centers(b, math.isqrt(len(b)))
        nearest = self._lists_of(b)
        self.order = nearest.argsort(stable=True)
        self.size = nearest.bincount(minlength=len(self.centers))
        self.start = self.size.cumsum(0) - self.size
        self.rows = b[self.order]
        self.offset = None if offset is None else offset[self.order]
        self.place = self.order.argsort()

    def __call__(self, q: Tensor, own: Tensor | None) -> tuple[Tensor, Tensor]:
        """Nearness and numbers (r, k) of rows near the queries q (r, d), themselves (own) aside."""
        values, columns = q.new_empty(len(q), self.k), q.new_zeros(len(q), self.k).long()
        its_list = self._lists_of(q)
        order = its_list.argsort(stable=True)
        place = None if own is None else self.place[own]
        for part in order.split(its_list.bincount(minlength=len(self.centers)).tolist()):
            if len(part):
                visited = self._near_lists(int(its_list[part[0]]))
                for some in part.split(max(1, CELLS // sum(int(self.size[v]) for v in visited))):
                    at = None if place is None else place[some]
                    values[some], columns[some] = self._meet(q[some], at, visited)
        return values, columns

    def _meet(self, q: Tensor, place: Tensor | None, lists: list[int]) -> tuple[Tensor, Tensor]:
        """The best k of some lists for queries (r, d) that stand at these places themselves."""
        spans = [slice(int(self.start[v]), int(self.start[v] + self.size[v])) for v in lists]
        scores = q.new_empty(len(q), sum(s.stop - s.start for s in spans))
        first = 0
        for span in spans:
            s = scores[:, first : first + span.stop - span.start]
            torch.mm(q, self.rows[span].mT, out=s)
            if self.offset is not None:
                s -= self.offset[span]
            if place is not None:
                inside = ((place >= span.start) & (place < span.stop)).nonzero()[:, 0]
                s[inside, place[inside] - span.start] = -torch.inf
            first += s.shape[1]
        values, at = best_of(scores, self.k)
        number = torch.cat([self.order[span] for span in spans])
        return values, number[at]

    def _near_lists(self, own: int) -> list[int]:
        """A list and those nearest to its center, until enough rows are in them."""
        apart = (self.centers - self.centers[own]).square().sum(1)
        near = apart.argsort(stable=True)
        enough = int((self.size[near].cumsum(0) < self.visited).sum()) + 1
        return [int(v) for v in near[:enough] if self.size[v]]

    def _lists_of(self, q: Tensor) -> Tensor:
        return torch.cat([_nearest(part, self.centers) for part in q.split(ASSIGNED)])


def _centers(b: Tensor, number: int) -> Tensor:
    """Centers (number, d) of clusters of a sample of the rows, by k-means."""
    some = rows_of_sample(len(b), PER_LIST * number)
    x = b[torch.from_numpy(some).to(b.device)]
    centers = x[torch.from_numpy(rows_of_sample(len(x), number, seed=1)).to(b.device)]
    for _ in range(ROUNDS):
        at = torch.cat([_nearest(part, centers) for part in x.split(ASSIGNED)])
        count = at.bincount(minlength=number)[:, None]
        mean = torch.zeros_like(centers).index_add_(0, at, x) / count.clamp_min(1)
        centers = torch.where(count > 0, mean, centers)
    return centers


def _nearest(x: Tensor, centers: Tensor) -> Tensor:
    return (x @ centers.mT - centers.square().sum(1) / 2).argmax(1)
