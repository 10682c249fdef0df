"""An embedding keeps its rows, names its problems and comes back from disk as it was."""

import numpy as np
import pytest

from contrastive_core.base.errors import UnusableEmbedding
from contrastive_core.spaces.embedding_set import EmbeddingSet


def make(n: int = 6, d: int = 3, **more) -> EmbeddingSet:
    features = np.random.default_rng(0).normal(size=(n, d)).astype(np.float32)
    settings = {"labels": np.arange(n) % 2, "classes": ("cat", "dog"), "split": "test"} | more
    return EmbeddingSet(features, layer="h", **settings)


def test_rows_must_agree() -> None:
    for more, sentence in (
        ({"ids": ("a", "b")}, "features has 6 rows, but ids has 2"),
        ({"columns": {"size": np.zeros(2)}}, "features has 6 rows, but size has 2"),
        ({"n": 0}, r"\(n, d\)"),
        ({"n": 2, "d": 1_000_000}, "1,000,000"),
    ):
        with pytest.raises(UnusableEmbedding, match=sentence):
            make(**more)
    assert make(labels=np.full(6, -1)).labels is None


def test_problems_name_rows_and_can_be_left_out() -> None:
    rows = make()
    rows.features[2], rows.features[4, 1] = 0, np.nan
    assert rows.problems["zero"].tolist() == [2]
    assert rows.problems["not_finite"].tolist() == [4]
    kept = rows.take(rows.usable)
    assert kept.ids == ("0", "1", "3", "5")
    assert kept.labels is not None
    assert kept.labels.tolist() == [0, 1, 1, 1]


def test_hash_follows_content() -> None:
    assert make().content_hash == make().content_hash
    moved = make()
    moved.features[0, 0] += 1e-6
    assert len({one.content_hash for one in (make(), moved, make(labels=np.ones(6, np.int64)))}) == 3


def test_npz_brings_everything_back(tmp_path) -> None:
    views = np.ones((2, 2, 3), np.float32)
    rows = make(columns={"size": np.arange(6.0)}, views=views, provenance={"run": "a"})
    rows.save(tmp_path / "e.npz")
    with np.load(tmp_path / "e.npz", allow_pickle=False) as file:
        back = EmbeddingSet.from_arrays(dict(file))
    assert back.content_hash == rows.content_hash
    assert (back.ids, back.classes, back.provenance) == (rows.ids, rows.classes, rows.provenance)
    assert back.columns["size"].tolist() == list(range(6))
    arrays = rows.arrays()
    old = arrays["meta"].tobytes().replace(b'"layer"', b'"which"')  # as in files of version 0.1
    assert EmbeddingSet.from_arrays(arrays | {"meta": np.frombuffer(old, np.uint8)}).layer == "h"


def test_parquet_has_a_row_per_sample(tmp_path) -> None:
    import pandas as pd

    rows = make()
    rows.save(tmp_path / "e.parquet")
    table = pd.read_parquet(tmp_path / "e.parquet")
    assert list(table.columns) == ["id", "split", "label", "class", "embedding"]
    assert np.array_equal(np.stack(table["embedding"]), rows.features)
    assert table["class"].tolist() == ["cat", "dog"] * 3
    with pytest.raises(ValueError, match=r"\.npz or \.parquet"):
        rows.save(tmp_path / "e.txt")
