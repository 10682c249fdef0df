"""Which method for these images: at equal epochs and at equal time, decided or not. Trainings are played."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest

from contrastive_core import methods
from contrastive_core.advice import planning
from contrastive_core.advice.answer import answer_of
from contrastive_core.advice.fitting_methods import check_methods, fitting_methods
from contrastive_core.advice.held_out import HeldOutScores
from contrastive_core.advice.method_search import MethodSearch
from contrastive_core.advice.planning import AdviceRequest, make_plan, plan_advice
from contrastive_core.cli.advise import text_of
from contrastive_core.data import datasets
from contrastive_core.errors import BadSetting, UnknownName
from contrastive_core.records.advice import Plan, epochs_in_time, load_plan, method_duration, plan_from_json
from contrastive_core.records.sweep_grid import Cell

PACES = {"simclr": 1.0, "byol": 2.0, "barlow_twins": 0.5, "vicreg": 1.0}


@pytest.fixture
def digits() -> datasets.Dataset:
    return datasets.load("digits", "train")


def plan_of(digits: datasets.Dataset, minutes: float = 60, paces: dict[str, float] = PACES, **more: Any) -> Plan:
    return make_plan(AdviceRequest("digits", minutes, ["method"], "a", **more), digits, 1.0, paces)


class PlayedMethods(MethodSearch):
    """Trainings whose share right is `effect(method, epochs)`, only of the methods that have a pace."""

    dies_at = 10**9

    def __init__(self, plan: Plan, dataset: datasets.Dataset, effect: Any) -> None:
        super().__init__(plan, dataset)
        known = [c for c in self.questions["method"] if c.settings.get("method", "simclr") in PACES]
        self.questions = {"method": known}
        self.effect, self.trained = effect, list[str]()

    def _train_and_score(self, cell: Cell) -> HeldOutScores:
        if len(self.trained) >= self.dies_at:
            raise KeyboardInterrupt
        self.trained.append(cell.run)
        method, epochs = str(cell.settings["method"]), int(cell.settings["epochs"])
        share = self.effect(method, epochs)
        if share is None:
            return HeldOutScores(cell.run, failure="it broke")
        hard = np.random.default_rng(0).random(len(self.rows))
        own = np.random.default_rng([cell.seed, epochs, len(method)]).random(len(self.rows))
        right = (0.9 * hard + 0.1 * own < share).astype(np.float64)
        return HeldOutScores(cell.run, {"knn": float(right.mean())}, epochs * PACES[method], right)


def test_the_same_method_wins_either_way(digits: datasets.Dataset) -> None:
    search = PlayedMethods(plan_of(digits), digits, lambda method, epochs: 0.9 if method == "byol" else 0.6)
    search.run()
    found = json.loads(json.dumps(answer_of(search)))
    assert [one["best"] for one in found["regimes"]] == ["BYOL", "BYOL"]
    assert "At equal epochs: Take BYOL: +" in found["verdict"]
    assert "At equal time: Take BYOL" in found["verdict"]
    assert found["recommended"]["settings"] == {"method": "byol"}
    equal_time = {row["method"]: row["epochs"] for row in found["regimes"][1]["rows"]}
    assert equal_time == {"simclr": 20, "byol": 10, "barlow_twins": 40, "vicreg": 20}
    assert {row["epochs"] for row in found["regimes"][0]["rows"]} == {20}
    assert "At equal time:" in text_of(found)


def test_a_quick_method_may_win_at_equal_time_only(digits: datasets.Dataset) -> None:
    def effect(method: str, epochs: int) -> float:
        return min(0.95, {"barlow_twins": 0.5, "byol": 0.7, "vicreg": 0.4}.get(method, 0.55) * (epochs / 20) ** 0.7)

    search = PlayedMethods(plan_of(digits), digits, effect)
    search.run()
    assert [one["best"] for one in search.regimes()] == ["BYOL", "Barlow Twins"]


def test_where_none_is_better_it_is_not_decided(digits: datasets.Dataset) -> None:
    search = PlayedMethods(plan_of(digits), digits, lambda method, epochs: 0.7)
    search.run()
    found = answer_of(search)
    assert [one["best"] for one in found["regimes"]] == ["", ""]
    assert found["verdict"].count("Not decided: ") == 2
    assert "is not shown to be better than" in found["verdict"]
    assert found["recommended"] is None
    assert all(row["seeds"] == 3 for row in found["regimes"][0]["rows"][:3])


def test_too_little_time_leaves_it_undecided_and_more_goes_on(digits: datasets.Dataset) -> None:
    effect = lambda method, epochs: 0.9 if method == "vicreg" else 0.6  # noqa: E731
    plan = plan_of(digits, 0.15)
    search = PlayedMethods(plan, digits, effect)
    search.run()
    found = answer_of(search)
    assert "no two methods have three seeds yet" in found["verdict"]
    tried = {row["label"] for row in found["regimes"][0]["rows"]}
    assert {*found["untried"]} == {"SimCLR", "BYOL", "Barlow Twins", "VICReg"} - tried != set()
    assert search.spent <= plan.seconds
    saved = load_plan("a")
    assert saved == plan
    again = PlayedMethods(dataclasses.replace(saved, minutes=60), digits, effect)
    again.run()
    assert [one["best"] for one in again.regimes()] == ["VICReg", "VICReg"]
    assert not {*search.trained} & {*again.trained}


def test_a_stopped_choice_goes_on_and_trains_nothing_twice(digits: datasets.Dataset) -> None:
    names: list[str] = []
    for _ in range(20):
        search = PlayedMethods(plan_of(digits), digits, lambda method, epochs: None if method == "byol" else 0.7)
        search.dies_at = 3
        try:
            search.run()
        except KeyboardInterrupt:
            names += search.trained
            continue
        names += search.trained
        break
    assert len(names) == len({*names})
    assert answer_of(search)["failed"] == {"BYOL": "it broke"}


def test_the_plan_fits_into_the_time(digits: datasets.Dataset) -> None:
    for minutes in (3, 10, 60):
        plan = plan_of(digits, minutes)
        assert plan.is_methods
        assert method_duration(plan, plan.rungs[-1]) <= plan.seconds
        assert plan_from_json(json.loads(json.dumps(plan.to_json()))) == plan
    assert plan_of(digits, 3).rungs < plan_of(digits, 10).rungs
    assert epochs_in_time(plan, "byol", 20) == 10
    assert epochs_in_time(plan, "barlow_twins", 1) == 2
    assert "Left out: CLIP: it needs captions." in plan.sentence()
    with pytest.raises(BadSetting, match=r"0\.05 min are too short to compare two methods; give it 1 min or more"):
        plan_of(digits, 0.05)


def test_only_methods_that_fit_the_data_are_tried(digits: datasets.Dataset) -> None:
    names, left_out = fitting_methods(digits)
    assert {*names} == {*methods.names()} - {"clip"}
    assert left_out == {"CLIP": "it needs captions"}
    bare = dataclasses.replace(digits, labels=np.full(len(digits), -1))
    names, left_out = fitting_methods(bare)
    assert not {"sup_con", "metric", "clip"} & {*names}
    assert left_out["SupCon"] == "it needs labels"
    _, left_out = fitting_methods(digits, 100)
    assert left_out["SimCLR"] == "it needs a large batch, and these images allow 25"
    assert "BYOL" not in left_out
    shapes = datasets.load("shapes", "test")
    assert "clip" in fitting_methods(shapes)[0]


def test_equal_time_follows_what_the_trainings_took(digits: datasets.Dataset) -> None:
    """Not what was planned: Barlow Twins turns out to be twice as fast as the default, and the others as slow."""
    planned = dict.fromkeys(PACES, 1.0)
    search = PlayedMethods(plan_of(digits, paces=planned), digits, lambda method, epochs: 0.7)
    search.run()
    rows = search.regimes()[1]["rows"]
    assert {row["method"]: row["epochs"] for row in rows} == {
        "simclr": 20,
        "byol": 10,
        "barlow_twins": 40,
        "vicreg": 20,
    }
    assert {row["seconds"] for row in rows} == {20.0}


def test_time_for_seeds_is_set_aside_where_two_methods_can_have_them(digits: datasets.Dataset) -> None:
    plan = dataclasses.replace(plan_of(digits, 5), rungs=(20,))
    assert "this time cannot decide" not in plan.sentence()
    search = PlayedMethods(plan, digits, lambda method, epochs: 0.7)
    search.run()
    found = answer_of(search)
    assert sum(row["seeds"] == 3 for row in found["regimes"][0]["rows"]) == 3
    assert found["untried"] == ["BYOL"]
    short = plan_of(digits, 0.15).sentence()
    assert "3 seeds of two methods alone take about 1 min, so this time cannot decide." in short


def test_the_default_is_not_said_to_be_left_out(digits: datasets.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is tried also where the data suit it badly."""
    why = {"SimCLR": "it needs a large batch", "CLIP": "it needs captions"}
    monkeypatch.setattr(planning, "fitting_methods", lambda dataset: ([], why))
    assert {*plan_of(digits).left_out} == {"CLIP"}


def test_planning_tells_which_method_is_timed_and_how_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, float | None]] = []
    monkeypatch.setattr(planning, "seconds_per_epoch", lambda config: PACES.get(config.method, 3.0))
    plan = plan_advice(AdviceRequest("digits", 60, ["method"]), lambda *one: told.append(one))
    timed = [(str(stage), fraction) for stage, fraction in told if str(stage).startswith("timing")]
    count = len(plan.paces)
    assert timed[0] == (f"timing SimCLR, 1 of {count} methods", 0.0)
    assert [fraction for _, fraction in timed] == [number / count for number in range(count)]
    assert len({stage for stage, _ in timed}) == count == len(fitting_methods(datasets.load("digits", "train"))[0])


def test_only_the_named_methods_are_timed_and_compared(
    digits: datasets.Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "seconds_per_epoch", lambda config: PACES[config.method])
    for named, default in ((["byol", "simclr"], "simclr"), (["vicreg", "byol", "vicreg"], "vicreg")):
        plan = plan_advice(AdviceRequest("digits", 60, name=default, methods=named))
        assert plan.choose == ("method",)
        assert {*plan.paces} == {*named} == {*plan.methods}
        assert plan.method == next(iter(plan.paces)) == default
        assert "Compares 2 methods on digits: " in plan.sentence()
        assert "Left out" not in plan.sentence()
        assert plan_from_json(json.loads(json.dumps(plan.to_json()))) == plan
        search = MethodSearch(plan, digits)
        tried = {one.settings.get("method", plan.method) for one in search.questions["method"]}
        assert tried == {*named}
        search.prepare()
        assert plan_advice(AdviceRequest("digits", 90, name=default)).paces == plan.paces  # goes on with the same
        with pytest.raises(BadSetting, match=f"{default} compares .*byol.*; choose another name"):
            plan_advice(AdviceRequest("digits", 90, name=default, methods=["byol", "barlow_twins"]))


def test_methods_that_cannot_be_compared_get_one_sentence(digits: datasets.Dataset) -> None:
    bare = dataclasses.replace(digits, labels=np.full(len(digits), -1))
    with pytest.raises(UnknownName, match=r"unknown method 'simclear'; known: .*simclr"):
        check_methods(["simclr", "simclear"], digits)
    with pytest.raises(BadSetting, match=r"^CLIP cannot be tried on digits: it needs captions$"):
        check_methods(["simclr", "clip"], digits)
    with pytest.raises(BadSetting, match=r"^SupCon cannot be tried on digits: it needs labels$"):
        check_methods(["byol", "sup_con"], bare)
    with pytest.raises(BadSetting, match=r"^a comparison needs at least two methods; got only BYOL$"):
        check_methods(["byol", "byol"], digits)
    small = dataclasses.replace(digits, images=digits.images[:100], labels=digits.labels[:100], ids=digits.ids[:100])
    assert "SimCLR" in fitting_methods(small)[1]
    assert check_methods(["simclr", "byol"], small) == ["simclr", "byol"]  # named: also where the batch is small
    with pytest.raises(BadSetting, match="only where the method is chosen; got temperature"):
        plan_advice(AdviceRequest("digits", 60, ["temperature"], methods=["simclr", "byol"]))
