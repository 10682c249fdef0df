"""The front page: its star is the Loss Lab's first view, its doors lead somewhere, own runs stand there."""

from typing import Any

import numpy as np
import pytest
from opened_page import page_on
from test_pages import text_of

from contrastive_core import runs
from contrastive_core.base import json_files
from contrastive_core.base.storage import runs_home
from contrastive_core.lab import lab_view
from contrastive_lab import home
from contrastive_lab.loss_lab import lesson_panel
from contrastive_lab.loss_lab.lessons import LESSONS, RUN


def test_the_star_shows_what_the_loss_lab_opens_on() -> None:
    found = lab_view.opening_view(runs.load(RUN))
    assert found is not None
    view, thumbs = found
    assert view.scores.shape == view.mask.shape == (64, 64)
    assert len(thumbs) == 64
    assert all(anchor < 64 for anchor in home.ANCHORS)
    pushes = np.where(view.mask == 2, np.exp(view.scores / 0.2), 0)[home.ANCHORS[0]]
    hardest = int(pushes.argmax())
    assert round(100 * pushes[hardest] / pushes.sum()) == 44
    assert view.names[hardest].endswith("(cross)") == view.names[home.ANCHORS[0]].endswith("(cross)")


def test_a_run_without_a_view_has_no_star() -> None:
    assert lab_view.opening_view(runs.create("own", {"method": "simclr"})) is None


def test_without_runs_it_names_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    app = page_on("home", monkeypatch)
    assert not app.exception
    assert "No runs yet" in text_of(app)
    runs.create("mine", {"method": "simclr"})
    assert "No runs yet" not in text_of(page_on("home", monkeypatch))


def test_the_door_to_wrong_labels_opens_ones_own_newest_run(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Try it on digits" in text_of(page_on("home", monkeypatch))
    for name in ("older", "newer", "untrained"):
        run = runs.create(name, {"method": "simclr", "dataset": "digits"})
        if name != "untrained":
            run.weights.write_bytes(b"weights")
        made = {"created": f"2026-01-0{1 + (name == 'newer')}T00:00:00", "classes": ["a", "b"]}
        json_files.write_json(run.path / "run.json", {**run.manifest, **made})
    app = page_on("home", monkeypatch)
    assert not app.exception
    assert "Opens your run newer." in text_of(app).replace("\\", "")
    assert "Example: digits" in [link.proto.label for link in app.get("page_link")]


def test_the_door_to_the_lessons_opens_the_first_that_is_not_done(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "0 of 10 done." in text_of(page_on("home", monkeypatch)).replace("\\", "")
    for done in (1, 3, 2):
        lesson_panel._keep({"number": done, "met": ["1"], "isDone": True})
    app = page_on("home", monkeypatch)
    assert "3 of 10 done." in text_of(app).replace("\\", "")
    assert "lesson=4" in [link.proto.query_string for link in app.get("page_link")]
    for done in range(1, len(LESSONS) + 1):
        lesson_panel._keep({"number": done, "met": ["1"], "isDone": True})
    assert lesson_panel.next_step()["number"] == 1


def test_continue_leads_to_the_newest_run_and_not_to_an_advisers_try(monkeypatch: pytest.MonkeyPatch) -> None:
    (runs_home() / ".advice" / "advice-digits").mkdir(parents=True)
    for day, name in enumerate(("first", "second", "advice-digits-abcdef-e2-s0"), 1):
        run = runs.create(name, {"method": "simclr"})
        json_files.write_json(run.path / "run.json", {**run.manifest, "created": f"2026-01-0{day}T00:00:00"})
    shown: list[dict[str, Any]] = []
    monkeypatch.setattr(home, "pack", lambda **view: shown.append(view) or b"")
    app = page_on("home", monkeypatch)
    assert not app.exception
    assert [str(text) for text in shown[-1]["buttons"]] == ["Lesson 1: Two views of an image →", "Continue: second →"]
