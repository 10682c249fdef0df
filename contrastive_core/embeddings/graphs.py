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
    known: dict[tuple[str, str, str], Neighbors] = field(default_factory=dict)
    rows: Rows = HERE

    def get(
        self, queries: EmbeddingSet, base: EmbeddingSet | None, k: int, metric: str = "cosine"
    ) -> Neighbors:
        """The graph of `queries` in `base` (None: in itself), computed once for the largest k."""
        own = (queries.content_hash, base.content_hash if base else "", metric)
        key = own if not self.rows.spread else self._agreed(own)
        if key not in self.known and base is None:
            self._read(key)
        if key not in self.known or self.known[key].k < k:
            wanted = k if base else max(k, min(KEPT, self.rows.number(len(queries)) - 1))
            other = None if base is None else base.features
            found = nearest(
                queries.features, other, wanted, metric, self.device, self.progress, self.rows
            )
            self.known[key] = found
            if base is None and self.place:
                records.write_npz(self.place(key[0], metric), index=found.index, score=found.score)
        return self.known[key].first(k)

    def _agreed(self, own: tuple[str, str, str]) -> tuple[str, str, str]:
        """The key of all parts together: some may be those of another set, and some not."""
        queries, base, metric = (" ".join(part) for part in zip(*self.rows.each(own), strict=True))
        return queries, base, metric

    def _read(self, key: tuple[str, str, str]) -> None:
        if self.place and (path := self.place(key[0], key[2])).exists():
            found = records.read_npz(path)
            self.known[key] = Neighbors(found["index"], found["score"], key[2])
