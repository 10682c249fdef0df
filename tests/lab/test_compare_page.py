"""Compare: the verdict comes before the references, a tick needs a size, and samples show both predictions."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
from opened_page import opened

from contrastive_core.engine.results import Result
from contrastive_core.evaluation import compare
from contrastive_core.records import embedding_ref, loaded_vectors, runs
from contrastive_core.records.comparison import Comparison
from contrastive_core.records.embedding_ref import EmbeddingRef
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_lab import cache, format
from contrastive_lab.compare import disagreements, score_tables, verdict

PAIR = ("simclr-digits", "sup_con-digits")


def compared(noise: float, moved: float = 0.0) -> Comparison:
    """Two spaces of the same samples, the second blurred by `noise`, or its rows only a little `moved`."""
    labels = np.arange(360) % 4
    corners = np.array([[1, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0]], np.float32)[labels]
    entries = []
    for name in PAIR:
        rng = np.random.default_rng(0)
        rows = (corners + 0.5 * rng.normal(size=(360, 3))).astype(np.float32)
        if name == PAIR[1]:
            rows = rows + noise * rng.normal(size=rows.shape) + moved
        test, train = (
            EmbeddingSet(rows[part].astype(np.float32), labels[part]) for part in (slice(160), slice(160, 360))
        )
        entries.append(compare.Entry(name, train, test))
    return compare.compare(entries, every_score=True)


def test_the_verdict_waits_for_no_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    found = compared(2.0)
    monkeypatch.setattr(verdict, "answer_or_wait", lambda *a: Result(found.plain(), found.arrays()))
    monkeypatch.setattr(verdict, "_warn", lambda *a: None)
    monkeypatch.setattr(cache, "scores", lambda run: None)
    app = opened("compare", monkeypatch, runs=",".join(PAIR))
    assert not app.exception
    assert app.header[0].value.startswith("Of these two runs, simclr\\-digits is better than sup\\_con\\-digits by")
    assert not any("Preparing" in str(m.value) for m in [*app.markdown, *app.warning])
    assert any("Judged on 160 samples" in c.value and "Trained with labels: sup" in c.value for c in app.caption)
    for view in ("Scores", "Every test", "By class"):
        app.button_group(key="compare-view").set_value(view).run()
        assert not app.exception


def test_a_file_of_other_samples_has_no_map_in_common_and_files_have_no_head(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = EmbeddingSet(np.random.default_rng(0).normal(size=(40, 4)).astype(np.float32))
    files = [loaded_vectors.PREFIX + loaded_vectors.save_vectors(rows, name) for name in ("a.npy", "b.npy")]
    app = opened("compare", monkeypatch, runs=f"{files[0]},{PAIR[0]}")
    assert not app.exception
    assert any("have no samples in common" in w.value for w in app.warning)
    assert any(group.label == "Features" for group in app.button_group)
    app = opened("compare", monkeypatch, runs=",".join(files))
    assert not app.exception
    assert not any(group.label == "Features" for group in app.button_group)


def test_a_tick_needs_a_difference_that_matters_and_says_who_is_better() -> None:
    """A space that is moved by a hair differs in alignment with a tiny p: that is no tick."""
    tiny, large = compared(0.0, moved=0.001), compared(2.0)
    for found, result in ((tiny, "too small"), (large, "✓ A better")):
        (test,) = (t for t in found.tests if t["score"] == "purity")
        row = score_tables._test(found, {**test, "p_corrected": 1e-52}, (test["low"], test["high"]), 0.01)
        assert row["result"] == result
        assert row["p, corrected"] == "< 0.0001"
    row = score_tables._test(large, {**test, "p_corrected": 0.0}, (test["low"], test["high"]), 0.9)
    assert row["result"] == "too small"
    assert row["p, corrected"] != "0"


def test_an_interval_is_two_columns_of_numbers_in_a_file() -> None:
    rows = [
        {"score": "a", "95 %": format.interval((-1.25, 2.0), "+.2f")},
        {"score": "b", "95 %": format.interval(None)},
    ]
    assert rows[0]["95 %"] == "-1.25 to +2.00"
    read = [*csv.DictReader(io.StringIO(format.table_csv(rows)))]
    assert read[0] == {"score": "a", "95 % low": "-1.25", "95 % high": "2.0"}
    assert read[1] == {"score": "b", "95 % low": "", "95 % high": ""}


def test_samples_show_their_label_text_and_both_predictions(monkeypatch: pytest.MonkeyPatch) -> None:
    found = compared(2.0)
    ids, texts = found.ids, np.array([f"text {q}" for q in range(len(found.ids))])
    assert found.labels is not None
    rows = EmbeddingSet(np.eye(len(ids), dtype=np.float32), found.labels, ids=ids, columns={"text": texts})
    monkeypatch.setattr(cache, "embedding", lambda space: rows)
    samples = disagreements.ComparedSamples(EmbeddingRef("a", ""), found)
    (row,) = samples.table(np.array([3]), 0, 1, "knn")
    predicted = found.predicted["knn"][:, 3]
    assert row == {
        "class": str(found.labels[3]),
        "A says": str(predicted[0]),
        "B says": str(predicted[1]),
        "text": "text 3",
        "id": ids[3],
    }


def test_a_verdict_names_classes_and_disagreement_opens_where_samples_are() -> None:
    found = compared(2.0)
    said = found.largest_by_class("class {}".format)
    first = found.by_class("knn", 0, 1)[0]
    assert said.startswith(
        f"Largest by class, {PAIR[0]} − {PAIR[1]}: {100 * first.value:.1f} points for class {first.label} ("
    )
    assert said.count("points") <= 3
    assert compared(0.0).largest_by_class(str) == ""
    ways = disagreements._ways(found, 0, 1, "knn")
    assert [len(rows) for rows in ways.values()] == [
        found.differences[0].only_a,
        found.differences[0].only_b,
        int((~found.correct["knn"]).all(0).sum()),
    ]


def test_references_name_the_images_that_they_are_judged_on() -> None:
    rows = EmbeddingSet(np.random.default_rng(0).normal(size=(40, 4)).astype(np.float32))
    file = embedding_ref.of_vectors(loaded_vectors.save_vectors(rows, "a.npy"))
    run = embedding_ref.of_run(runs.load(PAIR[0]), "test", "h")
    said = "Raw pixels and other references: kNN on 360 test images, by the vote of 1,437 training images."
    assert [score_tables.of_references(spaces) for spaces in ([file, run], [file])] == [said, ""]
