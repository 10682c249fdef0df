"""What comes along with shipped runs: pages need no task, and figures are those of the weights."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np
import pytest

from contrastive_core import metrics
from contrastive_core.data import datasets
from contrastive_core.data.generated_sets import GENERATED
from contrastive_core.embeddings.reading import read_rows
from contrastive_core.engine import answers, results
from contrastive_core.engine.answers import comparisons
from contrastive_core.engine.results import MAP_DEFAULTS
from contrastive_core.evaluation.embed import embed_run
from contrastive_core.evaluation.evaluate import evaluate_sets
from contrastive_core.paths import IMAGES, SHIPPED
from contrastive_core.records import embedding_ref, runs
from contrastive_core.records.comparison import Comparison
from contrastive_core.records.embedding_ref import TOWERS, EmbeddingRef
from contrastive_core.records.evaluation import read_published
from contrastive_core.records.sample_request import request_of
from contrastive_core.records.towers import DEFAULT_TEMPLATES, towers_of
from contrastive_lab.compare.comparison_request import comparison_of

NAMES = sorted(p.parent.name for p in SHIPPED.glob("*/run.json"))
# Each run with the next one of its data set.
PAIRS = [pair for data in ("digits", "shapes") for pair in itertools.pairwise([n for n in NAMES if n.endswith(data)])]
train_images = functools.cache(lambda dataset: datasets.load(dataset, "train"))  # made once, not for each run


def asked(names: tuple[str, ...], layer: str = "h") -> dict[str, Any]:
    return comparison_of([embedding_ref.of_run(runs.load(name), "test", layer) for name in names])


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_run_comes_with_what_its_pages_open(name: str) -> None:
    run = runs.load(name)
    for layer in embedding_ref.layers_of(run):
        space = embedding_ref.of_run(run, "test", layer)
        rows = read_rows(space)
        assert rows is not None
        values = {"space": space.values}
        epochs, weights = run.snapshots(), {"run": name, "weights": run.weights_hash()}
        questions: list[tuple[str, dict[str, Any]]] = [
            ("map", {**values, "kind": "pca"}),
            ("map", {**values, "kind": "umap", **MAP_DEFAULTS}),
            ("scores", values),
        ]
        if layer == TOWERS:
            questions += [(kind, values) for kind in ("towers", "tower_pairs")]
            questions += [("zero_shot", {**values, "templates": list(DEFAULT_TEMPLATES)})]
            questions += [("checkpoints", {**weights, "epochs": [epochs[0], epochs[-1]]})]
        else:
            questions += [("snapshots", {**weights, "layer": layer, "epochs": epochs})]
        for kind, question in questions:
            assert SHIPPED in results.path(kind, question).parents
            assert results.read(kind, question) is not None
        found = results.read("map", questions[1][1])
        assert found is not None
        assert found.arrays["xy"].shape == (len(rows), 2)


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_run_comes_with_the_table_of_its_training_images(name: str) -> None:
    """By its own loss, and that loss over its snapshots: what Samples shows first."""
    run = runs.load(name)
    request = request_of(name, "train", str(run.config["loss"]))
    table, images = request.table(), train_images(str(run.config["dataset"]))
    assert SHIPPED in request.path().parents
    assert SHIPPED in request.path("snapshots").parents
    assert table is not None
    assert table.columns["id"].tolist() == list(images.ids)
    assert table.columns["label"].tolist() == [images.classes[label] for label in images.labels]
    assert np.isfinite(table.score("mislabeled")).all()


@pytest.mark.parametrize("name", NAMES)
def test_scores_that_come_along_are_the_published_ones(name: str) -> None:
    """And they are of all metrics, as these are set now: else ship.py --rescore is due."""
    run = runs.load(name)
    published = read_published(run)
    assert published is not None
    for layer in "hz":
        scores = comparisons.kept_scores(embedding_ref.of_run(run, "test", layer))
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
    made = GENERATED[dataset]("test")
    loaded = datasets.load(dataset, "test")
    assert np.array_equal(loaded.images, made["images"])
    assert np.array_equal(loaded.labels, made["labels"])


def test_other_weights_and_other_places_do_not_take_what_came_along() -> None:
    run = runs.load("simclr-digits")
    space = embedding_ref.of_run(run).values
    stale = {"space": {**space, "content": "other weights"}}
    for kind in ("scores", "map"):
        assert results.path(kind, {**stale, "kind": "pca"}).parent.name == "results"
    assert results.path("scores", {"space": {**space, "epoch": 1}}).parent.name == "results"
    alike = {"run": run.name, "layer": "h", "epochs": [], "weights": "other weights"}
    assert results.path("snapshots", alike).parent.name == "results"


def test_other_prompts_and_other_checkpoints_do_not_take_what_came_along() -> None:
    run = runs.load("clip-shapes")
    space = {"space": embedding_ref.of_run(run, "test", TOWERS).values}
    assert results.path("zero_shot", {**space, "templates": ["a {}"]}).parent.name == "results"
    other = {"run": run.name, "epochs": run.snapshots()[:2], "weights": run.weights_hash()}
    assert results.path("checkpoints", other).parent.name == "results"


def test_checkpoints_of_a_shipped_run_hold_captions_of_their_images() -> None:
    run = runs.load("clip-shapes")
    for epoch in run.snapshots():
        rows = read_rows(EmbeddingRef(run.name, "train", TOWERS, epoch=epoch))
        towers = None if rows is None else towers_of(rows)
        assert towers is not None
        assert towers.without_partner == (0, 0)


@pytest.mark.parametrize("pair", PAIRS, ids=" ".join)
def test_two_shipped_runs_of_a_data_set_are_compared_at_once(pair: tuple[str, str]) -> None:
    for layer in "hz":
        result = comparisons.comparison_of_kept(asked(pair, layer))
        assert result is not None
        report = Comparison.of(result.meta, result.arrays)
        assert report.names == list(pair)
        assert report.verdict
        assert len(report.tests) == 7


def test_eight_at_once_and_what_is_not_alike() -> None:
    eight = comparisons.comparison_of_kept(asked(tuple(n for n in NAMES if n.endswith("digits"))))
    assert eight is not None
    assert eight.arrays["cka"].shape == (8, 8)
    with pytest.raises(ValueError, match="no samples in common"):
        comparisons.comparison_of_kept(asked(("simclr-digits", "simclr-shapes")))


def test_a_comparison_of_kept_scores_is_the_one_of_new_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    values = asked(("sup_con-digits", "cpc-digits"))
    quick = comparisons.comparison_of_kept(values)
    assert quick is not None
    monkeypatch.setattr(comparisons, "comparison_of_kept", lambda values: None)
    slow = answers.make("comparison", values)
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


def test_no_comparison_is_made_without_kept_scores() -> None:
    values = asked(("simclr-digits", "metric-digits"), "z")
    train = [{**space, "split": "train"} for space in values["spaces"]]
    assert comparisons.comparison_of_kept({**values, "spaces": train}) is None


def test_rows_in_float16_give_the_published_figures() -> None:
    run = runs.load("moco_v2-digits")
    published = read_published(run)
    assert published is not None
    for layer in "hz":
        test = read_rows(embedding_ref.of_run(run, "test", layer))
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
