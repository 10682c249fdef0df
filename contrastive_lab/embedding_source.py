"""What Explore looks at: a run, or vectors that were loaded, through the same few questions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from contrastive_core.data import datasets
from contrastive_core.embeddings import ref
from contrastive_core.embeddings.embedding_set import EmbeddingSet
from contrastive_core.embeddings.ref import EmbeddingRef
from contrastive_core.jobs import results
from contrastive_core.runs import Run
from contrastive_lab import cache, state
from contrastive_lab.components.shared.thumbnails import ThumbnailSheet
from contrastive_lab.progress import follow

__all__ = ["Source", "of_run", "of_vectors"]


@dataclass(frozen=True)
class Source:
    """`data` is what its selection belongs to; `splits` those that can be chosen."""

    name: str
    data: str
    splits: tuple[str, ...]
    run: Run | None = None
    key: str = ""

    def space(self, split: str, which: str) -> EmbeddingRef:
        if self.run:
            return ref.of_run(self.run, split, which)
        return ref.of_vectors(self.key, split if self.splits else "")

    def rows(self, split: str, which: str) -> EmbeddingSet | None:
        if self.run:
            return cache.embedding(self.run, split, which)
        space = self.space(split, which)
        return cache.vectors(space.name, space.split)

    def has_pictures(self, split: str) -> bool:
        """Whether images can be shown at once; while they are being made the page says so."""
        if self.run is None:
            space = self.space(split, "")
            return cache.vector_pictures(space.name, space.split) is not None
        name, root = str(self.run.config.get("dataset")), self.run.config.get("root")
        if not datasets.is_made(name, split):
            follow(results.decoding(name, split, root), "The images behind the points (once)")
            return False
        return True

    def pictures(self, split: str) -> np.ndarray:
        """Images (n, c, h, w) in the order of the rows."""
        if self.run:
            return cache.dataset_of(self.run, split).images
        space = self.space(split, "")
        found = cache.vector_pictures(space.name, space.split)
        assert found is not None
        return found

    def thumbnails(self, split: str, rows: np.ndarray | None = None) -> ThumbnailSheet:
        """Thumbnails of the images, or of these rows (int64) of them."""
        if rows is not None:
            name = self.run.name if self.run else self.space(split, "").name
            part = np.ascontiguousarray(rows, np.int64).tobytes()
            return cache.thumbnails_of_rows(name, split, part, self.pictures(split))
        if self.run:
            return cache.thumbnails(self.run, split)
        space = self.space(split, "")
        return cache.vector_thumbnails(space.name, space.split)

    def place(self, split: str) -> str:
        """The name under which a selection of this split is kept."""
        return self.data if split in ("test", "") else f"{self.data} {split}"


def of_run(run: Run) -> Source:
    return Source(run.name, state.data_key(run), ("test", "train"), run)


def of_vectors(key: str, about: dict[str, Any]) -> Source:
    splits = ("test", "train") if about.get("splits") == ["test", "train"] else ()
    return Source(str(about.get("name")), f"vectors {key}", splits, None, key)
