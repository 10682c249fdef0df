"""The search: the same time for each candidate, three seeds for the best, what is claimed, and going on after a kill.
Trainings are played."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from played_advice import Played, made, played

from contrastive_core import methods
from contrastive_core.advice import candidates, plan, search
from contrastive_core.advice.candidates import AdviceRequest, batch_of, fitting_methods, make_plan, plan_advice
from contrastive_core.advice.evidence import held_out_rows
from contrastive_core.advice.plan import Plan, read_answer
from contrastive_core.advice.search import advise
from contrastive_core.base.errors import BadSetting, Locked, UnknownName
from contrastive_core.base.lock import lock
from contrastive_core.base.score import wilson
from contrastive_core.cli.train import text_of
from contrastive_core.compare.verdicts import SettingScores, interval_and_basis
from contrastive_core.data import datasets

PACES = {"simclr": 1.0, "byol": 2.0, "barlow_twins": 0.5, "vicreg": 1.0}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CONTRASTIVE_LAB_RUNS", str(tmp_path / "runs"))
    return tmp_path / "runs"


@pytest.fixture
def digits() -> datasets.Dataset:
    return datasets.load("digits", "train")


def by_temperature(settings: dict[str, Any]) -> float | None:
    if settings.get("loss.temperature") == 1.0:
        return None
    return 0.75 - 0.2 * abs(np.log10(settings.get("loss.temperature", 0.2) / 0.5))


# --- what is shown -------------------------------------------------------------------------------


def test_a_planted_optimum_is_found_and_shown() -> None:
    search = played(made(), effect=staticmethod(by_temperature))
    search.run()
    found = json.loads(json.dumps(search.answer()))
    best = found["rows"][0]
    assert best["label"] == "τ 0.5"
    assert best["is_chosen"]
    assert best["seeds"] == 3
    assert found["recommended"] == best
    assert found["is_shown"]
    assert found["verdict"].startswith("Use τ 0.5. τ 0.5 is better than τ 0.2 by ")
    assert "(95 % CI over images and 3 seeds, corrected for 2 comparisons: " in found["verdict"]
    assert found["failed"] == {"τ 1": "it broke"}
    assert "failed: τ 1: it broke" in text_of(found)
    assert [len(t.by_seed) for t in search.trials if t.candidate.is_default] == [3]
    assert sum(len(t.by_seed) == 3 for t in search.trials) == 3  # the default and the best two


def test_fewer_than_three_seeds_show_nothing_however_large_the_difference() -> None:
    effect = staticmethod(lambda settings: 0.95 if settings.get("head") == "linear" else 0.3)
    search = played(made(0.9, ("head",)), effect=effect, seconds=20.0)
    search.references = {"untrained": SettingScores("an untrained encoder", {0: 0.99})}
    search.run()
    found = search.answer()
    assert found["verdict"].startswith("Keep the default, nonlinear head. linear head scored higher than ")
    assert "points, but fewer than three seeds cannot show a difference." in found["verdict"]
    assert "None of them beats an untrained encoder (99.0 %), so train for longer" in found["verdict"]
    assert found["recommended"] is not None
    assert found["recommended"]["is_default"]
    assert found["untried"] == ["no head"]
    for row in found["rows"]:
        n = search.plan.held_out
        assert row["interval"] == pytest.approx(wilson(round(n * row["mean"]), n))
        assert row["basis"] == "images, one seed"
    told = text_of(json.loads(json.dumps(found)))
    assert "over images, one seed)" in told
    assert "1 seed\n" in told
    assert "1 seeds" not in told


def test_an_interval_says_what_it_is_over() -> None:
    right = np.repeat([1.0, 0.0, np.nan], [60, 20, 7])

    def of(seeds: int, **more: Any) -> SettingScores:
        return SettingScores("a", dict.fromkeys(range(seeds), 0.75), dict.fromkeys(range(seeds), right), **more)

    basis = {"images": of(1, is_fixed=True), "images, one seed": of(1), "images, 2 seeds": of(2)}
    basis |= {"images and 3 seeds": of(3), "3 seeds": SettingScores("b", {0: 20.0, 1: 22.0, 2: 21.0})}
    basis |= {"": SettingScores("one score", {0: 20.0})}
    for said, setting in basis.items():
        interval, told = interval_and_basis(setting)
        assert told == said
        assert (interval is None) is (said == "")
    assert interval_and_basis(basis["images"])[0] == pytest.approx(wilson(60, 80))  # the unlabeled count for nothing


# --- going on ------------------------------------------------------------------------------------


def test_a_killed_adviser_goes_on_and_trains_nothing_twice() -> None:
    names: list[str] = []
    for _ in range(30):
        search = played(made(), dies_at=4, effect=staticmethod(by_temperature))
        try:
            search.run()
        except KeyboardInterrupt:
            names += search.trained
        else:
            break
    names += search.trained
    assert len(names) == len(set(names)) == made().trainings(7)
    whole = played(replace(made(), name="b"), effect=staticmethod(by_temperature))
    whole.run()
    assert whole.answer()["rows"][0]["values"] == search.answer()["rows"][0]["values"]
    assert search.answer()["failed"] == {"τ 1": "it broke"}  # also known after it


def test_slow_trainings_leave_time_for_seeds() -> None:
    """They take nearly twice as long as planned: fewer candidates are tried, the best with every seed."""
    search = played(made(5), seconds=1.8 * (made(5).seconds + 2))
    search.run()
    tried = [len(t.by_seed) for t in search.trials]
    assert tried.count(3) >= 2
    assert 0 in tried
    assert search.spent <= search.plan.budget


def test_a_default_that_fails_is_told_and_nothing_is_recommended(monkeypatch: pytest.MonkeyPatch) -> None:
    effect = staticmethod(lambda settings: 0.8 if "loss.temperature" in settings else None)
    monkeypatch.setattr(search, "Search", type("Case", (Played,), {"effect": effect}))
    found = advise(made())
    assert found["failed"] == {"τ 0.2": "it broke"}
    assert len(found["rows"]) == 6
    assert found["recommended"] is None
    assert found["test"] == ""
    assert found["done"]


def test_two_at_one_adviser_and_a_damaged_plan(home: Path) -> None:
    folder = plan.folder_of("a")
    folder.mkdir(parents=True)
    with lock(folder / "lock"), pytest.raises(Locked):
        advise(made())
    for text in ("{", "{}", '{"name": "a", "rungs": [2]}'):
        (folder / "plan.json").write_text(text)
        with pytest.raises(BadSetting, match="damaged or of an earlier version"):
            plan.load_plan("a")
    (folder / "answer.json").write_text('{"best": {}, "regimes": []}')
    assert read_answer("a") is None


# --- the plan ------------------------------------------------------------------------------------


def test_the_plan_fits_into_the_time_and_is_the_same_after_json() -> None:
    for minutes in (3, 10, 60):
        found = made(minutes)
        assert found.duration <= found.budget
        assert Plan.from_dict(json.loads(json.dumps(found.to_dict()))) == found
        assert len({one.epochs for one in found.candidates}) == 1  # one method: the same time is the same epochs
    assert [made(minutes).candidates[0].epochs for minutes in (1, 3, 60)] == [7, 11, 20]
    short = made(1.7)
    assert [one.label for one in short.candidates] == ["τ 0.2", "τ 0.05", "τ 1"]  # far from each other
    assert short.left_out["τ 0.5"] == "not enough time"
    assert short.sentence().endswith("Left out: τ 0.5, τ 0.1, τ 0.3, τ 0.7: not enough time.")
    assert "Each of them trains with 3 seeds." in short.sentence()
    assert "With 3 min, all 7 settings are tried." in short.sentence()
    assert len(made(3).candidates) == 7
    assert "These trainings are short. With 2 min, each of them has 8 epochs." in made(1).sentence()
    assert made(2).candidates[0].epochs >= 8
    assert "Each training takes about 20 s (epochs: 20)" in made(60).sentence()
    assert "With" not in made(60).sentence()


def test_trainings_below_the_pixels_name_their_length_and_the_time_of_longer_ones() -> None:
    search = played(made(3), seconds=12.0)
    search.references = {"pixels": SettingScores("raw pixels", {0: 0.976})}
    search.run()
    verdict = str(search.answer()["verdict"])
    assert verdict.startswith("Keep the default, τ 0.2. ")
    end = "for trainings of 11 epochs. None of them beats raw pixels (97.6 %), so train for longer before you use the "
    assert end + "encoder. A search with 20 epochs takes about 5 min." in verdict
    search.references = {"pixels": SettingScores("raw pixels", {0: 0.5})}
    assert "None of them" not in str(search.answer()["verdict"])


def test_each_method_gets_the_same_seconds() -> None:
    found = made(60, ("method",), pace=PACES, methods=[*PACES])
    assert {one.settings.get("method", "simclr"): one.epochs for one in found.candidates} == {
        "simclr": 20,
        "byol": 10,
        "barlow_twins": 40,
        "vicreg": 20,
    }
    assert "Each training takes about 20 s (epochs: 10–40)" in found.sentence()
    effect = staticmethod(lambda settings: 0.9 if settings["method"] == "byol" else 0.6)
    search = played(found, effect=effect)
    search.run()
    answer = search.answer()
    assert answer["verdict"].startswith("Use BYOL. BYOL is better than SimCLR by ")
    assert answer["recommended"] is not None
    assert answer["recommended"]["settings"] == {"method": "byol"}


def test_several_questions_change_one_thing_at_a_time_and_without_a_difference_the_default_stands() -> None:
    search = played(made(60, ("temperature", "augmentation", "head")))
    search.run()
    labels = [t.candidate.label for t in search.trials]
    assert labels[0] == "τ 0.2, usual views, nonlinear head"
    assert {"τ 0.5", "linear head", "smaller crops"} < {*labels}
    assert all(len(t.candidate.settings) <= 2 for t in search.trials)
    found = search.answer()
    assert not found["is_shown"]
    assert found["verdict"].startswith(f"Keep the default, {labels[0]}. No significant difference between ")
    assert found["recommended"] is not None
    assert found["recommended"]["is_default"]


def test_what_cannot_be_planned_has_its_sentence(digits: datasets.Dataset) -> None:
    for asked, said in (
        ({"minutes": 0.1}, "too short for a comparison with 3 seeds; allow at least 2 min"),
        ({"minutes": -1}, "above 0"),
        ({"choose": ("colour",)}, "--choose accepts temperature, method"),
        ({"choose": None, "methods": ["simclr", "clip"]}, "^CLIP cannot be tried on digits: it needs captions$"),
        ({"choose": None, "methods": ["byol", "byol"]}, "^nothing to choose: method has only one setting here$"),
        ({"methods": ["simclr", "byol"]}, "only where the method is chosen; got temperature"),
    ):
        with pytest.raises(BadSetting, match=said):
            made(**asked)
    with pytest.raises(UnknownName, match=r"unknown method 'simclear'; known: .*simclr"):
        made(methods=["simclr", "simclear"], choose=None)
    few = replace(digits, images=digits.images[:5], labels=digits.labels[:5], ids=digits.ids[:5])
    with pytest.raises(BadSetting, match="has 5 training images; at least 40"):
        held_out_rows(few)
    for labels in (np.zeros(len(digits), np.int64), np.full(len(digits), -1)):
        with pytest.raises(BadSetting, match="needs labels of at least two classes"):
            make_plan(AdviceRequest("digits", 10, ["temperature"], "b"), replace(digits, labels=labels), lambda _: 1.0)


def test_held_out_rows_are_of_every_class_and_left_out_of_training(digits: datasets.Dataset) -> None:
    rows = held_out_rows(digits)
    counts = np.bincount(digits.labels[rows], minlength=10)
    assert counts.min() >= 0.18 * np.bincount(digits.labels).min()
    search = played(made())
    search.run()
    ids = (search.folder / "held_out.txt").read_text().split()
    assert ids == [digits.ids[i] for i in rows]
    assert "--exclude" in search.cell(search.plan.candidates[0], 0).arguments()


def test_small_sets_are_tried_in_the_batches_that_are_advised() -> None:
    assert [batch_of(128, n) for n in (2000, 1024, 1023, 500, 40, 5)] == [128, 128, 64, 32, 8, 8]
    search = played(replace(made(choose=("head",)), batch_size=64))
    assert "in batches of 64" in search.plan.sentence()
    assert "batch_size=64" in search.cell(search.plan.candidates[0], 0).arguments()


# --- methods -------------------------------------------------------------------------------------


def test_only_methods_that_fit_the_data_are_tried(digits: datasets.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    names, left_out = fitting_methods(digits)
    assert {*names} == {*methods.names()} - {"clip"}
    assert left_out == {"CLIP": "it needs captions"}
    bare = replace(digits, labels=np.full(len(digits), -1))
    names, left_out = fitting_methods(bare)
    assert not {"sup_con", "metric", "clip"} & {*names}
    assert left_out["SupCon"] == "it needs labels"
    small = replace(digits, images=digits.images[:100], labels=digits.labels[:100], ids=digits.ids[:100])
    assert fitting_methods(small)[1]["SimCLR"] == "it needs a large batch, but these images allow only 25"
    assert "BYOL" in {methods.get(name).card.title for name in fitting_methods(small)[0]}
    assert fitting_methods(small, ["simclr", "byol", "simclr"]) == (["simclr", "byol"], {})  # named: in any batch
    assert "clip" in fitting_methods(datasets.load("shapes", "test"))[0]
    assert "Left out: CLIP: it needs captions" in made(60, ("method",)).sentence()
    why = {"SimCLR": "it needs a large batch", "CLIP": "it needs captions"}
    monkeypatch.setattr(candidates, "fitting_methods", lambda dataset, named=(): (["byol"], why))
    assert {*made(60, ("method",)).left_out} == {"CLIP"}  # the default is tried, and not said to be left out


def test_only_the_named_methods_are_timed_and_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    timed: list[str] = []
    monkeypatch.setattr(candidates, "seconds_per_epoch", lambda config: timed.append(config.method) or 1.0)
    for named, default in ((["byol", "simclr"], "simclr"), (["vicreg", "byol", "vicreg"], "vicreg")):
        stages: list[tuple[str, float | None]] = []
        found = plan_advice(
            AdviceRequest("digits", 60, name=default, methods=named), lambda *one, told=stages: told.append(one)
        )
        assert timed[-2:] == [default, *({*named} - {default})]
        assert stages[-2:][0] == (f"timing {methods.get(default).card.title} (method 1 of 2)", 0.0)
        assert found.choose == ("method",)
        assert found.method == default
        assert "Compares 2 settings of method on digits: " in found.sentence()
        assert "Left out" not in found.sentence()
        played(found, dies_at=1, effect=staticmethod(lambda settings: 0.5))
        plan.save_plan(found)
        for again in ({}, {"methods": named}, {"methods": [*named, "moco"]}):  # there was no time for the last
            assert plan_advice(AdviceRequest("digits", name=default, **again)) == found
        for other in ({"methods": ["byol", "barlow_twins"]}, {"minutes": 90.0}, {"choose": ["head"]}):
            with pytest.raises(BadSetting, match=rf"{default} was planned with {next(iter(other))} .*; choose another"):
                plan_advice(AdviceRequest("digits", name=default, **other))
