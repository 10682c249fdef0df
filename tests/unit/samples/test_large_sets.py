"""A large set: losses among a stated number of random samples, neighbors by faiss."""

import numpy as np
import pytest
from sample_sets import blobs, table_of

from contrastive_core.samples import losses as sample_losses
from contrastive_core.samples import sample_table
from contrastive_core.samples.losses import LossInputs, per_sample
from contrastive_core.spaces import neighbor_graphs
from contrastive_core.spaces.embedding_set import EmbeddingSet


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets of 100 rows are large, and have their losses among 60 samples."""
    monkeypatch.setattr(sample_losses, "EXACT_UP_TO", 8 * 100.0**2)
    monkeypatch.setattr(sample_losses, "CANDIDATES", 60)
    monkeypatch.setattr(sample_losses, "TOGETHER", 5)


@pytest.mark.parametrize("labels", [np.arange(300) % 3, np.array([0] * 290 + [1] * 6 + [2] + [-1] * 3)], ids=str)
def test_a_sample_meets_a_random_part_and_some_of_its_class(labels: np.ndarray, large: None) -> None:
    inputs = LossInputs(EmbeddingSet(blobs().features, labels), "sup_con")
    parts = sample_losses.random_parts(inputs, 60)
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(300))
    assert len(parts) == 5
    assert max(map(len, parts)) < 120
    for part in parts:
        of_class = np.bincount(labels[part][labels[part] >= 0])
        assert all(count >= min(5, (labels == c).sum()) for c, count in enumerate(of_class) if count)
    value, weight = per_sample(inputs)
    for part in parts:
        np.testing.assert_array_equal(value[part], per_sample(inputs.take(part))[0])
    assert np.array_equal(weight > 0, (labels >= 0) & (np.bincount(labels + 1)[labels + 1] > 1))


def test_the_table_says_among_how_many_samples_its_losses_are(large: None, tmp_path) -> None:
    views = [np.random.default_rng(d).normal(size=(300, 2, 6)).astype(np.float32) for d in range(2)]
    for loss, more, number in (("sup_con", {}, 60), ("lifted_structure", {}, 60), ("nt_xent", {"views": views}, 30)):
        told: list[str] = []
        made = table_of(blobs(), loss, on_progress=lambda stage, _, told=told: told.append(str(stage)), **more)
        assert made.facts["loss_candidates"] == number
        assert told[0] == f"loss of every sample, among {number} random samples"
        assert np.isfinite(made.columns["loss"]).all()
        assert len(made.ranked("mislabeled")) == 300
        sample_table.keep_table(made, tmp_path / f"{loss}.npz")
        kept = sample_table.read_table(tmp_path / f"{loss}.npz", loss)
        assert kept is not None
        assert kept.facts == made.facts
    assert "loss_candidates" not in table_of(blobs(90), "sup_con").facts


def test_the_order_stays_much_alike(monkeypatch) -> None:
    rows = blobs(1500)
    exact = table_of(rows, "sup_con")
    monkeypatch.setattr(sample_losses, "EXACT_UP_TO", 0)
    monkeypatch.setattr(sample_losses, "CANDIDATES", 500)
    some = table_of(rows, "sup_con")
    ranks = [t.columns["loss"].argsort().argsort() for t in (exact, some)]
    assert np.corrcoef(*ranks)[0, 1] > 0.95
    np.testing.assert_array_equal(some.ranked("mislabeled"), exact.ranked("mislabeled"))


def test_the_lists_of_a_large_set_are_of_the_neighbors_that_were_found(monkeypatch) -> None:
    pytest.importorskip("faiss")
    rows = blobs(1200)
    rows.features[600:] += 2 * np.random.default_rng(3).normal(size=(600, 8)).astype(np.float32)
    rows.labels[:30] = (rows.labels[:30] + 1) % 3
    exact = table_of(rows, "sup_con")
    for name in ("APPROXIMATE_FROM", "LARGE", "FEW"):
        monkeypatch.setattr(neighbor_graphs, name, 0)
    monkeypatch.setattr(neighbor_graphs, "EFFORTS", ((2, 1),))
    made = table_of(rows, "sup_con")
    assert 0.2 < made.facts["neighbors_recall"] < 1
    assert "neighbors_recall" not in exact.facts
    first, exactly = ({*t.ranked("mislabeled")[:25].tolist()} for t in (made, exact))
    assert first <= exactly | {*range(30)}
    assert len(first - {*range(30)}) < 3
    for name in ("false_negative", "outlier"):
        assert np.corrcoef(made.score(name), exact.score(name))[0, 1] > 0.9, name
