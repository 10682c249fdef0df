"""Approximate nearest rows by inverted lists (Jégou et al. 2011, IEEE PAMI 33): rows of one cluster
lie side by side, and each query meets the nearest lists.

The queries of each list are gathered, instead of the lists of each query, so that all is products
of matrices. Some true neighbors may be missed: the share that is found is measured (`tuned`).

Library tried: faiss's IndexIVFFlat (200 neighbors of 10,000 queries among 200,000 rows of 256, two
busy cores: 14 s, this 43 s, the exact search 77 s). It is no dependency, as on macOS it and torch
bring an OpenMP each and the process dies (https://github.com/faiss-wheels/faiss-wheels/issues/73).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from contrastive_core.ops.sampling import rows_of_sample

PER_LIST = 40  # rows for each list that the clusters are made from
ROUNDS = 10  # of k-means
BLOCK_QUERIES = 1 << 17  # searched at a time: of each list enough for a product of matrices
CELLS = 1 << 26  # scores at a time: 256 MB
WIDE = 512  # rows of a piece: longer lists are cut
ASSIGNED = 8192  # rows at a time whose list is found

# Of queries (r, d) and their own numbers (r), which are no neighbors, or None: values (r, k), the
# larger the nearer, and the rows' numbers (r, k), in any order.
Search = Callable[[Tensor, Tensor | None], tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class Approximation:
    """How far a search may approximate.

    Each query meets about `visited` rows, and twice as many until the share `recall` of the true
    neighbors is found. Above `most` rows (a number, or a share of all), the search stops there, or,
    where `or_exact`, gives way to the exact one.
    """

    recall: float = 0.995  # a little above the 0.99 that scores need
    visited: int = 2048
    most: float = 1 / 8  # of all rows: above, the exact search is faster
    or_exact: bool = True

    @classmethod
    def of_rows(cls, visited: int) -> Approximation:
        """About `visited` rows, and up to four times as many for nine tenths of the neighbors."""
        return cls(0.9, visited, 4 * visited, or_exact=False)

    def limit(self, rows: int) -> int:
        """Rows that a query meets at most, of this many."""
        return min(rows, int(self.most * rows if self.most < 1 else self.most))


def tuned(
    b: Tensor,
    k: int,
    approximation: Approximation,
    sample: tuple[Tensor, Tensor | None],
    exact: Search,
    offset: Tensor | None = None,
) -> tuple[Lists, float] | None:
    """A search in lists of the rows b (m, d), and its recall; None where the exact one is to be taken.

    One half of the sample decides how many rows are visited; recall is measured on the other.

    Args: sample: queries (s, d) as they will come, and their own numbers; exact: finds their true
    neighbors.
    """
    q, own = sample
    truth = exact(q, own)[1]
    lists, limit = Lists(b, k, approximation.visited, offset), approximation.limit(len(b))

    def recall(half: slice) -> float:
        return recall_of(truth[half], lists(q[half], None if own is None else own[half])[1])

    while recall(slice(0, None, 2)) < approximation.recall:
        if 2 * lists.visited > limit:
            if approximation.or_exact:
                return None
            if lists.visited >= limit:
                break
        lists.visited = min(2 * lists.visited, limit)
    return lists, recall(slice(1, None, 2))


def recall_of(truth: Tensor, found: Tensor) -> float:
    """The share of the true neighbors (s, k) that are among those found (s, k)."""
    return float((truth[:, :, None] == found[:, None]).any(2).float().mean())


class Lists:
    """Rows b (m, d) float32 in 2 √m lists; a query meets about `visited` rows, those of the lists
    whose centers are nearest to it. Lists lie in pieces of at most `WIDE` rows."""

    def __init__(self, b: Tensor, k: int, visited: int, offset: Tensor | None = None) -> None:
        """Args: offset: (m), taken off the products (Euclidean rows; else rows are of length 1)."""
        self.k, self.visited = k, max(visited, k + 1)
        centers = _centers(b, min(len(b), 2 * math.isqrt(len(b))))
        nearest = torch.cat([_nearest(part, centers) for part in b.split(ASSIGNED)])
        self.order = nearest.argsort(stable=True)
        self.place = self.order.argsort()
        self.rows = b[self.order]
        self.offset = None if offset is None else offset[self.order]
        of, self.start, self.stop = _pieces(nearest.bincount(minlength=len(centers)))
        held = (torch.tensor(self.stop) - torch.tensor(self.start)).sort().values.cumsum(0)
        self.least = int((held <= k).sum()) + 1  # pieces that hold k others, whichever they are
        self.centers = centers[of] if offset is not None else torch.nn.functional.normalize(centers, dim=1)[of]
        self.half = self.centers.square().sum(1) / 2

    def __call__(self, q: Tensor, own: Tensor | None) -> tuple[Tensor, Tensor]:
        """Nearness and numbers (r, k) of rows near the queries q (r, d), themselves (own) aside."""
        values, columns = q.new_empty(len(q), self.k), q.new_zeros(len(q), self.k).long()
        near = torch.cat([self._near(part) for part in q.split(ASSIGNED)])
        place = None if own is None else self.place[own]
        for some in near[:, 0].argsort(stable=True).split(max(1, CELLS // (WIDE * near.shape[1]))):
            at = None if place is None else place[some]
            values[some], columns[some] = self._meet(q[some], at, near[some])
        return values, columns

    def _near(self, q: Tensor) -> Tensor:
        """The nearest pieces (r, p) of queries, nearest first: as many as hold enough rows."""
        number = max(self.least, math.ceil(self.visited * len(self.start) / len(self.rows)))
        apart = q @ self.centers.mT - self.half
        return apart.topk(min(len(self.start), number), dim=1).indices.int()

    def _meet(self, q: Tensor, place: Tensor | None, near: Tensor) -> tuple[Tensor, Tensor]:
        """The best k of the pieces near (r, p) each query q (r, d), which stand at these places."""
        pieces = near.shape[1]
        scores = q.new_empty(len(q) * pieces, WIDE)
        count = near.flatten().bincount(minlength=len(self.start)).tolist()
        product, spans = q.new_empty(max(count), WIDE), zip(self.start, self.stop, strict=True)
        by_piece = near.flatten().argsort(stable=True).split(count)  # lines of `scores`
        for lines, (start, stop) in zip(by_piece, spans, strict=True):
            if not len(lines):
                continue
            s = product[: len(lines), : stop - start]
            torch.mm(q.index_select(0, lines // pieces), self.rows[start:stop].mT, out=s)
            if self.offset is not None:
                s -= self.offset[start:stop]
            product[: len(lines), stop - start :] = -torch.inf
            scores.index_copy_(0, lines, product[: len(lines)])
        first = torch.tensor(self.start)
        if place is not None:
            own = torch.searchsorted(first, place, right=True) - 1
            row, piece = (near == own[:, None]).nonzero().unbind(1)
            scores[row * pieces + piece, place[row] - first[own[row]]] = -torch.inf
        values, at = best_of(scores.view(len(q), -1), self.k)
        return values, self.order[first[near.gather(1, at // WIDE).long()] + at % WIDE]


def _pieces(size: Tensor) -> tuple[Tensor, list[int], list[int]]:
    """Lists of these sizes (l) in pieces of at most `WIDE` rows, about equal in each list: the list
    of each, and where it starts and stops."""
    number = (size + WIDE - 1) // WIDE
    of = torch.arange(len(size)).repeat_interleave(number)
    which = torch.arange(len(of)) - (number.cumsum(0) - number)[of]
    first = (size.cumsum(0) - size)[of]
    start, stop = (first + w * size[of] // number[of] for w in (which, which + 1))
    return of, start.tolist(), stop.tolist()


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


def best_of(s: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """`s.topk(k)`, unsorted, (r, k) each, by the largest of each group of columns: whatever is
    among the best k lies in one of the k groups whose largest are best: few columns are ranked."""
    rows, columns = s.shape
    size = math.isqrt(columns // k)  # columns in a group
    if size < 2:
        return s.topk(k, dim=1, sorted=False)
    number = columns // size
    grouped = s[:, : size * number].unflatten(1, (size, number))  # (r, size, number)
    groups = grouped.amax(1).topk(k, dim=1, sorted=False).indices[:, None].expand(-1, size, -1)
    remainder = s[:, size * number :]  # (r, < size)
    values = torch.cat([grouped.gather(2, groups).flatten(1), remainder], 1)
    at = torch.arange(size, device=s.device)[:, None] * number + groups  # (r, size, k)
    tail = torch.arange(size * number, columns, device=s.device).expand(rows, -1)
    values, chosen = values.topk(k, dim=1, sorted=False)
    return values, torch.cat([at.flatten(1), tail], 1).gather(1, chosen)
