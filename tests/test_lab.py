"""The Loss Lab's batches: loaded vectors, who is compared with whom, and why nothing can be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from contrastive_core import lab, spaces
from contrastive_core.embedding_set import EmbeddingSet
from contrastive_core.runs import Run


def batch(found: EmbeddingSet, rows: int = 16, pictures: np.ndarray | None = None) -> lab.LabBatch:
    """A batch as the page asks for it: by the key of loaded vectors."""
    key = spaces.adopt(found, "mine.npz", pictures)
    return lab.batch_of(Run(Path(), {}), f"file:{key}", rows // 2, 2, 0, "test")


@pytest.mark.parametrize("key", ["../../etc/passwd", "0" * 16, ""])
def test_an_address_opens_nothing_but_loaded_vectors(key: str) -> None:
    with pytest.raises(ValueError, match=r"open the(ir)? file again"):
        lab.batch_of(Run(Path(), {}), f"file:{key}", 8, 2, 0, "test")


def test_pictures_that_came_along_stand_by_their_rows() -> None:
    x = np.random.default_rng(0).standard_normal((20, 3)).astype(np.float32)
    pictures = np.arange(20, dtype=np.uint8)[:, None, None, None].repeat(3, 1)
    made = batch(EmbeddingSet(x, labels=np.arange(20) % 4), 8, pictures)
    assert made.thumbs is not None
    assert made.thumbs[:, 0, 0, 0].tolist() == [int(i) for i in made.ids]


def test_rows_of_one_id_are_views_of_one_image() -> None:
    rng = np.random.default_rng(1)
    ids = tuple(f"image {k % 5}" for k in range(15))
    made = batch(EmbeddingSet(rng.standard_normal((15, 4)).astype(np.float32), ids=ids))
    assert made.rows.shape == (5, 3, 4)
    view = lab.view_of(made, "views", "nt_xent", {})
    assert view.scores.shape == (15, 15)
    assert (view.mask == 1).sum() == 15 * 2


def test_labelled_rows_are_compared_by_class_and_unlabelled_ones_say_why_not() -> None:
    x = np.random.default_rng(2).standard_normal((12, 4)).astype(np.float32)
    labels = np.arange(12) % 3
    made = batch(EmbeddingSet(x, labels=labels))
    view = lab.view_of(made, "classes", "triplet", {"margin": 0.2})
    assert (view.mask == 1).sum() == 12 * 3
    assert view.names[0].startswith("class 0 #")
    assert "one view of each image" in lab.view_of(made, "views", "nt_xent", {}).reason
    bare = batch(EmbeddingSet(x))
    assert "no labels" in lab.view_of(bare, "classes", "nt_xent", {}).reason
    with pytest.raises(ValueError, match="two views"):
        lab.view_of(made, "queue", "info_nce", {})


@pytest.mark.parametrize("pairing", ["queue", "bank"])
def test_queries_meet_one_key_each_and_many_negatives(pairing: str) -> None:
    rng = np.random.default_rng(3)
    ids = tuple(str(k // 2) for k in range(32))
    made = batch(EmbeddingSet(rng.standard_normal((32, 4)).astype(np.float32), ids=ids), 32)
    view = lab.view_of(made, pairing, "info_nce", {"temperature": 0.2})
    assert view.scores.shape == (4, 16)
    assert ((view.mask == 1).sum(1) == 1).all()
    assert ((view.mask == 2).sum(1) == {"queue": 12, "bank": 15}[pairing]).all()
    mates = [view.column_thumbs[j] // 2 for j in (view.mask == 1).argmax(1)]
    assert mates == [t // 2 for t in view.row_thumbs]  # the positive is another view of the image
