"""Two towers in one set: what `joined` writes, `towers_of` reads, also from files; one sentence for each bad input."""

from dataclasses import replace

import numpy as np
import pytest
from cases import cases

from contrastive_core.base.errors import UnusableEmbedding
from contrastive_core.spaces import file_formats
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.towers import joined, towers_of, why_ordinary

NAMES = ("question", "answer")


def rows(n: int, d: int = 4, **known) -> EmbeddingSet:
    return EmbeddingSet(np.random.default_rng(n).normal(size=(n, d)).astype(np.float32), **known)


def test_rows_of_the_same_number_are_partners_without_groups() -> None:
    both = joined(rows(3), rows(3), NAMES)
    towers = towers_of(both)
    assert towers is not None
    assert towers.names == NAMES
    assert len(both) == 6
    assert towers.a.tolist() == [0, 1, 2]
    assert towers.b.tolist() == [3, 4, 5]
    assert towers.group_a.tolist() == towers.group_b.tolist() == [0, 1, 2]
    assert both.ids == ("0", "1", "2", "answer:0", "answer:1", "answer:2")


def test_groups_of_numbers_and_texts_meet_and_a_row_without_a_partner_is_counted() -> None:
    for groups, group_a, group_b in (
        ((["x", "y", ""], ["y", "y", "z", "x"]), [0, 1, -1], [1, 1, -1, 0]),
        ((np.array([7, 8, -1]), np.array([8.0, np.nan, 9, 7])), [0, 1, -1], [1, -1, -1, 0]),
    ):
        towers = towers_of(joined(rows(3), rows(4), NAMES, *groups))
        assert towers is not None
        assert (towers.group_a.tolist(), towers.group_b.tolist()) == (group_a, group_b)
        assert towers.without_partner == (group_a.count(-1), group_b.count(-1))


def test_what_is_known_of_either_stays() -> None:
    a = rows(2, labels=np.array([0, 1]), classes=("cat", "dog"), columns={"file": np.array(["a.png", "b.png"])})
    b = rows(3, labels=np.array([1, 0, -1]), classes=("bird", "cat"), columns={"length": np.array([1, 2, 3])})
    both = joined(a, b, NAMES, [0, 1], [0, 0, 1])
    assert both.classes == ("cat", "dog", "bird")
    assert both.labels is not None
    assert both.labels.tolist() == [0, 1, 0, 2, -1]
    assert both.columns["file"].tolist() == ["a.png", "b.png", "", "", ""]
    np.testing.assert_array_equal(both.columns["length"], [np.nan, np.nan, 1, 2, 3])
    alike = replace(a, classes=("cat", "cat"))  # classes of both that are equal stay as they are
    same = joined(alike, alike, NAMES)
    assert (same.classes, same.labels.tolist()) == (("cat", "cat"), [0, 1, 0, 1])  # type: ignore[union-attr]


@pytest.mark.parametrize("ending", ["npz", "parquet"])
def test_towers_survive_a_file(tmp_path, ending) -> None:
    both = joined(rows(3), rows(4), NAMES, [0, 1, 2], [0, 1, 1, 5])
    both.save(path := tmp_path / f"both.{ending}")
    towers = towers_of(file_formats.read(path))
    assert towers is not None
    assert towers.names == NAMES
    assert towers.group_b.tolist() == [0, 1, 1, -1]
    other = joined(rows(3), rows(4), NAMES, [0, 1, 2], [0, 1, 1, 2])
    assert other.content_hash != both.content_hash  # only the pairs differ


def test_rows_of_one_tower_are_no_pair() -> None:
    both = joined(rows(3), rows(3), NAMES)
    assert towers_of(both.take(np.arange(3))) is None
    assert towers_of(rows(3)) is None
    assert towers_of(rows(3, columns={"tower": np.array(["A", "B", "C"])})) is None  # a column of that name only


@cases(
    ("a", "b", "names", "groups", "words"),
    [
        (rows(3), rows(3, 5), NAMES, (None, None), "question have 4 numbers and rows of answer 5"),
        (rows(3), rows(4), NAMES, (None, None), "question has 3 rows and answer 4"),
        (rows(2), rows(2), NAMES, (["u", "v"], ["x", "y"]), "no group in common"),
        (rows(2), rows(2), NAMES, (["", ""], ["x", "y"]), "no group in common"),
        (rows(2), rows(2), NAMES, (["x"], ["x", "y"]), "2 rows but 1 groups"),
        (rows(2), rows(2), ("answer", "answer"), (None, None), "two different names"),
    ],
)
def test_each_bad_input_has_its_sentence(a, b, names, groups, words) -> None:
    with pytest.raises(UnusableEmbedding, match=words):
        joined(a, b, names, *groups)


def test_rows_of_three_towers_are_one_set() -> None:
    both = joined(rows(3), rows(3), NAMES)
    tower = np.array(["a", "b", "c"] * 2)
    three = replace(both, columns=both.columns | {"tower": tower})
    assert towers_of(three) is None
    assert why_ordinary(three).startswith("The column tower does not say which rows are partners")
    assert why_ordinary(both) == why_ordinary(rows(3)) == ""


def test_two_arrays_of_a_file_are_two_towers(tmp_path) -> None:
    question, answer = rows(3).features, rows(4).features
    known = {"question_text": np.array(["x", "", "z"]), "question_pair": [7, 8, 9], "answer_pair": [8, 8, 7, -1]}
    np.savez(path := tmp_path / "qa.npz", question=question, answer=answer, **known)
    towers = towers_of(both := file_formats.read(path))
    assert towers is not None
    assert towers.names == NAMES
    assert towers.group_b.tolist() == [1, 1, 0, -1]
    assert towers.without_partner == (1, 1)
    assert both.columns["text"].tolist() == ["x", "", "z", *[""] * 4]
    np.savez(path, question=question, answer=answer[:3], answer_text=["a"])
    with pytest.raises(UnusableEmbedding, match="3 vectors but 1 values of 'text'"):
        file_formats.read(path)


def test_pairs_are_all_partners_or_an_even_share_of_them() -> None:
    towers = towers_of(joined(rows(4), rows(6), NAMES, [2, 0, 0, 9], [0, 2, 0, 7, 2, 2]))
    assert towers is not None
    pairs, total = towers.partner_pairs(100)
    expected = {(0, 5), (0, 8), (0, 9), (1, 4), (2, 4), (1, 6), (2, 6)}
    assert set(map(tuple, pairs.tolist())) == expected
    assert total == len(pairs) == len(expected)
    some, total = towers.partner_pairs(3)
    assert (len(some), total) == (3, 7)
    assert set(map(tuple, some.tolist())) < expected
