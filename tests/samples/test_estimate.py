"""Losses estimated from some candidates: right in expectation, exact where these are all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from losses_setup import SETTINGS, ids, make
from sample_sets import blobs, table_of

from contrastive_core import losses, pairs
from contrastive_core.ops import neighbors
from contrastive_core.pairs.types import Pairs
from contrastive_core.records import sample_table
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.samples import candidates
from contrastive_core.samples import losses as sample_losses
from contrastive_core.samples import table_builder as sample_score
from contrastive_core.samples.candidates import Candidates

WEIGHED = [(n, k) for n, k in SETTINGS if make(n, k).takes_weights]
FEW = {"NEAR": 3, "POSITIVES": 5, "DRAWN": 20, "ANCHORS": 7}


def few(monkeypatch: pytest.MonkeyPatch, **sizes: int) -> None:
    for name, size in {**FEW, **sizes}.items():
        monkeypatch.setattr(candidates, name, size)


def vectors(n: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(n, 6, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def labeled(n: int = 60, labels: list[int] | None = None, seed: int = 0) -> Pairs:
    """Rows of four classes, one of them small, one row alone, some without a label."""
    usual = [3 if i < 4 else 4 if i == 4 else -1 if i < 9 else i % 3 for i in range(n)]
    return pairs.from_labels(vectors(n, seed), torch.tensor(labels or usual, dtype=torch.long))


def nearest(of: Pairs) -> np.ndarray:
    return candidates.near(of.anchors.numpy(), "cosine").index


def drawn(of: Pairs, seed: int = 0) -> Candidates:
    return Candidates(of, torch.from_numpy(nearest(of)), seed)


@pytest.mark.parametrize(("name", "chosen"), WEIGHED, ids=ids)
def test_with_every_candidate_it_is_the_loss(name: str, chosen: dict[str, Any], monkeypatch) -> None:
    few(monkeypatch, POSITIVES=60, DRAWN=60)
    loss = make(name, chosen, temperature=0.2, l2_penalty=0.1)
    for of in (labeled(), pairs.from_views(vectors(60).view(20, 3, 6))):
        exact = loss(of)
        value, weight = candidates.estimate([loss], of, nearest(of))
        np.testing.assert_allclose(weight[0], exact.weight.numpy(), rtol=1e-12)
        np.testing.assert_allclose(value[0], exact.per_anchor.numpy(), rtol=1e-9, atol=1e-11)


def test_no_candidate_counts_twice_and_all_are_stood_for(monkeypatch) -> None:
    """Σ w is the number of positives and of negatives; near ones count once, drawn or not."""
    few(monkeypatch)
    of = labeled()
    positive, negative, own = of.masks()
    for seed in range(20):
        for sample in drawn(of, seed).of():
            rows, k = sample.anchors, sample.masks.positive.shape[1]
            torch.testing.assert_close(sample.masks.positive.sum(1), positive[rows].sum(1).double())
            torch.testing.assert_close(sample.masks.negative.sum(1), negative[rows].sum(1).double())
            columns = sample.listed.columns
            assert columns.shape[1] == k == 3 + 5
            both = torch.cat([columns, sample.drawn.candidate_rows.expand(len(columns), -1)], 1)
            weight = sample.masks.negative.clone()
            weight[:, :k] += sample.masks.positive
            times = torch.zeros(len(columns), 60).scatter_add_(1, both, (weight > 0).float())
            assert times.max() == 1
            assert not times[own[rows]].any()
            of_near = weight[:, :3][(positive | negative)[rows].gather(1, columns[:, :3])]
            assert (of_near == 1).all()


def test_the_partition_function_is_right_on_average(monkeypatch) -> None:
    """Σ w e^ℓ over many draws, against Σ e^ℓ, of the positives and of the negatives."""
    few(monkeypatch)
    of = labeled(45)
    unit = torch.nn.functional.normalize(of.anchors)
    e = (unit @ unit.mT / 0.3).exp()
    found = []
    for seed in range(200):
        sums = []
        for sample in drawn_from(of, seed):
            listed = sample.listed.columns
            both = torch.cat([listed, sample.drawn.candidate_rows.expand(len(listed), -1)], 1)
            terms = e[sample.anchors].gather(1, both)
            of_positives = (sample.masks.positive * terms[:, : listed.shape[1]]).sum(1)
            sums.append(torch.stack([of_positives, (sample.masks.negative * terms).sum(1)], 1))
        found.append(torch.cat(sums))
    every = torch.stack(found)  # (draws, n, 2)
    positive, negative, _ = of.masks()
    true = torch.stack([(e * positive).sum(1), (e * negative).sum(1)], 1)
    error = every.std(0) / len(every) ** 0.5
    off = (every.mean(0) - true).abs() / error.clamp_min(1e-12)
    varied = error > 1e-9
    assert varied.sum() > 60
    assert off[varied].max() < 4.5
    assert off[varied].square().mean() == pytest.approx(1, abs=0.6)
    torch.testing.assert_close(every.mean(0)[~varied], true[~varied])


GRAPHS: dict[int, torch.Tensor] = {}


def drawn_from(of: Pairs, seed: int):
    if id(of) not in GRAPHS:
        GRAPHS[id(of)] = torch.from_numpy(nearest(of))
    return Candidates(of, GRAPHS[id(of)], seed).of()


@pytest.mark.parametrize(
    "labels", [[], [0], [0, 1], [0, 0], [-1, -1, -1], [2] * 30, list(range(30)), [0] * 29 + [1]], ids=str
)
@pytest.mark.parametrize("constant", [False, True])
def test_degenerate_sets(labels: list[int], constant: bool, monkeypatch) -> None:
    """Without positives, negatives or any row; all rows alike, or zero: as the exact loss says."""
    few(monkeypatch, POSITIVES=40, DRAWN=40)
    x = torch.zeros(len(labels), 6, dtype=torch.float64) if constant else vectors(len(labels))
    of = pairs.from_labels(x, torch.tensor(labels, dtype=torch.long))
    for name in ("nt_xent", "info_nce", "soft_nearest_neighbor", "pair_contrastive", "triplet"):
        loss = losses.create(name)
        exact = loss(of)
        value, weight = candidates.estimate([loss], of, nearest(of))
        np.testing.assert_allclose(weight[0], exact.weight.numpy())
        np.testing.assert_allclose(value[0], exact.per_anchor.numpy(), rtol=1e-9, atol=1e-11)


def test_few_candidates_of_a_lopsided_set_stay_finite(monkeypatch) -> None:
    """No negative among what was drawn: the loss is that without negatives, not infinite."""
    few(monkeypatch, DRAWN=4)
    of = labeled(200, [1] + [0] * 199)
    for name in ("nt_xent", "info_nce", "triplet", "pair_contrastive"):
        value, _ = candidates.estimate([losses.create(name)], of, nearest(of))
        assert np.isfinite(value).all()


def test_an_estimate_follows_from_its_seed_whatever_the_share(monkeypatch) -> None:
    few(monkeypatch)
    of, loss = labeled(), losses.create("nt_xent", temperature=0.2)
    near = nearest(of)
    one, two = (candidates.estimate([loss], of, near)[0] for _ in range(2))
    np.testing.assert_array_equal(one, two)
    parts = [candidates.estimate([loss], of, near, s)[0] for s in (slice(0, 23), slice(23, 60))]
    np.testing.assert_allclose(np.concatenate(parts, 1), one, rtol=1e-12)
    assert np.abs(candidates.estimate([loss], of, near, seed=1)[0] - one).max() > 1e-4
    exact = loss(of).per_anchor.numpy()
    assert 1e-4 < np.abs(one - exact).max() < 1


def test_only_a_block_of_scores_is_held(monkeypatch) -> None:
    few(monkeypatch)
    shapes, compare = [], candidates.compare
    monkeypatch.setattr(candidates, "compare", lambda *a: shapes.append(compare(*a).shape) or compare(*a))
    told: list[float] = []
    of = labeled(300)
    candidates.estimate([losses.create("sup_con")], of, nearest(of), on_fraction=told.append)
    assert {tuple(s) for s in shapes} <= {(b, k) for b in (7, 300 % 7) for k in (8, 20)}
    assert len(told) == 43
    assert told[-1] == 1


def test_settings_share_one_pass_and_rows_of_other_pairs_are_refused() -> None:
    of = labeled()
    settings = [losses.create("sup_con", temperature=t) for t in (0.1, 0.5)]
    both, _ = candidates.estimate(settings, of, nearest(of))
    for value, loss in zip(both, settings, strict=True):
        np.testing.assert_allclose(value, loss(of).per_anchor.numpy(), rtol=1e-9)
    with pytest.raises(ValueError, match="every row is compared with all others"):
        Candidates(of.take_anchors(slice(10)), torch.zeros(10, 0))


def test_the_error_is_what_it_says() -> None:
    exact = np.arange(100.0)
    found = candidates.error_of(np.where(exact < 90, exact + 0.5, np.nan), exact)
    assert found == {
        "checked": 90,
        "bias": pytest.approx(0.5),
        "off": pytest.approx(0.5),
        "correlation": pytest.approx(1.0),
    }
    swapped = exact.copy()
    swapped[:10] = exact[:10][::-1]
    found = candidates.error_of(swapped, exact)
    assert found["bias"] == 0
    assert found["off"] == pytest.approx(np.quantile(np.abs(swapped - exact), 0.95))
    assert 0.9 < found["correlation"] < 1
    assert candidates.error_of(np.array([np.nan]), np.array([1.0])) == {"checked": 0}


# --- tables --------------------------------------------------------------------------------------


def test_a_large_set_has_estimates_and_their_error(monkeypatch, tmp_path) -> None:
    few(monkeypatch, POSITIVES=40, DRAWN=100)
    monkeypatch.setattr(sample_losses, "DRAWN_OF_CURVES", 100)
    rows, rng = blobs(), np.random.default_rng(0)
    views = [rng.normal(size=(300, 2, 6)).astype(np.float32) for _ in range(2)]
    shaken = [rows.features + rng.normal(size=(300, 8)).astype(np.float32) for _ in range(2)]
    for loss, more in (("sup_con", {"augmented": shaken}), ("nt_xent", {"views": views}), ("triplet", {})):
        exact = table_of(rows, loss, **more)
        assert not any(name.startswith("estimate_") for name in exact.facts)
        with monkeypatch.context() as large:
            large.setattr(sample_losses, "ESTIMATED_FROM", 300**2)
            made = table_of(rows, loss, **more)
        difference = made.columns["loss"] - exact.columns["loss"]
        positives = 1 if "views" in more else 40
        assert made.facts["estimate_candidates"] == 3 + positives + 100
        assert made.facts["estimate_checked"] == 300
        assert made.facts["estimate_bias"] == pytest.approx(difference.mean(), abs=1e-5)
        off = np.quantile(np.abs(difference), 0.95)
        assert made.facts["estimate_off"] == pytest.approx(off, rel=1e-3)
        assert 1e-5 < off < 0.3
        assert made.facts["estimate_correlation"] > 0.6
        assert made.extra["loss_by_draw"].shape == exact.extra["loss_by_draw"].shape
        over, truly = (t.extra["loss_over_knob"] for t in (made, exact))
        assert over.shape == truly.shape
        assert 0 < np.abs(over - truly).mean() < 0.1
        with monkeypatch.context() as fewer:
            fewer.setattr(sample_losses, "DRAWN_OF_CURVES", 20)
            fewer.setattr(sample_losses, "ESTIMATED_FROM", 300**2)
            rough = table_of(rows, loss, **more)
        np.testing.assert_array_equal(rough.columns["loss"], made.columns["loss"])
        assert not np.array_equal(rough.extra["loss_over_knob"], over)
        path = tmp_path / f"{loss}.npz"
        sample_table.keep_table(made, path)
        kept = sample_table.read_table(path, loss)
        assert kept is not None
        assert kept.facts == made.facts


def test_the_lists_of_a_large_set_are_of_the_neighbors_that_were_found(monkeypatch) -> None:
    """One search serves losses and lists; its recall is told; suspicions stay much alike."""
    rows = blobs(1200)
    rows.features[600:] += 2 * np.random.default_rng(3).normal(size=(600, 8)).astype(np.float32)
    rows.labels[:30] = (rows.labels[:30] + 1) % 3
    exact = table_of(rows, "sup_con")
    few(monkeypatch, NEAR=64, POSITIVES=40, DRAWN=300)
    monkeypatch.setattr(candidates, "LIKELY", neighbors.Approximation.of_rows(200))
    for module, name in ((neighbors, "APPROXIMATE_FROM"), (neighbors, "FEW")):
        monkeypatch.setattr(module, name, 0)
    monkeypatch.setattr(sample_losses, "ESTIMATED_FROM", 0)
    searches = []
    search = neighbors._search
    monkeypatch.setattr(neighbors, "_search", lambda *args, **more: searches.append(1) or search(*args, **more))
    made = table_of(rows, "sup_con")
    assert len(searches) == 1
    assert 0.2 < made.facts["neighbors_recall"] < 1
    assert "neighbors_recall" not in exact.facts
    first, exactly = ({*t.ranked("mislabeled")[:25].tolist()} for t in (made, exact))
    assert first <= exactly | {*range(30)}
    assert len(first - {*range(30)}) < 3
    for name in ("false_negative", "ambiguous", "outlier"):
        both = np.corrcoef(made.score(name), exact.score(name))[0, 1]
        assert both > 0.9, (name, both)


def test_a_loss_that_cannot_be_estimated_has_its_limit(monkeypatch) -> None:
    """Exact up to that many samples, left out above, the lists being there all the same."""
    monkeypatch.setattr(sample_losses, "EXACT_ONLY_UP_TO", 8 * 200.0**2)
    monkeypatch.setattr(sample_losses, "ESTIMATED_FROM", 0)
    for knobs, loss in ((None, "lifted_structure"), ({"mining": "hard"}, "triplet")):
        made = table_of(blobs(), loss, knobs, batch_size=50)
        assert made.facts["exact_up_to"] == 200
        assert np.isnan(made.columns["loss"]).all()
        assert not len(made.ranked("loss"))
        assert len(made.ranked("mislabeled")) == 300
        assert np.isfinite(made.extra["loss_in_batches"]).any()
        within = table_of(blobs(198), loss, knobs)
        assert "exact_up_to" not in within.facts
        exact, _ = sample_losses.per_sample(sample_losses.LossInputs(blobs(198), loss, knobs))
        np.testing.assert_array_equal(within.columns["loss"], exact)


def test_where_losses_are_estimated(monkeypatch) -> None:
    """From 88,000 images of 256 numbers on a CPU, of which pairs have two views each."""
    loss = losses.create("nt_xent")
    assert not sample_losses.is_estimated(loss, 88_000, 256, "cpu")
    assert sample_losses.is_estimated(loss, 89_000, 256, "cpu")
    assert not sample_losses.is_estimated(losses.create("lifted_structure"), 10**6, 256, "cpu")
    assert sample_losses.exact_up_to(loss, 256, "cpu") is None
    assert sample_losses.exact_up_to(losses.create("lifted_structure"), 256, "cpu") == 279_508
    views = [np.zeros((4, 2, 256), np.float32)]
    inputs = sample_score.SampleInputs(EmbeddingSet(views[0][:, 0]), "nce", views=views, device="cpu")
    monkeypatch.setattr(sample_losses, "EXACT_ONLY_UP_TO", 256 * 7.0**2)
    assert sample_score._outlook(inputs) == {"exact_up_to": 3}  # of two views each


def test_what_losses_will_be_is_known_beforehand(monkeypatch) -> None:
    """The command says it as a stage before it starts; the page asks for the same."""

    def outlook(loss: str, *sizes: int, **knobs: str) -> dict[str, int]:
        return sample_losses.outlook(loss, knobs, *sizes, device="cpu")

    assert outlook("nt_xent", 44_000, 2, 256, 1) == {}
    assert outlook("nt_xent", 45_000, 2, 256, 1) == {"candidates": 64 + 8192 + 1}
    assert outlook("sup_con", 10**6, 1, 256, 999) == {"candidates": 64 + 8192 + 128}
    assert outlook("triplet", 10**6, 1, 256, 999) == {"candidates": 64 + 8192 + 128}
    assert outlook("triplet", 10**6, 1, 256, 999, mining="hard") == {"exact_up_to": 279_508}
    assert outlook("lifted_structure", 279_508, 1, 256, 999) == {}
    monkeypatch.setattr(sample_losses, "ESTIMATED_FROM", 1)
    monkeypatch.setattr(sample_losses, "EXACT_ONLY_UP_TO", 8 * 200.0**2)

    def first_stage(loss: str) -> tuple[str, dict[str, float]]:
        told: list[str] = []
        made = table_of(blobs(), loss, on_progress=lambda stage, share: told.append(stage))
        return told[0], made.facts

    stage, facts = first_stage("sup_con")
    number = int(facts["estimate_candidates"])
    assert stage == f"loss of every sample, from about {number} candidates each"
    assert first_stage("lifted_structure")[0] == ("no losses: this one is exact only up to 200 samples")
