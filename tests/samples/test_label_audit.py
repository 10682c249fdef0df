"""The audit of labels: random rows, an estimate with its interval, and a stop rule that holds at any time."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logit

from contrastive_core.samples.label_audit import STRATA, Audit, audit, bounds, draw, plain_bound, recalibrate, strata_of


def world(seed: int, n: int = 3000, share: float = 0.05, shift: float = 0.0, hidden: float = 0.0):
    """A set whose wrong labels a model sees but for the `hidden` part; `shift` makes the model over- or undersure."""
    rng = np.random.default_rng(seed)
    wrong = rng.random(n) < share
    evidence = rng.normal(size=n) + 3 * (wrong & (rng.random(n) >= hidden))
    return expit(logit(share) + 3 * evidence - 4.5 + shift), wrong


def decided(wrong: np.ndarray, *rows: np.ndarray) -> np.ndarray:
    y = np.full(len(wrong), np.nan)
    for some in rows:
        y[some] = wrong[some]
    return y


def checked(seed: int, size: int, ranked: int = 0, **kind: float) -> tuple[np.ndarray, np.ndarray, Audit]:
    """p, what is wrong, and the audit after `size` random checks and decisions on the first `ranked` suspects."""
    p, wrong = world(seed, **kind)  # type: ignore[arg-type]
    rows = draw(p, size, seed)
    y = decided(wrong, rows, np.argsort(-p)[:ranked])
    return wrong, np.isfinite(y), audit(p, y, rows, seed)


def test_strata_have_equal_spread_and_rows_without_a_label_have_none() -> None:
    p, _ = world(0)
    p[:10] = np.nan
    stratum = strata_of(p)
    assert (stratum[:10] == -1).all()
    clipped = np.clip(p, 1e-3, 1 - 1e-3)
    spread = [np.sqrt(clipped * (1 - clipped))[stratum == h].sum() for h in range(6)]
    assert max(spread) < 1.1 * min(spread)
    assert p[stratum == 0].max() <= p[stratum == 5].min()


def test_a_larger_draw_starts_with_a_smaller_one_and_a_third_of_it_comes_equally_from_the_strata() -> None:
    p, _ = world(1)
    rows = draw(p, 400)
    assert len(set(rows.tolist())) == 400
    assert (draw(p, 40) == rows[:40]).all()
    assert np.abs(np.bincount(strata_of(p)[rows[:360:3]], minlength=STRATA) - 20).max() <= 5
    assert not (draw(p, 40, seed=1) == rows[:40]).all()
    assert sorted(draw(p, 5000).tolist()) == list(range(len(p)))


def test_the_other_draws_are_uniform() -> None:
    """Of many draws, each fifth of the rows gets its share."""
    p, _ = world(2)
    others = np.concatenate([np.delete(draw(p, 210, seed), np.s_[::3]) for seed in range(40)])
    part = np.bincount((np.argsort(np.argsort(p))[others] * 5) // len(p), minlength=5) / len(others)
    assert np.abs(part - 0.2).max() < 0.03


@pytest.mark.parametrize("kind", [{}, {"shift": -1.5}, {"shift": 1.5}, {"share": 0.01}, {"hidden": 0.5}])
def test_the_interval_contains_the_truth(kind: dict[str, float]) -> None:
    """At least 51 of 60 sets; the binomial chance of fewer at 95 % coverage is below 0.1 %."""
    hits = 0
    for seed in range(60):
        wrong, _, found = checked(seed, 120, ranked=30 * (seed % 2), **kind)
        hits += found.interval[0] <= wrong.sum() <= found.interval[1]
    assert hits >= 51


def test_without_decisions_there_is_no_bound_and_a_wide_interval() -> None:
    p, wrong = world(3)
    none = audit(p, np.full(len(p), np.nan), np.zeros(0, int))
    assert none.bound == 1.0
    some = audit(p, decided(wrong, rows := draw(p, 240)), rows)
    assert some.interval[1] - some.interval[0] < (none.interval[1] - none.interval[0]) / 3


def test_all_decided_leaves_no_doubt() -> None:
    p, wrong = world(4, n=300)
    rows = draw(p, 300)
    found = audit(p, decided(wrong, rows), rows)
    assert found.interval == (wrong.sum(), wrong.sum())
    assert found.bound == 0.0
    assert (found.checked, found.found) == (300, wrong.sum())


def test_the_bound_holds_at_every_look() -> None:
    """Looked at after every sixtieth check of 40 sets, it fails somewhere in at most one set in twenty."""
    failed, below = 0, 0
    for seed in range(40):
        p, wrong = world(seed, n=2000, share=0.01)
        order = draw(p, 700, seed)
        top = np.argsort(-p)[:25]
        seen, left = [], []
        for size in range(130, 700, 60):
            y = decided(wrong, order[:size], top)
            seen.append(audit(p, y, order[:size], seed).bound)
            left.append((wrong & ~np.isfinite(y)).sum() / len(p))
        failed += any(share > bound for share, bound in zip(left, seen, strict=True))
        below += seen[-1] < 0.01
    assert failed <= 5
    assert below >= 8  # it can be reached


def test_suspects_that_were_kept_lower_the_estimate() -> None:
    p, _ = world(5)
    nothing = audit(p, np.full(len(p), np.nan), np.zeros(0, int)).number
    y = np.full(len(p), np.nan)
    y[np.argsort(-p)[:15]] = 0
    assert audit(p, y, np.zeros(0, int)).number < 0.8 * nothing


def test_a_decision_far_down_the_list_changes_little() -> None:
    """A row that was decided out of turn is known, and nothing more."""
    p, wrong = world(6)
    rows = draw(p, 240)
    y = decided(wrong, rows)
    one = y.copy()
    one[np.flatnonzero(np.isnan(y))[np.argmin(p[np.isnan(y)])]] = 0
    before, after = audit(p, y, rows), audit(p, one, rows)
    assert abs(before.number - after.number) < 0.1 * before.number
    assert abs(before.bound - after.bound) < 0.01


@pytest.mark.parametrize("shift", [-2.0, 2.0])
def test_recalibration_repairs_an_unsure_model(shift: float) -> None:
    """Expected calibration error at most 0.05 after 120 checks, from at least twice that where the model is unsure."""
    errors = []
    for seed in range(10):
        p, wrong = world(seed, share=0.15, shift=shift)
        y = decided(wrong, draw(p, 120, seed))
        q, rest = recalibrate(p, y), np.isnan(y)
        bins = np.array_split(np.argsort(q[rest]), 10)
        errors.append(sum(len(b) * abs(q[rest][b].mean() - wrong[rest][b].mean()) for b in bins) / rest.sum())
    assert np.mean(errors) <= 0.05


def test_recalibrated_rows_keep_their_order_and_decided_ones_are_certain() -> None:
    p, wrong = world(7)
    y = decided(wrong, draw(p, 60))
    q, rest = recalibrate(p, y), np.isnan(y)
    assert (np.diff(q[rest][np.argsort(p[rest])]) >= 0).all()
    assert (q[~rest] == wrong[~rest]).all()


def test_rows_without_a_label_count_nowhere() -> None:
    p, wrong = world(8)
    p[::2] = np.nan
    rows = draw(p, 240)
    assert np.isfinite(p[rows]).all()
    found = audit(p, decided(wrong, rows), rows)
    assert abs(found.number - wrong[1::2].sum()) < 60
    assert np.isnan(found.probability[::2]).all()


def test_the_curve_of_bounds_ends_at_the_bound_and_falls_below_that_of_a_plain_audit() -> None:
    p, wrong = world(9, n=2000)
    rows = draw(p, 240)
    y = decided(wrong, rows, np.argsort(-p)[:120])
    curve = bounds(p, y, rows, [40, 120, 240])
    assert curve[-1] == audit(p, y, rows).bound
    assert curve == sorted(curve, reverse=True)
    assert curve[-1] < plain_bound(2000, 240, wrong.mean()) < plain_bound(2000, 40, wrong.mean())
