"""The curve over a number: few places, long runs, and neighbors that speak for each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from played_advice import made, played

from contrastive_core.advice.answer import answer_of
from contrastive_core.advice.candidates import Candidate, fit_curve, spread

VALUES = (0.05, 0.1, 0.2, 0.5, 1.0)
HELD_OUT = 300


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CONTRASTIVE_LAB_RUNS", str(tmp_path / "runs"))
    return tmp_path / "runs"


def truth(value: float) -> float:
    return 0.6 - 0.1 * np.log10(value / 0.1) ** 2


def test_it_is_nearer_to_the_truth_than_single_runs() -> None:
    rng, right = np.random.default_rng(0), np.zeros(HELD_OUT)
    raw, smooth = [], []
    for _ in range(40):
        scores = [truth(v) + 0.03 * rng.normal() for v in VALUES]
        curve = fit_curve([(v, s, right) for v, s in zip(VALUES, scores, strict=True)])
        assert curve is not None
        errors = [truth(v) for v in VALUES] - curve.at(VALUES)[0]
        smooth.append(float(np.mean(errors**2)))
        raw.append(float(np.mean([(truth(v) - s) ** 2 for v, s in zip(VALUES, scores, strict=True)])))
    assert np.mean(smooth) < 0.75 * np.mean(raw)


def test_its_interval_holds_the_truth_and_widens_between_places() -> None:
    rng, right, held = np.random.default_rng(1), np.zeros(HELD_OUT), []
    for _ in range(60):
        curve = fit_curve([(v, rng.binomial(HELD_OUT, truth(v)) / HELD_OUT, right) for v in VALUES])
        assert curve is not None
        mean, half = curve.at(VALUES)
        held += list(abs(mean - [truth(v) for v in VALUES]) <= half)
    assert np.mean(held) >= 0.9
    at, between = curve.at([0.2])[1][0], curve.at([0.32])[1][0]
    assert between > at
    rows = curve.sampled(9)
    assert [rows[0]["value"], rows[-1]["value"]] == pytest.approx([0.05, 1.0])
    assert all(r["low"] is r["high"] is None for r in rows)  # one seed says nothing of others


def test_its_band_contains_seeds_and_images() -> None:
    rng, held = np.random.default_rng(3), []
    for _ in range(60):
        hard, runs = rng.random(HELD_OUT), []  # the same images are hard in each run
        for v in VALUES:
            for _seed in range(3 if v in (0.1, 0.2, 0.5) else 1):
                own = np.where(rng.random(HELD_OUT) < 0.2, rng.random(HELD_OUT), hard)
                right = (own < truth(v) + 0.03 * rng.normal()).astype(float)
                runs.append((v, float(right.mean()), right))
        curve = fit_curve(runs)
        assert curve is not None
        held += [row["low"] <= truth(row["value"]) <= row["high"] for row in curve.sampled(9)]
    assert 0.93 <= np.mean(held) <= 0.995


def test_two_places_or_runs_without_a_score_are_no_curve() -> None:
    right = np.zeros(HELD_OUT)
    assert fit_curve([]) is None
    assert fit_curve([(0.1, 0.5, right), (0.2, 0.6, right), (0.2, 0.6, right)]) is None
    assert fit_curve([(0.1, 0.5, None), (0.2, 0.6, None), (1.0, float("nan"), None)]) is None
    assert fit_curve([(0.1, 2.0, None), (0.2, 2.0, None), (1.0, 2.0, None)]) is not None  # all alike


def test_places_are_spread() -> None:
    found = [Candidate("temperature", f"τ {v:g}", {}, v) for v in (0.2, *VALUES)]
    assert [c.value for c in spread(found)[:3]] == [0.2, 1.0, 0.05]
    assert len(spread(found)) == len(found)


@pytest.mark.parametrize("best", [0.07, 0.2, 0.8])
def test_a_short_time_is_spent_on_few_places_and_long_runs(best: float) -> None:
    def effect(settings: dict[str, Any]) -> float:
        return 0.75 - 0.2 * abs(np.log10(settings.get("loss.temperature", 0.2) / best))

    plan = made(1.75)  # 4 runs of 20 epochs, a second each
    assert (plan.rungs, plan.trials) == ((20,), 4)
    search = played(plan, effect=staticmethod(effect), seconds=22.0)
    search.run()
    assert len(search.trained) == 4
    values = [t.value for t in search.trials.values()]
    assert values[:3] == [0.2, 1.0, 0.05]
    found = answer_of(search)
    worth = [effect({"loss.temperature": v}) for v in values if v is not None]
    assert effect({"loss.temperature": 0.2, **found["best"]["settings"]}) >= max(worth) - 0.03
    assert all(0.05 <= v <= 1.0 for v in values if v is not None)  # what the plan is about
    assert "with one seed" in found["verdict"] or found["best"]["is_default"]
    assert len(found["smooth"]) > 10
    heights = [row["on_curve"] for row in found["rows"]]
    assert heights == sorted(heights, reverse=True)  # the table's first row is what the sentence is about
    assert found["rows"][0] == found["best"]
    assert found["best"]["label"] in found["verdict"]
