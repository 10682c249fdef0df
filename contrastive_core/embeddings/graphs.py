"""Neighbor graphs of embeddings, each computed once and kept for other processes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from contrastive_core.distributed.sharded_rows import HERE, Rows
from contrastive_core.embeddings.embedding_set import EmbeddingSet
from contrastive_core.ops.neighbors import KEPT, Neighbors, nearest
from contrastive_core.storage import records

__all__ = ["Graphs"]


@dataclass
class Graphs:
    """Neighbor graphs already computed, so that every score and map of an embedding shares them.

    `place(content, metric)` names the file in which the graph of a set in itself is kept for other
    processes; `progress` is called with the share of a search that is done; `rows` is how the rows
    of every set lie, so that scores too know it.
    """

    device: str = "auto"
    place: Callable[[str, str], Path] | None = None
    progress: Callable[[float], None] | None = None
    cached: dict[tuple[str, str, str], Neighbors] = field(default_factory=dict)
    rows: Rows = HERE

    def get(
        self, queries: EmbeddingSet, base: EmbeddingSet | None, k: int, metric: str = "cosine"
    ) -> Neighbors:
        """The graph of `queries` in `base` (None: in itself), computed once for the largest k."""
        content_key = (queries.content_hash, base.content_hash if base else "", metric)
        key = content_key if not self.rows.spread else self._agreed(content_key)
        if key not in self.cached and base is None:
            self._read(key)
        if key not in self.cached or self.cached[key].k < k:
            count = k if base else max(k, min(KEPT, self.rows.number(len(queries)) - 1))
            other = None if base is None else base.features
            neighbors = nearest(
                queries.features, other, count, metric, self.device, self.progress, self.rows
            )
            self.cached[key] = neighbors
            if base is None and self.place:
                records.write_npz(
                    self.place(key[0], metric), index=neighbors.index, score=neighbors.score
                )
        return self.cached[key].first(k)

    def _agreed(self, content_key: tuple[str, str, str]) -> tuple[str, str, str]:
        """The key of all parts together: some may be those of another set, and some not."""
        queries, base, metric = (
            " ".join(part) for part in zip(*self.rows.each(content_key), strict=True)
        )
        return queries, base, metric

    def _read(self, key: tuple[str, str, str]) -> None:
        if self.place and (path := self.place(key[0], key[2])).exists():
            arrays = records.read_npz(path)
            self.cached[key] = Neighbors(arrays["index"], arrays["score"], key[2])
