"""Approximate neighbors are said beside the figures that are made of them, on Runs."""

import pytest
from kept_scores import keep_scores
from opened_page import page_at

from contrastive_core import runs
from contrastive_core.base.score import Score
from contrastive_lab.runs import table

TEXT = "approximate neighbors, recall 98.7 %"


def scored(name: str, **extras: float) -> runs.Run:
    run = runs.create(name, {"method": "simclr", "dataset": "digits", "epochs": 1})
    run.weights.parent.mkdir(parents=True, exist_ok=True)
    run.weights.write_bytes(name.encode())
    run.set_status("done")
    score = Score("kNN", value=0.9, unit="share", extras=extras)
    keep_scores(run, {"h": {"knn": score}})
    return run


def test_the_runs_table_has_a_column_where_it_was_used(monkeypatch: pytest.MonkeyPatch) -> None:
    scored("exact")
    app = page_at("runs", monkeypatch, data="digits")
    assert "kNN based on" not in app.dataframe[0].value.columns
    assert table.row(scored("many", recall=0.987))["kNN based on"] == TEXT
    shown = page_at("runs", monkeypatch, data="digits").dataframe[0].value.set_index("name")["kNN based on"]
    assert shown["many"] == TEXT
    assert shown["exact"] == ""
