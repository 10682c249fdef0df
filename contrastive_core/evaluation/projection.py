"""Maps in the plane: PCA at once, UMAP from a given graph of neighbors; seeded and judged.

UMAP: https://arxiv.org/abs/1802.03426, by umap-learn, started from PCA instead of its spectral layout and given our
neighbors instead of its approximate ones. Above `MANY` rows it lays out `LANDMARKS` of them, drawn by the seed, and
each other row is placed amid its nearest landmarks. Scores are never computed on a map; map_quality.py says how far one
can be believed.
"""

import contextlib
import io
import re
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float32

from contrastive_core.embeddings.graphs import Graphs
from contrastive_core.embeddings.pca import pca
from contrastive_core.errors import UnusableEmbedding
from contrastive_core.evaluation.map_quality import judge
from contrastive_core.messages import N_, message
from contrastive_core.ops.neighbors import Approximation, Neighbors, nearest
from contrastive_core.ops.recall import lowest_recall
from contrastive_core.ops.sampling import rows_of_sample
from contrastive_core.progress import OnFraction
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.storage.json_files import JsonObject

__all__ = ["Map", "map_of", "project_new", "umap"]

MANY = 200_000  # rows, above which landmarks are laid out in place of all
LANDMARKS = 100_000
NEAREST = 15  # of them, amid which another row is placed
VISITED = 6000  # landmarks that a row meets where there are many: most of its nearest are among
# them, and others as near pull it to about the same place
PLACED = 1 << 16  # rows that are placed at a time
STEPS = 20  # of Weiszfeld
EPOCHS = 200  # umap-learn's own number above 10,000 rows, taken at any size: from a PCA start, 500
# gain at most 0.002 of trustworthiness and take 2.5 times as long (benchmarks/umap.py)


@dataclass(frozen=True, eq=False)
class Map:
    """Coordinates (n, 2), how they were made, and how far they can be believed."""

    xy: Float32[np.ndarray, "n 2"]
    settings: JsonObject
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
    """A UMAP layout (n, 2), float32; the same seed gives the same map on the same machine.

    Args:
        neighbors: size of the neighborhood, the row itself counted, as in umap-learn.
        graph: nearest rows in the same set, at least neighbors − 1 of them; computed if missing.
        progress: called with the share of the layout that is done.
    Raises: UnusableEmbedding for rows that are all alike.
    """
    neighbors = max(2, min(neighbors, len(features) - 1))
    graph = (graph or nearest(features, None, neighbors - 1, metric)).first(neighbors - 1)
    start = pca(features)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):  # where it talks of its steps
        warnings.simplefilter("ignore")
        from umap import UMAP  # seconds, and a compiler

        model = UMAP(
            n_neighbors=neighbors,
            min_dist=min_dist,
            metric=metric,
            random_state=seed,
            n_jobs=1,
            n_epochs=EPOCHS,
            init=start * (10 / (float(np.abs(start).max()) or 1.0)),
            precomputed_knn=_as_umap_takes(graph, metric),
            verbose=progress is not None,
            tqdm_kwds={"file": _ProgressOf(progress), "mininterval": 0.2},
        )
        xy = np.asarray(model.fit_transform(start), np.float32)
    if not np.isfinite(xy).all():
        raise UnusableEmbedding(N_("UMAP finds no layout: these rows are (nearly) all alike"))
    return xy


def _as_umap_takes(graph: Neighbors, metric: str) -> tuple[np.ndarray, np.ndarray]:
    """Neighbors and their distances (n, k + 1), each row itself at distance 0 before them."""
    n, away = len(graph.index), 1 - graph.score if metric == "cosine" else graph.score
    index = np.hstack([np.arange(n)[:, None], graph.index]).astype(np.int32)
    return index, np.hstack([np.zeros((n, 1)), np.maximum(away, 0)]).astype(np.float32)


class _ProgressOf(io.TextIOBase):
    """A file to which a progress bar is written, and which passes on the share that it shows."""

    def __init__(self, on_share: OnFraction | None) -> None:
        self.on_share = on_share

    def write(self, text: str) -> int:
        if self.on_share and (match := re.search(r"(\d+)/(\d+)", text)):
            self.on_share(int(match[1]) / max(1, int(match[2])))
        return len(text)


def project_new(new: np.ndarray, base: np.ndarray, xy: np.ndarray, k: int = 15, device: str = "auto") -> np.ndarray:
    """Where new rows (m, d) fall on a map `xy` (n, 2) of `base` (n, d): amid their neighbors.

    That is the weighted geometric median of the k nearest rows' places (Weiszfeld's steps), which stays with most of
    them where a mean would fall into the gap between two groups. Weights fall with distance, the k-th neighbor's being
    the scale; a row of the base keeps its place.
    """
    return _amid(nearest(new, base, min(k, len(base)), device=device), xy)


def _amid(neighbors: Neighbors, xy: np.ndarray) -> np.ndarray:
    """The places (m, 2) of `project_new`, amid known neighbors by cosine."""
    least = 1e-3 * float(np.ptp(xy, axis=0).max()) + 1e-12  # so near is at the place itself
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
    """The map `kind` ("pca", "umap") of an embedding, judged on the device of the graphs. Its quality says `recall`
    where its neighbors are approximate, its settings `landmarks` where not all rows were laid out.
    Raises: UnusableEmbedding."""
    graphs = graphs or Graphs()
    if len(rows) < 4 and kind == "umap":
        raise UnusableEmbedding(message("UMAP needs at least four rows; got {rows}", rows=len(rows)))
    if count := len(rows.problems["not_finite"]):
        raise UnusableEmbedding(message("{count} rows hold values that are not finite", count=count))
    used: JsonObject = {}
    about: dict[str, float] = {}
    landmarks = None
    if kind == "pca":
        xy = pca(rows.features)
    elif kind == "umap":
        used = {"seed": 0, "neighbors": 15, "min_dist": 0.1, "metric": "cosine", **settings}
        if len(rows) > MANY:
            landmarks = rows_of_sample(len(rows), LANDMARKS, int(used["seed"]))
        xy, about = _umap_of(rows, landmarks, graphs, progress, used)
        used |= {} if landmarks is None else {"landmarks": len(landmarks)}
    else:
        raise ValueError(message("a map is pca or umap; got {kind}", kind=f"{kind!r}"))
    graphs.on_progress(N_("trustworthiness and continuity"), None)
    quality = judge(rows.features, xy, device=graphs.device, landmarks=landmarks) if len(rows) >= 4 else {}
    return Map(xy, {"kind": kind, **used}, quality | about)


def _umap_of(
    rows: EmbeddingSet, landmarks: np.ndarray | None, graphs: Graphs, progress: OnFraction | None, used: JsonObject
) -> tuple[np.ndarray, dict[str, float]]:
    """A UMAP layout (n, 2) by the graphs' neighbors, and what is told of these. Where there are `landmarks`, the
    numbers of some rows, only these are laid out: the others come amid them."""
    laid = rows if landmarks is None else rows.take(landmarks)
    n_neighbors = max(2, min(int(used["neighbors"]), len(laid) - 1)) - 1
    graph = graphs.get(laid, None, n_neighbors, used["metric"])
    xy = umap(laid.features, graph=graph, progress=progress, **used)
    if landmarks is None:
        return xy, graph.about
    among = graphs.get(rows, laid, min(NEAREST, len(laid)), approximate=Approximation.of_rows(VISITED))
    places = _amid(among, xy)
    places[landmarks] = xy
    recall = lowest_recall([graph.recall, among.recall])
    return places, {} if recall is None else {"recall": recall}
