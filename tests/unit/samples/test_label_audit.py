"""The audit of labels: random rows, an estimate with its interval, and a stop rule that holds at any time."""

import numpy as np
import pytest
from cases import cases
from scipy.special import expit, logit

from contrastive_core.samples import label_audit
from contrastive_core.samples.label_audit import Audit, audit, audit_table, calibrate
from contrastive_core.samples.sample_table import COLUMNS, SampleTable


def world(seed: int, n: int = 3000, share: float = 0.05, shift: float = 0.0, hidden: float = 0.0):
    """A set whose wrong labels a model sees but for the `hidden` part; `shift` makes the model over- or undersure."""
    rng = np.random.default_rng(seed)
    wrong = rng.random(n) < share
    evidence = rng.normal(size=n) + 3 * (wrong & (rng.random(n) >= hidden))
    return expit(logit(share) + 3 * evidence - 4.5 + shift), wrong


def draw(p: np.ndarray, size: int, seed: int = 0) -> np.ndarray:
    return label_audit.draw(np.array([f"{seed}/{i}.png" for i in range(len(p))]), np.isfinite(p))[:size]


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
    return wrong, np.isfinite(y), audit(p, y, rows)


def test_a_draw_follows_from_the_ids_alone_and_is_uniform() -> None:
    p, _ = world(1)
    rows = draw(p, 400)
    assert len(set(rows.tolist())) == 400
    assert (draw(p, 40) == rows[:40]).all()
    assert (draw(1 - p, 40) == rows[:40]).all()  # another run of the data set
    assert not (draw(p, 40, seed=1) == rows[:40]).all()
    assert sorted(draw(p, 5000).tolist()) == list(range(len(p)))
    some = p.copy()
    some[rows[5]] = np.nan  # a run that was trained without it
    assert draw(some, 399).tolist() == np.delete(rows, 5).tolist()
    every = np.concatenate([draw(p, 210, seed) for seed in range(40)])
    part = np.bincount((np.argsort(np.argsort(p))[every] * 5) // len(p), minlength=5) / len(every)
    assert np.abs(part - 0.2).max() < 0.02


def table_of(p: np.ndarray) -> SampleTable:
    columns = dict.fromkeys(COLUMNS, np.zeros(len(p)))
    names = {"id": np.array([f"{i}.png" for i in range(len(p))]), "label": np.full(len(p), "cat"), "mislabeled": p}
    return SampleTable({**columns, **names}, ("cat", "dog"), "sup_con")


def marks_on(rows: np.ndarray, wrong: np.ndarray, **about: object) -> dict[str, dict]:
    return {f"{i}.png": {"what": "drop" if wrong[i] else "keep", **about} for i in rows.tolist()}


def test_only_single_decisions_on_drawn_rows_move_the_estimate() -> None:
    p, wrong = world(5)
    table = table_of(p)
    suspects = np.argsort(-p)
    before = audit_table(table, {})
    assert before is not None
    assert before.found.checked == 0
    drawn = before.order[:120]
    checks = marks_on(drawn, wrong, list="random")
    made = audit_table(table, checks)
    assert made is not None
    assert (made.found.checked, made.reached) == (120, 120)
    assert made.found.interval[0] <= wrong.sum() <= made.found.interval[1]
    bulk = audit_table(table, marks_on(suspects[:300], wrong, list="mislabeled", many=True) | checks)
    assert bulk is not None
    assert bulk.found.number == made.found.number
    assert np.array_equal(bulk.found.probability, made.found.probability)
    top = np.setdiff1d(suspects[:60], drawn)
    by_hand = audit_table(table, marks_on(top, wrong, list="mislabeled") | checks)
    assert by_hand is not None
    assert by_hand.found.checked == 120
    assert np.allclose(np.delete(calibrated(by_hand), top), np.delete(calibrated(made), top))
    alone = audit_table(table, marks_on(top, wrong, list="mislabeled"))
    old = audit_table(table, marks_on(top, wrong, list="ambiguous"))  # a list of version 0.2
    assert alone is not None
    assert old is not None
    assert alone.found.checked == 0
    np.testing.assert_array_equal(old.wrong, alone.wrong)


def calibrated(found: label_audit.LabelAudit) -> np.ndarray:
    checked = np.full(len(found.p), np.nan)
    checked[found.order[: found.reached]] = found.wrong[found.order[: found.reached]]
    return calibrate(found.p, checked)


def test_decisions_scattered_over_the_draw_are_no_sample() -> None:
    """As those of a check that an earlier version drew in another order."""
    p, wrong = world(6)
    other = np.random.default_rng(0).permutation(len(p))[:120]
    found = audit_table(table_of(p), marks_on(other, wrong, list="random"))
    assert found is not None
    assert found.found.checked < 10


def test_how_many_suspects_are_left_to_review() -> None:
    """After so many of the likeliest, about such a share of labels is wrong."""
    ratios = []
    for seed in range(20):
        p, wrong = world(seed, share=0.15)
        rows = draw(p, 240, seed)
        found = audit(p, y := decided(wrong, rows), rows)
        assert found.reviews[0.1] <= found.reviews[0.05] <= found.reviews[0.01]
        suspects = np.flatnonzero(np.isnan(y))
        suspects = suspects[np.argsort(-p[suspects], kind="stable")]
        ratios.append(wrong[suspects[found.reviews[0.05] :]].sum() / len(p))
        assert found.number == pytest.approx(np.nansum(found.probability), rel=0.05)
    assert np.mean(ratios) == pytest.approx(0.05, abs=0.01)
    every = audit(p, decided(wrong, np.arange(len(p))), rows)
    assert set(every.reviews.values()) == {0}


@cases("kind", [{}, {"shift": -1.5}, {"shift": 1.5}, {"share": 0.01}, {"hidden": 0.5}])
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
        top = np.argsort(-p)[:100]
        seen, left = [], []
        for size in range(130, 700, 60):
            y = decided(wrong, order[:size], top)
            seen.append(audit(p, y, order[:size]).bound)
            left.append((wrong & ~np.isfinite(y)).sum() / len(p))
        failed += any(share > bound for share, bound in zip(left, seen, strict=True))
        below += seen[-1] < 0.01
    assert failed <= 5
    assert below >= 8  # it can be reached


@pytest.mark.parametrize("shift", [-2.0, 2.0])
def test_recalibration_repairs_an_unsure_model(shift: float) -> None:
    """Expected calibration error at most 0.05 after 120 checks, from at least twice that where the model is unsure."""
    errors = []
    for seed in range(10):
        p, wrong = world(seed, share=0.15, shift=shift)
        y = decided(wrong, draw(p, 120, seed))
        q, rest = calibrate(p, y), np.isnan(y)
        assert (np.diff(q[rest][np.argsort(p[rest])]) >= 0).all()  # their order stays
        bins = np.array_split(np.argsort(q[rest]), 10)
        errors.append(sum(len(b) * abs(q[rest][b].mean() - wrong[rest][b].mean()) for b in bins) / rest.sum())
    assert np.mean(errors) <= 0.05


def test_rows_without_a_label_count_nowhere() -> None:
    p, wrong = world(8)
    p[::2] = np.nan
    rows = draw(p, 240)
    assert np.isfinite(p[rows]).all()
    found = audit(p, decided(wrong, rows), rows)
    assert abs(found.number - wrong[1::2].sum()) < 60
    assert np.isnan(found.probability[::2]).all()
