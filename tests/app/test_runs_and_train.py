"""Runs and Train: every choice counts, one after the other; a sweep form says what it refuses."""

import json
import re
from typing import Any
from urllib.parse import parse_qsl

import pytest
from opened_page import opened
from streamlit.testing.v1 import AppTest

from contrastive_core import runs
from contrastive_core.base.storage import BUNDLE
from contrastive_core.engine import run_folders
from contrastive_core.sweeps import sweep_file
from contrastive_core.sweeps.sweep_file import load
from contrastive_lab.runs import detail, table
from contrastive_lab.runs.sweeps import own_folder


def test_every_choice_of_runs_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    runs.create("mine", {"method": "simclr", "dataset": "digits"}).set_status("done")
    app = opened("runs", monkeypatch)
    for view, sign in (("sweeps", "Sweep"), ("import", "What to import"), ("sweeps", "Sweep")):
        app.button(key=f"open-{view}").click().run()
        assert not app.exception
        assert sign in [choice.label for choice in [*app.selectbox, *app.button_group]]
        assert app.query_params["view"] in (view, [view])
    options = app.selectbox(key="runs-sweep").options
    names = [app.selectbox(key="runs-sweep").value]
    for number in (1, 2, 0):
        app.selectbox(key="runs-sweep").select_index(number).run()
        assert not app.exception
        names.append(app.selectbox(key="runs-sweep").value)
        assert names[-1] in app.query_params["sweep"]
    assert len(options) > 3
    assert names[0] == "temperature"  # results come with it
    assert len(set(names)) == 4


def listed(app: AppTest) -> list[str]:
    return list(app.dataframe[0].value["name"]) if app.dataframe else []


def test_a_leaderboard_is_of_one_data_set_and_the_best_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    runs.create("mine", {"method": "simclr", "dataset": "digits"}).set_status("stopped")
    app = opened("runs", monkeypatch)
    assert app.button_group(key="runs-data").value == "digits"  # of the user's own run
    for data in ("digits", "shapes", "all"):
        app.button_group(key="runs-data").set_value(data).run()
        assert not app.exception
        assert all(data in ("all", name.rpartition("-")[2]) for name in listed(app) if name != "mine")
        scores = app.dataframe[0].value["kNN %"].dropna()
        assert list(scores) == sorted(scores, reverse=True)
        assert ("mine" in listed(app)) == (data != "shapes")
    shown = app.dataframe[0].value.set_index("name")
    assert shown["status"]["mine"] == "■ stopped"
    assert shown["status"]["simclr-digits"] == ""  # done needs no word
    for picture, kind in (("UMAP", "image/png"), ("kNN, 0 to 100 %", "image/svg+xml")):
        assert shown[picture]["simclr-digits"].startswith(f"data:{kind};base64,")
        assert not isinstance(shown[picture]["mine"], str)
    assert app.header[0].value == listed(app)[0]  # the best one is looked at
    assert app.dataframe[0].proto.arrow_data.styler.styles.count("row0_") == len(shown.columns) + 1  # and highlighted
    app.button_group(key="runs-data").set_value("shapes").run()
    columns = json.loads(app.dataframe[0].proto.columns)
    assert columns["kNN, 0 to 100 %"]["label"].endswith("│ raw pixels 42.4")
    assert columns["_index"]["hidden"], "names in the index would be faint"
    assert "name" in app.dataframe[0].value.columns


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ({"search": "MoCo other"}, ["other"]),
        ({"search": "stopped show:mine"}, ["mine"]),
        ({"search": "show:shipped metric"}, ["metric-digits"]),
        ({"search": "failed"}, []),
    ],
)
def test_words_of_the_search_narrow_it(
    address: dict[str, str], found: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs.create("mine", {"method": "simclr", "dataset": "digits"}).set_status("stopped")
    runs.create("other", {"method": "moco_v2", "dataset": "digits"}).set_status("done")
    app = opened("runs", monkeypatch, data="digits", **address)
    assert not app.exception
    assert [name for name in listed(app) if name not in ("moco_v2-digits",)] == found


def test_the_link_of_a_method_finds_its_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    app = opened("methods", monkeypatch, method="moco_v2")
    link = next(link for link in app.get("page_link") if link.proto.label == "Its runs")
    found = opened("runs", monkeypatch, **dict(parse_qsl(link.proto.query_string)))
    assert {name.partition("-")[0] for name in listed(found)} == {"moco_v2"}


def test_a_click_on_delete_counts_where_another_rerun_ends_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    runs.create("mine", {"method": "simclr", "dataset": "digits"}).set_status("done")
    app = opened("runs", monkeypatch, data="all", search="mine")

    def click(label: str) -> None:
        next(button for button in app.button if button.label == label).click().run()
        assert not app.exception

    with monkeypatch.context() as patch:
        patch.setattr(detail, "act", lambda *_: None)  # the button is not drawn again
        click("Delete")
    assert any("Deleted: mine" in info.value for info in app.info)
    click("Undo")
    assert "mine" in [run.name for run in runs.list_runs()]

    def refuse(name: str) -> None:
        raise ValueError(f"{name} is locked")

    monkeypatch.setattr(run_folders, "delete", refuse)
    click("Delete")
    assert [toast.value for toast in app.toast] == ["mine is locked"]


def labeled(elements: Any, label: str) -> Any:
    return next(element for element in elements if element.label == label)


def test_a_run_is_renamed_tagged_and_found_by_its_note(monkeypatch: pytest.MonkeyPatch) -> None:
    runs.create("draft", {"method": "simclr", "dataset": "digits"}).set_status("done")
    app = opened("runs", monkeypatch, data="all", search="draft")
    labeled(app.text_input, "Name").input("draft-final")
    labeled(app.text_input, "Tags").input("good, slow")
    labeled(app.text_area, "Note").input("keep this")
    labeled(app.button, "Save").click().run()
    assert not app.exception
    assert runs.load("draft-final").meta() == {"title": "", "tags": ["good", "slow"], "note": "keep this"}
    app.text_input(key="runs-search").set_value("keep this").run()
    assert listed(app) == ["draft-final"]


def test_two_runs_are_told_apart_and_a_clone_has_its_change(monkeypatch: pytest.MonkeyPatch) -> None:
    config = {"method": "simclr", "dataset": "digits", "epochs": 1}
    pair = [runs.create(f"pair-{seed}", {**config, "seed": seed}) for seed in (0, 7)]
    queued: list[tuple[str, list[str]]] = []
    monkeypatch.setattr("contrastive_core.engine.queue.enqueue", lambda name, words, **_: queued.append((name, words)))
    with monkeypatch.context() as patch:
        patch.setattr(table, "table", lambda *_: (pair, pair))
        app = opened("runs", monkeypatch)
        assert any(re.match(r"1 differs; \d+ are the same", c.value) for c in app.caption)
        assert any("0 → 7" in m.value for m in app.markdown)
        patch.setattr(table, "table", lambda *_: (pair, pair[:1]))
        app.run()
        for text, refused in (("loss.speed", True), ("loss.temperature=0.3", False)):
            labeled(app.text_area, "Other changes, one per line").input(text)
            labeled(app.button, "Train the clone").click().run()
            assert [bool(app.error), not queued] == [refused, refused]
    ((name, words),) = queued
    assert name == "pair-0-2"
    assert "loss.temperature=0.3" in words


def test_a_sweep_of_a_folder_needs_the_word(monkeypatch: pytest.MonkeyPatch) -> None:
    app = opened("runs", monkeypatch, view="sweeps", sweep="a new one…")
    fields = {field.label: field for field in app.text_input}
    fields["Name"].input("pets")
    fields["Data"].input("/home/me/pets")
    next(b for b in app.button if b.label == "Save the sweep").click().run()
    assert not app.exception
    assert ["unknown data set" in e.value for e in app.error] == [True]
    app.run()  # as the page does by itself each second
    assert ["unknown data set" in e.value for e in app.error] == [True]


def test_a_sweep_that_comes_along_is_changed_under_another_name(monkeypatch: pytest.MonkeyPatch) -> None:
    app = opened("runs", monkeypatch, view="sweeps", sweep="temperature")
    fields = {field.label: field for field in [*app.text_input, *app.text_area]}
    assert fields["Name"].value == "my-temperature"
    assert any("24 of these results come with the app" in c.value for c in app.caption)
    for name, refused in (("temperature", "there is a sweep 'temperature' already"), ("mine", "")):
        fields = {field.label: field for field in [*app.text_input, *app.text_area]}
        fields["Name"].input(name)
        fields["TOML"].input(fields["TOML"].value.replace("seeds = [0, 1, 2]", "seeds = [7]"))
        next(b for b in app.button if b.label == "Save").click().run()
        assert not app.exception
        assert [refused in e.value.replace("\\", "") for e in app.error] == [True] * bool(refused)
    assert app.selectbox(key="runs-sweep").value == "mine"
    assert load(own_folder() / "mine.toml").seeds == (7,)


def test_a_scored_sweep_is_judged_on_test_images(monkeypatch: pytest.MonkeyPatch) -> None:
    """As soon as every run has test scores; what a person chose stays."""
    cells = load(BUNDLE / "sweeps" / "temperature.toml").trained()
    rows = [{"run": c.run, "seed": c.seed, "status": "done", "knn_train_sample": 0.5, **c.at} for c in cells]
    monkeypatch.setattr(sweep_file, "status", lambda sweep: [dict(r) for r in rows])
    monkeypatch.setattr(sweep_file, "estimate", lambda sweep: 0.0)
    for row in rows:
        runs.create(row["run"], {})
    app = opened("runs", monkeypatch, view="sweeps", sweep="temperature")
    (picker,) = (g for g in app.button_group if g.label == "Accuracy")
    assert picker.value == "knn_train_sample"
    for row in rows:
        row |= {"knn test": 0.6, "linear_probe test": 0.7}
    app.run()
    (picker,) = (g for g in app.button_group if g.label == "Accuracy")
    assert picker.value == "knn test"
    picker.set_value("linear_probe test").run()
    assert not app.exception
    (picker,) = (g for g in app.button_group if g.label == "Accuracy")
    assert picker.value == "linear_probe test"


def test_a_finished_training_is_chosen_and_offers_its_wrong_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    run = runs.create("mine", {"method": "simclr", "dataset": "digits", "epochs": 2}, classes=["0", "1"])
    app = opened("train", monkeypatch)
    app.session_state["run"] = "simclr-digits"
    run.set_status("running", epoch=1)
    app.session_state["watched"] = app.session_state["training"] = "mine"
    app.run()
    assert app.session_state["run"] == "simclr-digits"
    run.set_status("done", epoch=2)
    app.run()
    assert not app.exception
    assert app.session_state["run"] == "mine"
    assert app.button(key="find-wrong-labels").label == "Find wrong labels"
