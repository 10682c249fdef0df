"""Vectors from elsewhere: every format, and a thousand damaged or hostile files."""

from __future__ import annotations

import io
import pickle
import random
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mutation import mutated

from contrastive_core.embeddings import file_formats
from contrastive_core.embeddings.embedding_set import EmbeddingSet
from contrastive_core.errors import Damaged, UnusableEmbedding

X = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32)
LABELS = np.arange(12) % 3


def make(folder: Path, ending: str) -> Path:
    path = folder / f"vectors{ending}"
    if ending == ".npy":
        np.save(path, X)
    elif ending == ".npz":
        np.savez(path, embeddings=X, labels=LABELS)
    else:
        table = pd.DataFrame({"id": [f"i{i}" for i in range(12)], "label": LABELS})
        if ending == ".csv":
            table[["a", "b", "c"]] = X
            table.to_csv(path, index=False)
        else:
            table["embedding"] = list(X)
            table.to_parquet(path)
    return path


@pytest.mark.parametrize("ending", file_formats.ENDINGS)
def test_every_format(tmp_path: Path, ending: str) -> None:
    found = file_formats.read(make(tmp_path, ending))
    np.testing.assert_allclose(found.features, X, rtol=1e-6)
    if ending == ".npy":
        assert found.labels is None
    else:
        assert found.labels is not None
        assert found.labels.tolist() == LABELS.tolist()
    if ending in (".csv", ".parquet"):
        assert found.ids[3] == "i3"


def test_our_own_files_come_back(tmp_path: Path) -> None:
    rows = EmbeddingSet(X, LABELS.astype(np.int64), classes=("a", "b", "c"), split="test")
    for name in ("a.npz", "a.parquet"):
        rows.save(tmp_path / name)
        found = file_formats.read(tmp_path / name)
        np.testing.assert_allclose(found.features, X)
        assert found.labels is not None
        assert found.labels.tolist() == LABELS.tolist()


def test_class_names_become_labels(tmp_path: Path) -> None:
    table = pd.DataFrame({"class": ["dog", "cat"] * 6, "x0": X[:, 0], "x1": X[:, 1]})
    table.to_csv(tmp_path / "v.csv", index=False)
    found = file_formats.read(tmp_path / "v.csv")
    assert found.classes == ("cat", "dog")
    assert found.class_name(int(found.labels[0])) == "dog"  # type: ignore[index]


def test_a_pickle_is_never_opened(tmp_path: Path) -> None:
    path = tmp_path / "p.npy"
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(UnusableEmbedding, match="pickled objects"):
        file_formats.read(path)


def test_a_header_that_promises_terabytes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "h.npy"
    np.save(path, X)
    data = path.read_bytes().replace(b"(12, 3), ", b"(9**9,3),", 1)
    path.write_bytes(data.replace(b"(9**9,3),", b"(10**9,3)"[:9], 1))
    with pytest.raises((Damaged, UnusableEmbedding)):
        file_formats.read(path)
    huge = np.lib.format.header_data_from_array_1_0(X) | {"shape": (10**12, 3)}
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, huge)
    with pytest.raises(UnusableEmbedding, match="promises"):
        file_formats.read(path)


@pytest.mark.parametrize(
    ("name", "table", "sentence"),
    [
        ("a.csv", {"id": ["x", "y"]}, "no columns of numbers"),
        ("a.txt", {"x": [1]}, "vectors are read from"),
    ],
)
def test_tables_without_vectors_say_so(
    tmp_path: Path, name: str, table: dict, sentence: str
) -> None:
    pd.DataFrame(table).to_csv(tmp_path / name, index=False)
    with pytest.raises(UnusableEmbedding, match=sentence):
        file_formats.read(tmp_path / name)


def test_a_few_bytes_of_parquet_that_unpack_far_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pd.DataFrame({"x": np.zeros(1_000_000)}).to_parquet(tmp_path / "b.parquet")
    assert (tmp_path / "b.parquet").stat().st_size < 50_000
    monkeypatch.setattr(file_formats, "LIMIT", 1_000_000)
    with pytest.raises(UnusableEmbedding, match="would unpack to 8,000,000 bytes"):
        file_formats.read(tmp_path / "b.parquet")


class Harm:
    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple:
        return Path.touch, (self.target,)


def test_pickles_inside_parquet_and_archives_are_never_opened(tmp_path: Path) -> None:
    target = tmp_path / "touched"
    harm = pickle.dumps(Harm(target))
    table = pa.table({"embedding": [[1.0, 2.0]] * 3, "object": [harm] * 3})
    kind = {b"ARROW:extension:name": b"arrow.py_extension_type"}
    field = pa.field("object", pa.binary(), metadata={**kind, b"ARROW:extension:metadata": harm})
    schema = pa.schema([table.schema.field(0), field], metadata={b"pandas": harm})
    pq.write_table(table.cast(schema), tmp_path / "p.parquet")
    assert len(file_formats.read(tmp_path / "p.parquet")) == 3
    np.savez(tmp_path / "p.npz", x=X, labels=np.array([Harm(target)] * 12, dtype=object))
    with pytest.raises(Damaged, match="allow_pickle"):
        file_formats.read(tmp_path / "p.npz")
    assert not target.exists()


def test_a_header_in_an_archive_that_promises_terabytes_is_refused(tmp_path: Path) -> None:
    head = io.BytesIO()
    about = np.lib.format.header_data_from_array_1_0(X) | {"shape": (10**12, 3)}
    np.lib.format.write_array_header_1_0(head, about)
    with zipfile.ZipFile(tmp_path / "h.npz", "w") as archive:
        archive.writestr("../../x.npy", head.getvalue() + bytes(100))
    with pytest.raises((Damaged, UnusableEmbedding)):
        file_formats.read(tmp_path / "h.npz")
    assert [p.name for p in tmp_path.iterdir()] == ["h.npz"]


@pytest.mark.parametrize("ending", file_formats.ENDINGS)
def test_a_thousand_mutated_files_give_rows_or_a_sentence(tmp_path: Path, ending: str) -> None:
    """250 files of each format: cut, changed, doubled, filled, flipped."""
    path = make(tmp_path, ending)
    whole, rng = path.read_bytes(), random.Random(ending)
    for _ in range(250):
        path.write_bytes(mutated(whole, rng))
        try:
            found = file_formats.read(path)
        except (UnusableEmbedding, Damaged) as error:
            said = str(error)
        else:
            said = f"{len(found)} rows"
        assert len(said) > 3
