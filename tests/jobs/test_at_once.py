"""What comes along with shipped runs: pages need no task, and figures are those of the weights."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from contrastive_core import metrics, runs
from contrastive_core.cli import analyses
from contrastive_core.data import datasets
from contrastive_core.embeddings import ref
from contrastive_core.evaluation.comparison import Comparison
from contrastive_core.evaluation.embed import embed_run
from contrastive_core.evaluation.evaluate import evaluate_sets
from contrastive_core.evaluation.record import read_published
from contrastive_core.jobs import at_once, results
from contrastive_core.jobs.results import MAP_DEFAULTS
from contrastive_core.paths import IMAGES, SHIPPED
from contrastive_lab.compare.asked import comparison_of

NAMES = sorted(p.parent.name for p in SHIPPED.glob("*/run.json"))
PAIRS = [
    pair
    for data in ("digits", "shapes")
    for pair in itertools.combinations([n for n in NAMES if n.endswith(data)], 2)
]


def asked(names: tuple[str, ...], layer: str = "h") -> dict[str, Any]:
    return comparison_of([ref.of_run(runs.load(name), "test", layer) for name in names])


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_run_comes_with_what_its_pages_open(name: str) -> None:
    run = runs.load(name)
    for layer in "hz":
        space = ref.of_run(run, "test", layer)
        rows = space.rows()
        assert rows is not None
        values = {"space": space.values}
        about = {"epochs": run.snapshots(), "weights": run.weights_hash()}
        questions: list[tuple[str, dict[str, Any]]] = [
            ("map", {**values, "kind": "pca"}),
            ("map", {**values, "kind": "umap", **MAP_DEFAULTS}),
            ("scores", values),
            ("snapshots", {"run": name, "layer": layer, **about}),
        ]
        for kind, question in questions:
            assert SHIPPED in results.path(kind, question).parents
            assert results.read(kind, question) is not None
        found = results.read("map", questions[1][1])
        assert found is not None
        assert found.arrays["xy"].shape == (len(rows), 2)


@pytest.mark.parametrize("name", NAMES)
def test_scores_that_come_along_are_the_published_ones(name: str) -> None:
    """And they are of all metrics, as these are set now: else ship.py --rescore is due."""
    run = runs.load(name)
    published = read_published(run)
    assert published is not None
    for layer in "hz":
        scores = at_once.kept_scores(ref.of_run(run, "test", layer))
        assert scores is not None
        assert set(scores) == set(metrics.names())
        for metric, score in published.scores[layer].items():
            assert scores[metric].value == score.value
            assert scores[metric].settings == score.settings


@pytest.mark.parametrize("dataset", ["digits", "shapes"])
def test_the_test_images_that_come_along_are_those_of_the_data_set(dataset: str) -> None:
    along = datasets.made_path(dataset, "test")
    assert along.is_relative_to(IMAGES)
    assert datasets.is_made(dataset, "test")
    made = datasets._MADE[dataset]("test")
    loaded = datasets.load(dataset, "test")
    assert np.array_equal(loaded.images, made["images"])
    assert np.array_equal(loaded.labels, made["labels"])


def test_other_weights_and_other_places_do_not_take_what_came_along() -> None:
    run = runs.load("simclr-digits")
    space = ref.of_run(run).values
    stale = {"space": {**space, "content": "other weights"}}
    for kind in ("scores", "map"):
        assert results.path(kind, {**stale, "kind": "pca"}).parent.name == "results"
    assert results.path("scores", {"space": {**space, "epoch": 1}}).parent.name == "results"
    alike = {"run": run.name, "layer": "h", "epochs": [], "weights": "other weights"}
    assert results.path("snapshots", alike).parent.name == "results"


@pytest.mark.parametrize("pair", PAIRS, ids=" ".join)
def test_any_two_shipped_runs_of_a_data_set_are_compared_at_once(pair: tuple[str, str]) -> None:
    for layer in "hz":
        result = at_once.comparison_at_once(asked(pair, layer))
        assert result is not None
        report = Comparison.of(result.meta, result.arrays)
        assert report.names == list(pair)
        assert report.verdict
        assert len(report.tests) == 7


def test_eight_at_once_and_what_is_not_alike() -> None:
    eight = at_once.comparison_at_once(asked(tuple(NAMES[::2])))
    assert eight is not None
    assert eight.arrays["cka"].shape == (8, 8)
    with pytest.raises(ValueError, match="no samples in common"):
        at_once.comparison_at_once(asked(("simclr-digits", "simclr-shapes")))


def test_a_comparison_at_once_is_the_one_that_a_task_makes() -> None:
    values = asked(("sup_con-digits", "cpc-digits"))
    quick = at_once.comparison_at_once(values)
    assert quick is not None
    slow = analyses.make("comparison", values)
    one, two = (Comparison.of(r.meta, r.arrays) for r in (quick, slow))
    assert one.verdicts == two.verdicts
    assert one.differences == two.differences
    for name in ("labels", "correct:knn", "correct:linear_probe"):
        assert np.array_equal(quick.arrays[name], slow.arrays[name]), name
    same = quick.arrays["graphs"] == slow.arrays["graphs"]  # but for neighbors equally far
    assert same.mean() > 0.995
    for name in ("cka", "overlap", "procrustes"):
        assert np.allclose(quick.arrays[name], slow.arrays[name], atol=1e-4)
    for mine, theirs in zip(one.tests, two.tests, strict=True):
        for key in ("value", "low", "high", "p", "p_corrected"):
            assert mine[key] == pytest.approx(theirs[key], rel=1e-3, abs=1e-4), key


def test_a_comparison_at_once_is_kept_and_none_is_made_without_scores() -> None:
    values = asked(("simclr-digits", "metric-digits"), "z")
    at_once.keep_comparison(values)
    assert results.read("comparison", values) is not None
    train = [{**space, "split": "train"} for space in values["spaces"]]
    at_once.keep_comparison({**values, "spaces": train})
    assert results.read("comparison", {**values, "spaces": train}) is None


def test_rows_in_float16_give_the_published_figures() -> None:
    run = runs.load("moco_v2-digits")
    published = read_published(run)
    assert published is not None
    for layer in "hz":
        test = ref.of_run(run, "test", layer).rows()
        assert test is not None
        assert np.array_equal(test.features, test.features.astype(np.float16))
        train = embed_run(run, "train", layer, "cpu")
        names = list(published.scores[layer])
        for name, score in evaluate_sets(names, train, test).items():
            before = published.value(layer, name)
            assert score.value is not None
            assert before is not None
            digits = 3 if score.unit == "share" else 2  # 98.1 %, 2.71 nats
            assert round(score.value, digits) == round(before, digits), name
