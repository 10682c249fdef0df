"""Scores come back from JSON as they were; published figures follow from the weights."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import cases

from contrastive_core import metrics, runs
from contrastive_core.base.score import Score, recall_text, scores_from_json, scores_to_json
from contrastive_core.cli.command_io import score_text
from contrastive_core.compare import evaluate
from contrastive_core.compare.evaluate import accepted, deviations, evaluate_sets
from contrastive_core.compare.evaluation import read_evaluation
from contrastive_core.spaces.embedding_set import EmbeddingSet

BAD: list[Any] = [None, True, 3, -1.5, float("nan"), "text", "![](https://example.org/x.png)", [], [1, 2, 3], {}]
BAD += [{"value": {}}, [None, None], "9" * 5000, 10**400, {"a": [{}]}]


def blobs(n: int, seed: int) -> EmbeddingSet:
    labels = np.arange(n) % 3
    x = np.eye(3, 6)[labels] * 2 + np.random.default_rng(seed).normal(size=(n, 6))
    return EmbeddingSet(x.astype(np.float32), labels)


@pytest.fixture(scope="module")
def shipped() -> dict[str, Any]:
    record = read_evaluation(runs.load("simclr-digits"))
    assert record is not None
    return {name: score for name, score in record.to_json()["scores"]["h"].items() if "extras" in score}


def test_every_metric_comes_back_from_json() -> None:
    scores = evaluate_sets(metrics.names(), blobs(90, 0), blobs(60, 1))
    plain = json.loads(json.dumps(scores_to_json(scores)))
    again = scores_from_json(plain)
    assert again.keys() == scores.keys()
    for name, score in scores.items():
        assert (again[name].value is None) == (score.value is None)
        assert json.loads(json.dumps(again[name].to_json())) == plain[name]
    assert again["factors"].missing
    assert again["knn"].settings == {"k": 0, "temperature": 0.07}
    assert [c.n for c in again["knn"].per_class] == [20, 20, 20]
    assert again["knn"].curve[20] == scores["knn"].value
    assert again["rankme"].spectrum[0] == 1


def used(score: Score) -> str:
    """All that pages do with a score."""
    parts = [score.title, score.reading, score.missing, score.unit, score.settings, score.extras]
    numbers = [score.number(k) for k in ("k", "temperature", "width", "n", "never")]
    shown = [f"{v:g}" for v in numbers if v is not None]
    shown += [f"{k:d} {100 * v:.1f}" for k, v in score.curve.items()]
    shown += [f"{v:.3f}" for v in score.spectrum]
    for c in score.per_class:
        assert len(c.taken_for) == len(score.per_class)
        shown += [f"{c.name} {c.n:d} {sum(c.taken_for):d} {c.value or 0:.3f}", str(c.interval)]
    if score.value is None:
        assert score.missing
    else:
        shown.append(f"{score.value:.3f}")
        shown += [f"{end:.3f}" for end in score.interval or ()]
    return " ".join([*map(str, parts), *shown])


def test_a_figure_of_approximate_neighbors_says_so_wherever_it_is_text() -> None:
    score = Score("kNN", value=0.9, unit="share", extras={"recall": 0.99996})
    text = "approximate neighbors, recall 99.9 %"  # never rounded up to all
    assert score.approximation == recall_text(0.99996) == text
    assert score_text(score) == f"90.0 %  ({text})"
    assert recall_text(1.0).endswith("100.0 %")
    exact = Score("kNN", value=0.9, unit="share")
    assert exact.approximation == recall_text(None) == ""
    assert score_text(exact) == "90.0 %"
    for bad in (1e308, -1.0, float("nan"), "all"):
        assert Score("kNN", value=0.9, extras={"recall": bad}).approximation == ""


@cases("bad", BAD)
def test_any_value_in_any_place_is_read_without_an_exception(bad: Any, shipped: dict[str, Any]) -> None:
    assert used(Score.from_json(bad, "knn"))
    assert isinstance(scores_from_json(bad), dict)
    for name in shipped:
        for key in shipped[name]:
            used(Score.from_json({**shipped[name], key: bad}, name))
            used(Score.from_json({k: v for k, v in shipped[name].items() if k != key}, name))
        for key in shipped[name]["extras"]:
            extras = {**shipped[name]["extras"], key: bad}
            used(Score.from_json({**shipped[name], "extras": extras}, name))
    per_class = [{**c, "taken_for": bad} for c in shipped["knn"]["extras"]["per_class"]]
    extras = {"per_class": per_class}
    assert Score.from_json({**shipped["knn"], "extras": extras}).per_class == []


def test_texts_are_bounded_and_a_value_is_a_number() -> None:
    long = Score.from_json({"title": "t" * 9999, "reading": "r" * 9999, "value": 0.5})
    assert len(long.title) == len(long.reading) == 500
    for bad in (True, "0.5", None, float("inf"), 10**400):
        score = Score.from_json({"title": "kNN", "value": bad})
        assert score.value is None
        assert score.missing == "its record cannot be read"


def test_figures_that_come_along_follow_from_the_weights_and_others_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    run = runs.load("sup_con-digits")  # the smallest run that comes along
    assert deviations(run) == []
    record = read_evaluation(run)
    assert record is not None
    knn, rankme = record.scores["h"]["knn"], record.scores["random"]["rankme"]
    record.scores["h"]["knn"] = dataclasses.replace(knn, value=(knn.value or 0) - 0.02)
    record.scores["random"]["rankme"] = dataclasses.replace(rankme, value=(rankme.value or 0) * 1.1)
    monkeypatch.setattr(evaluate, "read_evaluation", lambda run: record)
    found = deviations(run)
    assert len(found) == 2
    assert "knn of encoder output (h) is" in found[0]
    assert "rankme of untrained encoder is" in found[1]


def test_figures_of_other_weights_are_not_trusted(tmp_path: Path) -> None:
    other = dataclasses.replace(runs.load("sup_con-digits"), path=tmp_path)
    (tmp_path / "weights.safetensors").write_bytes(b"other")
    assert deviations(other) == ["its scores are missing or belong to other weights"]


def test_what_is_accepted_follows_from_the_interval() -> None:
    share = Score("kNN", value=0.9, interval=(0.88, 0.92), unit="share", extras={"n": 1000})
    assert accepted(share) == pytest.approx(0.004)
    few = dataclasses.replace(share, extras={"n": 100})
    assert accepted(few) == pytest.approx(0.02)  # two of a hundred samples
    assert accepted(Score("Uniformity", value=-2.0, interval=(-2.1, -1.9))) == pytest.approx(0.02)
    assert accepted(Score("RankMe", value=-30.0)) == pytest.approx(0.3)
