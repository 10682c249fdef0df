"""Scores as JSON: they come back as they were, and what is none is absent with a reason."""

import json
from typing import Any

import numpy as np
import pytest
from cases import cases

from contrastive_core import metrics, runs
from contrastive_core.base.score import Score, recall_text, scores_from_json, scores_to_json
from contrastive_core.cli.output import score_text
from contrastive_core.compare.evaluate import evaluate_sets
from contrastive_core.compare.evaluation import read_evaluation
from contrastive_core.spaces.embedding_set import EmbeddingSet

BAD: list[Any] = [
    None,
    True,
    3,
    -1.5,
    float("nan"),
    "text",
    "![](https://example.org/x.png)",
    [],
    [1, 2, 3],
    {},
    {"value": {}},
    [None, None],
    "9" * 5000,
    10**400,
    {"a": [{}]},
]


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
