"""A second file of vectors as the other tower: which rows are partners, and one sentence for each bad input."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cases import cases

from contrastive_core.base import sandbox
from contrastive_core.base.errors import LabError, UnusableEmbedding
from contrastive_core.spaces import file_formats, loaded_vectors
from contrastive_core.spaces.loaded_vectors import OtherTower, open_vectors, other_tower
from contrastive_core.spaces.towers import Towers, towers_of

rng = np.random.default_rng(0)
IMAGE, TEXT = rng.normal(size=(6, 4)).astype(np.float32), rng.normal(size=(6, 4)).astype(np.float32)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home of its own; files are read in this process, which is quicker than in a child."""
    monkeypatch.setenv("CONTRASTIVE_LAB_HOME", str(tmp_path / "home"))

    def run_here(function, *arguments, limits: sandbox.Limits) -> object:
        return function(*(str(each) if isinstance(each, Path) else each for each in arguments))

    monkeypatch.setattr("contrastive_core.spaces.loaded_vectors.run_sandboxed", run_here)


def table(path: Path, x: np.ndarray, **columns: object) -> Path:
    frame = pd.DataFrame(x, columns=[f"d{j}" for j in range(x.shape[1])]).assign(**columns)
    frame.to_csv(path, index=False) if path.suffix == ".csv" else frame.to_parquet(path)
    return path


def opened(a: Path, b: Path, names: tuple[str, str] = ("", ""), by: str = "", **options) -> tuple[Towers, str]:
    key = open_vectors(a, a.name, other=OtherTower(b, b.name, names, by), **options)
    towers = towers_of(loaded_vectors.rows(key))
    assert towers is not None
    about = loaded_vectors.about(key)
    return towers, " ".join(filter(None, (about["said"], about["note"])))


def test_rows_of_two_files_are_partners_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("contrastive_core.spaces.loaded_vectors.run_sandboxed", sandbox.run_sandboxed)
    np.save(a := tmp_path / "image.npy", IMAGE)
    np.save(b := tmp_path / "text.npy", TEXT)
    towers, note = opened(a, b)
    assert towers.names == ("image", "text")
    assert towers.group_a.tolist() == towers.group_b.tolist()
    np.testing.assert_array_equal(towers.rows.features, np.concatenate([IMAGE, TEXT]))
    assert note == "Two towers: image (6 rows) and text (6 rows), paired row by row: 6 pairs."


@cases("endings", [("csv", "csv"), ("parquet", "csv")])
@cases("key", ["id", "pair", "group"])
def test_a_column_of_both_files_says_which_are_partners(tmp_path: Path, key: str, endings: tuple[str, str]) -> None:
    order = np.array([3, 0, 5, 1, 4, 2])
    a = table(tmp_path / f"image.{endings[0]}", IMAGE, **{key: [f"n{i}" for i in range(6)]})
    words = {"caption": [f"a star {i}" for i in order], "id": [f"x{i}" for i in order]}
    b = table(tmp_path / f"caption.{endings[1]}", TEXT[order], **words | {key: [f"n{i}" for i in order]})
    towers, note = opened(a, b)
    assert towers.group_b.tolist() == towers.group_a[order].tolist()
    assert f"paired by {key}: 6 pairs." in note
    assert towers.rows.columns["text"].tolist() == [""] * 6 + words["caption"]


def test_several_rows_of_a_group_on_both_sides_are_several_partners(tmp_path: Path) -> None:
    a = table(tmp_path / "image.csv", IMAGE, pair=[1, 1, 2, 3, 4, 5])
    b = table(tmp_path / "text.csv", TEXT, pair=[1, 1, 1, 2, 7, -1])
    towers, _ = opened(a, b)
    assert towers.partner_pairs(100)[1] == 2 * 3 + 1
    assert towers.without_partner == (3, 2)


def test_a_named_column_and_rows_by_order_are_taken_over_ids(tmp_path: Path) -> None:
    a = table(tmp_path / "image.csv", IMAGE, id=[f"i{i}" for i in range(6)])
    b = table(
        tmp_path / "text.csv", TEXT, id=[f"t{i}" for i in range(6)], image_id=[f"i{i}" for i in (1, 0, 2, 2, 2, 3)]
    )
    with pytest.raises(UnusableEmbedding, match=r"no group in common.* 'i0', text has 't0'"):
        opened(a, b)
    towers, note = opened(a, b, by="image_id")
    assert towers.group_b.tolist() == [1, 0, 2, 2, 2, 3]
    assert "paired by image_id: 6 pairs." in note
    assert opened(a, b, by="row")[0].without_partner == (0, 0)
    with pytest.raises(UnusableEmbedding, match=r"text\.csv has no column 'frame'|image\.csv has no column 'frame'"):
        opened(table(a, IMAGE), b, by="frame")


def test_numbers_of_either_table_can_be_left_out(tmp_path: Path) -> None:
    frame = pd.DataFrame(TEXT, columns=["a", "b", "c", "d"]).assign(length=1.0)
    frame.to_csv(b := tmp_path / "text.csv", index=False)
    np.save(a := tmp_path / "image.npy", IMAGE)
    with pytest.raises(UnusableEmbedding, match="rows of image have 4 numbers and rows of text 5"):
        opened(a, b)
    towers, _ = opened(a, b, leave_out=["length"])
    assert towers.rows.width == 4
    with pytest.raises(UnusableEmbedding, match=r"no column|no columns"):
        opened(b, b, leave_out=["width"])


def test_files_of_the_same_name_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    np.save(a := tmp_path / "emb.npy", IMAGE)
    np.save(b := tmp_path / "other" / "emb.npy", TEXT)
    assert opened(a, b)[0].names == ("emb 1", "emb 2")
    assert opened(a, b, ("photo", ""))[0].names == ("photo", "emb")
    with pytest.raises(UnusableEmbedding, match="two different names"):
        opened(a, b, ("x", "x"))


def test_partners_of_rows_that_are_left_out_are_told_of(tmp_path: Path) -> None:
    holes = IMAGE.copy()
    holes[[1, 4]] = np.nan
    np.save(a := tmp_path / "image.npy", holes)
    zero = TEXT.copy()
    zero[4] = 0
    np.save(b := tmp_path / "text.npy", zero)
    towers, note = opened(a, b)
    assert towers.without_partner == (0, 1)  # row 4 is missing in both
    assert note == "Two towers: image (4 rows) and text (5 rows), paired row by row: 4 pairs."  # as the page counts
    np.save(a, np.full_like(IMAGE, np.nan))
    with pytest.raises(UnusableEmbedding, match="no pair is left"):
        opened(a, b)


@cases(
    ("name", "content", "words"),
    [
        ("text.npy", TEXT[:, :3], "rows of image have 4 numbers and rows of text 3"),
        (
            "text.npy",
            TEXT[:5],
            "image has 6 rows and text 5; towers of .* arrays image_pair and text_pair. .* image_id and",
        ),
        ("text.npy", b"", r"text\.npy does not begin like a \.npy file"),
        ("text.csv", b"", r"text\.csv cannot be read"),
        ("text.csv", b"d0,d1,d2,d3\n", r"text\.csv has no rows"),
        ("text.parquet", b"PAR1 and no more", r"text\.parquet cannot be read"),
        ("text.txt", b"hello", "vector files must end in"),
    ],
)
def test_each_bad_second_file_has_its_sentence(
    tmp_path: Path, name: str, content: np.ndarray | bytes, words: str
) -> None:
    np.save(good := tmp_path / "image.npy", IMAGE)
    bad = tmp_path / name
    if isinstance(content, bytes):
        bad.write_bytes(content)
    else:
        np.save(bad, content)
    with pytest.raises(LabError, match=words):
        opened(good, bad)


def test_a_second_file_that_is_not_there_or_has_two_towers_is_refused(tmp_path: Path) -> None:
    """Two arrays of whole numbers are two towers as two of fractions are."""
    np.save(a := tmp_path / "image.npy", IMAGE)
    with pytest.raises(FileNotFoundError, match=r"none\.npy"):
        opened(a, tmp_path / "none.npy")
    eight_bits = [np.round(20 * x).astype(np.int8) for x in (IMAGE, TEXT)]
    np.savez(b := tmp_path / "both.npz", image=eight_bits[0], text=eight_bits[1])
    with pytest.raises(UnusableEmbedding, match=r"both\.npz already has two towers"):
        opened(a, b)
    towers = towers_of(rows := file_formats.read(b))
    assert towers is not None
    assert towers.names == ("image", "text")
    np.testing.assert_array_equal(rows.features, np.concatenate(eight_bits))


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_two_series_of_one_table_are_two_towers_with_their_texts_and_images(tmp_path: Path, ending: str) -> None:
    columns = [f"{name}_{j}" for name in ("image", "text") for j in range(4)]
    frame = pd.DataFrame(np.concatenate([IMAGE, TEXT], 1), columns=columns)
    frame = frame.assign(caption=list("abcdef"), file=[f"{i}.png" for i in range(6)], label=[0, 0, 0, 1, 1, 1])
    path = tmp_path / f"pairs.{ending}"
    frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
    towers = towers_of(rows := file_formats.read(path))
    assert towers is not None
    assert towers.names == ("image", "text")
    np.testing.assert_allclose(rows.features, np.concatenate([IMAGE, TEXT]), rtol=1e-6)
    assert rows.columns["text"].tolist() == [*[""] * 6, *"abcdef"]
    assert rows.columns["file"].tolist() == [*(f"{i}.png" for i in range(6)), *[""] * 6]
    assert rows.labels is not None
    assert rows.labels.tolist() == [0, 0, 0, 1, 1, 1] * 2
    assert towers_of(alone := file_formats.read(path, leave_out=["text"])) is None
    assert len(alone) == 6
    assert alone.width == 4


def test_two_columns_of_lists_are_two_towers(tmp_path: Path) -> None:
    frame = pd.DataFrame({"question": ["why?"] * 6, "answer": list("abcdef"), "pair": [0, 0, 1, 2, 3, 4]})
    frame["question_embedding"], frame["answer_embedding"] = list(IMAGE), list(TEXT)
    frame["tokens"] = [[1, 2]] * 6  # whole numbers are no vectors
    frame.to_parquet(path := tmp_path / "qa.parquet")
    towers = towers_of(rows := file_formats.read(path))
    assert towers is not None
    assert towers.names == ("question", "answer")
    assert towers.group_b.tolist() == [0, 0, 1, 2, 3, 4]
    assert rows.columns["text"].tolist() == ["why?"] * 6 + list("abcdef")
    frame["answer_embedding"] = list(TEXT[:, :2])
    frame.to_parquet(path)
    with pytest.raises(UnusableEmbedding, match="rows of question have 4 numbers and rows of answer 2"):
        file_formats.read(path)
    assert file_formats.read(path, leave_out=["answer_embedding"]).width == 4
    frame["embedding"] = list(IMAGE)  # a usual name is the vectors, as before
    frame.to_parquet(path)
    assert towers_of(file_formats.read(path)) is None


@pytest.mark.parametrize("widths", [(2, 2), (4, 3), (4, 4, 4)])
def test_other_series_are_one_tower(tmp_path: Path, widths: tuple[int, ...]) -> None:
    columns = [f"{name}{j}" for name, width in zip("abc", widths, strict=False) for j in range(width)]
    pd.DataFrame(rng.normal(size=(5, len(columns))), columns=columns).to_csv(path := tmp_path / "x.csv", index=False)
    rows = file_formats.read(path)
    assert towers_of(rows) is None
    assert rows.width == max(widths)


def test_a_table_with_a_row_for_each_tower_is_two_towers(tmp_path: Path) -> None:
    x = np.concatenate([IMAGE, TEXT])
    known = {"tower": ["image"] * 6 + ["text"] * 6, "pair": [*range(6), 0, 0, 1, 2, 3, 9]}
    towers = towers_of(file_formats.read(table(tmp_path / "long.csv", x, **known)))
    assert towers is not None
    assert towers.group_b.tolist() == [0, 0, 1, 2, 3, -1]
    by_id = {"tower": known["tower"], "id": [f"n{i}" for i in range(6)] * 2}
    rows = file_formats.read(table(tmp_path / "long.csv", x, **by_id))
    towers = towers_of(rows)
    assert towers is not None
    assert towers.group_b.tolist() == [0, 1, 2, 3, 4, 5]
    assert len({*rows.ids}) == 12


def test_images_of_one_tower_go_with_its_rows(tmp_path: Path) -> None:
    images = rng.integers(0, 255, (6, 8, 8, 3), np.uint8)
    np.savez(tmp_path / "both.npz", text=TEXT, image=IMAGE, images=images)
    key = open_vectors(tmp_path / "both.npz", "both.npz")
    kept = loaded_vectors.images(key)
    assert kept is not None
    np.testing.assert_array_equal(kept[6:], images.transpose(0, 3, 1, 2))  # the tower named image, though second
    assert (kept[:6] == 128).all()
    np.savez(a := tmp_path / "a.npz", features=IMAGE, images=images)
    np.save(b := tmp_path / "b.npy", TEXT)
    towers, _ = opened(b, a)
    kept = loaded_vectors.images(next(iter(loaded_vectors.loaded())))
    assert kept is not None
    np.testing.assert_array_equal(kept[towers.b], images.transpose(0, 3, 1, 2))


@pytest.mark.parametrize(
    ("options", "words"),
    [((None, "a,b", ""), "need --other"), ((None, None, "id"), "need --other"), (("x.npy", "a", ""), "two names")],
)
def test_options_without_a_second_file_have_their_sentence(options: tuple, words: str) -> None:
    with pytest.raises(UnusableEmbedding, match=words):
        other_tower(*options)


@pytest.mark.parametrize("names", ["abc", "ab"])
def test_a_column_of_towers_that_are_no_two_is_told_once(tmp_path: Path, names: str) -> None:
    tower = [names[i % len(names)] for i in range(6)]
    path = table(tmp_path / "towers.csv", IMAGE, id=list(range(6)), tower=tower)
    about = loaded_vectors.about(open_vectors(path, path.name))
    assert "so all rows are shown as one set" in about["said"]
    assert not about["note"]
