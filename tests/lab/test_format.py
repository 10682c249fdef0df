"""Records as text and tables: figures with their unit, and nothing a spreadsheet would run."""

from __future__ import annotations

import numpy as np
import pytest

from contrastive_core.embeddings.embedding_set import EmbeddingSet
from contrastive_core.storage.tables import safe_cell
from contrastive_lab import format


def test_shares_are_per_cent_and_the_missing_is_a_dash() -> None:
    share = {"value": 0.9876, "unit": "share", "interval": [0.97, 0.996]}
    assert format.figure_of(share) == "98.8 %"
    assert format.interval_of(share) == "95 %: 97.0 to 99.6; "
    assert format.figure_of({"value": -1.706, "unit": "", "interval": None}) == "-1.71"
    assert format.figure_of(None) == format.figure_of({"missing": "no labels"}) == "–"


@pytest.mark.parametrize("text", ["=1+1", "+cmd", "-x", "@sum", "\tx"])
def test_formulas_are_text(text: str) -> None:
    assert safe_cell(text) == f"'{text}"
    assert format.table_csv([{"a": text}]).splitlines()[1].strip('"') == f"'{text}"


@pytest.mark.parametrize("text", ["-1.5", "+3e4", "plain"])
def test_numbers_and_words_stay(text: str) -> None:
    assert safe_cell(text) == text


def test_rows_of_an_embedding_as_csv() -> None:
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    labels = np.array([0, 1, 0])
    rows = EmbeddingSet(x, labels, ("a", "=b", "c"), classes=("one", "two"))
    lines = format.csv_of(rows, [1, 2]).splitlines()
    assert lines == ["id,label,x0,x1", "'=b,two,2.0,3.0", "c,one,4.0,5.0"]


def test_curves_hold_what_they_are_given() -> None:
    figure = format.curves({"loss": ([1, 2], [3.0, 2.0])}, "step", "loss")
    assert list(figure.data[0].y) == [3.0, 2.0]
    assert figure.layout.xaxis.title.text == "step"


def test_every_source_has_a_column() -> None:
    score = {"title": "kNN", "value": 0.5, "unit": "share", "interval": None, "extras": {"k": 20}}
    record = {"scores": {"h": {"knn": score}, "raw": {"knn": score}}}
    table = format.score_table(record)
    assert list(table["raw pixels"]) == ["50.0 %"]
    assert list(table["settings"]) == ["k 20"]
