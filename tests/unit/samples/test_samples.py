"""Every sample with its loss, exact, with what explains it."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from sample_sets import blobs, table_of

from contrastive_core import losses, pairs
from contrastive_core.base import storage
from contrastive_core.samples import losses as sample_losses
from contrastive_core.samples import run_samples as sample_build
from contrastive_core.samples import sample_table
from contrastive_core.samples.losses import LossInputs
from contrastive_core.samples.sample_lists import FALSE_NEGATIVES, GIVEN_NEGATIVES, LISTS, MISMATCHED
from contrastive_core.spaces import neighbor_graphs
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.neighbor_graphs import nearest


def test_the_loss_under_each_class_is_the_librarys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Row 0 relabeled to each class in turn, and its loss of the second form; and a class of one
    row has no positive."""
    rows = blobs(61)
    labels = rows.labels.copy()
    labels[60] = 3
    monkeypatch.setattr(sample_losses, "TEMPERATURE", 0.2)
    found = sample_losses.by_class(EmbeddingSet(rows.features, labels)).losses
    made = losses.create("sup_con", temperature=0.2, form="in")
    for c in range(4):
        labels[0] = c
        out = made(pairs.from_labels(torch.from_numpy(rows.features), torch.from_numpy(labels)))
        assert found[0, c] == pytest.approx(float(out.per_anchor[0]), rel=1e-5)
    assert np.flatnonzero(np.isinf(found).any(1)).tolist() == [60]
    with pytest.raises(ValueError, match="a loss by class needs labels"):
        sample_losses.by_class(EmbeddingSet(rows.features))


def test_columns_of_a_large_table_are_not_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = table_of(blobs(), "sup_con")
    storage.write_table(tmp_path / "s.parquet", made.columns)
    assert list(pd.read_parquet(tmp_path / "s.parquet").columns) == list(sample_table.COLUMNS)
    sample_table.keep_table(made, tmp_path / "a.npz")
    monkeypatch.setattr(sample_table, "MAPPED", 2000)
    kept = sample_table.read_table(tmp_path / "a.npz", "sup_con")
    assert kept is not None
    assert isinstance(kept.columns["loss"], np.memmap)
    np.testing.assert_array_equal(kept.columns["loss"], made.columns["loss"])
    assert kept.ranked("mislabeled").tolist() == made.ranked("mislabeled").tolist()


def test_the_loss_under_each_class_is_estimated_from_the_nearest_and_some_drawn_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where all are drawn it is exact; and nearly so on average where they stand for others."""
    rows = blobs(600)
    labels = rows.labels.copy()
    labels[:40] = -1
    some = EmbeddingSet(rows.features, labels)
    exact, near = sample_losses.by_class(some), nearest(rows.features, None, 30)
    every = sample_losses.by_class(some, near=near)
    np.testing.assert_allclose(every.losses, exact.losses, rtol=1e-4)
    np.testing.assert_array_equal(every.same, exact.same)
    np.testing.assert_array_equal(every.other, exact.other)
    monkeypatch.setattr(sample_losses, "DRAWN", 200)
    found = [sample_losses.by_class(some, near=near, seed=seed) for seed in range(8)]
    assert len(np.unique([one.losses[0, 0] for one in found])) == 8
    mean = np.mean([np.exp(-one.losses) for one in found], 0)
    assert np.abs(mean - np.exp(-exact.losses)).mean() < 0.02 * np.exp(-exact.losses).mean()
    has_near = (labels[near.index] == labels[:, None]).any(1) & (labels >= 0)
    np.testing.assert_array_equal(found[0].same[has_near], exact.same[has_near])
    assert (found[0].same[:40] == -1).all()


def test_the_nearest_of_the_own_and_of_another_class_are_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the block; rows without a label have neither, a class of one has no other row."""
    rows = blobs(90)
    labels = rows.labels.copy()
    labels[:4], labels[89] = -1, 3
    unit = rows.features / np.linalg.norm(rows.features, axis=1, keepdims=True)
    s = unit @ unit.T
    np.fill_diagonal(s, -np.inf)
    same, known = labels[:, None] == labels, labels >= 0
    monkeypatch.setattr(sample_losses, "CELLS", 7 * 90)
    found = sample_losses.by_class(EmbeddingSet(rows.features, labels))
    for at, score, among in ((found.same, found.same_score, same), (found.other, found.other_score, ~same)):
        expected = np.where(among & known, s, -np.inf)
        there = known & (expected.max(1) > -np.inf)
        np.testing.assert_array_equal(at[there], expected.argmax(1)[there])
        np.testing.assert_allclose(score[there], expected.max(1)[there], rtol=1e-5)
        assert (at[~there] == -1).all()
        assert (score[~there] == -1).all()
    assert np.flatnonzero(found.same < 0).tolist() == [0, 1, 2, 3, 89]


def test_progress_comes_by_stages() -> None:
    calls: list[tuple[str, float | None]] = []
    table_of(blobs(), "sup_con", on_progress=lambda *call: calls.append(call))
    stages = list(dict.fromkeys(stage for stage, _ in calls))
    assert stages == ["loss of every sample", "issues"]
    for stage in stages:
        fractions = [fraction for name, fraction in calls if name == stage]
        assert fractions == sorted(fractions)
        assert fractions[-1] == 1


def test_why_adds_up_and_names_the_hardest() -> None:
    rows = blobs(90)
    knobs = {"temperature": 0.2}
    value, _ = sample_losses.per_sample(LossInputs(rows, "sup_con", knobs))
    made = sample_build.explain_row(LossInputs(rows, "sup_con", knobs), 4, most=90)
    assert made.loss == pytest.approx(value[4], rel=1e-5)
    shares = [p.share for p in made.hardest_negatives + made.weakest_positives]
    assert sum(shares) == pytest.approx(1)
    unit = rows.features / np.linalg.norm(rows.features, axis=1, keepdims=True)
    s, other = unit @ unit[4], rows.labels != rows.labels[4]
    assert made.hardest_negatives[0].id == rows.ids[np.flatnonzero(other)[s[other].argmax()]]
    own = (rows.labels == rows.labels[4]) & (np.arange(90) != 4)
    assert made.weakest_positives[0].id == rows.ids[np.flatnonzero(own)[s[own].argmin()]]
    assert made.margin == pytest.approx(s[own].max() - s[other].max(), abs=1e-5)


def test_losses_are_exact_over_the_whole_set() -> None:
    rows = blobs(1100)
    table = table_of(rows, "sup_con", {"temperature": 0.2})
    p = pairs.from_labels(torch.from_numpy(rows.features), torch.from_numpy(rows.labels))
    exact = losses.create("sup_con", temperature=0.2)(p).per_anchor.numpy()
    np.testing.assert_allclose(table.columns["loss"], exact, rtol=1e-5)
    assert (table.columns["weight"] == 1).all()
    assert (np.diff(table.columns["loss"][np.argsort(table.columns["rank"])]) <= 1e-12).all()


@pytest.mark.parametrize("loss", ["triplet", "pair_contrastive", "nt_xent"])
def test_views_stand_for_labels(loss: str) -> None:
    views = np.random.default_rng(0).normal(size=(40, 2, 6)).astype(np.float32)
    rows = EmbeddingSet(views[:, 0])
    value, _ = sample_losses.per_sample(LossInputs(rows, loss, views=views))
    out = losses.create(loss)(pairs.from_views(torch.from_numpy(views)))
    anchors = (x.view(-1, 2).numpy() for x in (out.per_anchor, out.weight))
    np.testing.assert_allclose(value, np.average(next(anchors), axis=1, weights=next(anchors)), rtol=1e-5)
    made = sample_build.explain_row(LossInputs(rows, loss, views=views), 3)
    assert [p.id for p in made.weakest_positives] == ["3"]
    nearest = [p.score for p in made.hardest_negatives]
    assert nearest == sorted(nearest, reverse=made.score_kind == "dot")
    with pytest.raises(ValueError, match="no row has a positive"):
        sample_losses.per_sample(LossInputs(rows, loss))
    table = table_of(rows, loss)  # lists only
    assert np.isnan(table.columns["loss"]).all()
    assert not len(table.ranked("mislabeled"))
    assert len(table.ranked("outlier")) == 40


def test_how_many_false_negatives_share_the_class_is_told_of_views_alone() -> None:
    """By class no negative does; by views, of blobs far apart, all that are pushed hardest do."""
    rows, rng = blobs(), np.random.default_rng(0)
    views = rows.features[:, None] + 0.1 * rng.normal(size=(300, 2, 8)).astype(np.float32)
    name = "false_negatives_of_same_class"
    assert name not in table_of(rows, "sup_con").facts
    table = table_of(rows, "nt_xent", views=[views])
    assert table.facts[name] == 1
    labels = np.roll(rows.labels, 1)  # all wrong
    wrong = EmbeddingSet(rows.features, np.where(np.arange(300) % 2, labels, rows.labels))
    assert table_of(wrong, "nt_xent", views=[views]).facts[name] < 1


def test_a_sample_is_found_by_its_id() -> None:
    rows = blobs()
    ids = tuple(f"{name}/{(7 * i) % 300}" for i, name in enumerate(["a", "cat", "b"] * 100))
    table = table_of(EmbeddingSet(rows.features, rows.labels, ids, classes=rows.classes), "nt_xent")
    assert [table.row(name) for name in ids] == list(range(300))
    for stranger in ("", "a", "a/", "cat/9999", "zz", "cat/7 and much longer than any of them"):
        assert table.row(stranger) is None
    assert table.labels == tuple(sorted(set(table.columns["label"].tolist())))


def test_certainty_is_said_only_of_one() -> None:
    told = {1.0: "100 %", 0.99999: "over 99 %", 0.9951: "over 99 %", 0.99: "99 %", 0.5: "50 %"}
    assert {p: sample_table.percent(p) for p in told} == told
    assert (sample_table.percent(0.004), sample_table.percent(0.0)) == ("under 1 %", "0 %")
    assert [sample_table.decimals(p) for p in (1.0, 1 - 1e-9, 0.5)] == [1.0, 0.99999, 0.5]


def test_every_list_says_why() -> None:
    rows = blobs()
    labels = rows.labels.copy()
    labels[7] = (labels[7] + 1) % 3
    x = rows.features.copy()
    x[10] = x[100]
    planted = EmbeddingSet(x, labels, classes=rows.classes)
    table = table_of(planted, "sup_con")
    assert table.ranked("mislabeled")[0] == 7
    own, true = rows.classes[labels[7]], rows.classes[rows.labels[7]]
    why_7 = LISTS["mislabeled"].reason(table, 7)
    assert why_7.startswith(f"labeled {own}, suspicion over 0.99; likely {true} (")
    assert why_7.endswith(f"the loss says {true}, neighbors {true}, the probe {true}, the discriminant {true}")
    assert LISTS["duplicate"].reason(table, 10) == "nearest: 100, at 0 % of the distance to its 20th neighbor"
    assert "rank 1 of 300" in LISTS["loss"].reason(table, int(table.ranked("loss")[0]))
    lists = {name: one for name, one in LISTS.items() if len(one.order(table))}
    of_pairs = {MISMATCHED, FALSE_NEGATIVES, GIVEN_NEGATIVES}
    assert set(lists) == set(LISTS) - {*of_pairs, "two_labels"}  # of pairs and of copies
    for one in lists.values():
        assert one.reason(table, 0)
        assert bool(one.question) == bool(one.decisions)  # what is no label is asked for, and kept apart


# --- large sets: losses among a stated number of random samples, neighbors by faiss ---


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
    value, weight = sample_losses.per_sample(inputs)
    for part in parts:
        np.testing.assert_array_equal(value[part], sample_losses.per_sample(inputs.take(part))[0])
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
