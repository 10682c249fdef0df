"""Files of relevance judgments are read, or refused in one sentence."""

import pytest

from contrastive_core.base.errors import Damaged, UnusableEmbedding
from contrastive_core.spaces.label_files import check_ids, read_qrels

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


def test_trec_has_four_columns(tmp_path):
    (tmp_path / "qrels.txt").write_text("1 0 d1 2\n1 Q0 d2 -1\n2\t0\td9\t1\n")
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
    with pytest.raises(Damaged, match="must contain judgments in"):
        read_qrels(tmp_path / "q.json")


def test_ids_that_are_not_in_the_data_are_named():
    check_ids(JUDGED, ["q 1", "q2"], ["d1", "d2", "d9", "more"], "test.tsv")
    with pytest.raises(UnusableEmbedding, match="refers to queries that are not in the data: 1, for example 'q2'"):
        check_ids(JUDGED, ["q 1"], ["d1", "d2", "d9"], "test.tsv")
    with pytest.raises(UnusableEmbedding, match=r"refers to documents that are not in the data: 2, for example 'd2'$"):
        check_ids(JUDGED, ["q 1", "q2"], ["d1"], "test.tsv")
    with pytest.raises(UnusableEmbedding, match=r"'q 1'\. .* numbered from 0\. The fields id and positive_id"):
        check_ids(JUDGED, ["0", "1"], ["d1"], "test.tsv")
