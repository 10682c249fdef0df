"""Triplets and BEIR folders open as two towers, whichever shape they have, or are refused in one sentence."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contrastive_core.cli.main import main
from contrastive_core.lab.batch import load_batch
from contrastive_core.lab.lab_view import BatchRequest, TowerBatch
from contrastive_core.runs.run import Run
from contrastive_core.spaces import file_formats, loaded_vectors, triplets
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.loaded_vectors import OtherTower, open_vectors
from contrastive_core.spaces.towers import towers_of

QUERIES, DOCUMENTS = (
    ["why", "how"],
    ["so", "thus", "no", "never"],
)  # so and thus answer, the others were given with them
RNG = np.random.default_rng(0)
Q, D = RNG.standard_normal((2, 4)).astype(np.float32), RNG.standard_normal((4, 4)).astype(np.float32)
LINES: dict[str, list[dict[str, Any]]] = {
    "sentence-transformers": [
        {"anchor": "why", "positive": "so", "negative_1": "no", "negative_2": "never"},
        {"anchor": "how", "positive": "thus", "negative_1": "no", "negative_2": ""},
    ],
    "flag": [
        {"query": "why", "pos": ["so"], "neg": ["no", "never"], "pos_scores": [0.9], "prompt": "x"},
        {"query": "how", "pos": ["thus"], "neg": ["no"]},
    ],
    "swift": [
        {"query": "why", "response": "so", "rejected_response": ["no", "never"]},
        {"query": "how", "response": "thus", "rejected_response": ["no"]},
    ],
    "messages": [
        {
            "messages": [{"role": "user", "content": query}],
            "positive_messages": [[{"role": "user", "content": answer}]],
            "negative_messages": [[{"role": "user", "content": text}] for text in others],
        }
        for query, answer, others in (("why", "so", ["no", "never"]), ("how", "thus", ["no"]))
    ],
}


def written(folder: Path, lines: list[Any], name: str = "qa.jsonl") -> Path:
    path = folder / name
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(lines), path)
    elif path.suffix == ".csv":
        names = [*lines[0]]
        path.write_text("\n".join(",".join(row) for row in [names, *([line[k] for k in names] for line in lines)]))
    else:
        path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines) + "\n")
    return path


def check(rows: EmbeddingSet, has_texts: bool = True) -> None:
    towers = towers_of(rows)
    assert towers is not None
    assert towers.names == ("query", "document")
    assert np.array_equal(rows.features, np.concatenate([Q, D]))
    if has_texts:
        assert rows.columns["text"].tolist() == [*QUERIES, *DOCUMENTS]
    assert towers.group_a.tolist() == towers.group_b[:2].tolist() == [0, 1]
    assert towers.group_b[2:].tolist() == [-1, -1]
    assert sorted(map(tuple, towers.given_negatives().tolist())) == [(4, 0), (4, 1), (5, 0)]


@pytest.mark.parametrize("ending", [".jsonl", ".parquet", ".csv"])
@pytest.mark.parametrize("shape", LINES)
def test_each_shape_opens_with_vectors_beside_it(shape: str, ending: str, tmp_path: Path) -> None:
    if ending == ".csv" and shape != "sentence-transformers":
        pytest.skip("no lists in CSV")
    path = written(tmp_path, LINES[shape], f"qa{ending}")
    np.save(tmp_path / "qa.npy", np.concatenate([Q, D]))
    check(file_formats.read(path))
    (tmp_path / "qa.npy").unlink()
    np.savez(tmp_path / "qa.npz", document=D, query=Q)
    check(file_formats.read(path))
    every = {"anchor": Q, "positive": D[:2], "negative": D[[2, 3, 2]]}  # a row for each text of the file
    np.savez(tmp_path / "qa.npz", **every)
    check(file_formats.read(path))


@pytest.mark.parametrize("ending", [".jsonl", ".parquet", ".csv"])
def test_pairs_that_do_not_match_are_negatives_by_their_label(ending: str, tmp_path: Path) -> None:
    pairs = [("why", "so", "1"), ("how", "thus", "1"), ("why", "no", "0"), ("how", "no", "0"), ("why", "never", "0")]
    lines = [dict(zip(("sentence1", "sentence2", "label"), pair, strict=True)) for pair in pairs]
    path = written(tmp_path, lines, f"qa{ending}")
    np.save(tmp_path / "qa.npy", np.concatenate([Q, D]))
    check(file_formats.read(path))
    rows = file_formats.read(written(tmp_path, [{k: line[k] for k in ("sentence1", "sentence2")} for line in lines]))
    assert triplets.note(rows).startswith("Queries that share an answer")  # without labels, all match


def test_vectors_in_the_file_count_before_those_beside_it(tmp_path: Path) -> None:
    lines = [
        {"anchor": "why", "positive": "so", "negative": ["no", "never"]},
        {"anchor": "how", "positive": "thus", "negative": ["no"]},
    ]
    for line, q, p, n in zip(lines, Q, D[:2], ([2, 3], [2]), strict=True):
        line |= {"anchor_embedding": q.tolist(), "positive_embedding": p.tolist(), "negative_vectors": D[n].tolist()}
    np.save(tmp_path / "qa.npy", Q)
    for name in ("qa.jsonl", "qa.parquet"):
        check(file_formats.read(written(tmp_path, lines, name)))


def test_an_npz_of_triplets_needs_no_texts(tmp_path: Path) -> None:
    negative = RNG.standard_normal((2, 3, 4)).astype(np.float32)
    np.savez(tmp_path / "t.npz", anchor=Q, positive=D[:2], negative=negative)
    rows = file_formats.read(tmp_path / "t.npz")
    assert np.array_equal(rows.features, np.concatenate([Q, D[:2], negative.reshape(-1, 4)]))
    towers = towers_of(rows)
    assert towers is not None
    assert towers.given_negatives().tolist() == [[4 + i, i // 3] for i in range(6)]
    np.savez(tmp_path / "t.npz", anchor=Q, positive=D, negative=D)
    with pytest.raises(ValueError, match="needs arrays of the same length, with one row for each query; got anchor"):
        file_formats.read(tmp_path / "t.npz")


def beir(folder: Path, qrels: str = "query-id\tcorpus-id\tscore\n1\t1\t2\n2\t2\t1\n1\t3\t0\n") -> Path:
    written(folder, [{"_id": str(i), "text": text} for i, text in enumerate(QUERIES, 1)], "queries.jsonl")
    corpus = [{"_id": str(i), "title": "a" * (i == 1), "text": text} for i, text in enumerate(DOCUMENTS, 1)]
    written(folder, corpus, "corpus.jsonl")
    (folder / "qrels").mkdir(exist_ok=True)
    (folder / "qrels" / "test.tsv").write_text(qrels)
    np.savez(folder / "vectors.npz", query=Q, document=D)
    return folder


def test_two_folders_of_beir_are_compared_by_the_judgments_of_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
        beir(folder)
    np.savez(folders[0] / "vectors.npz", query=D[[0, 1]], document=D)
    np.savez(folders[1] / "vectors.npz", query=D[[2, 1]], document=D)
    said = []
    for judgments in (folders[0] / "qrels" / "test.tsv", folders[0]):
        assert main(["compare", *map(str, folders), "--qrels", str(judgments), "--json"]) == 0
        said.append(json.loads(capsys.readouterr().out))
    assert said[0] == said[1]
    assert said[0]["queries"] == ["1", "2"]
    assert said[0]["per_query"]["ndcg_10"][0] == [1, 1]
    assert said[0]["per_query"]["ndcg_10"][1][0] < 1
    (folders[0] / "qrels" / "test.tsv").unlink()
    assert main(["compare", *map(str, folders), "--qrels", str(folders[0])]) == 2
    assert "test.tsv" in capsys.readouterr().err


def test_a_folder_of_beir_opens_for_a_page(tmp_path: Path) -> None:
    space_key = open_vectors(beir(tmp_path), "scifact")
    rows = loaded_vectors.rows(space_key)
    assert rows.ids == ("1", "2", "document:1", "document:2", "document:3", "document:4")
    assert rows.columns["text"].tolist() == [*QUERIES, "a so", *DOCUMENTS[1:]]
    towers = towers_of(rows)
    assert towers is not None
    assert towers.group_b.tolist() == [0, 1, -1, -1]
    assert towers.given_negatives().tolist() == [[4, 0]]  # judged as not relevant
    said = loaded_vectors.about(space_key)["said"]
    assert "Two towers: query (2 rows) and document (4 rows), paired by qrels: 2 pairs." in said
    assert said.endswith("Documents given as negatives: 1.")
    made = load_batch(Run(Path(), {}), BatchRequest(f"file:{space_key}", 64, 1, 0))
    assert isinstance(made, TowerBatch)
    assert (len(made.a.rows), len(made.b.rows)) == (2, 4)
    assert sorted(made.b.texts) == ["a so", "never", "no", "thus"]


def test_a_second_file_holds_the_vectors_and_a_row_of_nan_is_left_out(tmp_path: Path) -> None:
    path, vectors = written(tmp_path, LINES["flag"]), np.concatenate([Q, D])
    vectors[-1] = np.nan
    np.save(tmp_path / "model.npy", vectors)
    key = open_vectors(path, "qa.jsonl", other=OtherTower(tmp_path / "model.npy", "model.npy"))
    about = loaded_vectors.about(key)
    assert about["name"] == "qa.jsonl + model.npy"
    assert about["left_out"] == {"not_finite": 1}
    assert about["rows"] == 5


def test_texts_that_several_queries_share_are_one_row_and_it_is_said(tmp_path: Path) -> None:
    lines = [{"query": f"q{i}", "pos": ["same"], "neg": [f"n{i}"]} for i in range(3)]
    path = written(tmp_path, [*lines, {"query": "q9", "pos": "own", "neg": []}])
    np.save(tmp_path / "qa.npy", RNG.standard_normal((4 + 2 + 3, 4)))
    rows = file_formats.read(path)
    assert triplets.note(rows) == (
        "Documents given as negatives: 3. Queries that share an answer with another query: 3. They count as one group "
        "with all its answers."
    )


GOOD = {"query": "why", "pos": ["so"], "neg": ["no"]}
BAD: dict[str, tuple[list[Any], str]] = {
    "nothing": ([""], "qa.jsonl has no queries"),
    "an empty text": ([GOOD, {**GOOD, "pos": [" "]}], "qa.jsonl: line 2 has no pos, or an empty one"),
    "an empty query": ([{**GOOD, "query": ""}], "qa.jsonl: line 1 has no query, or an empty one"),
    "no query": ([{"text": "why"}], "qa.jsonl: line 1 has no anchor, or an empty one"),
    "no positive": ([{**GOOD, "pos": []}], "qa.jsonl: line 1 has no pos, or an empty one"),
    "a number": ([{**GOOD, "neg": [3]}], "qa.jsonl: line 1 has no neg, or an empty one"),
    "not a JSON": ([GOOD, "{"], "qa.jsonl: line 2 is not a JSON object"),
    "a list": (["[1]"], "qa.jsonl: line 1 is not a JSON object"),
    "an id twice": ([{**GOOD, "id": "a"}, {**GOOD, "query": "how", "id": "a"}], "qa.jsonl contains the id 'a' 2 times"),
    "a graded label": (
        [{"sentence1": "why", "sentence2": "so", "score": 0.8}],
        "qa.jsonl: line 1 has the score '0.8'; only 1 for texts that match and 0 for others can be read",
    ),
    "a label in words": (
        [{"query": "why", "response": "so", "label": "entailment"}],
        "qa.jsonl: line 1 has the label 'entailment'; only 1",
    ),
    "no match": (
        [{"query": "why", "query_vector": [1, 2], "response": "so", "response_vector": [3, 4], "label": 0}],
        "qa.jsonl has no query with a positive",
    ),
    "other lengths": (
        [{**GOOD, "neg_embedding": [[1, 2], [3, 4]]}],
        "qa.jsonl: line 1 needs as many vectors as texts of neg; got 2 and 1",
    ),
    "other widths": (
        [{**GOOD, "query_embedding": [1, 2], "pos_embedding": [1, 2, 3], "neg_embedding": [[1, 2]]}],
        "qa.jsonl: its vectors have different lengths",
    ),
    "no vectors": ([GOOD], "qa.jsonl has texts and no vectors: save them beside it as qa.npy or qa.npz, or name such"),
}


def test_what_is_no_triplet_is_one_sentence(tmp_path: Path) -> None:
    for what, (lines, sentence) in BAD.items():
        with pytest.raises(ValueError) as error:  # noqa: PT011
            file_formats.read(written(tmp_path, lines))
        assert str(error.value).startswith(sentence), what


def test_fields_of_a_line_name_its_query_and_documents(tmp_path: Path) -> None:
    lines = [
        {**LINES["sentence-transformers"][0], "query_id": "q7", "positive_id": 31, "negative_1_id": "n"},
        {**LINES["sentence-transformers"][1], "query_id": "q8", "positive_id": 2},
    ]
    np.save(tmp_path / "qa.npy", np.concatenate([Q, D]))
    assert file_formats.read(written(tmp_path, lines)).ids == ("q7", "q8", "31", "2", "n", "row 3")
    lists = [{**line, "id": str(n), "pos_ids": [f"d{n}"]} for n, line in enumerate(LINES["flag"])]
    assert file_formats.read(written(tmp_path, lists)).ids == ("0", "1", "d0", "d1", "row 2", "row 3")
    with pytest.raises(ValueError, match=r"qa.jsonl repeats the id '31'|'31'"):
        file_formats.read(written(tmp_path, [lines[0], {**lines[1], "positive_id": 31}]))


def test_another_number_of_vectors_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, LINES["flag"])
    np.save(tmp_path / "qa.npy", D)
    with pytest.raises(ValueError, match=r"qa.npy has 4 vectors, but qa.jsonl has 2 different queries and 4 different"):
        file_formats.read(path)


@pytest.mark.parametrize(
    ("file", "text", "sentence"),
    [
        ("qrels/test.tsv", "1\t1\t1\n7\t1\t1\n", "qrels/test.tsv refers to queries that are not in the data: 1, for"),
        (
            "qrels/test.tsv",
            "1\t9\t1\n",
            "qrels/test.tsv refers to documents that are not in the data: 1, for example '9'",
        ),
        ("queries.jsonl", "", " has no queries"),
        ("corpus.jsonl", '{"_id": "1", "text": ""}\n', "corpus.jsonl: line 1 has no text, or an empty one"),
        (
            "corpus.jsonl",
            '{"_id": "1", "text": "a"}\n{"_id": "1", "text": "b"}\n',
            "corpus.jsonl contains the id '1' 2 times",
        ),
    ],
)
def test_a_damaged_folder_is_one_sentence(file: str, text: str, sentence: str, tmp_path: Path) -> None:
    (beir(tmp_path) / file).write_text(text)
    with pytest.raises(ValueError) as error:  # noqa: PT011
        file_formats.read(tmp_path)
    assert sentence in str(error.value)


def test_an_id_that_occurs_twice_is_refused_by_each_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rows.npz"
    ids, split = np.array(["a", "b", "a", "a"]), np.array(["train", "train", "test", "test"])
    np.savez(path, features=D, id=ids)
    for command in (["evaluate"], ["samples"], ["project", "--out", str(tmp_path / "map.csv")]):
        assert main([command[0], str(path), *command[1:]]) == 2
        assert "rows.npz contains the id 'a' 3 times. Samples are matched by id" in capsys.readouterr().err
    np.savez(path, features=D, id=ids, split=split)
    with pytest.raises(ValueError, match="contains the id 'a' 2 times"):  # one of each split
        file_formats.read(path)
    for different in ({"split": np.array(["train", "train", "test", "other"])}, {"view": np.arange(4)}):
        np.savez(path, features=D, id=ids, **different)
        assert file_formats.read(path).ids == ("a", "b", "a", "a")
    table = written(tmp_path, [{"id": x, "u": 1.5, "v": 2.5 + n} for n, x in enumerate(ids)], "t.parquet")
    with pytest.raises(ValueError, match="contains the id 'a' 3 times"):
        open_vectors(table, "t")


def test_a_table_of_two_towers_stays_one(tmp_path: Path) -> None:
    np.savez(tmp_path / "two.npz", query=Q, positive=D[:2])
    pq.write_table(pa.table({"query": ["a", "b"], "x0": [1.0, 2.0], "x1": [3.0, 4.0]}), tmp_path / "t.parquet")
    columns = {"query": ["a", "b"], "response": ["c", "d"], "embedding": [[1.0, 2.0], [3.0, 4.0]]}
    pq.write_table(pa.table(columns), tmp_path / "one.parquet")
    assert not file_formats.are_triplets(tmp_path / "one.parquet")
    assert not file_formats.are_triplets(tmp_path / "two.npz")
    assert not file_formats.are_triplets(tmp_path / "t.parquet")
    assert not file_formats.are_triplets(tmp_path / "gone.npz")
