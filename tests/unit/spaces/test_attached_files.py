"""Labels, relevance judgments and images beside vectors: each form is read, all else is refused in one sentence."""

import os
import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import cases
from PIL import Image

from contrastive_core.base.errors import Damaged, UnusableEmbedding
from contrastive_core.spaces import attached_files, loaded_vectors
from contrastive_core.spaces.attached_files import GRAY, SIDE, check_ids, pictures_of, read_qrels
from contrastive_core.spaces.embedding_set import EmbeddingSet

ROWS = EmbeddingSet(np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32))
REFUSED = UnusableEmbedding


def saved(folder: Path, values: object, name: str = "labels.npy") -> Path:
    np.save(folder / name, np.asarray(values), allow_pickle=True)
    return folder / name


def written(folder: Path, text: str | bytes, name: str = "labels.csv") -> Path:
    (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
    return folder / name


@cases(
    ("values", "labels", "classes"),
    [
        ([0, 1, 0, 2, 1], [0, 1, 0, 2, 1], ()),
        (np.array([[3], [1], [3], [0], [1]], np.uint8), [3, 1, 3, 0, 1], ()),
        ([0.0, 1.0, np.nan, -1.0, 1.0], [0, 1, -1, -1, 1], ()),
        (["cat", "dog", "", "cat", "dog"], [0, 1, -1, 0, 1], ("cat", "dog")),
        ([b"cat", b"dog", b"dog", b"cat", b"dog"], [0, 1, 1, 0, 1], ("cat", "dog")),
        ([10**18, 7, 10**18, 8, -1], [0, 1, 0, 2, -1], (f"{10**18}", "7", "8")),
        ([True, False, True, True, False], [1, 0, 1, 1, 0], ()),
    ],
)
def test_arrays_of_numbers_and_names(
    tmp_path: Path, values: object, labels: list[int], classes: tuple[str, ...]
) -> None:
    rows = attached_files.labeled(ROWS, saved(tmp_path, values))
    assert rows.labels is not None
    assert (rows.labels.tolist(), rows.classes) == (labels, classes)
    assert rows.features is ROWS.features


@cases(
    ("name", "text", "labels", "classes"),
    [
        ("a.txt", "cat\ndog\ncat\n\ndog\n", [0, 1, 0, -1, 1], ("cat", "dog")),
        ("a.txt", "0\r\n10\r\n2\r\n10\r\n0", [0, 10, 2, 10, 0], ()),
        ("a.txt", "cat, gray\ndog\ndog\ndog\ndog\n\n\n", [0, 1, 1, 1, 1], ("cat, gray", "dog")),
        ("a.csv", "label\ncat\ndog\ncat\ndog\ndog\n", [0, 1, 0, 1, 1], ("cat", "dog")),
        ("a.csv", "species\n1\n0\n1\n0\n0\n", [1, 0, 1, 0, 0], ()),
        ("a.csv", '\ufeffid,Label\na,"x, y"\nb,z\nc,z\nd,\ne,z\n', [0, 1, 1, -1, 1], ("x, y", "z")),
        ("a.tsv", "y\tname\n4\ta\n4\tb\n0\tc\nnan\td\n\te\n", [4, 4, 0, -1, -1], ()),
    ],
)
def test_texts_with_and_without_a_line_of_names(
    tmp_path: Path, name: str, text: str, labels: list[int], classes: tuple[str, ...]
) -> None:
    rows = attached_files.labeled(ROWS, written(tmp_path, text, name))
    assert rows.labels is not None
    assert (rows.labels.tolist(), rows.classes) == (labels, classes)


@cases(
    ("name", "values", "sentence"),
    [
        ("labels.npy", [0, 1, 2], "labels.npy has 3 labels, but there are 5 rows of embeddings"),
        ("labels.npy", np.zeros((5, 2)), r"must contain \(n\) labels, as numbers or texts; got float64 \(5, 2\)"),
        ("labels.npy", np.array(3), r"must contain \(n\) labels"),
        ("labels.npy", np.array([{"a": 1}] * 5), "pickled objects; these are never loaded"),
        ("labels.npy", np.zeros(5, complex), "numbers or texts; got complex128"),
        ("labels.npy", [], "labels.npy has 0 labels"),
        ("labels.npy", [np.nan, -1, np.nan, -1, -1], "has no label: all are empty, NaN or below 0"),
        ("a.csv", b"", "a.csv is empty"),
        ("a.csv", b"\n\n\n\n\n", "has no label"),
        ("a.csv", b"label\n1\n2\n3\n4\n", "a.csv has 4 labels, but there are 5 rows"),
        ("a.csv", b"a,b\n" + b"1,2\n" * 5, "2 columns; the column of labels must be named label"),
        ("a.csv", b"\xff\xfe\x00", "a.csv is not text in UTF-8"),
        ("a.txt", b"1\n" * 9, "a.txt has 9 labels, but there are 5 rows"),
        ("a.npy", pickle.dumps([1, 2, 3, 4, 5]), "does not begin like a .npy file"),
        ("a.json", b"[1]", "label files must end in .npy, .txt, .csv, .tsv; got 'a.json'"),
    ],
)
def test_what_holds_no_labels_is_refused_with_a_sentence(
    tmp_path: Path, name: str, values: object, sentence: str
) -> None:
    path = (written if isinstance(values, bytes) else saved)(tmp_path, values, name)
    with pytest.raises((REFUSED, Damaged), match=sentence):
        attached_files.labeled(ROWS, path)


def test_they_are_opened_beside_their_vectors_in_a_child(tmp_path: Path) -> None:
    vectors = saved(tmp_path, ROWS.features, "vectors.npy")
    labels = written(tmp_path, "cat\ndog\ncat\ndog\ncat\n")
    bare = loaded_vectors.open_vectors(vectors, "mine.npy")
    key = loaded_vectors.open_vectors(vectors, "mine.npy", labels=labels)
    assert key != bare
    rows = loaded_vectors.rows(key)
    assert rows.labels is not None
    assert (rows.labels.tolist(), rows.classes) == ([0, 1, 0, 1, 0], ("cat", "dog"))
    with pytest.raises(REFUSED, match=r"labels\.csv has 2 labels, but there are 5 rows"):
        loaded_vectors.open_vectors(vectors, "m.npy", labels=written(tmp_path, "a\nb\n"))


# --- relevance judgments ---


JUDGED = {"q 1": {"d1": 2, "d2": 0}, "q2": {"d9": 1}}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("test.tsv", "query-id\tcorpus-id\tscore\nq 1\td1\t2\r\nq 1\td2\t0\nq2\td9\t1\n"),
        ("test.tsv", "q 1\td1\t2\nq 1\td2\t0\n\nq2\td9\t1"),
        ("test.json", '{"q 1": {"d1": 2, "d2": 0}, "q2": {"d9": 1}}'),
    ],
)
def test_each_form_is_read(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert read_qrels(tmp_path / name) == JUDGED
    (tmp_path / "qrels.txt").write_text("1 0 d1 2\n1 Q0 d2 -1\n2\t0\td9\t1\n")  # of TREC, with four columns
    assert read_qrels(tmp_path / "qrels.txt") == {"1": {"d1": 2, "d2": -1}, "2": {"d9": 1}}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "q.tsv judges no document as relevant"),
        ("q1\td1\t0\n", "q.tsv judges no document as relevant"),
        ("q1\td1\t1\nq1 d2\n", "q.tsv: line 2 is not a judgment ('q1 d2'); expected query"),
        ("q1\td1\t0.5\n", "q.tsv: line 1 is not a judgment"),
        ("a b c d 1\n", "q.tsv: line 1 is not a judgment"),
        ("q1\td1\t1\nq1\td1\t2\n", "q.tsv judges document 'd1' of query 'q1' twice, with different numbers"),
        (b"\xff\xfe\x00", "q.tsv is not text in UTF-8"),
    ],
)
def test_what_is_no_judgment_is_refused(tmp_path, text, sentence):
    (tmp_path / "q.tsv").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises((Damaged, UnusableEmbedding)) as error:
        read_qrels(tmp_path / "q.tsv")
    assert str(error.value).startswith(sentence)


@pytest.mark.parametrize("text", ["[1]", "{", '{"q": {"d": true}}', '{"q": {"d": 0.5}}', '{"q": 1}'])
def test_json_of_another_shape_is_refused(tmp_path, text):
    (tmp_path / "q.json").write_text(text)
    with pytest.raises(Damaged, match=r'q\.json .* must contain judgments in the form \{"query": \{"document": 1\}\}'):
        read_qrels(tmp_path / "q.json")


def test_ids_that_are_not_in_the_data_are_named():
    check_ids(JUDGED, ["q 1", "q2"], ["d1", "d2", "d9", "more"], "test.tsv")
    with pytest.raises(UnusableEmbedding, match="refers to queries that are not in the data: 1, for example 'q2'"):
        check_ids(JUDGED, ["q 1"], ["d1", "d2", "d9"], "test.tsv")
    with pytest.raises(UnusableEmbedding, match=r"refers to documents that are not in the data: 2, for example 'd2'$"):
        check_ids(JUDGED, ["q 1", "q2"], ["d1"], "test.tsv")
    with pytest.raises(UnusableEmbedding, match=r"'q 1'\. .* numbered from 0\. The fields id and positive_id"):
        check_ids(JUDGED, ["0", "1"], ["d1"], "test.tsv")


# --- images ---


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with a vector file and a picture, in a folder with a picture that must be one of its
    business."""
    for file, shade in (("mine/a.png", 10), ("mine/deep/b.png", 20), ("secret.png", 200)):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), (shade,) * 3).save(tmp_path / file)
    return tmp_path


def attached(home: Path, *names: str, folder: Path | None = None) -> tuple[np.ndarray | None, str]:
    rows = EmbeddingSet(np.eye(len(names), 2, dtype=np.float32), columns={"image": np.array(names)})
    return pictures_of(home / "mine" / "v.csv", rows, folder)


def shades(found: tuple[np.ndarray | None, str]) -> list[int]:
    assert found[0] is not None
    assert found[0].shape[1:] == (3, SIDE, SIDE)
    return [int(image[0, 0, 0]) for image in found[0]]


def test_names_below_the_files_own_folder_are_followed(home: Path) -> None:
    here = str(home / "mine" / "a.png")
    found = attached(home, "a.png", "deep/b.png", "deep/../a.png", here, "", "gone.png")
    assert shades(found) == [10, 20, 10, 10, GRAY, GRAY]
    assert found[1].startswith("1 of 5 images were not opened, for example gone.png: they do not exist, are links")
    assert attached(home, "a.png")[1] == ""


def test_pictures_of_other_rows_are_not_decoded(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = home / "mine" / "v.parquet"
    pq.write_table(pa.table({"image": [b"x"] * 3}), path)
    monkeypatch.setattr("contrastive_core.spaces.attached_files._thumbnail", pytest.fail)
    assert pictures_of(path, EmbeddingSet(np.eye(2, dtype=np.float32)))[0] is None


@pytest.mark.parametrize("how", ["dots", "absolute", "file link", "folder link"])
def test_a_name_that_leads_out_is_refused_with_a_sentence(home: Path, how: str) -> None:
    (home / "mine" / "link.png").symlink_to(home / "secret.png")
    (home / "mine" / "out").symlink_to(home)
    name = {
        "dots": "../secret.png",
        "absolute": str(home / "secret.png"),
        "file link": "link.png",
        "folder link": "out/secret.png",
    }[how]
    found = attached(home, "a.png", name)
    assert shades(found) == [10, GRAY]
    assert found[1].startswith(f"1 of 2 images were not opened, for example {name[:50]}")
    alone = attached(home, name)
    assert alone[0] is None
    assert alone[1].startswith("1 of 1 images")


def test_a_folder_that_a_person_names_is_where_names_start(home: Path) -> None:
    found = attached(home, "secret.png", str(home / "secret.png"), "a.png", folder=home)
    assert shades(found) == [200, 200, 10]
    assert found[1] == ""
    deep = attached(home, "b.png", "../../secret.png", folder=home / "mine" / "deep")
    assert shades(deep) == [20, GRAY]
    assert "../../secret.png" in deep[1]
    with pytest.raises(ValueError, match="no folder"):
        attached(home, "a.png", folder=home / "gone")


def test_a_folder_beside_with_a_longer_name_is_outside(home: Path) -> None:
    (home / "mine2").mkdir()
    Image.new("RGB", (8, 8)).save(home / "mine2" / "c.png")
    assert attached(home, "../mine2/c.png")[0] is None


def test_names_that_are_no_files_do_no_harm(home: Path) -> None:
    """A pipe, which would never end; a folder; links in a circle; names that no system has."""
    os.mkfifo(home / "mine" / "pipe.png")
    (home / "mine" / "round.png").symlink_to(home / "mine" / "round.png")
    odd = ("pipe.png", "deep", "round.png", "a\0b", "x" * 5000, "~/a.png", "file:///etc/passwd")
    assert shades(attached(home, "a.png", *odd)) == [10] + [GRAY] * len(odd)


def test_only_picture_formats_are_tried(home: Path) -> None:
    """PostScript would be handed to another program."""
    Image.new("RGB", (8, 8)).save(home / "mine" / "a.eps")
    assert attached(home, "a.eps")[0] is None
