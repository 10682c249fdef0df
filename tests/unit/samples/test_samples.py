"""Every sample with its loss, exact, with what explains it."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from sample_sets import blobs, table_of

from contrastive_core import losses, pairs
from contrastive_core.base import storage
from contrastive_core.samples import label_errors, sample_table
from contrastive_core.samples import losses as sample_losses
from contrastive_core.samples import run_samples as sample_build
from contrastive_core.samples.sample_lists import FALSE_NEGATIVES, GIVEN_NEGATIVES, LISTS, MISMATCHED, reason
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
    votes = label_errors.class_votes(found, 5)
    np.testing.assert_allclose(votes.sum(1), 1, rtol=1e-6)
    assert votes[60, 3] == 0
    assert not votes[:, 4].any()  # a class of which no row is known
    with pytest.raises(ValueError, match="a loss by class needs labels"):
        sample_losses.by_class(EmbeddingSet(rows.features))


def test_columns_of_a_large_table_are_not_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = table_of(blobs(), "sup_con")
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


def test_the_loss_of_each_sample_is_exact_over_the_whole_set() -> None:
    rows = blobs(1100)
    value, weight = sample_losses.per_sample(sample_losses.LossInputs(rows, "sup_con", {"temperature": 0.2}))
    p = pairs.from_labels(torch.from_numpy(rows.features), torch.from_numpy(rows.labels))
    out = losses.create("sup_con", temperature=0.2)(p)
    np.testing.assert_allclose(value, out.per_anchor.numpy(), rtol=1e-5)
    assert (weight == 1).all()


def test_views_stand_for_labels() -> None:
    views = np.random.default_rng(0).normal(size=(40, 2, 6)).astype(np.float32)
    rows = EmbeddingSet(views[:, 0])
    value, _ = sample_losses.per_sample(sample_losses.LossInputs(rows, "nt_xent", views=views))
    out = losses.create("nt_xent")(pairs.from_views(torch.from_numpy(views)))
    np.testing.assert_allclose(value, out.per_anchor.view(-1, 2).mean(1).numpy(), rtol=1e-5)
    with pytest.raises(ValueError, match="no row has a positive"):
        sample_losses.per_sample(sample_losses.LossInputs(rows, "nt_xent"))


def test_training_saw_fewer_negatives() -> None:
    """A batch of the whole set is the exact loss; a small one is below it, and varies."""
    rows, knobs = blobs(), {"temperature": 0.2}
    exact, _ = sample_losses.per_sample(sample_losses.LossInputs(rows, "sup_con", knobs))
    mean, spread = sample_losses.losses_in_batches(sample_losses.LossInputs(rows, "sup_con", knobs), batch=300)
    np.testing.assert_allclose(mean, exact, rtol=1e-5)
    np.testing.assert_allclose(spread, 0, atol=1e-5)
    mean, spread = sample_losses.losses_in_batches(sample_losses.LossInputs(rows, "sup_con", knobs), batch=60)
    assert (mean < exact).all()
    assert (spread > 0).all()


def test_the_table_has_its_columns_and_is_written(tmp_path: Path) -> None:
    table = table_of(blobs(), "triplet")
    assert tuple(table.columns) == sample_table.COLUMNS
    for name in ("s.parquet", "s.csv"):
        storage.write_table(tmp_path / name, table.columns)
    frame = pd.read_parquet(tmp_path / "s.parquet")
    assert list(frame.columns) == list(sample_table.COLUMNS)
    assert len(frame) == 300
    by_rank = frame.sort_values("rank")["loss"].to_numpy()
    assert (np.diff(by_rank[np.isfinite(by_rank)]) <= 1e-12).all()


def test_the_variance_of_losses_is_told_apart() -> None:
    rng = np.random.default_rng(0)
    sample, draw = 2.0 * rng.normal(size=(20_000, 1)), rng.normal(size=(20_000, 3))
    found = sample_losses.split_variance(sample + draw)
    assert found["augmentation"] == pytest.approx(1, rel=0.05)
    assert found["sample"] == pytest.approx(4, rel=0.05)
    assert found["share"] == pytest.approx(0.2, rel=0.05)
    with pytest.raises(ValueError, match="two draws"):
        sample_losses.split_variance(draw[:, :1])


def test_augmentation_is_told_apart_where_rows_are_paired_by_class() -> None:
    """Views that only shiver leave a smaller part to augmentation than views that leap."""
    rows, rng = blobs(), np.random.default_rng(0)

    def table(noise: float) -> sample_table.SampleTable:
        draws = [rows.features + noise * rng.normal(size=(300, 8)) for _ in range(2)]
        draws = [d.astype(np.float32) for d in draws]
        return table_of(rows, "sup_con", {"temperature": 0.2}, augmented=draws)

    small, large = table(0.05), table(1.0)
    assert small.extra["loss_by_draw"].shape == (300, 2)
    assert small.facts["variance_share"] < 0.2 < large.facts["variance_share"]
    exact, _ = sample_losses.per_sample(sample_losses.LossInputs(rows, "sup_con", {"temperature": 0.2}))
    np.testing.assert_allclose(large.columns["loss"], exact, rtol=1e-5)  # of the images themselves


def test_progress_comes_by_stages_and_can_stop() -> None:
    calls: list[tuple[str, float | None]] = []
    table_of(blobs(), "sup_con", on_progress=lambda *call: calls.append(call))
    stages = list(dict.fromkeys(stage for stage, _ in calls))
    assert stages == ["loss of every sample", "issues", "loss over temperature"]
    for stage in stages:
        fractions = [fraction for name, fraction in calls if name == stage]
        assert fractions == sorted(fractions)
        assert fractions[-1] == 1

    def stop(stage: str, fraction: float | None) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        table_of(blobs(), "sup_con", on_progress=stop)


def test_why_adds_up_and_names_the_hardest() -> None:
    rows = blobs(90)
    knobs = {"temperature": 0.2}
    value, _ = sample_losses.per_sample(sample_losses.LossInputs(rows, "sup_con", knobs))
    made = sample_build.explain_row(sample_losses.LossInputs(rows, "sup_con", knobs), 4, most=90)
    assert made.loss == pytest.approx(value[4], rel=1e-5)
    shares = [p.share for p in made.hardest_negatives + made.weakest_positives]
    assert sum(shares) == pytest.approx(1)
    unit = rows.features / np.linalg.norm(rows.features, axis=1, keepdims=True)
    s, other = unit @ unit[4], rows.labels != rows.labels[4]
    assert made.hardest_negatives[0].id == rows.ids[np.flatnonzero(other)[s[other].argmax()]]
    own = (rows.labels == rows.labels[4]) & (np.arange(90) != 4)
    assert made.weakest_positives[0].id == rows.ids[np.flatnonzero(own)[s[own].argmin()]]
    assert made.margin == pytest.approx(s[own].max() - s[other].max(), abs=1e-5)
    assert made.neighbors[0].score == pytest.approx(np.delete(s, 4).max(), abs=1e-5)
    with pytest.raises(IndexError, match="no row 90"):
        sample_build.explain_row(sample_losses.LossInputs(rows, "sup_con"), 90)


@pytest.mark.parametrize("loss", ["triplet", "pair_contrastive", "nt_xent"])
def test_why_of_views_and_distances(loss: str) -> None:
    views = np.random.default_rng(0).normal(size=(20, 2, 6)).astype(np.float32)
    rows = EmbeddingSet(views[:, 0])
    made = sample_build.explain_row(sample_losses.LossInputs(rows, loss, views=views), 3)
    assert [p.id for p in made.weakest_positives] == ["3"]
    nearest = [p.score for p in made.hardest_negatives]
    assert nearest == sorted(nearest, reverse=made.score_kind == "dot")


def test_losses_over_a_knob_are_those_at_each_value() -> None:
    rows, values = blobs(), [0.05, 0.2, 1.0]
    found = sample_losses.losses_over_knob(sample_losses.LossInputs(rows, "sup_con"), "temperature", values)
    assert found.shape == (300, 3)
    for column, value in zip(found.T, values, strict=True):
        exact, _ = sample_losses.per_sample(sample_losses.LossInputs(rows, "sup_con", {"temperature": value}))
        np.testing.assert_allclose(column, exact, rtol=1e-5)
    assert (sample_losses.ranks(found[:, 0]) != sample_losses.ranks(found[:, 2])).any()


@pytest.mark.parametrize("value", [0.123, 0.2])  # 0.2 stands on the grid but for its last digit
def test_a_table_knows_its_losses_over_the_knob_at_the_runs_own_value_too(value: float) -> None:
    table = table_of(blobs(), "sup_con", {"temperature": value})
    assert table.knob == "temperature"
    at = int(np.flatnonzero(table.grid == value)[0])
    over = table.extra["loss_over_knob"][:, at]
    np.testing.assert_allclose(over, table.columns["loss"], rtol=1e-5)
    assert (np.diff(np.log(table.grid)) > 1e-3).all()


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
    why_7 = reason(table, "mislabeled", 7)
    assert why_7.startswith(f"labeled {own}, wrong with over 99 %; likely {true} (")
    assert why_7.endswith(f"the loss says {true}, neighbors {true}, the probe {true}, the discriminant {true}")
    assert not table.extra["correct"][7]
    assert reason(table, "duplicate", 10) == "nearest: 100, at 0 % of the distance to its 20th neighbor"
    assert "rank 1 of 300" in reason(table, "loss", int(table.ranked("loss")[0]))
    lists = {name: one for name, one in LISTS.items() if len(one.order(table))}
    of_pairs = {MISMATCHED, FALSE_NEGATIVES, GIVEN_NEGATIVES}
    assert set(lists) == set(LISTS) - {*of_pairs, "two_labels"}  # of pairs and of copies
    for name, one in lists.items():
        assert reason(table, name, 0)
        assert bool(one.question) == bool(one.decisions)  # what is no label is asked for, and kept apart


def test_vectors_without_labels_have_lists_and_no_loss() -> None:
    table = table_of(EmbeddingSet(blobs().features), "nt_xent")
    assert np.isnan(table.columns["loss"]).all()
    assert not len(table.ranked("mislabeled"))
    assert len(table.ranked("outlier")) == 300
