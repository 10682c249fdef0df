"""The adviser on Train: a look, a plan, what was found; every choice counts."""

import re
from pathlib import Path

import numpy as np
import pytest
from opened_page import field, press
from played_advice import made, played
from streamlit.testing.v1 import AppTest

from contrastive_core.advice import plan as plans
from contrastive_core.base import json_files
from contrastive_core.base.storage import ROOT
from contrastive_core.engine import answers, process, queue
from contrastive_lab import locale, query_params
from contrastive_lab.train import adviser


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AppTest:
    """Train on digits with the section open; no process is started."""
    monkeypatch.setenv("CONTRASTIVE_LAB_RUNS", str(tmp_path / "runs"))
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(process, "spawn", lambda *a, **k: None)
    answers.make("look", {"dataset": "digits", "method": "simclr"}, device="cpu")
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=90).run()
    app.switch_page("pages/train.py")
    app.query_params["adviser"] = "yes"
    return app


def text_of(app: AppTest) -> str:
    kinds = (app.markdown, app.caption, app.success, app.info, app.warning)
    return "\n".join(str(e.value) for kind in kinds for e in kind).replace("\\", "")


def test_every_choice_counts_and_the_plan_is_said_first(app: AppTest, monkeypatch) -> None:
    app.run()
    assert "1,437 training and 360 test images of 8 × 8 pixels, in gray" in text_of(app)
    assert "**Mirroring**: no mirroring" in text_of(app)
    for chosen in (["head"], ["head", "batch"], ["temperature"]):
        app.multiselect[-1].set_value(chosen).run()
        assert app.multiselect[-1].value == chosen
        assert not app.exception
    field(app, "Minutes").set_value(20).run()
    asked = {"dataset": "digits", "method": "simclr", "minutes": 20.0, "choose": ["temperature"]}
    answers.make("advice_plan", asked, device="cpu")
    press(app, "Plan it")
    assert "287 of 1,437 training images are held out" in text_of(app)
    started: list[tuple[str, ...]] = []
    monkeypatch.setattr(process, "spawn", lambda key, arguments, **k: started.append(arguments))
    before = text_of(app)
    press(app, "Let it try")
    assert not app.exception
    assert started[0][:2] == ("advise", "digits")
    name = started[0][started[0].index("--name") + 1]
    plan = plans.load_plan(name)
    assert plan is not None
    assert plan.sentence() in before  # what was said is what is tried
    assert "is already running on these images" not in text_of(app)
    monkeypatch.setattr(locale, "language", lambda: "zh")
    assert not re.search("[a-z]+ [a-z]+", locale.text(plan.sentence()))
    assert field(app, "Adviser").value == name


def test_the_card_offers_what_was_best_on_such_images(app: AppTest) -> None:
    app.query_params["adviser"] = "no"
    app.run()
    assert "**Temperature τ 0.2** (default)" in text_of(app)
    assert "SimCLR was best at τ = 0.05" in text_of(app)
    app.button(key="use-best").click().run()
    assert not app.exception
    assert field(app, "Temperature τ").value == 0.05
    assert "**Temperature τ 0.05**" in text_of(app)
    assert "use-best" not in [b.key for b in app.button]
    assert not app.multiselect
    app.button(key="open-adviser").click().run()
    assert not app.exception
    assert [m.label for m in app.multiselect] == ["Questions"]


def test_suggestions_become_further_settings_instead_of_earlier_values(monkeypatch: pytest.MonkeyPatch) -> None:
    values = {"train-further": "batch_size=8\nrecipe.views=byol"}
    for name, put in (("key_of", "train-{}".format), ("page_values", lambda: values), ("keep", lambda **_: None)):
        monkeypatch.setattr(query_params, name, put)
    monkeypatch.setattr(query_params, "choose", lambda key, text, in_popover: values.update({key: text}))
    adviser._use(["batch_size=64", "recipe.hue=0"])
    assert values == {"train-further": "recipe.views=byol\nbatch_size=64\nrecipe.hue=0"}


def test_what_was_found_stands_there_and_the_winner_can_be_trained_for_longer(app: AppTest, monkeypatch) -> None:
    def effect(settings):
        return 0.85 - 0.4 * abs(np.log10(settings.get("loss.temperature", 0.2) / 0.5))

    search = played(made(), effect=staticmethod(effect))
    search.run()
    folder = plans.folder_of("a")
    found = {**search.answer(), "done": True}
    found["test"] = "On the test images: 80 %."
    json_files.write_json(folder / "answer.json", found)
    app.run()
    assert not app.exception
    label = found["recommended"]["label"]
    assert label == "τ 0.5"
    assert f"Use {label}" in text_of(app)
    assert "Why: the comparisons" in [e.label for e in app.expander]
    assert "On the test images: 80 %." in text_of(app)
    assert "τ 0.2 (default)" in set(app.dataframe[0].value["settings"])
    queued: list[tuple[str, list[str]]] = []
    monkeypatch.setattr(queue, "enqueue", lambda name, arguments, **_: queued.append((name, arguments)))
    press(app, f"Train {label} for 100 epochs")
    ((name, arguments),) = queued
    assert name == "a-longer"
    assert f"loss.temperature={label.removeprefix('τ ')}" in arguments
    assert "--exclude" not in arguments


def test_one_that_was_killed_can_go_on_and_a_damaged_one_is_not_listed(app: AppTest) -> None:
    search = played(made(), dies_at=3)
    with pytest.raises(KeyboardInterrupt):
        search.run(lambda s: json_files.write_json(s.folder / "answer.json", s.answer()))
    (plans.folder_of("b")).mkdir(parents=True)
    (plans.folder_of("b") / "plan.json").write_text("{")
    app.run()
    assert not app.exception
    assert "a is not running." in text_of(app)
    assert any(b.label == "Go on" for b in app.button)
    assert [s.options for s in app.selectbox if s.label == "Adviser"] == [["a: temperature, 10 min"]]


def test_its_tries_stand_among_runs_and_not_in_the_picker(app: AppTest) -> None:
    from contrastive_core import runs

    plans.save_plan(made())
    for name in ("a-0123ab-e2-s0", "mine-0123ab-e2-s0"):  # there is no adviser "mine"
        runs.create(name, {"method": "simclr", "dataset": "digits"}).set_status("done")
    app.query_params.clear()
    app.switch_page("pages/explore.py").run()
    (picker,) = (s for s in app.selectbox if s.label == "Run")
    assert "mine-0123ab-e2-s0" in "".join(picker.options)
    assert "a-0123ab-e2-s0" not in "".join(picker.options)
    app.query_params["run"] = "a-0123ab-e2-s0"  # one that is asked for stands there
    app.run()
    assert not app.exception


def test_methods_to_compare_are_chosen_and_planning_says_what_it_times(app: AppTest, monkeypatch) -> None:
    from contrastive_core.base.progress import Progress
    from contrastive_core.engine.jobs import Job

    asked: list[dict] = []
    timing = Progress("timing BYOL, 2 of 3 methods", 1 / 3)
    monkeypatch.setattr(Job, "start", lambda question, **_: asked.append(dict(question.values)))
    monkeypatch.setattr(Job, "is_running", lambda question: dict(question.values) in asked)
    monkeypatch.setattr(Job, "progress", lambda question: timing if dict(question.values) in asked else None)
    stopped: list[str] = []
    monkeypatch.setattr(Job, "stop", lambda question: stopped.append(question.kind))
    app.run()
    assert not any(m.label == "Methods to compare" for m in app.multiselect)
    field(app, "Questions").set_value(["method"]).run()
    assert not app.exception
    for chosen in (["byol", "simclr"], ["vicreg", "byol", "nnclr"], ["simclr", "vicreg"]):
        methods = field(app, "Methods to compare")
        assert "CLIP" not in methods.options  # digits have no captions
        methods.set_value(chosen).run()
        assert field(app, "Methods to compare").value == chosen
        assert not app.exception
    press(app, "Plan it")
    assert asked[-1]["methods"] == ["simclr", "vicreg"]
    assert "Each method is timed first" in text_of(app)
    bars = [p for p in app.get("progress") if p.proto.text.startswith("Planning the search: timing BYOL")]
    assert len(bars) == 1
    press(app, "Stop")
    assert stopped == ["advice_plan"]
    field(app, "Methods to compare").set_value(["byol"]).run()
    assert "Choose at least two methods" in text_of(app)
    assert not any(b.label == "Plan it" for b in app.button)


def test_train_names_an_adviser_at_work_and_leads_to_it(app: AppTest) -> None:
    from contrastive_core import runs
    from contrastive_core.base.lock import lock

    plans.save_plan(made())
    app.query_params["adviser"] = "no"
    app.run()
    assert not any(b.label == "Watch the adviser" for b in app.button)
    with lock(plans.folder_of("a") / "lock"):
        runs.create("a-0123ab-e2-s0", {"method": "simclr", "dataset": "digits"}).set_status("running")
        app.run()
        assert not app.exception
        assert "The adviser a is training on digits." in text_of(app)
        press(app, "Watch the adviser")
        assert field(app, "Adviser").value == "a"
        assert "a is running in another process" in text_of(app)
        assert not any(b.label == "Go on" for b in app.button)


def test_runs_shows_what_the_adviser_scored_and_on_which_images(app: AppTest) -> None:
    from contrastive_core import runs
    from contrastive_core.advice.evidence import write_scores

    search = played(made(0.9, ("head",)), seconds=12.0)
    search.run()
    scores = search.trials[0].by_seed[0]
    share = search.trials[0].scores.scores[0]
    for number, trial_name in enumerate((scores.run, "mine")):
        runs.create(trial_name, {"method": "simclr", "dataset": "digits", "seed": number}).set_status("done")
    write_scores(search.folder / "scores", scores)
    app.switch_page("pages/runs.py")
    app.query_params["data"] = "digits"
    app.run()
    assert "1 try of the adviser is listed separately" in text_of(app)
    app.text_input(key="runs-search").set_value("show:mine").run()
    assert list(app.dataframe[0].value["name"]) == ["mine"]
    app.text_input(key="runs-search").set_value("show:tries").run()
    assert not app.exception
    shown = app.dataframe[0].value
    assert list(shown["name"]) == [scores.run]
    assert shown["Adviser's kNN %"].iloc[0] == pytest.approx(100 * share)
    assert shown["kNN %"].isna().all()  # nothing of the test images
    said = f"The adviser a scored it: kNN {100 * share:.1f} % on 287 of 1,437 training images, held out."
    assert said in text_of(app).replace("\\", "")
    (search.folder / "scores" / f"{scores.run}.json").write_text("{")
    app.run()
    assert not app.exception
