"""Vectors from elsewhere: every format, and a thousand damaged or hostile files."""

import io
import json
import os
import pickle
import random
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import cases
from mutation import mutated

from contrastive_core.base.errors import Damaged, NotRegular, UnusableEmbedding
from contrastive_core.base.storage import data_home
from contrastive_core.spaces import file_formats, loaded_vectors
from contrastive_core.spaces.embedding_set import EmbeddingSet

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


@cases("ending", file_formats.ENDINGS)
def test_every_format(tmp_path: Path, ending: str) -> None:
    found = file_formats.read(make(tmp_path, ending))
    np.testing.assert_allclose(found.features, X, rtol=1e-6)
    assert (None if found.labels is None else found.labels.tolist()) == (None if ending == ".npy" else LABELS.tolist())
    if ending in (".csv", ".parquet"):
        assert found.ids[3] == "i3"


def test_class_names_become_labels(tmp_path: Path) -> None:
    table = pd.DataFrame({"class": ["dog", "cat"] * 6, "x0": X[:, 0], "x1": X[:, 1]})
    table.to_csv(tmp_path / "v.csv", index=False)
    found = file_formats.read(tmp_path / "v.csv")
    assert found.classes == ("cat", "dog")
    assert found.class_name(int(found.labels[0])) == "dog"  # type: ignore[index]


def header(shape: tuple[int, ...]) -> bytes:
    """The head of a `.npy` file that declares a shape."""
    head = io.BytesIO()
    about = np.lib.format.header_data_from_array_1_0(X) | {"shape": shape}
    np.lib.format.write_array_header_1_0(head, about)
    return head.getvalue()


def test_a_header_that_promises_terabytes_is_refused(tmp_path: Path) -> None:
    (tmp_path / "h.npy").write_bytes(header((10**12, 3)))
    with pytest.raises(UnusableEmbedding, match="declares"):
        file_formats.read(tmp_path / "h.npy")
    with zipfile.ZipFile(tmp_path / "h.npz", "w") as archive:
        archive.writestr("../../x.npy", header((10**12, 3)) + bytes(100))
    with pytest.raises((Damaged, UnusableEmbedding)):
        file_formats.read(tmp_path / "h.npz")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["h.npy", "h.npz"]


def test_a_few_bytes_of_parquet_that_unpack_far_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flat = {k: np.zeros(1_000_000) for k in "ab"}
    pd.DataFrame(flat).to_parquet(tmp_path / "flat.parquet")
    pd.DataFrame(flat | {"label": 0}).to_parquet(tmp_path / "labeled.parquet")
    lists = pa.FixedSizeListArray.from_arrays(np.zeros(2_000_000), 2)
    pq.write_table(pa.table({"v": lists}), tmp_path / "lists.parquet")
    for path in tmp_path.iterdir():
        assert path.stat().st_size < 100_000
    monkeypatch.setattr(file_formats, "LIMIT", 7_000_000)
    with pytest.raises(UnusableEmbedding, match=r"would unpack to 8,000,000 bytes from \d+,\d+; at most 7,000,"):
        file_formats.read(tmp_path / "labeled.parquet")
    monkeypatch.setattr(file_formats, "VECTORS", 7_000_000)
    for name in ("flat.parquet", "lists.parquet"):
        with pytest.raises(UnusableEmbedding, match="would unpack to"):
            file_formats.read(tmp_path / name)


@cases("step", [1, 100, 1 << 20])
@cases("dtype", ["<f4", "<f8", "<f2", ">f4", "i2"])
@cases("order", ["C", "F"])
def test_vectors_are_read_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int, dtype: str, order: str
) -> None:
    monkeypatch.setattr(file_formats, "STEP", step)
    array = np.array(np.random.default_rng(0).normal(size=(37, 5)) * 9, dtype, order=order)  # type: ignore[call-overload]
    np.save(tmp_path / "a.npy", array)
    np.savez(tmp_path / "a.npz", features=array)
    for name in ("a.npy", "a.npz"):
        assert np.array_equal(file_formats.read(tmp_path / name).features, array.astype("f4"))


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
    np.save(tmp_path / "p.npy", np.array([Harm(target)], dtype=object), allow_pickle=True)
    for name in ("p.npz", "p.npy"):
        with pytest.raises(UnusableEmbedding, match="pickled objects"):
            file_formats.read(tmp_path / name)
    assert not target.exists()


@cases("ending", file_formats.ENDINGS)
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


META = {"split": "", "layer": "h", "classes": [], "provenance": {}}


@cases(
    ("part", "value", "sentence"),
    [
        ("features", X.astype(np.complex128), "numeric"),
        ("features", X[0], "must contain"),
        ("labels", LABELS.astype(np.str_), "damaged: labels"),
        ("labels", np.zeros((12, 2), np.int64), "damaged: labels"),
        ("labels", LABELS[:5], "damaged: labels"),
        ("ids", np.arange(12), "damaged: texts"),
        ("ids", np.array(["a"] * 3), "ids has 3"),
        ("column:x", np.zeros((12, 2)), "damaged: columns"),
        ("column:x", np.zeros(12, np.complex64), "damaged: columns"),
        ("views", np.zeros((4, 2, 9), np.float32), "damaged: views"),
        ("meta", None, "damaged"),
        ("meta", META | {"split": [1]}, "damaged: texts"),
        ("meta", META | {"classes": [{}]}, "damaged: texts"),
        ("meta", META | {"provenance": 3}, "damaged: provenance"),
    ],
)
def test_an_archive_that_carries_meta_passes_the_same_checks(
    tmp_path: Path, part: str, value: Any, sentence: str
) -> None:
    arrays = EmbeddingSet(X, LABELS.astype(np.int64), columns={"x": X[:, 0]}).arrays()
    if part == "meta":
        value = np.frombuffer(json.dumps(value).encode(), np.uint8)
    np.savez(tmp_path / "m.npz", **arrays | {part: value})
    with pytest.raises(UnusableEmbedding, match=sentence):
        file_formats.read(tmp_path / "m.npz")


def test_other_widths_of_numbers_beside_meta_are_taken(tmp_path: Path) -> None:
    arrays = EmbeddingSet(X, LABELS.astype(np.int64), columns={"x": X[:, 0]}).arrays()
    labels = np.where(LABELS == 0, -7, LABELS).astype(np.int16)
    np.savez(tmp_path / "m.npz", **arrays | {"features": X.astype(np.float64), "labels": labels})
    rows = file_formats.read(tmp_path / "m.npz")
    assert rows.features.dtype == np.float32
    assert rows.labels is not None
    assert rows.labels.tolist() == np.maximum(labels, -1).tolist()


@cases("ending", file_formats.ENDINGS)
def test_a_pipe_and_a_device_are_refused_at_once(tmp_path: Path, ending: str) -> None:
    os.mkfifo(tmp_path / f"pipe{ending}")
    (tmp_path / f"zero{ending}").symlink_to("/dev/zero")
    (tmp_path / f"gone{ending}").symlink_to("nowhere")
    for name in ("pipe", "zero"):
        with pytest.raises(NotRegular, match="a pipe, a device or a socket"):
            file_formats.read(tmp_path / f"{name}{ending}")
    with pytest.raises(FileNotFoundError):
        file_formats.read(tmp_path / f"gone{ending}")
    (tmp_path / f"folder{ending}").mkdir()
    with pytest.raises(IsADirectoryError, match="is a folder"):
        file_formats.read(tmp_path / f"folder{ending}")


def test_what_takes_more_memory_than_a_child_has_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few kilobytes of Parquet: one text, and one list, a great many times."""
    rows, path = 1_000_000, tmp_path / "d.parquet"
    lists = pa.FixedSizeListArray.from_arrays(pa.array(np.ones(2 * rows, np.float32)), 2)
    texts = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), ["x" * 100])
    pq.write_table(pa.table({"embedding": lists, "text": texts}), path, compression="zstd")
    monkeypatch.setattr(loaded_vectors, "MEMORY", 300 << 20)  # of the child process that a page starts
    with pytest.raises(UnusableEmbedding, match=r"d\.parquet .*memory"):
        loaded_vectors.open_vectors(path, path.name)
    assert loaded_vectors.loaded() == {}


def test_entries_of_version_0_2_are_read_and_the_same_file_keeps_its_key() -> None:
    """Decisions belong to a key. A file of other vectors' content has a key of its own."""
    rows = EmbeddingSet(X, LABELS)
    key = loaded_vectors.save_vectors(rows, "mine.npz")
    assert key == rows.content_hash[:16] == loaded_vectors.save_vectors(rows, "mine.npz")
    others = [loaded_vectors.save_vectors(rows, "copy.npz")]
    for classes in (("a", "b", "c"), ("c", "b", "a")):  # else a page would show the names that it holds in memory
        others.append(loaded_vectors.save_vectors(EmbeddingSet(X, LABELS, classes=classes), "mine.npz"))
    assert len({key, *others}) == 4
    path = data_home() / "spaces" / key / "about.json"
    about = json.loads(path.read_text())
    for name in ("note", "said", "ids"):
        del about[name]
    path.write_text(json.dumps(about | {"dataset": None, "split": ""}))
    assert loaded_vectors.about(key) == about | {"dataset": None, "split": "", "note": "", "said": "", "ids": ""}


def test_only_a_named_split_leaves_rows_out() -> None:
    split = np.array(["train", "test", "", *["train"] * (len(X) - 3)])
    images = np.arange(len(X), dtype=np.uint8)[:, None, None, None]
    key = loaded_vectors.save_vectors(EmbeddingSet(X, columns={"split": split}), "mine.npz", images)
    for name, count in (("", len(X)), ("test", 1), ("other", len(X))):
        assert len(loaded_vectors.rows(key, name)) == len(loaded_vectors.images(key, name)) == count  # type: ignore[arg-type]


def test_only_text_is_said_to_be_no_text() -> None:
    for name, sentence in (("a.csv", "is not text in UTF-8"), ("a.npz", "cannot be read: .*codec can't decode")):
        with pytest.raises(Damaged, match=sentence), file_formats.explained_errors(Path(name)):
            b"\xff".decode()


@cases("content", [b"no archive", b"PK\x03\x04 and no more"])
def test_what_is_no_archive_is_damaged(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(Damaged, match=r"^a\.npz is damaged, or is not an \.npz file$"):
        file_formats.read(tmp_path / "a.npz")


@cases("kind", ["list", "large", "fixed", "tensor"])
def test_the_column_of_vectors_is_found_whatever_its_type(kind: str, tmp_path: Path) -> None:
    """As files of Hugging Face and Embedding Atlas have it, beside other lists and numbers."""
    n, d = 40, 6
    rows = np.random.default_rng(0).normal(size=(n, d)).astype(np.float32)
    fixed = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), d)
    column = {
        "list": pa.array(rows.tolist(), pa.list_(pa.float32())),
        "large": pa.array(rows.tolist(), pa.large_list(pa.float64())),
        "fixed": fixed,
        "tensor": pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.float32(), [d]), fixed),
    }[kind]
    pq.write_table(
        pa.table(
            {
                "input_ids": pa.array([[i, 2, 3] for i in range(n)]),
                "identifier": np.arange(n),
                "vec": column,
                "projection_x": rows[:, 0],
                "text": [f"text {i}" for i in range(n)],
                "image": pa.array([{"bytes": b"x", "path": "x.png"}] * n),
            }
        ),
        tmp_path / "rows.parquet",
    )
    made = file_formats.read(tmp_path / "rows.parquet")
    np.testing.assert_array_equal(made.features, rows)
    assert {"identifier", "projection_x", "text"} <= set(made.columns)
    table = {"logits": (rows + 1).tolist(), "Embedding": rows.tolist()}  # of two, the one with a usual name
    pq.write_table(pa.table(table), tmp_path / "two.parquet")
    np.testing.assert_array_equal(file_formats.read(tmp_path / "two.parquet").features, rows)


def test_one_array_is_taken_and_of_several_the_one_that_is_named_as_usual(tmp_path: Path) -> None:
    path = tmp_path / "v.npz"
    np.savez(path, mine=X)
    assert len(file_formats.read(path)) == len(X)
    np.savez(path, before=X + 1, z=X)
    np.testing.assert_allclose(file_formats.read(path).features, X)
    np.savez(path, before=X, during=X, after=X)
    with pytest.raises(UnusableEmbedding, match=r"If it contains several, .*vectors.*; got before \(12, 3\), during"):
        file_formats.read(path)
