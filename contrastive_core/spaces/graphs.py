"""Neighbor graphs of embeddings, computed once and stored for other processes."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from contrastive_core.base.memory import read_npz, write_npz
from contrastive_core.base.messages import N_, message
from contrastive_core.base.progress import OnProgress, fraction_of, ignore_fraction, ignore_progress
from contrastive_core.ops.neighbors import KEPT, Approximation, Neighbors, exact_seconds, nearest
from contrastive_core.spaces.embedding_set import EmbeddingSet

MOMENT = 5.0  # seconds
SCORES = Approximation()  # for figures: nearly all of the true neighbors


@dataclass
class Graphs:
    """A cache of neighbor graphs, shared by all scores and maps of an embedding.

    `place(content, metric)` names the file that stores the graph of a set in itself for other processes. `on_progress`
    reports each long search: the estimated time of an exact one, and the completed share."""

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
        approximate: Approximation | None = SCORES,
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
        stage = self._stage(queries, base, k)
        on_fraction = fraction_of(self.on_progress, stage) if stage else ignore_fraction
        on_fraction(0.0)  # before the work begins
        neighbors = nearest(queries.features, others, k, metric, self.device, on_fraction, approximate)
        if stage:
            self.on_progress(N_("nearest neighbors found"), None)
        return neighbors

    def _stage(self, queries: EmbeddingSet, base: EmbeddingSet | None, k: int) -> str:
        """Describe a search before it starts; "" for a short one."""
        n, m = len(queries), len(queries if base is None else base)
        seconds = exact_seconds(n, m, queries.width, k, self.device)
        if seconds is None:
            return N_("nearest neighbors")
        long = message("{seconds} min", seconds=f"{seconds / 60:.0f}") if seconds >= 90 else f"{seconds:.0f} s"
        return message("nearest neighbors (exact ones take about {long})", long=long) if seconds >= MOMENT else ""
