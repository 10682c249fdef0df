"""Nearest neighbors, block by block: one exact search, and one approximate search above a stated size.

No n×m matrix is ever held: a block of queries meets a block of base rows, and only the best k so
far are kept. Euclidean neighbors are ranked once more by differences in float64, since Gram
distances lose their digits for near rows. The approximate search is list_search.py; its recall is
measured and returned.

Libraries tried (200 neighbors of 10,000 queries, two cores): faiss's flat search is 1.9 times slower
among 50,000 rows on AMD, 1.2 times faster among 10,000 rows on Intel and equal among 100,000.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from contrastive_core.device import pick_device
from contrastive_core.distributed import collectives
from contrastive_core.distributed.sharded_rows import HERE, SPREAD, Rows
from contrastive_core.errors import UnusableEmbedding
from contrastive_core.ops.list_search import BLOCK_QUERIES, Approximation, Search, best_of, tuned
from contrastive_core.ops.recall import lowest_recall
from contrastive_core.ops.similarity import float_rows, unit_rows
from contrastive_core.storage.large_arrays import part_of

SCORES = 1 << 23  # of a block of queries with a block of base rows: 32 MiB of float32 at a time
BASE = 65_536  # base rows in a block
KEPT = 30  # neighbors that are looked for at least, so that one search serves maps and scores
MEASURED_FROM = 1e10  # queries × rows × width: below, an exact search takes half a second
APPROXIMATE_FROM = 2e12  # likewise: 20 s to a minute of two cores; 88,000 rows of 256 in themselves
FEW = 5000  # queries, for which making the lists takes as long as the exact search
SAMPLED = 512  # queries that the approximate search is tuned and measured on
SLACK = 8  # Gram distances may swap near-equal rows; this many more are ranked exactly


@dataclass(frozen=True, eq=False)
class Neighbors:
    """The k nearest base rows of each query, nearest first; ties go to the smaller index.

    `index` (n, k) int64; `score` (n, k) float32: cosine similarity, or Euclidean distance.
    `recall` is the share of the k nearest that are among these, measured on a sample of the
    queries; None where the search was exact.
    """

    index: np.ndarray
    score: np.ndarray
    metric: str
    recall: float | None = None

    @property
    def k(self) -> int:
        return self.index.shape[1]

    def first(self, k: int) -> Neighbors:
        return replace(self, index=self.index[:, :k], score=self.score[:, :k])

    @property
    def about(self) -> dict[str, float]:
        """Return the recall to record with a score; nothing if exact."""
        return {} if self.recall is None else {"recall": self.recall}


def nearest(
    queries: np.ndarray,
    base: np.ndarray | None,
    k: int,
    metric: str = "cosine",
    device: str = "auto",
    progress: Callable[[float], None] | None = None,
    approximate: Approximation | None = None,
) -> Neighbors:
    """The k nearest rows of `base` for each query, exactly unless `approximate`.

    Args:
        queries: (n, d); base: (m, d), or None for the queries themselves, a row never its own
            neighbor.
        metric: "cosine" or "euclidean".
        progress: called with the share done, 0 to 1.
        approximate: how a search above `APPROXIMATE_FROM` may approximate, on a CPU.
    Raises: UnusableEmbedding when there are fewer than k rows, widths differ, or a value is not
        finite.
    """
    _check(queries, base, k, metric)
    return _search(_Space(queries, base, k, metric, pick_device(device)), slice(None), progress, approximate)


def nearest_together(
    queries: np.ndarray,
    base: np.ndarray | None,
    k: int,
    metric: str = "cosine",
    progress: Callable[[float], None] | None = None,
    device: str = "auto",
    approximate: Approximation | None = None,
) -> Neighbors:
    """`nearest` by all processes that joined, each of which holds all rows: a share of the queries
    each, the whole result on every one, and the lowest recall."""
    _check(queries, base, k, metric)
    world = collectives.world()
    share = part_of(len(queries), (world.rank, world.size))
    local = _search(_Space(queries, base, k, metric, pick_device(device)), share, progress, approximate)
    recall = lowest_recall(SPREAD.each(local.recall))
    return Neighbors(SPREAD.whole(local.index), SPREAD.whole(local.score), metric, recall)


def nearest_spread(
    queries: np.ndarray, base: np.ndarray | None, k: int, rows: Rows, metric: str = "cosine", device: str = "auto"
) -> Neighbors:
    """The k nearest of all parts' rows by cosine, for this part's queries, with the numbers that
    base rows have in the whole. Raises like `nearest`."""
    _check(queries, base, k, metric, rows)
    where = pick_device(device)
    unit = unit_rows(queries, where)
    return _spread(unit, unit if base is None else unit_rows(base, where), k, base is None, rows)


class _Space:
    """Queries and base rows as the search compares them: unit rows, or centered ones and an offset
    that turns products into distances."""

    def __init__(self, queries: np.ndarray, base: np.ndarray | None, k: int, metric: str, device: torch.device) -> None:
        self.k, self.metric, self.offset = k, metric, None
        self.rows = queries if base is None else base
        if metric == "cosine":
            self.q = unit_rows(queries, device)
            self.b = self.q if base is None else unit_rows(base, device)
            self.width = k
        else:
            center = torch.from_numpy(self.rows.mean(0, dtype=np.float64).astype(np.float32)).to(device)
            self.q = float_rows(queries).to(device) - center
            self.b = self.q if base is None else float_rows(base).to(device) - center
            self.width = min(k + SLACK, len(self.b) - (base is None))
            self.offset = self.b.square().sum(1) / 2
        self.numbers = torch.arange(len(self.q), device=device) if base is None else None

    def own(self, at: slice | Tensor) -> Tensor | None:
        """Numbers of these queries among the base rows, where they are the same rows."""
        return None if self.numbers is None else self.numbers[at]

    def exact(self, q: Tensor, own: Tensor | None) -> tuple[Tensor, Tensor]:
        """The best rows of each query, whichever number of queries: values and columns (r, width)."""
        return _block(q, own, self.b, self.width, self.offset)

    def ranked(self, q: Tensor, values: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
        """The best k in order: cosines, or distances from differences."""
        if self.metric == "cosine":
            return _in_order(values, columns)
        return _exact_distances(q, self.b, columns, self.k)


def _search(
    space: _Space, of: slice, progress: Callable[[float], None] | None, approximate: Approximation | None
) -> Neighbors:
    """The neighbors of the queries `of`, by the exact search or the approximate one."""
    first, last, _ = of.indices(len(space.q))
    search, recall = (space.exact, None) if approximate is None else _chosen(space, first, last, approximate)
    step = max(1, SCORES // min(len(space.b), BASE)) if recall is None else BLOCK_QUERIES
    index = np.empty((last - first, space.k), np.int64)
    score = np.empty((last - first, space.k), np.float32)
    for start in range(first, last, step):
        block = slice(start, min(start + step, last))
        best, columns = space.ranked(space.q[block], *search(space.q[block], space.own(block)))
        done = slice(block.start - first, block.stop - first)
        score[done], index[done] = best.cpu().numpy(), columns.cpu().numpy()
        if progress:
            progress(done.stop / (last - first))
    return Neighbors(index, score, space.metric, recall)


def _chosen(space: _Space, first: int, last: int, approximate: Approximation) -> tuple[Search, float | None]:
    """The search to take, and its recall; None for the exact one."""
    large = float(last - first) * space.b.numel() > APPROXIMATE_FROM and last - first > FEW
    if not large or space.q.device.type != "cpu":
        return space.exact, None
    sample = torch.from_numpy(np.linspace(first, last - 1, SAMPLED, dtype=int))
    found = tuned(space.b, space.width, approximate, (space.q[sample], space.own(sample)), space.exact, space.offset)
    return found or (space.exact, None)


def exact_seconds(queries: int, rows: int, width: int, k: int, device: str = "auto") -> float | None:
    """About how long an exact search takes here: 0 for a small one; None on an accelerator, whose
    rate is not measured."""
    products = float(queries) * rows * width
    if products < MEASURED_FROM:
        return 0.0
    if pick_device(device).type != "cpu":
        return None
    return products / _rate(width, k, torch.get_num_threads())


@lru_cache(maxsize=64)
def _rate(width: int, k: int, threads: int) -> float:
    """Products per second of the exact search, by a trial of a tenth of a second."""
    draw = torch.Generator().manual_seed(0)
    q, b = (torch.randn(n, width, generator=draw) for n in (512, 16_384))
    start = time.perf_counter()
    _block(q, None, b, min(k, len(b)), None)
    return q.numel() * len(b) / (time.perf_counter() - start)


def _spread(q: Tensor, b: Tensor, k: int, self_join: bool, rows: Rows) -> Neighbors:
    """The k nearest rows of all parts, for this part's queries: a block of base rows comes by at
    a time, and meets every block of queries. What is best so far has one place from the start:
    small results between large passing ones would keep the heap from shrinking."""
    first, width, size = rows.start(len(q)), 0, max(1, SCORES // BASE)
    score = q.new_zeros(len(q), k)
    index = torch.zeros(len(q), k, dtype=torch.long, device=q.device)
    for start, part in rows.blocks(b, BASE):
        then = min(k, width + len(part))
        for i in range(0, len(q), size):
            block = slice(i, i + size)
            best = (score[block, :width], index[block, :width])
            own = torch.arange(first + i, first + i + len(q[block]), device=q.device)
            at = own if self_join else None
            score[block, :then], index[block, :then] = _meet(best, q[block], part, start, k, at, None)
        width = then
    for i in range(0, len(q), size):
        block = slice(i, i + size)
        score[block], index[block] = _in_order(score[block], index[block])
    return Neighbors(index.cpu().numpy(), score.cpu().numpy(), "cosine")


def _block(q: Tensor, own: Tensor | None, b: Tensor, k: int, offset: Tensor | None) -> tuple[Tensor, Tensor]:
    """Best k of q·b (less `offset`) for a block of queries: values and columns, (r, k) each, in any
    order. `own` (r): each query's number in b, which is no neighbor."""
    best = q.new_empty(len(q), 0), torch.empty(len(q), 0, dtype=torch.long, device=q.device)
    for start in range(0, len(b), BASE):
        part = slice(start, start + BASE)
        less = None if offset is None else offset[part]
        best = _meet(best, q, b[part], start, k, own, less)
    return best


def _meet(
    best: tuple[Tensor, Tensor], q: Tensor, part: Tensor, start: int, k: int, own: Tensor | None, offset: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The best k so far, values and columns (r, ≤ k), and those of the base rows from number `start` on."""
    s = q @ part.mT  # (r, c)
    if offset is not None:
        s -= offset
    if own is not None:
        self_column = own - start
        inside = (self_column >= 0) & (self_column < len(part))
        s[inside.nonzero()[:, 0], self_column[inside]] = -torch.inf
    top, at = best_of(s, min(k, len(part)))
    values, columns = torch.cat([best[0], top], 1), torch.cat([best[1], at + start], 1)
    if values.shape[1] > k:
        values, keep = values.topk(k, dim=1)
        columns = columns.gather(1, keep)
    return values, columns


def _in_order(values: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
    """Sorted by value, falling, then by column, rising. Few rows have equal values: only these are sorted again."""
    values, order = values.sort(dim=1, descending=True)
    columns = columns.gather(1, order)
    tied = (values[:, 1:] == values[:, :-1]).any(1)
    if tied.any():
        by_column, rising = columns[tied].sort(dim=1)
        values[tied], order = values[tied].gather(1, rising).sort(dim=1, descending=True, stable=True)
        columns[tied] = by_column.gather(1, order)
    return values, columns


def _exact_distances(q: Tensor, b: Tensor, columns: Tensor, k: int) -> tuple[Tensor, Tensor]:
    distance = torch.empty(columns.shape, dtype=torch.float64, device=q.device)
    for i in range(0, len(q), 64):  # (64, k, d) differences at a time
        step = slice(i, i + 64)
        distance[step] = (b[columns[step]].double() - q[step, None].double()).norm(dim=2)
    nearness, columns = _in_order(-distance, columns)
    return -nearness[:, :k].float(), columns[:, :k]


def _check(queries: np.ndarray, base: np.ndarray | None, k: int, metric: str, rows: Rows = HERE) -> None:
    if metric not in ("cosine", "euclidean") or (rows.spread and metric != "cosine"):
        choices = "cosine over many processes" if rows.spread else "cosine or euclidean"
        raise ValueError(f"metric must be {choices}; got {metric!r}")
    among = queries if base is None else base
    if queries.ndim != 2 or among.ndim != 2 or queries.shape[1] != among.shape[1]:
        raise UnusableEmbedding(f"queries (n, d) and base (m, d) must match; got {queries.shape}, {among.shape}")
    others = rows.number(len(among)) - (base is None)
    if not 1 <= k <= others:
        raise UnusableEmbedding(f"{k} neighbors were asked for among {others} rows")
    for part in (queries,) if base is None else (queries, base):
        count = int((~np.isfinite(part).all(1)).sum())
        if rows.spread:
            count = rows.number(count)
        if count:
            raise UnusableEmbedding(f"{count} rows hold values that are not finite")
