"""What Samples say of weak encoders, methods without labels, texts, and losses without a value per sample."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sample_desk import Desk, button, opened, text_of
from sample_sets import blobs

from contrastive_core import losses, runs
from contrastive_core.base.score import Score
from contrastive_core.pairs import from_views
from contrastive_core.samples import annotations as sample_annotations
from contrastive_core.samples.run_samples import make_table
from contrastive_core.samples.sample_table import request_of
from contrastive_core.spaces import loaded_vectors
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_lab import cache

pytestmark = pytest.mark.usefixtures("no_processes")


def test_an_encoder_as_weak_as_raw_pixels_is_named_on_the_bench_and_below_it_with_what_helps(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = runs.load("simclr-digits")
    record = cache.scores(run)
    make_table(request_of(run.name, "test"))
    app = opened(run=run.name, split="test")
    assert "kNN accuracy 98.6 % on 360 test images, raw pixels 97.5 %" in text_of(app)
    assert not app.warning
    weak = Score("kNN", value=0.378, interval=(0.35, 0.41), unit="share")
    pixels = Score("kNN", value=0.376, unit="share")
    monkeypatch.setattr(
        cache, "scores", lambda run: replace(record, scores={"h": {"knn": weak}, "raw": {"knn": pixels}})
    )
    app = opened(run=run.name, split="test")
    said = "not significantly better than raw pixels: on 360 test images, kNN accuracy is 37.8 %, and 37.6 %"
    assert said in app.warning[0].value
    assert desk.bench is not None
    assert "Many suspects may be false alarms" in desk.bench.note  # moves nothing when it comes late
    assert not app.exception


def test_retraining_a_method_without_labels_counts_dropped_images_alone(desk: Desk) -> None:
    run = runs.load("simclr-digits")
    table = make_table(request_of(run.name, "train"))
    own, first, second = request_of(run.name, "train", "nt_xent").decisions(), *map(str, table.columns["id"][:2])
    sample_annotations.add(own, first, "relabel", "3")
    app = opened(run=run.name, split="train")
    assert "SimCLR does not use labels: relabeling cannot change this encoder" in text_of(app)
    assert button(app, "Retrain with 0 changes").disabled  # type: ignore[attr-defined]
    sample_annotations.add(own, second, "drop", None)
    app.run()
    assert not button(app, "Retrain with 1 change").disabled  # type: ignore[attr-defined]
    assert not app.exception


def test_rows_that_are_texts_show_their_text_and_no_images(desk: Desk) -> None:
    rows = blobs()
    told = np.array([f"a sentence about {k}, number {i}" for i, k in enumerate(rows.labels)])  # type: ignore[arg-type]
    texts = EmbeddingSet(rows.features, rows.labels, rows.ids, classes=rows.classes, columns={"text": told})
    name = loaded_vectors.PREFIX + loaded_vectors.save_vectors(texts, "texts.npz")
    make_table(request_of(name, "train", "sup_con"))
    for wanted in ("mislabeled", "false_negative", "duplicate", "outlier"):
        app = opened(on=name, list=wanted)
        assert not app.exception
        at = texts.ids.index(desk.item.id)
        assert str(desk.item.text) == told[at]
        assert all(str(one.body).startswith("a sentence about") for group in desk.item.evidence for one in group.near)
        assert (
            "image"
            not in text_of(app).lower().replace("image_search", "") + desk.item.evidence[0].title + desk.item.sentence
        )


@pytest.mark.parametrize("name", losses.names())
def test_what_a_card_says_of_samples_is_true(name: str) -> None:
    """Two views of 12 images: without a value per sample all anchors have one value, else they differ."""
    torch.manual_seed(0)
    z = torch.nn.functional.normalize(torch.randn(12, 2, 8), dim=-1)
    criterion = losses.create(name)
    try:
        pairs = from_views(z, labels=torch.arange(12) % 4 if criterion.card.by_label else None)
        values = criterion(pairs).per_anchor.numpy()
    except ValueError:
        pytest.skip("it takes other pairs")
    assert (np.ptp(values) < 1e-6) == (criterion.card.per_sample == "none")


def test_it_stands_above_the_list(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    make_table(request_of("simclr-digits", "test", "barlow_twins"))
    app = opened(run="simclr-digits", split="test", loss="barlow_twins", list="loss")
    assert "has no value per sample" in text_of(app)
    assert not app.exception
