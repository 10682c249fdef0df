"""Nearest neighbors, block by block: one graph for kNN, purity, hubness and maps.

No n×m matrix is ever held: a block of queries meets a block of base rows, and only the best k so
far are kept. Euclidean neighbors are ranked once more by differences in float64, since Gram
distances lose their digits for near rows.

On a CPU an exact search is ours or faiss's, whichever is faster there (search_rates.py). A caller
that shows the recall can let searches above `APPROXIMATE_FROM` go through faiss's inverted lists
(index_search.py), which find nearly all; or say how many rows a query meets, whatever is found
(list_search.py).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from contrastive_core.device import choose
from contrastive_core.distributed import collectives
from contrastive_core.distributed.partition import part_of
from contrastive_core.distributed.sharded_rows import HERE, SPREAD, Rows
from contrastive_core.errors import UnusableEmbedding
from contrastive_core.ops import index_search, list_search, search_rates
from contrastive_core.ops.recall import lowest_recall
from contrastive_core.ops.search_rates import Way
from contrastive_core.ops.top_k import best_of

__all__ = [
    "Neighbors",
    "exact_seconds",
    "nearest",
    "nearest_together",
    "pick_device",
    "unit_rows",
]

QUERIES = 128  # rows per block: with 65,536 columns 32 MiB of float32 at a time
BASE = 65_536
KEPT = 30  # neighbors that are looked for at least, so that one search serves maps and scores
MEASURED_FROM = 1e10  # queries × rows × width: half a second; below, to choose takes longer
APPROXIMATE_FROM = 2e12  # likewise: 20 s to a minute of two cores; 88,000 rows of 256 in themselves
FEW = 5000  # queries, for which making the lists takes as long as the exact search
FAISS_QUERIES = 2048  # per call
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
        """What is recorded beside a figure made of them: the recall, nothing where exact."""
        return {} if self.recall is None else {"recall": self.recall}


def pick_device(name: str = "auto") -> torch.device:
    """The device to compute on: the one of that name, else CUDA if there is one. In the place of
    MPS, which lacks exact sorting and float64, the CPU. Raises NoDevice."""
    device = choose(name)
    return torch.device("cpu") if device.type == "mps" else device


def unit_rows(features: np.ndarray, device: torch.device | None = None) -> Tensor:
    """Rows of length 1 as a float32 tensor (n, d); scaled first, so that no norm overflows."""
    x = _tensor(features).to(device or "cpu")
    tiny = torch.finfo(torch.float32).tiny
    x = x / torch.linalg.vector_norm(x, torch.inf, 1, keepdim=True).clamp_min(tiny)
    return x.div_(x.norm(dim=1, keepdim=True).clamp_min(tiny))  # no third copy


def _tensor(features: np.ndarray) -> Tensor:
    """Rows (n, d) in float32, not copied where they are that; they are read only, so torch need
    not warn that a mapped file cannot be written."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return torch.from_numpy(np.ascontiguousarray(features, np.float32))


def nearest(
    queries: np.ndarray,
    base: np.ndarray | None,
    k: int,
    metric: str = "cosine",
    device: str = "auto",
    progress: Callable[[float], None] | None = None,
    rows: Rows = HERE,
    of: slice = slice(None),
    approximate: bool = False,
    visited: int | None = None,
) -> Neighbors:
    """The k nearest rows of `base` for each query, exactly unless `approximate` or `visited`.

    Args:
        queries: (n, d); base: (m, d), or None for the queries themselves, a row never its own
            neighbor.
        metric: "cosine" or "euclidean".
        progress: called with the share done, 0 to 1.
        rows: how both lie; if spread (cosine only), the result is of this part's queries, with
            the numbers that base rows have in the whole.
        of: only of these queries.
        approximate: above `APPROXIMATE_FROM` by inverted lists, on a CPU with faiss.
        visited: above `APPROXIMATE_FROM`, on a CPU: how many rows each query meets, about; up to
            four times as many where too few of the neighbors are among these.
    Raises: UnusableEmbedding when there are fewer than k rows, widths differ, or a value is not
        finite.
    """
    self_join = base is None
    base = queries if base is None else base
    _check(queries, base, k, metric, self_join, rows)
    where = pick_device(device)
    if rows.spread:
        unit = unit_rows(queries, where)
        return _spread(unit, unit if self_join else unit_rows(base, where), k, self_join, rows)
    if metric == "cosine":
        q = unit_rows(queries, where)
        b = q if self_join else unit_rows(base, where)
        width, offset = k, None
    else:
        center = torch.from_numpy(base.mean(0, dtype=np.float64).astype(np.float32)).to(where)
        q = _tensor(queries).to(where) - center
        b = q if self_join else _tensor(base).to(where) - center
        width, offset = min(k + SLACK, len(b) - self_join), b.square().sum(1) / 2
    first, last, _ = of.indices(len(q))
    numbers = torch.arange(len(q), device=where) if self_join else None
    ways, products, recall = _ways(where, metric, offset), float(last - first) * b.numel(), None
    way = _faster(ways, products, b.shape[1], width)
    search, step = way.make(b, width), way.queries
    large = products > APPROXIMATE_FROM and last - first > FEW
    if large and where.type == "cpu" and (visited or (approximate and "faiss" in ways)):
        sample = torch.from_numpy(np.linspace(first, last - 1, 2 * index_search.SAMPLE, dtype=int))
        own = None if numbers is None else numbers[sample]
        if visited:
            search, recall = list_search.tuned(b, width, visited, q[sample], own, search, offset)
            step = list_search.QUERIES
        elif found := index_search.lists(b, width, metric, q[sample], own, search):
            (search, recall), step = found, index_search.LISTS_QUERIES
    index = np.empty((len(q), k), np.int64)
    score = np.empty((len(q), k), np.float32)
    for start in range(first, last, step):
        block = slice(start, min(start + step, last))
        best, columns = search(q[block], None if numbers is None else numbers[block])
        if metric == "cosine":
            best, columns = _in_order(best, columns)
        else:
            best, columns = _exact_distances(q[block], b, columns, k)
        score[block], index[block] = best.cpu().numpy(), columns.cpu().numpy()
        if progress:
            progress((block.stop - first) / (last - first))
    return Neighbors(index[of], score[of], metric, recall)


def nearest_together(
    queries: np.ndarray,
    base: np.ndarray | None,
    k: int,
    metric: str = "cosine",
    progress: Callable[[float], None] | None = None,
    device: str = "auto",
    approximate: bool = False,
    visited: int | None = None,
) -> Neighbors:
    """`nearest` by all processes that joined, each of which holds all rows: a share of the queries
    each, the whole result on every one, and the lowest recall."""
    world = collectives.world()
    share = part_of(len(queries), (world.rank, world.size))
    local = nearest(
        queries, base, k, metric, device, progress,
        of=share, approximate=approximate, visited=visited,
    )  # fmt: skip
    recall = lowest_recall(SPREAD.each(local.recall))
    return Neighbors(SPREAD.whole(local.index), SPREAD.whole(local.score), metric, recall)


def exact_seconds(
    queries: int, rows: int, width: int, k: int, device: str = "auto"
) -> float | None:
    """About how long an exact search takes here: 0 for a small one; None on an accelerator, whose
    rate is not measured."""
    products, where = float(queries) * rows * width, pick_device(device)
    if products < MEASURED_FROM:
        return 0.0
    if where.type != "cpu":
        return None
    return products / max(search_rates.rates(_ways(where), width, k).values())


def _faster(ways: dict[str, Way], products: float, width: int, k: int) -> Way:
    """The faster exact search: of rows of this width, ranked by their cosines."""
    if products < MEASURED_FROM or len(ways) == 1:
        return ways["tiled"]
    rates = search_rates.rates(_ways(torch.device("cpu")), width, k)
    return ways[max(rates, key=lambda name: rates[name])]


def _ways(
    device: torch.device, metric: str = "cosine", offset: Tensor | None = None
) -> dict[str, Way]:
    """The exact searches that there are on a device. `offset` (m) is what is taken off the
    products of Euclidean rows."""
    ways = {"tiled": Way(lambda b, k: partial(_block, b=b, k=k, offset=offset), QUERIES)}
    if device.type == "cpu" and index_search.library() is not None:
        ways["faiss"] = Way(lambda b, k: index_search.flat(b, k, metric), FAISS_QUERIES)
    return ways


def _spread(q: Tensor, b: Tensor, k: int, self_join: bool, rows: Rows) -> Neighbors:
    """The k nearest rows of all parts, for this part's queries: a block of base rows comes by at
    a time, and meets every block of queries. What is best so far has one place from the start:
    small results between large passing ones would keep the heap from shrinking."""
    first, width = rows.start(len(q)), 0
    score = q.new_zeros(len(q), k)
    index = torch.zeros(len(q), k, dtype=torch.long, device=q.device)
    for start, part in rows.blocks(b, BASE):
        then = min(k, width + len(part))
        for i in range(0, len(q), QUERIES):
            block = slice(i, i + QUERIES)
            best = (score[block, :width], index[block, :width])
            own = torch.arange(first + i, first + i + len(q[block]), device=q.device)
            at = own if self_join else None
            score[block, :then], index[block, :then] = _meet(
                *best, q[block], part, start, k, at, None
            )
        width = then
    for i in range(0, len(q), QUERIES):
        block = slice(i, i + QUERIES)
        score[block], index[block] = _in_order(score[block], index[block])
    return Neighbors(index.cpu().numpy(), score.cpu().numpy(), "cosine")


def _block(
    q: Tensor, own: Tensor | None, b: Tensor, k: int, offset: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Best k of q·b (less `offset`) for a block of queries: values and columns, (r, k) each, in any
    order. `own` (r): each query's number in b, which is no neighbor."""
    best = _nothing(q)
    for start in range(0, len(b), BASE):
        part = slice(start, start + BASE)
        less = None if offset is None else offset[part]
        best = _meet(*best, q, b[part], start, k, own, less)
    return best


def _nothing(q: Tensor) -> tuple[Tensor, Tensor]:
    return q.new_empty(len(q), 0), torch.empty(len(q), 0, dtype=torch.long, device=q.device)


def _meet(
    values: Tensor,
    columns: Tensor,
    q: Tensor,
    part: Tensor,
    start: int,
    k: int,
    own: Tensor | None,
    offset: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """The best k so far (r, ≤ k), and those of the base rows from number `start` on."""
    s = q @ part.mT  # (r, c)
    if offset is not None:
        s -= offset
    if own is not None:
        self_column = own - start
        inside = (self_column >= 0) & (self_column < len(part))
        s[inside.nonzero()[:, 0], self_column[inside]] = -torch.inf
    top, at = best_of(s, min(k, len(part)))
    values, columns = torch.cat([values, top], 1), torch.cat([columns, at + start], 1)
    if values.shape[1] > k:
        values, keep = values.topk(k, dim=1)
        columns = columns.gather(1, keep)
    return values, columns


def _in_order(values: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
    """Sorted by value, falling, then by column, rising."""
    by_column = columns.argsort(1)
    values, columns = values.gather(1, by_column), columns.gather(1, by_column)
    order = values.argsort(dim=1, descending=True, stable=True)
    return values.gather(1, order), columns.gather(1, order)


def _exact_distances(q: Tensor, b: Tensor, columns: Tensor, k: int) -> tuple[Tensor, Tensor]:
    distance = torch.empty(columns.shape, dtype=torch.float64, device=q.device)
    for i in range(0, len(q), 64):  # (64, k, d) differences at a time
        step = slice(i, i + 64)
        distance[step] = (b[columns[step]].double() - q[step, None].double()).norm(dim=2)
    nearness, columns = _in_order(-distance, columns)
    return -nearness[:, :k].float(), columns[:, :k]


def _check(
    queries: np.ndarray, base: np.ndarray, k: int, metric: str, self_join: bool, rows: Rows
) -> None:
    if metric not in ("cosine", "euclidean") or (rows.spread and metric != "cosine"):
        choices = "cosine over many processes" if rows.spread else "cosine or euclidean"
        raise ValueError(f"metric must be {choices}; got {metric!r}")
    if queries.ndim != 2 or base.ndim != 2 or queries.shape[1] != base.shape[1]:
        raise UnusableEmbedding(
            f"queries (n, d) and base (m, d) must match; got {queries.shape}, {base.shape}"
        )
    others = rows.number(len(base)) - self_join
    if not 1 <= k <= others:
        raise UnusableEmbedding(f"{k} neighbors were asked for among {others} rows")
    for part in (queries,) if self_join else (queries, base):
        if count := rows.number(int((~np.isfinite(part).all(1)).sum())):
            raise UnusableEmbedding(f"{count} rows hold values that are not finite")
