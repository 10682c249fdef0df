"""Decisions applied: triplets in the shape that was read; the label of every image, a corrected folder and a script."""

import csv
import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from contrastive_core.base.errors import BadSetting
from contrastive_core.cli.main import main
from contrastive_core.data import datasets, overrides
from contrastive_core.samples import annotations
from contrastive_core.samples.sample_table import decisions_path, request_of
from contrastive_core.spaces import loaded_vectors
from contrastive_core.spaces.loaded_vectors import open_vectors

Lines = dict[str, tuple[str, list[str]]]  # the answer and the negatives of each question
LINES: Lines = {"a": ("A", ["X", "Y"]), "b": ("B", ["X"]), "c": ("C", ["A"]), "d": ("D", ["Y"])}  # documents: ABCDXY
SCORES = {text: i / 8 for i, text in enumerate("ABCDXY")}
ENDINGS = (".jsonl", ".csv", ".parquet")
Decision = tuple[str, dict[str, str]]


def decided(of: str, what: str, id: str, given: str, label: str = "") -> Decision:
    return of and f"pairs-{of}", {"what": what, "id": id, "given": given, "label": label}


WRONG = decided("mismatched", "drop", "1", "document:1")
CASES: dict[str, tuple[list[Decision], Lines, tuple[int, int]]] = {
    "a pair is wrong": ([WRONG], {k: v for k, v in LINES.items() if k != "b"}, (0, 0)),
    "a pair is right": ([decided("mismatched", "keep", "1", "document:1")], LINES, (0, 0)),
    "another answer is right": (
        [decided("mismatched", "relabel", "0", "document:0", "document:4")],
        {**LINES, "a": ("X", ["Y"])},
        (1, 1),
    ),
    "a pair is named by its answer": (
        [decided("mismatched", "relabel", "document:1", "1", "0"), decided("mismatched", "drop", "0", "document:0")],
        {"a": ("B", ["X", "Y"]), "c": LINES["c"], "d": LINES["d"]},
        (0, 1),
    ),
    "a given negative matches": (
        [decided("given_negatives", "relabel", "3", "document:3", "document:5")],
        {**LINES, "d": ("D", [])},
        (1, 0),
    ),
    "a given negative of a pair that is named by its answer matches": (
        [decided("given_negatives", "relabel", "document:0", "0", "document:4")],
        {**LINES, "a": ("A", ["Y"])},
        (1, 0),
    ),
    "a given negative does not match": (
        [decided("given_negatives", "keep", "3", "document:3", "document:5")],
        LINES,
        (0, 0),
    ),
    "the similar pair's answer matches": (
        [decided("false_negatives", "relabel", "2", "document:2", "document:0")],
        {**LINES, "c": ("C", [])},
        (1, 0),
    ),
    "a query and a document are dropped": (
        [decided("", "drop", "1", ""), decided("", "drop", "document:5", "")],
        {"a": ("A", ["X"]), "c": LINES["c"], "d": ("D", [])},
        (2, 0),
    ),
}


def rows_of(lines: Lines, ending: str) -> list[dict[str, Any]]:
    """Return the lines in a shape of the format, with fields that nothing of the project reads."""
    rows = []
    for text, (answer, others) in lines.items():
        if ending == ".jsonl":
            values = {"neg": others, "neg_scores": [SCORES[other] for other in others]}
            rows.append({"prompt": f"ü {text}", "query": text, "pos": [answer], **values})
        elif ending == ".csv":
            negatives = dict(zip(("negative_1", "negative_2"), [*others, "", ""], strict=False))
            rows.append({"note": f"=1, {text}", "anchor": text, "positive": answer, **negatives})
        else:
            rows.append({"anchor": text, "positive": answer, "negative": others, "number": ord(text)})
    return rows


def written(path: Path, lines: Lines) -> Path:
    rows = rows_of(lines, path.suffix)
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif path.suffix == ".csv":
        with path.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([[*rows[0]], *(row.values() for row in rows)])
    else:
        types = {"anchor": pa.string(), "positive": pa.large_string()}
        types |= {"negative": pa.list_(pa.string()), "number": pa.int16()}
        pq.write_table(pa.Table.from_pylist(rows, pa.schema(types)), path)
    return path


def opened(folder: Path, ending: str, lines: Lines = LINES) -> tuple[Path, str]:
    path = written(folder / f"qa{ending}", lines)
    np.save(folder / "qa.npy", np.random.default_rng(0).standard_normal((10, 4)).astype(np.float32))
    return path, loaded_vectors.PREFIX + open_vectors(path, path.name)


def decide(name: str, decisions: list[Decision]) -> None:
    for of, mark in decisions:
        annotations.add_many(request_of(name, "train", pairs=True).decisions(of), [mark])


def content(path: Path) -> Any:
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text().splitlines()]
    return path.read_text() if path.suffix == ".csv" else (pq.read_table(path).to_pylist(), pq.read_schema(path))


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("case", CASES)
def test_each_decision_changes_each_format(case: str, ending: str, tmp_path: Path) -> None:
    decisions, lines, (negatives, positives) = CASES[case]
    path, name = opened(tmp_path, ending)
    before = path.read_bytes()
    decide(name, decisions)
    counts = annotations.export_triplets(path, out := tmp_path / f"clean{ending}", name)
    assert counts == {"rows": len(lines), "all_rows": 4, "negatives": negatives, "positives": positives}
    expected = written(tmp_path / f"expected{ending}", lines)
    if ending == ".csv" and case == "a given negative of a pair that is named by its answer matches":
        expected.write_text(expected.read_text().replace("A,Y,", "A,,Y"))  # each column keeps its values
    if ending == ".csv" and case == "another answer is right":
        expected.write_text(expected.read_text().replace("X,Y,", "X,,Y"))
    assert content(out) == content(expected)
    assert path.read_bytes() == before
    if ending == ".jsonl" and decisions[0][1]["what"] == "keep":
        assert "ü" in out.read_text("utf-8")


def test_negatives_of_queries_with_one_answer_go_together_unless_that_answer_is_wrong(tmp_path: Path) -> None:
    for is_wrong, kept in ((False, []), (True, ["X"])):
        folder = tmp_path / str(is_wrong)
        folder.mkdir()
        path = folder / "qa.jsonl"
        rows = [{"anchor": q, "positive": "A", "negative": ["X"]} for q in "ab"]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        np.save(folder / "qa.npy", np.random.default_rng(is_wrong).standard_normal((4, 4)).astype(np.float32))
        name = loaded_vectors.PREFIX + open_vectors(path, path.name)
        decide(name, [decided("given_negatives", "relabel", "0", "document:0", "document:1")])
        if is_wrong:
            decide(name, [decided("mismatched", "drop", "0", "document:0")])
        annotations.export_triplets(path, out := folder / "clean.jsonl", name)
        assert content(out)[-1] == {"anchor": "b", "positive": "A", "negative": kept}


def test_vectors_in_the_file_stay_with_their_texts(tmp_path: Path) -> None:
    path = tmp_path / "qa.jsonl"
    rows = [
        {"anchor": text, "positive": text.upper(), "negative": ["X", "Y"], "anchor_embedding": [1.0, i], "extra": None}
        | {"positive_embedding": [2.0, i], "negative_embedding": [[3.0, 1.0], [3.0, 2.0]]}
        for i, text in enumerate("ab")
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    name = loaded_vectors.PREFIX + open_vectors(path, path.name)
    decide(name, [decided("mismatched", "relabel", "0", "document:0", "document:2")])
    annotations.export_triplets(path, out := tmp_path / "clean.jsonl", name)
    first = {**rows[0], "positive": "X", "positive_embedding": [3.0, 1.0], "negative": ["Y"]}
    assert content(out) == [first | {"negative_embedding": [[3.0, 2.0]]}, rows[1]]


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_command_writes_a_new_file_and_says_how_much(
    ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, name = opened(tmp_path, ending)
    out = tmp_path / f"clean{ending}"
    assert main(["pairs", str(path), "--export", str(out)]) != 0
    assert "no decisions" in capsys.readouterr().err
    assert not out.exists()
    decide(name, [WRONG])
    assert main(["pairs", str(path), "--export", str(out)]) == 0
    said = capsys.readouterr().out
    assert said.endswith(f"clean{ending}: 3 of 4 rows, 0 negatives removed, 0 positives replaced\n")
    for taken in (out, path):
        before = taken.read_bytes()
        assert main(["pairs", str(path), "--export", str(taken)]) != 0
        assert "already exists" in capsys.readouterr().err
        assert taken.read_bytes() == before
    assert main(["pairs", str(path), "--export", str(tmp_path / "clean.txt")]) != 0
    assert f"--export must end in {ending}" in capsys.readouterr().err
    assert main(["samples", str(path), "--export", str(tmp_path / "x.csv")]) != 0
    assert f"pairs {path} --export OUT" in capsys.readouterr().err


def test_documents_in_no_pair_and_positives_among_the_negatives_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, _ = opened(tmp_path, ".jsonl", {**LINES, "d": ("D", ["X", "Y", "D"])})
    assert main(["pairs", str(path)]) == 0
    said = capsys.readouterr().out
    assert "in no pair: documents that are only given negatives: 2" in said
    negatives = said[said.index("Given negatives, by similarity to the query and its answers") :].splitlines()
    assert negatives[2].strip() == "The same document as the positive."  # first
    assert "given as a negative" in negatives[3]
    assert negatives[4].strip().startswith("answer: ")
    assert said.count("The same document as the positive.") == 1


def made(root: Path) -> tuple[str, dict[str, annotations.Marks]]:
    """A folder whose classes share file names, with a decision of each kind on a training image, and one on a test
    image."""
    for place in ("train/cat", "train/dog", "test/cat", "test/dog"):
        (root / place).mkdir(parents=True)
        for number in range(3):
            color = (40 * number, 200 * ("dog" in place), 100 * ("test" in place))
            Image.new("RGB", (8, 8), color).save(root / place / f"{number}.png")
    config = {"dataset": f"folder:{root}"}
    train, test = (decisions_path(config, split) for split in ("train", "test"))
    annotations.add(train, "cat/0.png", "keep", given="cat")
    annotations.add(train, "cat/1.png", "relabel", "dog", given="cat")
    annotations.add(train, "dog/2.png", "drop", given="dog")
    annotations.add(test, "cat/0.png", "drop", given="cat")
    return config["dataset"], annotations.by_split(config)


def test_train_reads_the_saved_labels_as_they_were_meant(tmp_path: Path) -> None:
    dataset, by_split = made(tmp_path / "photos")
    for config in (None, {"dataset": dataset}):
        file = tmp_path / "labels.csv"
        file.write_text(annotations.labels_csv(by_split, config))
        assert overrides.read_ids(str(file)) == ["dog/2.png"]  # what was kept stays, and the test image is no matter
        assert overrides.read_labels(str(file)) == {"cat/1.png": "dog"}
        got = overrides.curated(datasets.load(dataset), str(file), str(file))
        assert got.ids == ["cat/0.png", "cat/1.png", "cat/2.png", "dog/0.png", "dog/1.png"]
        assert got.labels.tolist() == [0, 1, 0, 1, 1]
    assert len(file.read_text().splitlines()) == 1 + 12  # every image
    assert "dog/0.png,train,dog,,,,,dog" in file.read_text()


def test_a_corrected_folder_has_each_image_in_its_class_and_its_split(tmp_path: Path) -> None:
    dataset, by_split = made(tmp_path / "photos")
    assert annotations.write_folder(dataset, by_split, tmp_path / "new") == 10
    train, test = (datasets.load(f"folder:{tmp_path / 'new'}", split) for split in ("train", "test"))
    assert train.ids == ["cat/0.png", "cat/2.png", "dog/0.png", "dog/1.png", "dog/cat-1.png"]
    assert len(test) == 5
    with pytest.raises(BadSetting, match="already exists"):
        annotations.write_folder(dataset, by_split, tmp_path / "new")
    assert len(list((tmp_path / "photos").rglob("*.png"))) == 12  # untouched
    annotations.write_folder(dataset, by_split, tmp_path / "moved", should_move=True)
    left = sorted(str(path.relative_to(tmp_path / "photos")) for path in (tmp_path / "photos").rglob("*.png"))
    assert left == ["test/cat/0.png", "train/dog/2.png"]  # what was dropped


def test_the_script_moves_only_what_was_decided(tmp_path: Path) -> None:
    dataset, by_split = made(tmp_path / "it's photos")
    subprocess.run(["sh", "-c", annotations.folder_script(dataset, by_split)], check=True)
    assert datasets.load(dataset).ids == ["cat/0.png", "cat/2.png", "dog/0.png", "dog/1.png", "dog/cat-1.png"]
    dropped = tmp_path / "it's photos-dropped"
    moved = sorted(str(path.relative_to(dropped)) for path in dropped.rglob("*.png"))
    assert moved == ["test/cat/0.png", "train/dog/2.png"]
    with pytest.raises(BadSetting, match="a corrected folder needs a folder of images"):
        annotations.folder_script("digits", {})
    wrong = {"train": {"cat/0.png": annotations.Mark(what="relabel", label="../x")}}
    with pytest.raises(BadSetting, match="which is not a class of the folder"):
        annotations.folder_script(dataset, wrong)
