"""The Loss Lab's batches: loaded vectors, who is compared with whom, and why nothing can be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from contrastive_core import lab, vectors
from contrastive_core.embedding_set import EmbeddingSet, UnusableEmbedding
from contrastive_core.runs import Run


def saved(path: Path, **arrays: np.ndarray) -> bytes:
    np.savez(path, **arrays)  # type: ignore[arg-type]
    return path.read_bytes()


def batch(found: EmbeddingSet, rows: int = 16) -> lab.LabBatch:
    """A batch as the page asks for it: by the key of kept vectors."""
    path = Path(vectors._path("x")).with_name("made.npz")
    path.parent.mkdir(parents=True, exist_ok=True)
    found.save(path)
    key = vectors.keep(path.name, path.read_bytes())
    return lab.batch_of(Run(path, {}), f"file:{key}", rows // 2, 2, 0, "test")


def test_vectors_are_kept_by_content_and_found_again(tmp_path: Path) -> None:
    x = np.random.default_rng(0).standard_normal((6, 3)).astype(np.float32)
    x[0] = 0
    content = saved(tmp_path / "mine.npz", features=x, labels=np.arange(6) % 2)
    key = vectors.keep("mine.npz", content)
    assert key == vectors.keep("other.npz", content)
    assert np.array_equal(vectors.loaded(key).features, x[1:])  # a zero row has no direction


@pytest.mark.parametrize("key", ["../../etc/passwd", "0" * 32 + ".npy", "", "0" * 32 + "/../a.npy"])
def test_a_key_opens_nothing_else(key: str) -> None:
    with pytest.raises(UnusableEmbedding, match="load their file again"):
        vectors.loaded(key)


def test_a_file_that_is_no_table_is_refused_by_its_own_name_and_not_kept() -> None:
    with pytest.raises(ValueError, match=r"^mine\.csv has no columns"):
        vectors.keep("mine.csv", b"a,b\nx,y\n")
    with pytest.raises(UnusableEmbedding, match=r"mine\.pkl"):
        vectors.keep("mine.pkl", b"")
    assert not list(vectors._path("x").parent.glob("*"))


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
