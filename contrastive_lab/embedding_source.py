"""What Explore looks at: a run, or vectors that were loaded, through the same few questions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st

from contrastive_core.embeddings import ref
from contrastive_core.embeddings.embedding_set import EmbeddingSet
from contrastive_core.embeddings.ref import Space
from contrastive_core.runs import Run
from contrastive_lab import cache, format, results, state
from contrastive_lab.components.shared.thumbnails import ThumbnailSheet

__all__ = ["Source", "of_run", "of_vectors"]


@dataclass(frozen=True)
class Source:
    """`data` is what its selection belongs to; `splits` those that can be chosen."""

    name: str
    data: str
    splits: tuple[str, ...]
    run: Run | None = None
    key: str = ""

    def space(self, split: str, which: str) -> Space:
        if self.run:
            return ref.of_run(self.run, split, which)
        return ref.of_vectors(self.key, split if self.splits else "")

    def rows(self, split: str, which: str) -> EmbeddingSet | None:
        if self.run:
            return cache.embedding(self.run, split, which)
        space = self.space(split, which)
        return results.vectors(space.name, space.split)

    def has_pictures(self, split: str) -> bool:
        """Whether images can be shown at once; while they are being made the page says so."""
        if self.run is None:
            space = self.space(split, "")
            return results.vector_pictures(space.name, space.split) is not None
        try:
            if cache.images_ready(self.run, split):
                return True
        except ValueError as error:
            st.warning(format.plain(f"The images behind the points cannot be shown: {error}"))
            return False
        _decoding(self.run, split)
        return False

    def pictures(self, split: str) -> np.ndarray:
        """Images (n, c, h, w) in the order of the rows."""
        if self.run:
            return cache.dataset_of(self.run, split).images
        space = self.space(split, "")
        found = results.vector_pictures(space.name, space.split)
        assert found is not None
        return found

    def thumbnails(self, split: str, rows: np.ndarray | None = None) -> ThumbnailSheet:
        """Thumbnails of the images, or of these rows (int64) of them."""
        if rows is not None:
            name = self.run.name if self.run else self.space(split, "").name
            part = np.ascontiguousarray(rows, np.int64).tobytes()
            return results.thumbnails_of_rows(name, split, part, self.pictures(split))
        if self.run:
            return cache.thumbnails(self.run, split)
        space = self.space(split, "")
        return results.vector_thumbnails(space.name, space.split)

    def place(self, split: str) -> str:
        """The name under which a selection of this split is kept."""
        return self.data if split in ("test", "") else f"{self.data} {split}"


def of_run(run: Run) -> Source:
    return Source(run.name, state.data_key(run), ("test", "train"), run)


def of_vectors(key: str, about: dict[str, Any]) -> Source:
    splits = ("test", "train") if about.get("splits") == ["test", "train"] else ()
    return Source(str(about.get("name")), f"vectors {key}", splits, None, key)


@st.fragment(run_every=1.0)
def _decoding(run: Run, split: str) -> None:
    try:
        if cache.images_ready(run, split):
            st.rerun()
    except ValueError:
        st.rerun()
    st.caption("The images behind the points are being made (once)…")
