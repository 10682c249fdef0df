"""What comes along with shipped runs: pages need no task, and figures are those of the weights."""

import dataclasses
import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cases import cases

from contrastive_core import metrics, runs
from contrastive_core.base.storage import IMAGES, SHIPPED
from contrastive_core.compare import evaluate
from contrastive_core.compare.comparison import Comparison, comparison_request
from contrastive_core.compare.embed import embed_run
from contrastive_core.compare.evaluate import evaluate_sets
from contrastive_core.compare.evaluation import read_evaluation
from contrastive_core.data import datasets
from contrastive_core.data.named_sets import GENERATED
from contrastive_core.engine import answers
from contrastive_core.engine.answers import comparisons
from contrastive_core.samples.sample_table import request_of
from contrastive_core.spaces import results
from contrastive_core.spaces.results import MAP_DEFAULTS
from contrastive_core.spaces.space import TOWERS, Space, layers_of
from contrastive_core.spaces.towers import DEFAULT_TEMPLATES

NAMES = sorted(p.parent.name for p in SHIPPED.glob("*/run.json"))
# Each run with the next one of its data set.
PAIRS = [pair for data in ("digits", "shapes") for pair in itertools.pairwise([n for n in NAMES if n.endswith(data)])]
train_images = functools.cache(lambda dataset: datasets.load(dataset, "train"))  # made once, not for each run


def asked(names: tuple[str, ...], layer: str = "h") -> dict[str, Any]:
    return comparison_request([Space.of_run(runs.load(name), "test", layer) for name in names])


@cases("name", NAMES)
def test_a_shipped_run_comes_with_what_its_pages_open(name: str) -> None:
    run = runs.load(name)
    for layer in layers_of(run):
        space = Space.of_run(run, "test", layer)
        rows = space.rows()
        assert rows is not None
        values = {"space": space.values}
        questions: list[tuple[str, dict[str, Any]]] = [
            ("map", {**values, "kind": "pca"}),
            ("map", {**values, "kind": "umap", **MAP_DEFAULTS}),
            ("scores", values),
        ]
        if layer == TOWERS:
            questions += [(kind, values) for kind in ("towers", "tower_pairs")]
            questions += [("zero_shot", {**values, "templates": list(DEFAULT_TEMPLATES)})]
        for kind, question in questions:
            assert SHIPPED in results.path(kind, question).parents
            assert results.read(kind, question) is not None
        found = results.read("map", questions[1][1])
        assert found is not None
        assert found.arrays["xy"].shape == (len(rows), 2)


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_run_comes_with_the_table_of_its_training_images(name: str) -> None:
    """By its own loss: what Samples shows first."""
    run = runs.load(name)
    request = request_of(name, "train", str(run.config["loss"]))
    table, images = request.table(), train_images(str(run.config["dataset"]))
    assert SHIPPED in request.path().parents
    assert table is not None
    assert table.columns["id"].tolist() == list(images.ids)
    assert table.columns["label"].tolist() == [images.classes[label] for label in images.labels]
    assert np.isfinite(table.score("mislabeled")).all()


@cases("name", NAMES)
def test_scores_that_come_along_are_of_all_metrics(name: str) -> None:
    """As these are set now: else ship.py --rescore is due."""
    run = runs.load(name)
    published = read_evaluation(run)
    assert published is not None
    for layer in "hz":
        scores = comparisons.kept_scores(Space.of_run(run, "test", layer), metrics.names())
        assert set(scores) == set(published.scores["raw"]) == set(metrics.names())
        for name, score in scores.items():
            assert score.missing or score.settings == dataclasses.asdict(metrics.create(name))


@pytest.mark.parametrize("dataset", ["digits", "shapes"])
def test_the_test_images_that_come_along_are_those_of_the_data_set(dataset: str) -> None:
    assert datasets.made_path(dataset, "test").is_relative_to(IMAGES)
    made, loaded = GENERATED[dataset]("test"), datasets.load(dataset, "test")
    assert np.array_equal(loaded.images, made["images"])
    assert np.array_equal(loaded.labels, made["labels"])


def test_other_weights_and_other_places_do_not_take_what_came_along() -> None:
    run = runs.load("simclr-digits")
    space = Space.of_run(run).values
    stale = {"space": {**space, "content": "other weights"}}
    for kind in ("scores", "map"):
        assert results.path(kind, {**stale, "kind": "pca"}).parent.name == "results"
    of_umap = {"space": space, "kind": "umap", **MAP_DEFAULTS}
    assert results.path("map", of_umap).parent.name == "maps"
    assert results.path("map", {**of_umap, "seed": 1}).parent.name == "results"


def test_other_prompts_do_not_take_what_came_along() -> None:
    space = {"space": Space.of_run(runs.load("clip-shapes"), "test", TOWERS).values}
    assert results.path("zero_shot", {**space, "templates": ["a {}"]}).parent.name == "results"


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, Any]], Comparison]:
    """Compares without training rows."""
    monkeypatch.setattr(comparisons, "judged", lambda *_: pytest.fail("training rows are read"))

    def compare(values: dict[str, Any]) -> Comparison:
        result = answers.make("comparison", values)
        return Comparison.of(result.meta, result.arrays)

    return compare


@cases("pair", PAIRS)
def test_two_shipped_runs_of_a_data_set_are_compared_at_once(pair: tuple[str, str], compared) -> None:
    for layer in "hz":
        report = compared({**asked(pair, layer), "every_score": False})
        assert report.names == list(pair)
        assert report.verdict
        assert len(report.tests) == 7  # every score, as all are kept


def test_eight_at_once_and_what_is_not_alike(compared) -> None:
    assert compared(asked(tuple(n for n in NAMES if n.endswith("digits")))).cka.shape == (8, 8)
    with pytest.raises(ValueError, match="no samples in common"):
        compared(asked(("simclr-digits", "simclr-shapes")))


def test_the_command_compares_by_the_chosen_accuracies_alone(compared) -> None:
    report = compared({**asked(("simclr-digits", "metric-digits")), "every_score": False, "metrics": ["knn"]})
    assert [d.metric for d in report.differences] == ["knn"]
    assert not report.tests


def test_rows_in_float16_give_the_published_figures() -> None:
    run = runs.load("moco_v2-digits")
    published = read_evaluation(run)
    assert published is not None
    for layer in "hz":
        test = Space.of_run(run, "test", layer).rows()
        assert test is not None
        assert np.array_equal(test.features, test.features.astype(np.float16))
        train = embed_run(run, "train", layer, "cpu")
        names = list(evaluate.CHECKED)
        for name, score in evaluate_sets(names, train, test).items():
            before = published.value(layer, name)
            assert score.value is not None
            assert before is not None
            digits = 3 if score.unit == "share" else 2  # 98.1 %, 2.71 nats
            assert round(score.value, digits) == round(before, digits), name
