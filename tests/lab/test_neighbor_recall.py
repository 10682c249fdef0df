"""Approximate neighbors are said beside the figures that are made of them: Runs and Methods."""

from __future__ import annotations

import pytest
from test_named_files import page_at

from contrastive_core.records import runs
from contrastive_core.records.evaluation import Evaluation, write_evaluation
from contrastive_core.records.score import Score
from contrastive_lab.runs import table

TEXT = "approximate neighbors, recall 98.7 %"


def scored(name: str, **extras: float) -> runs.Run:
    run = runs.create(name, {"method": "simclr", "dataset": "digits", "epochs": 1})
    run.weights.parent.mkdir(parents=True, exist_ok=True)
    run.weights.write_bytes(name.encode())
    run.set_status("done")
    score = Score("kNN", value=0.9, unit="share", extras=extras)
    write_evaluation(run, Evaluation(name, "test", run.weights_hash(), {"h": {"knn": score}}))
    return run


def test_the_runs_table_has_a_column_where_it_was_used(monkeypatch: pytest.MonkeyPatch) -> None:
    scored("exact")
    app = page_at("runs", monkeypatch)
    assert "kNN made of" not in app.dataframe[0].value.columns
    assert table.row(scored("many", recall=0.987))["kNN made of"] == TEXT
    shown = page_at("runs", monkeypatch).dataframe[0].value.set_index("name")["kNN made of"]
    assert shown["many"] == TEXT
    assert shown["exact"] == ""


def test_a_methods_card_says_it_beside_the_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    scored("exact")
    scored("many", recall=0.987)
    app = page_at("methods", monkeypatch, method="simclr")
    written = "\n".join(m.value for m in app.markdown)
    assert f"90 ({TEXT})" in written.replace("\\", "")
