"""Two-dimensional maps: PCA, and UMAP from a neighbor graph; seeded, with quality scores.

UMAP: https://arxiv.org/abs/1802.03426, by umap-learn, initialized with PCA instead of its spectral layout and given
our neighbors instead of its approximate ones. Above `MANY` rows, UMAP lays out a random sample of `LANDMARKS` rows, and
every other row is placed among its nearest landmarks. Scores are never computed on a map. The quality of a map is given
by trustworthiness and continuity (Venna & Kaski 2001).

Trustworthiness and continuity compare anchors with all rows: all rows are anchors up to JUDGED, else a stated sample.
Rows are normalized in blocks, so no second copy of an embedding is needed."""

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
from torch import Tensor

from contrastive_core.base.device import pick_device
from contrastive_core.base.errors import UnusableEmbedding
from contrastive_core.base.memory import lowest_recall, rows_of_sample
from contrastive_core.base.messages import N_, message
from contrastive_core.base.progress import OnFraction
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.neighbor_graphs import LIKELY, Graphs, Neighbors, nearest, unit_rows
from contrastive_core.spaces.space import pca

CELLS = 1 << 26  # distances at a time in each of the two spaces: 512 MiB of float64
BLOCK = 1 << 22  # numbers of an embedding at a time
JUDGED = 5000  # number of anchors for more rows: enough for two digits
LARGE_MAP = 200_000  # rows above which fewer anchors are used: each is compared with all rows
JUDGED_OF_LARGE = 500
JUDGED_K = 15
Points = Callable[[slice | Tensor], Tensor]  # rows of a space (r, d), float64


def judge(
    features: np.ndarray, xy: np.ndarray, k: int = JUDGED_K, device: str = "auto", landmarks: np.ndarray | None = None
) -> dict[str, float]:
    """Return trustworthiness (1: every neighbor on the map is a neighbor in the embedding, by cosine), continuity (1:
    every neighbor in the embedding is one on the map), their k, and the numbers of judged and of all rows.
    Args: landmarks: rows that UMAP laid out; their trustworthiness is returned too."""
    n = len(xy)
    k = max(1, min(k, (n - 2) // 2))
    trust, continued = _of_anchors(features, xy, k, device)
    quality = {
        "trustworthiness": float(trust.mean()),
        "continuity": float(continued.mean()),
        "k": k,
        "judged": len(trust),
        "n": n,
    }
    if landmarks is not None and (of_landmarks := np.isin(_anchors(n), landmarks)).any():
        quality["trustworthiness_of_landmarks"] = float(trust[of_landmarks].mean())
    return quality


def _of_anchors(features: np.ndarray, xy: np.ndarray, k: int, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the trustworthiness and continuity of each anchor (a), computed on the device called `name`.

    1 − 2/(k(2n−3k−1)) Σ_j (rank of j in one space − k), over neighbors j in the other space only. Rows at equal
    distances share a rank."""
    n, device = len(xy), pick_device(name)

    def sphere(at: slice | Tensor) -> Tensor:
        some = features[at if isinstance(at, slice) else at.numpy()]
        return unit_rows(some).to(device).double()

    plane = torch.from_numpy(xy).to(device).double()
    excess: list[list[Tensor]] = [[], []]
    for rows in torch.from_numpy(_anchors(n)).split(max(1, min(512, CELLS // n))):
        truth = _distances(sphere, rows, n, max(1, BLOCK // features.shape[1]))  # (r, n)
        drawn = _distances(lambda at: plane[at], rows, n, n)
        excess[0].append(_excess(truth, drawn, k))
        excess[1].append(_excess(drawn, truth, k))
    scale = 2 / (k * (2 * n - 3 * k - 1))
    trust, continued = (1 - scale * torch.cat(parts).cpu().numpy() for parts in excess)
    return trust, continued


def _excess(ranked: Tensor, other: Tensor, k: int) -> Tensor:
    """Sum the excess of the ranks in `ranked` over k, for the k nearest rows in `other` (r, n); returns (r)."""
    near = other.topk(k, largest=False).indices  # (r, k)
    total = torch.zeros(len(ranked), dtype=torch.float64, device=ranked.device)
    for column in ranked.gather(1, near).T:  # (r)
        total += ((ranked < column[:, None]).sum(1) + 1 - k).clamp_min(0)
    return total


def _anchors(n: int) -> np.ndarray:
    """Return the indices (a) of the judged rows out of n, evenly spaced."""
    return np.linspace(0, n - 1, min(n, JUDGED if n <= LARGE_MAP else JUDGED_OF_LARGE)).astype(np.int64)


def _distances(points: Points, rows: Tensor, n: int, step: int) -> Tensor:
    """Return squared distances (r, n), float64, from some rows to all, `step` at a time; infinite to itself."""
    x = points(rows)
    away = torch.empty(len(rows), n, dtype=torch.float64, device=x.device)
    for i in range(0, n, step):
        block = points(slice(i, i + step))
        torch.mm(x, block.mT, out=away[:, i : i + step])
        away[:, i : i + step].mul_(-2).add_(block.square().sum(1))
    away += x.square().sum(1, keepdim=True)
    away[torch.arange(len(rows)), rows] = torch.inf
    return away


MANY = 200_000  # rows above which only landmarks are laid out
LANDMARKS = 100_000
NEAREST = 15  # landmarks among which another row is placed; if an approximate search misses some of
# them, others as near pull the row to about the same place
PLACED = 1 << 16  # rows placed at a time
STEPS = 20  # of Weiszfeld's algorithm
EPOCHS = 200  # umap-learn's default above 10,000 rows, used for any size: from a PCA start, 500
# gain at most 0.002 of trustworthiness and take 2.5 times as long (benchmarks/umap.py)


@dataclass(frozen=True, eq=False)
class Map:
    """Coordinates (n, 2), their settings and their quality."""

    xy: Float32[np.ndarray, "n 2"]
    settings: dict[str, object]
    quality: dict[str, float] = field(default_factory=dict)


def umap(
    features: np.ndarray,
    seed: int = 0,
    neighbors: int = 15,
    min_dist: float = 0.1,
    metric: str = "cosine",
    graph: Neighbors | None = None,
    progress: OnFraction | None = None,
) -> np.ndarray:
    """Return a UMAP layout (n, 2), float32; the same seed gives the same map on the same machine.

    Args:
        neighbors: size of the neighborhood including the row itself, as in umap-learn.
        graph: at least neighbors − 1 nearest rows of each row in the same set; computed if missing.
        progress: called with the completed share of the layout.
    Raises: UnusableEmbedding if all rows are equal."""
    neighbors = max(2, min(neighbors, len(features) - 1))
    graph = (graph or nearest(features, None, neighbors - 1, metric)).first(neighbors - 1)
    start = pca(features)
    n, away = len(graph.index), 1 - graph.score if metric == "cosine" else graph.score  # each row comes first
    index = np.hstack([np.arange(n)[:, None], graph.index]).astype(np.int32)  # (n, k + 1)
    distance = np.hstack([np.zeros((n, 1)), np.maximum(away, 0)]).astype(np.float32)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):  # it prints its steps
        warnings.simplefilter("ignore")
        from umap import UMAP  # the import takes seconds and loads a compiler

        model = UMAP(
            n_neighbors=neighbors,
            min_dist=min_dist,
            metric=metric,
            random_state=seed,
            n_jobs=1,
            n_epochs=EPOCHS,
            init=start * (10 / (float(np.abs(start).max()) or 1.0)),
            precomputed_knn=(index, distance),
            verbose=progress is not None,
            tqdm_kwds={"file": _ProgressOf(progress), "mininterval": 0.2},
        )
        xy = np.asarray(model.fit_transform(start), np.float32)
    if not np.isfinite(xy).all():
        raise UnusableEmbedding(N_("UMAP finds no layout: these rows are (nearly) all alike"))
    return xy


class _ProgressOf(io.TextIOBase):
    """A file for a progress bar that reports the share shown in the bar."""

    def __init__(self, on_share: OnFraction | None) -> None:
        self.on_share = on_share

    def write(self, text: str) -> int:
        if self.on_share and (match := re.search(r"(\d+)/(\d+)", text)):
            self.on_share(int(match[1]) / max(1, int(match[2])))
        return len(text)


def project_new(new: np.ndarray, base: np.ndarray, xy: np.ndarray, k: int = 15, device: str = "auto") -> np.ndarray:
    """Place new rows (m, d) on a map `xy` (n, 2) of `base` (n, d), among their neighbors.

    The place is the weighted geometric median of the positions of the k nearest rows (Weiszfeld's algorithm). It stays
    with the majority, while a mean may fall into the gap between two groups. Weights decrease with the distance
    relative to the k-th neighbor; a row of the base keeps its place."""
    return _amid(nearest(new, base, min(k, len(base)), device=device), xy)


def _amid(neighbors: Neighbors, xy: np.ndarray) -> np.ndarray:
    """Return the places (m, 2) of `project_new` for known neighbors by cosine."""
    least = 1e-3 * float(np.ptp(xy, axis=0).max()) + 1e-12  # distances below this count as zero
    places = np.empty((len(neighbors.index), 2), np.float32)
    for start in range(0, len(places), PLACED):
        part = slice(start, start + PLACED)
        away = 1 - neighbors.score[part].astype(np.float64)  # (r, k)
        weight = np.exp(-away / np.maximum(away[:, -1:], 1e-12))
        weight[away[:, 0] <= 1e-6, 1:] = 0
        near = xy[neighbors.index[part]].astype(np.float64)  # (r, k, 2)
        pull = weight
        for _ in range(STEPS):
            at = np.einsum("mk,mkc->mc", pull / pull.sum(1, keepdims=True), near)
            pull = weight / np.maximum(np.linalg.norm(near - at[:, None], axis=2), least)
        places[part] = at
    return places


def map_of(
    rows: EmbeddingSet,
    kind: str = "pca",
    graphs: Graphs | None = None,
    progress: OnFraction | None = None,
    **settings: Any,
) -> Map:
    """Return the map `kind` ("pca", "umap") of an embedding, scored on the device of `graphs`. Its quality includes
    `recall` if the neighbors are approximate, its settings `landmarks` if UMAP laid out a sample.
    Raises: UnusableEmbedding."""
    graphs = graphs or Graphs()
    if len(rows) < 4 and kind == "umap":
        raise UnusableEmbedding(message("UMAP needs at least four rows; got {rows}", rows=len(rows)))
    if count := len(rows.problems["not_finite"]):
        raise UnusableEmbedding(message("{count} rows hold values that are not finite", count=count))
    used: dict[str, object] = {"kind": kind}
    about: dict[str, float] = {}
    landmarks, laid = None, rows
    if kind == "pca":
        xy = pca(rows.features)
    elif kind == "umap":
        own = {"seed": 0, "neighbors": 15, "min_dist": 0.1, "metric": "cosine", **settings}
        used |= own
        if len(rows) > MANY:
            landmarks = rows_of_sample(len(rows), LANDMARKS, int(own["seed"]))
            laid, used["landmarks"] = rows.take(landmarks), len(landmarks)
        graph = graphs.get(laid, None, max(2, min(int(own["neighbors"]), len(laid) - 1)) - 1, own["metric"])
        xy, about = umap(laid.features, graph=graph, progress=progress, **own), graph.about
        if landmarks is not None:  # the others are placed among these
            among = graphs.get(rows, laid, min(NEAREST, len(laid)), approximate=LIKELY)
            places = _amid(among, xy)
            places[landmarks] = xy
            recall = lowest_recall([graph.recall, among.recall])
            xy, about = places, {} if recall is None else {"recall": recall}
    else:
        raise ValueError(message("a map is pca or umap; got {kind}", kind=f"{kind!r}"))
    graphs.on_progress(N_("trustworthiness and continuity"), None)
    quality = judge(rows.features, xy, device=graphs.device, landmarks=landmarks) if len(rows) >= 4 else {}
    return Map(xy, used, quality | about)
