"""The search: halving, seeds, what is claimed, and going on after a kill. Trainings are played."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from played_advice import made, played

from contrastive_core.advice.adviser import advise
from contrastive_core.advice.answer import answer_of
from contrastive_core.advice.held_out import Trial, held_out_rows
from contrastive_core.advice.planning import AdviceRequest, make_plan
from contrastive_core.advice.suggestions import batch_of
from contrastive_core.cli.advise import text_of
from contrastive_core.cli.output import counted
from contrastive_core.data import datasets
from contrastive_core.errors import BadSetting
from contrastive_core.evaluation.verdicts import SettingScores, interval_and_basis
from contrastive_core.records import advice as plans
from contrastive_core.records.advice_answer import read_answer
from contrastive_core.records.score import wilson


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CONTRASTIVE_LAB_RUNS", str(tmp_path / "runs"))
    return tmp_path / "runs"


def test_a_planted_optimum_is_found_and_shown() -> None:
    def effect(settings: dict[str, Any]) -> float:
        return 0.75 - 0.2 * abs(np.log10(settings.get("loss.temperature", 0.2) / 0.5))

    search = played(made(), effect=staticmethod(effect))
    search.run()
    found = answer_of(search)
    assert 0.35 <= found["best"]["settings"]["loss.temperature"] <= 0.75
    assert found["best"]["shown"] == "better"
    assert found["best"]["seeds"] == 3
    assert found["verdict"].startswith("Take τ ")
    low, high = found["best"]["difference_interval"]
    assert 0 < low < found["best"]["difference"] < high
    assert "better" in text_of(json.loads(json.dumps(found)))


def test_where_nothing_differs_it_says_so() -> None:
    search = played(made())
    search.run()
    found = answer_of(search)
    assert not any(r["shown"] == "better" for r in found["rows"])
    assert "No significant difference on these data" in found["verdict"] or (
        found["verdict"].startswith("Keep the default")
    )
    assert "cannot be seen. More images or seeds would show it" in found["verdict"]


def test_halving_spends_most_on_the_best() -> None:
    plan = made(choose=("temperature", "head"))
    assert len(plan.rungs) == 3
    search = played(plan)
    search.run()
    rounds = [sum(f"-e{e}-s0" in n for n in search.trained) for e in plan.rungs]
    assert rounds[0] > rounds[1] >= rounds[2] >= 3  # the default and two finalists at least
    assert len(set(search.trained)) == len(search.trained)
    assert search.spent <= plan.seconds


def test_a_killed_adviser_goes_on_and_trains_nothing_twice() -> None:
    def effect(settings: dict[str, Any]) -> float | None:
        if settings.get("loss.temperature") == 1.0:
            return None
        return 0.75 - 0.2 * abs(np.log10(settings.get("loss.temperature", 0.2) / 0.5))

    names: list[str] = []
    for _ in range(30):
        search = played(made(), dies_at=4, effect=staticmethod(effect))
        try:
            search.run()
        except KeyboardInterrupt:
            names += search.trained
        else:
            break
    names += search.trained
    assert len(names) > 12
    assert len(names) == len(set(names))
    found = answer_of(search)
    assert found["best"]["shown"] == "better"
    assert found["failed"] == {"τ 1": "it broke"}  # also known after it
    planned = {t.value for t in search.trials.values()}
    assert {0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0} <= planned
    assert search.spent == pytest.approx(5.0 * sum(len(t.scores) for t in search.trials.values() if not t.failure))


def test_a_setting_that_fails_is_named_and_the_others_go_on() -> None:
    def effect(settings: dict[str, Any]) -> float | None:
        return None if settings.get("loss.temperature") == 1.0 else 0.8

    search = played(made(), effect=staticmethod(effect))
    search.run()
    found = answer_of(search)
    assert found["failed"] == {"τ 1": "it broke"}
    assert "failed: τ 1: it broke" in text_of(found)
    assert len(found["rows"]) >= 6


def test_several_questions_are_asked_one_at_a_time_first() -> None:
    plan = made(60, ("temperature", "augmentation", "head"))
    search = played(plan)
    search.run()
    labels = [t.label for t in search.trials.values()]
    assert labels[0] == "τ 0.2, usual views, nonlinear head"
    assert any("no color" in x or "crops" in x for x in labels)
    assert any(x.endswith("linear head") for x in labels)
    assert len(labels) >= plan.trials


def test_what_cannot_be_planned_has_its_sentence() -> None:
    digits = datasets.load("digits", "train")
    with pytest.raises(BadSetting, match=r"too short to compare two settings.*give it"):
        made(0.1)
    with pytest.raises(BadSetting, match="above 0"):
        made(-1)
    with pytest.raises(BadSetting, match="--choose takes temperature, method"):
        made(10, ("colour",))
    few = type(digits)("few", "train", digits.images[:5], digits.labels[:5], digits.classes, digits.ids[:5], "")
    with pytest.raises(BadSetting, match="has 5 training images; at least 40"):
        held_out_rows(few)
    one = type(digits)("one", "train", digits.images[:50], np.zeros(50, np.int64), ("a",), digits.ids[:50], "")
    plan = make_plan(AdviceRequest("one", 10, ["temperature"], "b"), one, 1.0)
    assert plan.criterion == "lidar"
    assert plan.held_out == 10
    assert "LiDAR replaces labels" in plan.sentence()
    assert "test images" not in plan.sentence()
    assert "They are between τ 0.05 and τ 1." in plan.sentence()
    for choose in (["batch"], ["temperature", "augmentation"]):
        with pytest.raises(BadSetting, match="Without labels only the temperature can be chosen"):
            make_plan(AdviceRequest("one", 10, choose, "b"), one, 1.0)


def test_a_short_time_gets_a_shorter_plan() -> None:
    for choose, minutes in ((("head",), 3), (("temperature",), 1)):
        long, short = made(60, choose), made(minutes, choose)
        assert long.rungs[-1] == 20
        assert 2 <= short.rungs[-1] < 20
        assert "are held out" in short.sentence()
    assert plans.load_plan("a") is None


def test_held_out_rows_are_of_every_class_and_left_out_of_training(home: Path) -> None:
    dataset = datasets.load("digits", "train")
    rows = held_out_rows(dataset)
    counts = np.bincount(dataset.labels[rows], minlength=10)
    assert counts.min() >= 0.18 * np.bincount(dataset.labels).min()
    search = played(made())
    search.run()
    ids = (search.folder / "held_out.txt").read_text().split()
    assert ids == [dataset.ids[i] for i in rows]
    assert "--exclude" in search.cell(next(iter(search.trials.values())), 3, 0).arguments()


def test_two_at_one_adviser_and_a_damaged_plan(home: Path) -> None:
    from contrastive_core.errors import Locked
    from contrastive_core.storage.lock import lock

    plan = made()
    folder = plans.folder_of("a")
    folder.mkdir(parents=True)
    with lock(folder / "lock"), pytest.raises(Locked):
        advise(plan)
    (folder / "plan.json").write_text("{")
    with pytest.raises(BadSetting, match="damaged"):
        plans.load_plan("a")
    assert read_answer("a") is None


def test_one_seed_shows_nothing_and_the_default_stands() -> None:
    search = played(made(0.9, ("head",)), effect=staticmethod(_by_head), seconds=12.0)
    search.baselines = {"raw pixels": 0.4, "an untrained encoder": 0.95}
    search.run()
    found = answer_of(search)
    assert not found["best"]["is_default"]
    assert found["recommended"]["is_default"]
    assert found["verdict"].startswith("No significant difference yet: linear head scored highest")
    assert "Keep the default until more seeds confirm it" in found["verdict"]
    assert "Every try scores below an untrained encoder (95.0 %)" in found["verdict"]
    assert found["untried"] == ["no head"]


def _by_head(settings: dict[str, Any]) -> float:
    return 0.9 if settings.get("head") == "linear" else 0.5


def test_small_sets_are_tried_in_the_batches_that_are_advised() -> None:
    assert [batch_of(128, n) for n in (2000, 1024, 1023, 500, 40, 5)] == [128, 128, 64, 32, 8, 8]
    plan = replace(made(choose=("head",)), batch_size=64)
    search = played(plan)
    assert "in batches of 64" in plan.sentence()
    assert "batch_size=64" in search.cell(Trial("head", {}, None), 2, 0).arguments()
    assert plans.plan_from_json({k: v for k, v in plan.to_json().items() if k != "batch_size"}) is not None


def test_one_seed_has_an_interval_over_images_and_makes_no_winner() -> None:
    def effect(settings: dict[str, Any]) -> float:
        return 0.95 if settings.get("head") == "linear" else 0.3

    search = played(made(0.9, ("head",)), effect=staticmethod(effect), seconds=20.0)
    search.run()
    found = answer_of(search)
    once = [row for row in found["rows"] if row["seeds"] == 1]
    assert {row["label"] for row in once} >= {"linear head"}
    for row in once:
        n = search.plan.held_out
        assert row["interval"] == pytest.approx(wilson(round(n * row["mean"]), n))
        assert row["basis"] == "images, one seed"
    assert {row["shown"] for row in found["rows"]} <= {"", "not repeated"}  # however large the difference
    assert found["recommended"]["is_default"]
    told = text_of(json.loads(json.dumps(found)))
    assert "linear head, " in told
    assert ", 95 % over images, one seed  +" in told
    assert f"{n:,} of 1,437 training images, which no try trains on" in told


def test_an_interval_says_what_it_is_over() -> None:
    right = np.repeat([1.0, 0.0, np.nan], [60, 20, 7])
    by_seed = dict.fromkeys(range(3), right)
    scores = dict.fromkeys(range(3), 0.75)
    basis = {
        "images": SettingScores("pixels", {0: 0.75}, {0: right}, is_fixed=True),
        "images, one seed": SettingScores("one", {0: 0.75}, {0: right}),
        "images, 2 seeds": SettingScores("two", {0: 0.75, 1: 0.75}, {0: right, 1: right}),
        "images and 3 seeds": SettingScores("three", scores, by_seed),
        "3 seeds": SettingScores("lidar", {0: 20.0, 1: 22.0, 2: 21.0}),
        "": SettingScores("lidar", {0: 20.0}),
    }
    for said, setting in basis.items():
        interval, told = interval_and_basis(setting)
        assert told == said
        assert (interval is None) is (said == "")
    assert interval_and_basis(basis["images"])[0] == pytest.approx(wilson(60, 80))  # the unlabeled count for nothing


def test_one_epoch_and_one_seed_are_no_plural() -> None:
    plan = replace(made(1.0, ("head",)), rungs=(1,))
    stages: list[str] = []
    search = played(plan, seconds=25.0)
    search.on_progress = lambda stage, fraction: stages.append(str(stage))
    search.run()
    told = "\n".join([*stages, text_of(json.loads(json.dumps(answer_of(search))))])
    assert "nonlinear head, 1 epoch" in told
    assert "1 epochs" not in told
    assert counted(1, "row") == "1 row"
    assert counted(1200, "row") == "1,200 rows"
