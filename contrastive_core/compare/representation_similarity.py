"""Similarity of embeddings of the same samples: CKA, shared neighbors, Procrustes.

CKA is the debiased linear one (Kornblith et al. 2019, arXiv 1905.00414; Nguyen et al. 2020, arXiv 2010.15327).
Deviation: products are float32, sums float64; the debiasing needs only row norms, so no n×n matrix is computed
unless there are fewer rows than columns. Rows are centered and multiplied in blocks, so no embedding is copied.

Each measure is reported with its value for randomly ordered rows, because few wide vectors are similar by chance."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float64, Int64

from contrastive_core.base.memory import lowest_recall, overlap
from contrastive_core.base.messages import N_
from contrastive_core.base.progress import OnFraction, ignore_fraction
from contrastive_core.spaces.embedding_set import EmbeddingSet

if TYPE_CHECKING:
    from contrastive_core.spaces.neighbor_graphs import Graphs

NEAREST = 20  # number of neighbors that are compared
BLOCK = 1 << 26  # numbers centered at a time, 256 MB in float32


def ckas(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Return the debiased linear CKA (runs, runs) float64 between embeddings (n, d_i) of the same samples.

    NaN if an embedding is constant or n is below 4."""
    n = len(parts[0])
    if n < 4:
        return np.full((len(parts), len(parts)), np.nan)
    means = [x.mean(0, dtype=np.float64) for x in parts]

    def product(i: int, j: int) -> float:
        """Return ‖XᵢᵀXⱼ‖², by the cheaper of two formulas."""
        (x, y), widths = (parts[i], parts[j]), parts[i].shape[1] + parts[j].shape[1]
        if n * 2 < widths:  # the sum of XXᵀ ∘ YYᵀ is equal
            a, b = _centered(x, means[i]), _centered(y, means[j])
            return float(np.einsum("nm,nm->", a @ a.T, b @ b.T, dtype=np.float64))
        both = np.zeros((x.shape[1], y.shape[1]), np.float32)
        for block in _blocks(n, widths):
            a = _centered(x[block], means[i])
            both += a.T @ (a if i == j else _centered(y[block], means[j]))
        return float(np.square(both).sum(dtype=np.float64))

    lengths = np.zeros((len(parts), n))  # squared, of the centered rows
    for i, x in enumerate(parts):
        for block in _blocks(n, x.shape[1]):
            centered = _centered(x[block], means[i])
            lengths[i, block] = np.einsum("nd,nd->n", centered, centered, dtype=np.float64)
    similarity = matrix(range(len(parts)), product) - _bias(lengths, lengths)
    own = similarity.diagonal().copy()
    scale = np.sqrt(np.where(own > 0, own, np.nan))
    return similarity / (scale[:, None] * scale)


def _bias(a: np.ndarray, b: np.ndarray) -> Any:
    """Return the expected ‖XᵀY‖² of independent X and Y, from the squared lengths (…, n) of their centered rows."""
    n = a.shape[-1]
    return n / (n - 2) * a @ b.T - np.multiply.outer(a.sum(-1), b.sum(-1)) / ((n - 1) * (n - 2))


def _blocks(n: int, width: int) -> Iterator[slice]:
    """Yield slices of rows with at most BLOCK numbers each."""
    step = max(1, BLOCK // width)
    yield from (slice(i, i + step) for i in range(0, n, step))


def _centered(x: np.ndarray, mean: np.ndarray) -> np.ndarray:
    return np.subtract(x, mean.astype(x.dtype)).astype(np.float32, copy=False)


def procrustes(x: np.ndarray, y: np.ndarray) -> float:
    """Return the Procrustes distance, from 0 (equal up to rotation, reflection and scale) to 1.

    Unlike scipy's, it accepts different widths."""
    means = [v.mean(0, dtype=np.float64) for v in (x, y)]
    product, squares = np.zeros((x.shape[1], y.shape[1])), np.zeros(2)
    for block in _blocks(len(x), 2 * (x.shape[1] + y.shape[1])):  # twice as large in float64
        a, b = (v[block].astype(np.float64) - mean for v, mean in zip((x, y), means, strict=True))
        product += a.T @ b
        squares += [np.square(a).sum(), np.square(b).sum()]
    lengths = np.maximum(1e-300, np.sqrt(squares))
    shared = np.linalg.svd(product, compute_uv=False).sum() / lengths.prod()
    return float(max(0.0, 1 - shared**2))


def procrustes_align(moving: np.ndarray, fixed: np.ndarray) -> np.ndarray:
    """Align a map (n, 2) with another by rotation, reflection and shift (Procrustes), and scale it to the same size.

    The best-fitting scale (scipy's) would shrink a map to a dot if the two have little in common."""
    x, y = moving - moving.mean(0), fixed - fixed.mean(0)
    u, _, v = np.linalg.svd(x.T @ y)
    scale = np.sqrt((y * y).sum() / max(1e-12, (x * x).sum()))
    return np.asarray(scale * x @ (u @ v) + fixed.mean(0), np.float32)


def procrustes_chain(maps: Iterable[np.ndarray]) -> list[np.ndarray]:
    """Align each map (n, 2) with the one before it. A map with another number of rows starts a new chain."""
    aligned: list[np.ndarray] = []
    for xy in maps:
        is_same = bool(aligned) and len(aligned[-1]) == len(xy)
        aligned.append(procrustes_align(xy, aligned[-1]) if is_same else xy)
    return aligned


def overlaps(graphs: Sequence[np.ndarray]) -> np.ndarray:
    """Return the mean share of common neighbors (runs, runs) between all pairs of graphs (n, k)."""
    return matrix(graphs, lambda a, b: float(overlap(a, b).mean()))


def graphs_of(sets: Sequence[EmbeddingSet], graphs: "Graphs") -> tuple[list[np.ndarray], float | None]:
    """Return the nearest rows (n, k) of each row in its own set, from the cache `graphs`, and the lowest recall of the
    approximate ones; None if all are exact."""
    found = [graphs.get(rows, None, min(NEAREST, len(rows) - 1)) for rows in sets]
    return [graph.index for graph in found], lowest_recall(graph.recall for graph in found)


def matrix(parts: Sequence[Any], of: Callable[[Any, Any], float]) -> np.ndarray:
    """Return a symmetric matrix of `of` between all pairs, including each part with itself."""
    values = np.eye(len(parts))
    for i in range(len(parts)):
        for j in range(i + 1):
            values[i, j] = values[j, i] = of(parts[i], parts[j])
    return values


def similarities(sets: Sequence[EmbeddingSet], kept: "Graphs", is_left_out: bool = False) -> dict[str, Any]:
    """Return the similarity of spaces of the same rows: the fields of `Comparison` `cka`, `overlap`, `procrustes`, `k`,
    `graphs` and `recall`. Args: kept: a cache of graphs; is_left_out: return NaN and empty arrays."""
    if is_left_out:
        unknown = np.full((len(sets), len(sets)), np.nan)
        empty = np.empty((len(sets), len(sets[0]), 0), np.int64)
        return {"cka": unknown, "overlap": unknown, "procrustes": unknown, "k": 0, "graphs": empty, "recall": None}
    kept.on_progress(N_("similarity of the spaces"), None)
    features = [s.features for s in sets]
    graphs, recall = graphs_of(sets, kept)
    values = {"cka": ckas(features), "overlap": overlaps(graphs), "procrustes": matrix(features, procrustes)}
    return {**values, "k": graphs[0].shape[1], "graphs": np.stack(graphs), "recall": recall}


MEASURES = ("cka", "overlap", "procrustes")
ORDERS, LEVEL, MOST = 200, 0.05, 1000  # random orders; above chance beyond this; rows that chance is taken of


def calibrate(
    parts: Sequence[np.ndarray],
    graphs: Sequence[np.ndarray],
    orders: int = ORDERS,
    on_fraction: OnFraction = ignore_fraction,
) -> dict[str, Float64[np.ndarray, "runs runs"]]:
    """Calibrate CKA, shared neighbors and Procrustes between embeddings (n, d_i) by permuting the rows of one.

    With more than MOST rows, chance is computed on a sample. Chance decreases with the number of rows, so the p value
    is too large rather than too small. Source: arXiv 2602.14486, algorithm 1.
    Args: graphs: nearest rows (n, k) of each embedding.
    Returns, for each measure, `chance:…`: the value below which 95 % of random row orders lie (above which, for the
        Procrustes distance); `calibrated:…`: 0 at chance or below, 1 for equal spaces; `p:…`: the share of orders with
        at least the observed similarity. NaN on the diagonal and for undefined measures."""
    from threadpoolctl import threadpool_limits

    n, rng = len(parts[0]), np.random.default_rng(0)
    chosen = np.sort(rng.choice(n, min(n, MOST), replace=False))
    drawn = [rng.permutation(n) for _ in range(orders)]
    observed = {"cka": ckas(parts), "overlap": overlaps(graphs), "procrustes": 1 - matrix(parts, procrustes)}
    names = [f"{name}:{measure}" for name in ("chance", "calibrated", "p") for measure in MEASURES]
    found = {name: np.full((len(parts), len(parts)), np.nan) for name in names}
    pairs = list(combinations(range(len(parts)), 2))
    for done, (i, j) in enumerate(pairs):
        on_fraction(done / len(pairs))
        with threadpool_limits(1, "blas"):  # many small products: synchronizing threads is 50 times slower
            by_chance = _by_chance(parts[i], parts[j], graphs[i], graphs[j], chosen, drawn)
        for measure, null in zip(MEASURES, by_chance.T, strict=True):
            value = observed[measure][i, j]
            if np.isnan(value) or np.isnan(null).any():
                continue
            limit = np.sort([*null, value])[ceil((1 - LEVEL) * (orders + 1)) - 1]
            above = np.clip((value - limit) / max(1e-12, 1 - limit), 0, 1)
            p = (1 + np.count_nonzero(null >= value)) / (orders + 1)
            shown = {"chance": 1 - limit if measure == "procrustes" else limit, "calibrated": above, "p": p}
            for name, number in shown.items():
                found[f"{name}:{measure}"][[i, j], [j, i]] = number
    return found


def _by_chance(
    x: np.ndarray,
    y: np.ndarray,
    near_x: np.ndarray,
    near_y: np.ndarray,
    chosen: Int64[np.ndarray, " r"],
    orders: list[np.ndarray],
) -> Float64[np.ndarray, "orders 3"]:
    """Return CKA, shared neighbors and 1 − Procrustes distance of x and y for each order of y's rows.
    CKA and Procrustes use the chosen rows only; shared neighbors are those of the chosen rows among all rows."""
    x, y = (_centered(v[chosen], v[chosen].mean(0, dtype=np.float64)) for v in (x, y))
    if max(x.shape[1], y.shape[1]) > len(x):  # turned into (r, r), with the same products
        x, y = (u * s for u, s, _ in (np.linalg.svd(v, full_matrices=False) for v in (x, y)))
    a, b = (np.einsum("nd,nd->n", v, v, dtype=np.float64) for v in (x, y))
    with np.errstate(invalid="ignore", divide="ignore"):
        own = [np.square(v.T @ v).sum(dtype=np.float64) - _bias(s, s) for v, s in ((x, a), (y, b))]
        scale, found = np.sqrt(own[0] * own[1]), np.empty((len(orders), len(MEASURES)))
        for at, order in enumerate(orders):
            inner, place = order[chosen].argsort().argsort(), order.argsort()  # of the chosen rows; its inverse
            product = (x.T @ y[inner]).astype(np.float64)
            shared = np.linalg.svd(product, compute_uv=False).sum() ** 2 / max(1e-300, a.sum() * b.sum())
            alike = (np.square(product).sum() - _bias(a, b[inner])) / scale
            found[at] = alike, overlap(near_x[chosen], place[near_y[order[chosen]]]).mean(), shared
    return found
