"""Nearest neighbors, block by block: one exact search, faiss for a large set on a CPU, and a cache of their graphs.

The n×m matrix is never stored. Euclidean neighbors are ranked again by float64 differences, because Gram distances lose
precision for near rows. From `LARGE` rows the search may use faiss (Jégou et al. 2011, IEEE PAMI 33): inverted lists of
short codes, the best of which are compared exactly; its recall is measured. faiss comes with the app except on macOS,
where its OpenMP conflicts with torch's (https://github.com/faiss-wheels/faiss-wheels/issues/73)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from contrastive_core.base.device import pick_device
from contrastive_core.base.errors import UnusableEmbedding
from contrastive_core.base.memory import in_common, read_npz, rows_of_sample, write_npz
from contrastive_core.base.messages import N_
from contrastive_core.base.progress import OnProgress, fraction_of, ignore_fraction, ignore_progress
from contrastive_core.spaces.embedding_set import EmbeddingSet

SCORES = 1 << 23  # of a block of queries with a block of base rows: 32 MiB of float32 at a time
BASE = 65_536  # base rows in a block
KEPT = 30  # neighbors that are looked for at least, so that one search serves maps and scores
LONG = 1e11  # queries × rows × width: above, a search takes seconds, and its progress is shown
APPROXIMATE_FROM = 2e12  # likewise, of LARGE sets: above, an exact search takes 20 s to a minute of two cores
LARGE = 100_000  # queries, or base rows
FEW = 5000  # queries, for which making the lists takes as long as the exact search
SAMPLED = 512  # queries that the approximate search is tuned and measured on
SLACK = 8  # Gram distances may swap near-equal rows; this many more are ranked exactly
BLOCK_QUERIES = 1 << 14  # that faiss searches at a time
PER_LIST = 40  # rows for each list that the clusters are made from
CODED = 64  # parts of a row that have a code each, at most; of rows with fewer than MIN_CODED the numbers are kept
MIN_CODED = 8
EFFORTS = ((32, 4), (64, 8), (128, 16), (256, 32))  # lists a query meets, and times k rows that are compared exactly

# Of queries (r, d) and their own numbers (r), which are no neighbors, or None: values (r, k), the
# larger the nearer, and the rows' numbers (r, k), in any order.
Search = Callable[[Tensor, Tensor | None], tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class Approximation:
    """Required recall of an approximate search; if it cannot be reached, whether the exact search runs instead."""

    recall: float = 0.995  # a little above the 0.99 that scores need
    or_exact: bool = True


ACCURATE = Approximation()  # for figures: nearly all of the true neighbors
LIKELY = Approximation(0.9, or_exact=False)  # most of the neighbors, in a time that is bounded


@dataclass(frozen=True, eq=False)
class Neighbors:
    """The k nearest base rows of each query, nearest first; ties go to the smaller index.

    `index` (n, k) int64; `score` (n, k) float32: cosine similarity, or Euclidean distance. `recall` is the share of the
    true k nearest that were found, measured on a sample of the queries; None if the search was exact."""

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
        """The recall to record with a score; empty if exact."""
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
    """Return the k nearest rows of `base` for each query, exactly unless `approximate`.

    Args:
        queries: (n, d); base: (m, d), or None for the queries themselves, a row never its own
            neighbor.
        metric: "cosine" or "euclidean".
        progress: called with the completed share, 0 to 1.
        approximate: the required recall of a search of `LARGE` sets on a CPU.
    Raises: UnusableEmbedding when there are fewer than k rows, widths differ, or a value is not
        finite."""
    among = queries if base is None else base
    if metric not in ("cosine", "euclidean"):
        raise ValueError(f"metric must be cosine or euclidean; got {metric!r}")
    if queries.ndim != 2 or among.ndim != 2 or queries.shape[1] != among.shape[1]:
        raise UnusableEmbedding(f"queries (n, d) and base (m, d) must match; got {queries.shape}, {among.shape}")
    if not 1 <= k <= (others := len(among) - (base is None)):
        raise UnusableEmbedding(f"{k} neighbors were asked for among {others} rows")
    for part in (queries,) if base is None else (queries, base):
        if count := int((~np.isfinite(part).all(1)).sum()):
            raise UnusableEmbedding(f"{count} rows hold values that are not finite")
    space = _Space(queries, base, k, metric, pick_device(device))
    number = len(space.q)
    is_large = max(number, len(space.b)) >= LARGE and float(number) * space.b.numel() > APPROXIMATE_FROM
    is_large &= number > FEW and space.q.device.type == "cpu"
    found = _by_faiss(space, approximate) if approximate and is_large and find_spec("faiss") else None
    search, recall = found or (space.exact, None)
    step = BLOCK_QUERIES if found else max(1, SCORES // min(len(space.b), BASE))
    index, score = np.empty((number, k), np.int64), np.empty((number, k), np.float32)
    for start in range(0, number, step):
        block = slice(start, start + step)
        best, columns = space.ranked(space.q[block], *search(space.q[block], space.own(block)))
        score[block], index[block] = best.cpu().numpy(), columns.cpu().numpy()
        if progress:
            progress(min(1.0, (start + step) / number))
    return Neighbors(index, score, metric, recall)


class _Space:
    """Queries and base rows prepared for the search: unit rows, or centered rows and an offset that turns products into
    distances."""

    def __init__(self, queries: np.ndarray, base: np.ndarray | None, k: int, metric: str, device: torch.device) -> None:
        self.k, self.metric, self.offset = k, metric, None
        if metric == "cosine":
            self.q = unit_rows(queries, device)
            self.b = self.q if base is None else unit_rows(base, device)
            self.width = k
        else:
            among = queries if base is None else base
            center = torch.from_numpy(among.mean(0, dtype=np.float64).astype(np.float32)).to(device)
            self.q = float_rows(queries).to(device) - center
            self.b = self.q if base is None else float_rows(base).to(device) - center
            self.width = min(k + SLACK, len(self.b) - (base is None))
            self.offset = self.b.square().sum(1) / 2
        self.numbers = torch.arange(len(self.q), device=device) if base is None else None

    def own(self, at: slice | Tensor) -> Tensor | None:
        """Return the indices of these queries among the base rows; None if they are others."""
        return None if self.numbers is None else self.numbers[at]

    def exact(self, q: Tensor, own: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the best rows of a block of queries: values and columns, (r, width) each, in any order. `own` (r):
        each query's index among the base rows, which is excluded."""
        values, columns = q.new_empty(len(q), 0), torch.empty(len(q), 0, dtype=torch.long, device=q.device)
        for start in range(0, len(self.b), BASE):
            part = self.b[start : start + BASE]
            s = q @ part.mT  # (r, c)
            if self.offset is not None:
                s -= self.offset[start : start + BASE]
            if own is not None:
                self_column = own - start
                inside = (self_column >= 0) & (self_column < len(part))
                s[inside.nonzero()[:, 0], self_column[inside]] = -torch.inf
            top, at = best_of(s, min(self.width, len(part)))
            values, columns = torch.cat([values, top], 1), torch.cat([columns, at + start], 1)
            if values.shape[1] > self.width:
                values, keep = values.topk(self.width, dim=1)
                columns = columns.gather(1, keep)
        return values, columns

    def ranked(self, q: Tensor, values: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
        """Return the best k in order, with cosines or with distances computed from differences."""
        if self.metric == "cosine":
            return _in_order(values, columns)
        distance = torch.empty(columns.shape, dtype=torch.float64, device=q.device)
        for i in range(0, len(q), 64):  # (64, k, d) differences at a time
            step = slice(i, i + 64)
            distance[step] = (self.b[columns[step]].double() - q[step, None].double()).norm(dim=2)
        nearness, columns = _in_order(-distance, columns)
        return -nearness[:, : self.k].float(), columns[:, : self.k]


def _by_faiss(space: _Space, approximate: Approximation) -> tuple[Search, float] | None:
    """Return a search with enough recall, and its recall; None if the exact search is needed. Half of a sample of the
    queries sets the number of lists; the other half measures recall."""
    import faiss

    faiss.omp_set_num_threads(torch.get_num_threads())
    rows, width = space.b.shape
    lists = min(2 * math.isqrt(rows), rows // PER_LIST)
    coded = next((m for m in range(min(CODED, width // 2), 0, -1) if width % m == 0 and m % 2 == 0), 0)
    kind = f"IVF{lists},PQ{coded}x4fs,RFlat" if coded >= MIN_CODED else f"IVF{lists},Flat"
    metric = faiss.METRIC_INNER_PRODUCT if space.offset is None else faiss.METRIC_L2
    index = faiss.index_factory(width, kind, metric)
    index.train(space.b.numpy()[rows_of_sample(rows, PER_LIST * lists)])
    index.add(space.b.numpy())

    def search(q: Tensor, own: Tensor | None) -> tuple[Tensor, Tensor]:
        most = space.width + (own is not None)
        values, columns = map(torch.from_numpy, index.search(q.contiguous().numpy(), most))
        if space.offset is not None:
            values = -values
        if own is not None:
            values[columns == own[:, None]] = -torch.inf
            values, kept = values.topk(space.width, dim=1)
            columns = columns.gather(1, kept)
        if (short := (columns < 0).any(1)).any():  # the lists that it met hold fewer rows
            values[short], columns[short] = space.exact(q[short], None if own is None else own[short])
        return values, columns

    at = torch.from_numpy(np.linspace(0, len(space.q) - 1, SAMPLED, dtype=int))
    tried, judged = at[::2], at[1::2]

    def recall(some: Tensor) -> float:
        found, true = (one(space.q[some], space.own(some))[1].numpy() for one in (search, space.exact))
        return float(in_common(true, found).mean())

    for lists_met, compared in EFFORTS:
        effort = f"nprobe={lists_met}" + (f",k_factor_rf={compared}" if coded >= MIN_CODED else "")
        faiss.ParameterSpace().set_index_parameters(index, effort)  # type: ignore[arg-type]  # its stubs are of C++
        if recall(tried) >= approximate.recall:
            break
    else:
        if approximate.or_exact:
            return None
    return search, recall(judged)


def best_of(s: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return `s.topk(k)`, unsorted, (r, k) each. The best k lie in the k groups of columns with the largest maxima, so
    only those columns are ranked."""
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


def _in_order(values: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
    """Sort by descending value, then by ascending column. Only the few rows with equal values are sorted again."""
    values, order = values.sort(dim=1, descending=True)
    columns = columns.gather(1, order)
    tied = (values[:, 1:] == values[:, :-1]).any(1)
    if tied.any():
        by_column, rising = columns[tied].sort(dim=1)
        values[tied], order = values[tied].gather(1, rising).sort(dim=1, descending=True, stable=True)
        columns[tied] = by_column.gather(1, order)
    return values, columns


def unit_rows(features: np.ndarray, device: torch.device | None = None) -> Tensor:
    """Scale rows to length 1, as a float32 tensor (n, d), without overflow of a norm."""
    x = float_rows(features).to(device or "cpu")
    tiny = torch.finfo(torch.float32).tiny
    x = x / x.abs().amax(1, keepdim=True).clamp_min(tiny)
    return x.div_(x.norm(dim=1, keepdim=True).clamp_min(tiny))  # no third copy


def float_rows(features: np.ndarray) -> Tensor:
    """Return rows (n, d) in float32, without a copy if they already are. The rows are only read, so torch's warning
    about read-only files is suppressed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return torch.from_numpy(np.ascontiguousarray(features, np.float32))


@dataclass
class Graphs:
    """A cache of neighbor graphs, shared by all scores and maps of an embedding. `place(content, metric)` names the
    file that stores the graph of a set in itself for other processes; `on_progress` reports each long search."""

    device: str = "auto"
    place: Callable[[str, str], Path] | None = None
    on_progress: OnProgress = ignore_progress
    cached: dict[tuple[str, ...], Neighbors] = field(default_factory=dict)

    def get(
        self,
        queries: EmbeddingSet,
        base: EmbeddingSet | None,
        k: int,
        metric: str = "cosine",
        approximate: Approximation | None = ACCURATE,
    ) -> Neighbors:
        """Return the graph of `queries` in `base` (None: in itself), computed once for the largest k. In a very large
        set it is `approximate`, as in `nearest` (None: exact); the caller records `Neighbors.about`."""
        key: tuple[str, ...] = (queries.content_hash, base.content_hash if base else "", metric)
        if key not in self.cached and base is None and self.place and (path := self.place(key[0], metric)).exists():
            arrays = read_npz(path)
            recall = float(arrays["recall"]) if "recall" in arrays else None
            self.cached[key] = Neighbors(arrays["index"], arrays["score"], metric, recall)
        known = self.cached.get(key)
        if known is None or known.k < k or (approximate is None and known.recall is not None):
            count = k if base else max(k, min(KEPT, len(queries) - 1))
            neighbors = self.cached[key] = self._search(queries, base, count, metric, approximate)
            if base is None and self.place:
                about = {name: np.array(value) for name, value in neighbors.about.items()}
                write_npz(self.place(key[0], metric), index=neighbors.index, score=neighbors.score, **about)
        return self.cached[key].first(k)

    def _search(
        self, queries: EmbeddingSet, base: EmbeddingSet | None, k: int, metric: str, approximate: Approximation | None
    ) -> Neighbors:
        others = None if base is None else base.features
        is_long = float(len(queries)) * (queries.features if others is None else others).size > LONG
        on_fraction = fraction_of(self.on_progress, N_("nearest neighbors")) if is_long else ignore_fraction
        on_fraction(0.0)  # before the work begins
        neighbors = nearest(queries.features, others, k, metric, self.device, on_fraction, approximate)
        if is_long:
            self.on_progress(N_("nearest neighbors found"), None)
        return neighbors
