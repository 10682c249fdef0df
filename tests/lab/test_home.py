"""The front page: its doors lead somewhere, its circle is the loss's, own runs stand there."""

from __future__ import annotations

import pytest
from test_pages import opened, text_of

from contrastive_core import losses
from contrastive_core.paths import ROOT, runs_home
from contrastive_core.records import runs
from contrastive_core.storage import json_files
from contrastive_lab import home
from contrastive_lab.loss_lab import lesson_panel
from contrastive_lab.loss_lab.lessons import LESSONS


def test_the_circle_follows_the_loss() -> None:
    assert losses.create("nt_xent", temperature=0.2).kernel() == home.KERNEL
    assert losses.get("nt_xent").card.score == "dot"


def test_every_door_leads_to_a_page() -> None:
    for door in home.DOORS:
        assert door.title
        assert door.text
        assert (ROOT / "pages" / f"{door.page}.py").exists()


def test_without_runs_it_names_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    app = opened("home", monkeypatch)
    assert not app.exception
    assert "pulled together" in text_of(app)
    assert "No runs yet" in text_of(app)


def test_the_door_to_wrong_labels_opens_ones_own_newest_run(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "It opens on an example" in text_of(opened("home", monkeypatch))
    for name in ("older", "newer", "untrained"):
        run = runs.create(name, {"method": "simclr", "dataset": "digits"})
        if name != "untrained":
            run.weights.write_bytes(b"weights")
        made = {"created": f"2026-01-0{1 + (name == 'newer')}T00:00:00", "classes": ["a", "b"]}
        json_files.write_json(run.path / "run.json", {**run.manifest, **made})
    app = opened("home", monkeypatch)
    assert not app.exception
    assert "It opens on your run newer." in text_of(app).replace("\\", "")


def test_the_door_to_the_lessons_opens_the_first_that_is_not_done(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Opens on lesson 1: Two views of an image." in text_of(opened("home", monkeypatch)).replace("\\", "")
    for done in (1, 3, 2):
        lesson_panel._keep_done(done)
    assert "Opens on lesson 4: Too low." in text_of(opened("home", monkeypatch)).replace("\\", "")
    for done in range(1, len(LESSONS) + 1):
        lesson_panel._keep_done(done)
    assert lesson_panel.next_lesson() == 1


def test_ones_own_runs_stand_there_and_an_advisers_tries_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    (runs_home() / ".advice" / "advice-digits").mkdir(parents=True)
    for name in ("first", "second", "third", "fourth", "advice-digits-abcdef-e2-s0"):
        runs.create(name, {"method": "simclr"})
    app = opened("home", monkeypatch)
    assert not app.exception
    text = text_of(app)
    assert "No runs yet" not in text
    assert text.count("SimCLR, ") == home.LATEST


def test_an_advisers_tries_stand_apart_in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    (runs_home() / ".advice" / "advice-digits").mkdir(parents=True)
    for name in ("mine", "advice-digits-abcdef-e2-s0"):
        runs.create(name, {"method": "simclr"})
    app = opened("runs", monkeypatch)
    assert "1 try of the adviser is listed separately" in text_of(app)
    show = next(g for g in app.button_group if g.label == "Show")
    for chosen, names in (("tries", {"advice-digits-abcdef-e2-s0"}), ("mine", {"mine"})):
        show.set_value(chosen).run()
        assert not app.exception
        assert set(app.dataframe[0].value["name"]) == names
        show = next(g for g in app.button_group if g.label == "Show")
