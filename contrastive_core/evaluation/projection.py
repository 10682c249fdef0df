"""Maps in the plane: PCA at once, UMAP from a given exact graph; seeded and judged.

UMAP: https://arxiv.org/abs/1802.03426, by umap-learn, started from PCA instead of its spectral
layout and given our exact neighbors instead of its approximate ones. Scores are never computed
on a map; trustworthiness and continuity (Venna & Kaski 2001) say how far a map can be believed.
"""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Float32

from contrastive_core.embeddings.embedding_set import EmbeddingSet
from contrastive_core.embeddings.graphs import Graphs
from contrastive_core.embeddings.pca import pca
from contrastive_core.errors import UnusableEmbedding
from contrastive_core.ops.neighbors import Neighbors, nearest, pick_device, unit_rows

__all__ = [
    "Map",
    "agreement",
    "continuity",
    "judge",
    "map_of",
    "project_new",
    "trustworthiness",
    "umap",
    "warm_umap",
]

CELLS = 1 << 24  # distances at a time: 128 MiB of float64
JUDGED = 5000  # anchors that are judged when there are more rows: enough for two digits
MANY = 200_000  # rows, above which fewer anchors are judged: each is compared with all rows
JUDGED_OF_MANY = 500
JUDGED_K = 15
STEPS = 20  # of Weiszfeld
EPOCHS = 200  # umap-learn's own number above 10,000 rows, taken at any size: from a PCA start, 500
# gain at most 0.002 of trustworthiness and take 2.5 times as long (benchmarks/umap.py)


@dataclass(frozen=True, eq=False)
class Map:
    """Coordinates (n, 2), how they were made, and how far they can be believed."""

    xy: Float32[np.ndarray, "n 2"]
    settings: dict[str, Any]
    quality: dict[str, float] = field(default_factory=dict)


def umap(
    features: np.ndarray,
    seed: int = 0,
    neighbors: int = 15,
    min_dist: float = 0.1,
    metric: str = "cosine",
    graph: Neighbors | None = None,
    progress: Callable[[float], None] | None = None,
    device: str = "auto",
) -> np.ndarray:
    """A UMAP layout (n, 2), float32; the same seed gives the same map on the same machine.

    Args:
        neighbors: size of the neighborhood, the row itself counted, as in umap-learn.
        graph: nearest rows in the same set, at least neighbors − 1 of them; computed if missing.
        progress: called with the share of the layout that is done.
        device: on which a missing graph is computed; the layout itself is always the CPU's.
    Raises: UnusableEmbedding for fewer than four rows, or rows that are all alike.
    """
    n = len(features)
    if n < 4:
        raise UnusableEmbedding(f"UMAP needs at least four rows, and there are {n}")
    neighbors = max(2, min(neighbors, n - 1))
    if graph is None or graph.k < neighbors - 1 or graph.metric != metric:
        graph = nearest(features, None, neighbors - 1, metric, device)
    graph = graph.first(neighbors - 1)
    itself = np.arange(n)[:, None]
    away = 1 - graph.score if metric == "cosine" else graph.score
    index = np.hstack([itself, graph.index]).astype(np.int32)
    distance = np.hstack([np.zeros((n, 1)), np.maximum(away, 0)]).astype(np.float32)
    start = pca(features)
    spread = float(np.abs(start).max()) or 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from umap import UMAP

        model = UMAP(
            n_neighbors=neighbors,
            min_dist=min_dist,
            metric=metric,
            random_state=seed,
            n_jobs=1,
            n_epochs=EPOCHS,
            init=start * (10 / spread),
            precomputed_knn=(index, distance),
            verbose=progress is not None,
            tqdm_kwds={"file": _ProgressOf(progress), "mininterval": 0.2},
        )
        with contextlib.redirect_stdout(io.StringIO()):  # where it talks of its steps
            xy = np.asarray(model.fit_transform(start), np.float32)
    if not np.isfinite(xy).all():
        raise UnusableEmbedding("UMAP finds no layout: these rows are (nearly) all alike")
    return xy


class _ProgressOf(io.TextIOBase):
    """A file to which a progress bar is written, and which passes on the share that it shows."""

    def __init__(self, on_share: Callable[[float], None] | None) -> None:
        self.on_share = on_share

    def write(self, text: str) -> int:
        if self.on_share and (match := re.search(r"(\d+)/(\d+)", text)):
            self.on_share(int(match[1]) / max(1, int(match[2])))
        return len(text)


def warm_umap() -> None:
    """Compile umap-learn's functions on a few rows, so that the first real map is not held up."""
    umap(
        np.random.default_rng(0).normal(size=(64, 4)).astype(np.float32), neighbors=5, device="cpu"
    )


def project_new(
    new: np.ndarray, base: np.ndarray, xy: np.ndarray, k: int = 15, device: str = "auto"
) -> np.ndarray:
    """Where new rows (m, d) fall on a map `xy` (n, 2) of `base` (n, d): amid their neighbors.

    That is the weighted geometric median of the k nearest rows' places (Weiszfeld's steps), which
    stays with most of them where a mean would fall into the gap between two groups. Weights fall
    with distance, the k-th neighbor's being the scale; a row of the base keeps its place.
    """
    neighbors = nearest(new, base, min(k, len(base)), device=device)
    away = 1 - neighbors.score.astype(np.float64)  # (m, k)
    weight = np.exp(-away / np.maximum(away[:, -1:], 1e-12))
    weight[away[:, 0] <= 1e-6, 1:] = 0
    near = xy[neighbors.index].astype(np.float64)  # (m, k, 2)
    least = 1e-3 * float(np.ptp(xy, axis=0).max()) + 1e-12  # so near is at the place itself
    pull = weight
    for _ in range(STEPS):
        at = np.einsum("mk,mkc->mc", pull / pull.sum(1, keepdims=True), near)
        pull = weight / np.maximum(np.linalg.norm(near - at[:, None], axis=2), least)
    return at.astype(np.float32)


def trustworthiness(
    features: np.ndarray, xy: np.ndarray, k: int = JUDGED_K, device: str = "auto"
) -> float:
    """1 when no row is a neighbor on the map without being one in the embedding (cosine)."""
    return _rank_agreement(_sphere(features), torch.from_numpy(xy).double(), k, device)


def continuity(
    features: np.ndarray, xy: np.ndarray, k: int = JUDGED_K, device: str = "auto"
) -> float:
    """1 when no neighbor in the embedding (cosine) is torn away on the map."""
    return _rank_agreement(torch.from_numpy(xy).double(), _sphere(features), k, device)


def agreement(maps: list[np.ndarray], k: int = JUDGED_K, device: str = "auto") -> float:
    """Mean share of the k nearest rows that two maps have in common, over all pairs of maps."""
    indices = [nearest(xy, None, k, "euclidean", device).index for xy in maps]
    shares = [_overlap(a, b) for i, a in enumerate(indices) for b in indices[:i]]
    return float(np.mean(shares))


def judge(
    features: np.ndarray, xy: np.ndarray, k: int = JUDGED_K, device: str = "auto"
) -> dict[str, float]:
    """Trustworthiness and continuity at k, and the k and number of rows they were judged with."""
    k = max(1, min(k, (len(xy) - 2) // 2))
    return {
        "trustworthiness": trustworthiness(features, xy, k, device),
        "continuity": continuity(features, xy, k, device),
        "k": k,
        "judged": _judged(len(xy)),
    }


def map_of(
    rows: EmbeddingSet,
    kind: str = "pca",
    graphs: Graphs | None = None,
    progress: Callable[[float], None] | None = None,
    **settings: Any,
) -> Map:
    """The map `kind` ("pca", "umap") of an embedding, judged on the device of the graphs. Its
    quality says `recall` where its neighbor graph is approximate.
    Raises: UnusableEmbedding."""
    graphs = graphs or Graphs()
    if len(rows) < 4 and kind == "umap":
        raise UnusableEmbedding(f"UMAP needs at least four rows, and there are {len(rows)}")
    if count := len(rows.problems["not_finite"]):
        raise UnusableEmbedding(f"{count} rows hold values that are not finite")
    used: dict[str, Any] = {}
    about: dict[str, float] = {}
    if kind == "pca":
        xy = pca(rows.features)
    elif kind == "umap":
        used = {"seed": 0, "neighbors": 15, "min_dist": 0.1, "metric": "cosine"}
        used |= settings
        n_neighbors = max(2, min(int(used["neighbors"]), len(rows) - 1)) - 1
        graph = graphs.get(rows, None, n_neighbors, used["metric"])
        about = graph.about
        xy = umap(rows.features, graph=graph, progress=progress, device=graphs.device, **used)
    else:
        raise ValueError(f"a map is pca or umap; got {kind!r}")
    quality = judge(rows.features, xy, device=graphs.device) if len(rows) >= 4 else {}
    return Map(xy, {"kind": kind, **used}, quality | about)


def _sphere(features: np.ndarray) -> torch.Tensor:
    return unit_rows(features).double()


def _overlap(a: np.ndarray, b: np.ndarray) -> float:
    """Mean share of common entries per row of two (n, k) neighbor lists."""
    hits = [len(np.intersect1d(x, y, assume_unique=True)) for x, y in zip(a, b, strict=True)]
    return float(np.mean(hits)) / a.shape[1]


def _rank_agreement(truth: torch.Tensor, other: torch.Tensor, k: int, name: str) -> float:
    """1 − 2/(nk(2n−3k−1)) Σ_i Σ_j (rank of j in `truth` − k), j a k-neighbor in `other` only.

    Computed on the device called `name`. Exact up to JUDGED rows; above, the mean over that many
    evenly spaced anchors (JUDGED_OF_MANY above MANY rows). Rows at one distance share a rank.
    """
    n = len(truth)
    if not 1 <= k < n / 2:
        raise UnusableEmbedding(f"k must lie in 1..{(n - 1) // 2} for {n} rows; got {k}")
    device = pick_device(name)
    truth, other = truth.to(device), other.to(device)
    norms = truth.square().sum(1), other.square().sum(1)
    anchors = torch.linspace(0, n - 1, _judged(n), device=device, dtype=torch.float64).long()
    excess = 0.0
    for rows in anchors.split(max(1, min(512, CELLS // n))):
        near = _distances(other, rows, norms[1]).topk(k, largest=False).indices  # (r, k)
        far = _distances(truth, rows, norms[0])  # (r, n)
        for column in far.gather(1, near).T:  # (r)
            rank = 1 + (far < column[:, None]).sum(1, dtype=torch.int32)
            excess += float((rank - k).clamp_min(0).sum())
    return 1 - excess * 2 / (len(anchors) * k * (2 * n - 3 * k - 1))


def _judged(n: int) -> int:
    """How many anchors of n rows are judged."""
    return min(n, JUDGED if n <= MANY else JUDGED_OF_MANY)


def _distances(x: torch.Tensor, rows: torch.Tensor, norms: torch.Tensor) -> torch.Tensor:
    """Squared distances (r, n), float64, of some rows to all, whose squared norms (n) are given; a
    row to itself is infinitely far."""
    away = norms[rows, None] + norms - 2 * (x[rows] @ x.mT)
    away[torch.arange(len(rows), device=x.device), rows] = torch.inf
    return away
