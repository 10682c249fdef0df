"""Decisions belong to a data set: kept in order, undone, taken over from runs, exported."""

import csv
import io
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sample_sets import blobs, table_of

from contrastive_core import runs
from contrastive_core.data import overrides
from contrastive_core.samples import annotations as sample_annotations
from contrastive_core.samples.sample_table import decisions_path, merged_table, request_of

DIGITS = {"method": "simclr", "dataset": "digits"}


def of(name: str = "digits", split: str = "train") -> Path:
    return decisions_path({"dataset": name}, split)


def exported(file: Path, run: runs.Run) -> dict[str, str]:
    """The files of a training without what was marked, by their option."""
    arguments = sample_annotations.export(file, run)
    return {k.removeprefix("--"): v for k, v in zip(arguments[::2], arguments[1::2], strict=True)}


def test_decisions_are_kept_and_undone() -> None:
    file, run = of(), runs.create("marked", DIGITS)
    sample_annotations.add(file, "a/1", "drop")
    sample_annotations.add(file, "a/2", "relabel", "cat")
    sample_annotations.add(file, "a/1", "keep")
    assert sample_annotations.marks(file)["a/1"]["what"] == "keep"
    ((of_file, undone),) = sample_annotations.undo([file])
    assert (of_file, undone["id"], undone["what"]) == (file, "a/1", "keep")
    assert sample_annotations.marks(file)["a/1"]["what"] == "drop"
    (_, *counts), files = sample_annotations.changes(file, run), exported(file, run)
    assert counts == [1, 1]
    assert pd.read_csv(files["exclude"])["id"].tolist() == ["a/1"]
    assert pd.read_csv(files["relabel"])["label"].tolist() == ["cat"]
    assert {Path(path).parent for path in files.values()} == {run.path}
    with pytest.raises(ValueError, match="needs the class"):
        sample_annotations.add(file, "a/3", "relabel")
    with pytest.raises(ValueError, match="mark must be one of"):
        sample_annotations.add(file, "a/3", "burn")


def test_another_run_of_the_data_set_shows_them_and_another_data_set_does_not(tmp_path: Path) -> None:
    for name in ("one", "two"):
        runs.create(name, DIGITS)
    sample_annotations.add(request_of("one", "train", "nt_xent").decisions(), "digits/0001", "drop")
    own = request_of("two", "train", "sup_con").decisions()
    assert set(sample_annotations.marks(own)) == {"digits/0001"}
    assert sample_annotations.marks(request_of("two", "test", "nt_xent").decisions()) == {}
    assert of("shapes") != of()
    inside = f"folder:{tmp_path}/images"
    assert of(inside) == of(f"folder:{tmp_path}/other/../images") != of(f"folder:{tmp_path}")


def test_an_event_that_is_reported_twice_counts_once() -> None:
    file = of()
    for _ in range(2):
        sample_annotations.add(file, "a/1", "keep", event="w:1")
        sample_annotations.add(file, "a/2", "drop", event="w:2")
        sample_annotations.undo([file], event="w:3")
    assert set(sample_annotations.marks(file)) == {"a/1"}
    assert len(file.read_text().splitlines()) == 3


def test_two_windows_at_once_lose_nothing_and_undo_their_own() -> None:
    file = of()

    def decide(window: str) -> None:
        for number in range(20):
            sample_annotations.add(file, f"{window}/{number}", "keep", by=window)

    threads = [threading.Thread(target=decide, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(sample_annotations.marks(file)) == 40
    for _ in range(20):
        taken = sample_annotations.undo([file], by="a", since=0.0)
        assert [mark["id"][:2] for _file, mark in taken] == ["a/"]
    assert sample_annotations.undo([file], by="a", since=0.0) == []
    assert {name[0] for name in sample_annotations.marks(file)} == {"b"}
    assert sample_annotations.undo([file], by="later")  # older than that window


def test_many_are_dropped_and_taken_back_at_once() -> None:
    train, test = of(), of(split="test")
    sample_annotations.add(train, "a/1", "drop")
    for file, names in ((train, ["a/1", "a/5"]), (test, ["a/2", "a/3"])):  # of both splits, by one press
        sample_annotations.add_many(file, [{"id": name, "what": "drop"} for name in names], "w:2")
    assert set(sample_annotations.marks(test)) == {"a/2", "a/3"}
    undone = [(file, mark["id"]) for file, mark in sample_annotations.undo([train, test])]
    assert undone == [(train, "a/1"), (train, "a/5"), (test, "a/2"), (test, "a/3")]
    assert not sample_annotations.marks(test)
    assert [mark["id"] for _file, mark in sample_annotations.undo([train, test])] == ["a/1"]
    assert sample_annotations.undo([train, test]) == []


def test_decisions_add_to_what_the_run_was_trained_without() -> None:
    """A second cleaning leaves out the first's samples too, and changes no file of before."""
    file, first_run = of(), runs.create("first", DIGITS)
    sample_annotations.add(file, "a/1", "drop")
    new = {"a/2": "cat", "a/3": "dog"}
    sample_annotations.add_many(file, [{"id": i, "what": "relabel", "label": name} for i, name in new.items()])
    first = exported(file, first_run)
    second_run = runs.create("second", {**DIGITS, **first})
    assert sample_annotations.changes(file, second_run)[1:] == (0, 0)  # it was trained with all of them
    sample_annotations.add(file, "a/3", "drop")
    sample_annotations.add(file, "a/2", "relabel", "cow")
    second, counts = exported(file, second_run), sample_annotations.changes(file, second_run)[1:]
    assert overrides.read_ids(second["exclude"]) == ["a/1", "a/3"]
    assert overrides.read_labels(second["relabel"]) == {"a/2": "cow"}
    assert counts == (1, 1)
    assert overrides.read_ids(first["exclude"]) == ["a/1"]
    assert exported(file, second_run) == second  # asked for twice, the same files
    assert sample_annotations.cleaned(first_run, [first_run, second_run]) == [second_run]


def test_new_labels_say_what_was_given_suggested_and_decided() -> None:
    file = of()
    about = {"given": "3", "suggested": "5", "confidence": 0.97, "wrong": 0.9999999}
    sample_annotations.add(file, "a/1", "relabel", "8", **about)
    sample_annotations.add(file, "a/2", "keep", given="1")
    sample_annotations.add_many(file, [{**about, "id": "a/3", "what": "drop"}])
    text = sample_annotations.labels_csv({"train": sample_annotations.marks(file)})
    rows = {row["id"]: row for row in csv.DictReader(io.StringIO(text))}
    assert list(rows["a/1"]) == sample_annotations.NEW_LABELS
    told = ["a/1", "train", "3", "0.99999", "5", "0.97", "relabel", "8", ""]
    assert list(rows["a/1"].values()) == told
    assert (rows["a/2"]["label"], rows["a/2"]["suggested"]) == ("1", "")
    assert (rows["a/3"]["label"], rows["a/3"]["probability_suggested"]) == ("", "0.97")


def test_two_splits_are_one_list() -> None:
    train, test = table_of(blobs(), "sup_con"), table_of(blobs(), "sup_con")
    names = [f"t{i}" for i in range(len(test))]
    names[0] = str(train.columns["id"][7])  # in a folder splits may share an id
    test.columns["id"] = np.array(names)
    both = merged_table({"train": train, "test": test})
    assert len(both) == len(train) + len(test)
    assert len(set(both.columns["id"].tolist())) == len(both)
    row = both.row(f"test/{test.columns['id'][0]}")
    assert row == len(train)
    assert (both.extra["split"][row], both.extra["own_id"][row]) == ("test", test.columns["id"][0])
    at = both.ranked("outlier")
    assert (np.diff(both.score("outlier")[at]) <= 0).all()
    alone = merged_table({"train": train})
    assert alone.facts == train.facts
    assert all(alone.columns[k] is v for k, v in train.columns.items())  # no second copy
    assert set(alone.extra["split"].tolist()) == {"train"}
