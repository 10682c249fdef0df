"""Every sample with its loss; planted errors come first in their lists; decisions are kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from contrastive_core import findings, losses, marks, pairs, runs, samples
from contrastive_core.embedding_set import EmbeddingSet


def blobs(n: int = 300, seed: int = 0) -> EmbeddingSet:
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 3
    centres = 4 * np.eye(3, 8, dtype=np.float32)
    x = centres[labels] + 0.6 * rng.normal(size=(n, 8))
    return EmbeddingSet(x.astype(np.float32), labels.astype(np.int64), classes=("a", "b", "c"))


def precision(score: np.ndarray, planted: np.ndarray) -> float:
    order = np.argsort(-score)
    hits = np.isin(order, planted)
    return float((np.cumsum(hits) / (1 + np.arange(len(order))))[hits].mean())


def test_flipped_labels_are_found() -> None:
    rows = blobs()
    flipped = np.random.default_rng(1).choice(300, 15, replace=False)
    labels = rows.labels.copy()
    labels[flipped] = (labels[flipped] + 1) % 3
    found = findings.find(EmbeddingSet(rows.features, labels, classes=rows.classes))
    assert precision(found.scores["mislabelled"], flipped) > 0.95
    assert found.second is not None
    assert (found.second[flipped] == rows.labels[flipped]).mean() > 0.9


def test_duplicates_and_outliers_are_found() -> None:
    rows, rng = blobs(), np.random.default_rng(2)
    x = rows.features.copy()
    x[10] = x[100] + 1e-4
    x[20] = x[200] + 1e-4
    x[30:33] = 5 * rng.normal(size=(3, 8))
    found = findings.find(EmbeddingSet(x, rows.labels))
    top = set(np.argsort(-found.scores["duplicate"])[:4].tolist())
    assert top == {10, 100, 20, 200}
    assert precision(found.scores["outlier"], np.arange(30, 33)) > 0.8


def test_without_labels_the_other_lists_stay() -> None:
    found = findings.find(EmbeddingSet(blobs().features))
    assert np.isnan(found.scores["mislabelled"]).all()
    assert np.isfinite(found.scores["outlier"]).all()


def test_the_loss_of_each_sample_is_exact_over_the_whole_set() -> None:
    rows = blobs(1100)
    value, weight = samples.per_sample(rows, "sup_con", {"temperature": 0.2})
    p = pairs.from_labels(torch.from_numpy(rows.features), torch.from_numpy(rows.labels))
    out = losses.create("sup_con", temperature=0.2)(p)
    np.testing.assert_allclose(value, out.per_anchor.numpy(), rtol=1e-5)
    assert (weight == 1).all()


def test_views_stand_for_labels() -> None:
    views = np.random.default_rng(0).normal(size=(40, 2, 6)).astype(np.float32)
    rows = EmbeddingSet(views[:, 0])
    value, _ = samples.per_sample(rows, "nt_xent", views=views)
    out = losses.create("nt_xent")(pairs.from_views(torch.from_numpy(views)))
    np.testing.assert_allclose(value, out.per_anchor.view(-1, 2).mean(1).numpy(), rtol=1e-5)
    with pytest.raises(ValueError, match="no row has a positive"):
        samples.per_sample(rows, "nt_xent")


def test_training_saw_fewer_negatives() -> None:
    """A batch of the whole set is the exact loss; a small one is below it, and varies."""
    rows, knobs = blobs(), {"temperature": 0.2}
    exact, _ = samples.per_sample(rows, "sup_con", knobs)
    mean, spread = samples.training_estimate(rows, "sup_con", knobs, batch=300)
    np.testing.assert_allclose(mean, exact, rtol=1e-5)
    np.testing.assert_allclose(spread, 0, atol=1e-5)
    mean, spread = samples.training_estimate(rows, "sup_con", knobs, batch=60)
    assert (mean < exact).all()
    assert (spread > 0).all()


def test_the_table_has_its_columns_and_is_written(tmp_path: Path) -> None:
    table = samples.table_of(blobs(), "triplet")
    assert tuple(table.columns) == samples.COLUMNS
    for name in ("s.parquet", "s.csv"):
        samples.write_table(table, tmp_path / name)
    frame = pd.read_parquet(tmp_path / "s.parquet")
    assert list(frame.columns) == list(samples.COLUMNS)
    assert len(frame) == 300
    by_rank = frame.sort_values("rank")["loss"].to_numpy()
    assert (np.diff(by_rank[np.isfinite(by_rank)]) <= 1e-12).all()


def test_marks_are_kept_and_undone() -> None:
    run = runs.create("marked", {"method": "simclr"})
    marks.add(run, "a/1", "drop")
    marks.add(run, "a/2", "relabel", "cat")
    marks.add(run, "a/1", "keep")
    assert marks.marks(run)["a/1"]["what"] == "keep"
    assert marks.undo(run) == "a/1"
    assert marks.marks(run)["a/1"]["what"] == "drop"
    exclude, relabel, dropped, changed = marks.export(run)
    assert (dropped, changed) == (1, 1)
    assert pd.read_csv(exclude)["id"].tolist() == ["a/1"]
    assert pd.read_csv(relabel)["label"].tolist() == ["cat"]
    with pytest.raises(ValueError, match="needs the class"):
        marks.add(run, "a/3", "relabel")
    with pytest.raises(ValueError, match="a mark is one of"):
        marks.add(run, "a/3", "burn")
