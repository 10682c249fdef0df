"""The lessons: what they set leads to their goals, and their words are there in each language."""

import json
import re
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from opened_page import page_on
from streamlit.testing.v1 import AppTest

from contrastive_core import losses, pairs, runs
from contrastive_core.base.memory import read_npz
from contrastive_core.base.storage import ROOT
from contrastive_core.lab.batch import load_batch
from contrastive_core.lab.lab_view import BatchRequest, LabBatch, LabView, TowerBatch, request_of
from contrastive_core.lab.view import compute_view
from contrastive_core.spaces import results
from contrastive_lab import query_params
from contrastive_lab.loss_lab import lesson_panel
from contrastive_lab.loss_lab.lessons import LESSONS

CHECKS = ROOT / "contrastive_lab" / "components" / "shared" / "lesson_checks.js"
BY_NAME = {lesson.name: lesson for lesson in LESSONS}


@cache
def batch(pairing: str) -> LabBatch | TowerBatch:
    address = BY_NAME["views"].address
    if pairing == "a_to_b":
        address = BY_NAME["sigmoid"].address
        return load_batch(runs.load(address["run"]), BatchRequest(address["rows"], int(address["size"]), 1, 0))
    request = request_of(address["rows"], pairing, int(address["size"]), int(address["batch"]))
    return load_batch(runs.load(address["run"]), request)


@cache
def viewed(name: str, **knobs: Any) -> LabView:
    """A lesson's batch under its loss; knobs: other than it begins with."""
    pairing = knobs.pop("pairing", BY_NAME[name].address.get("direction", "views"))
    loss = knobs.pop("loss", BY_NAME[name].address["loss"])
    return compute_view(batch(pairing), pairing, loss, knobs)


def push(name: str, **knobs: Any) -> np.ndarray:
    """How hard each negative of the lesson's anchor is pushed, hardest first."""
    view, anchor = viewed(name, **knobs), int(BY_NAME[name].address["anchor"])
    return np.sort(np.abs(view.grad[anchor][view.mask[anchor] == 2]))[::-1]  # type: ignore[no-any-return]


def test_every_check_is_one_that_the_browser_knows() -> None:
    known = re.findall(r"^  (\w+): check\(", CHECKS.read_text(), re.M)
    for lesson in LESSONS:
        assert {check.name for check in lesson.checks} <= set(known), lesson.name


def test_the_goals_are_reached_by_doing_and_not_before() -> None:
    def share(temperature: float) -> float:
        each = push("lower", temperature=temperature)
        return float(each[0] / each.sum())

    def matter(temperature: float) -> float:
        p = push("too_low", temperature=temperature)
        p = p[p > 0] / p.sum()
        return float(np.exp(-(p * np.log(p)).sum()))

    assert share(0.5) < 0.1
    assert share(0.1) > 0.7
    assert matter(0.02) < 1.01
    assert matter(0.5) > 40
    pushed = [int((push("margin", margin=m, normalize=True) > 0).sum()) for m in (1.2, 0.7, 0.1)]
    assert pushed[0] > 6
    assert pushed[1:] == [2, 0]
    triplets = [int((push("margin", loss="triplet", margin=m) > 0).sum()) for m in (0.2, 0.8)]
    assert triplets == [2, 6]


def test_what_the_lesson_on_labels_says_is_so() -> None:
    anchor = int(BY_NAME["labels"].address["anchor"])
    pulls = {}
    for form in ("out", "in"):
        view = viewed("labels", pairing="classes", form=form, temperature=0.2)
        positives = np.flatnonzero(view.mask[anchor] == 1)
        nearest_first = positives[np.argsort(-view.scores[anchor, positives])]
        pulls[form] = -view.grad[anchor, nearest_first]
    assert len(pulls["out"]) > 10
    assert (viewed("labels", form="out").mask[anchor] == 1).sum() == 1
    assert pulls["out"][0] < 0 < pulls["out"][-1]  # the nearest is pushed, the farthest pulled
    assert pulls["in"].argmax() == 0
    assert pulls["in"][-1] < 0.02 * pulls["in"][0]


def test_the_goals_of_the_lesson_on_dimensions_are_reached_by_doing() -> None:
    address = BY_NAME["variance"].address
    rows = load_batch(
        runs.load(address["run"]), request_of("z", "views", int(address["size"]), int(address["batch"]))
    ).rows
    compared = pairs.from_views(torch.from_numpy(rows))

    def share(loss: str, term: str, weight: float, **knobs: float) -> float:
        anatomy = losses.create(loss, **knobs).anatomy(compared)
        return weight * float(anatomy.extras[term]) / float(anatomy.output.value)

    assert share("vicreg", "variance", 25, deviation=float(address["deviation"])) > 0.9
    assert share("vicreg", "variance", 25, deviation=0.2) < 0.4
    assert 0.2 < share("barlow_twins", "off_diagonal", 0.005) < 0.4
    assert share("barlow_twins", "off_diagonal", 0.02, off_diagonal=0.02) > 0.6
    point = pairs.from_views(torch.from_numpy(rows[:1, :1]).expand(32, 2, -1))
    assert float(losses.create("vicreg")(point).value) == pytest.approx(25, abs=0.3)
    assert float(losses.create("barlow_twins")(point).value) == pytest.approx(64)
    assert float(losses.create("negative_cosine")(point).value) == pytest.approx(0, abs=1e-6)


def test_what_the_lesson_on_false_negatives_says_is_so() -> None:
    anchor = int(BY_NAME["false_negative"].address["anchor"])
    view = viewed("false_negative", temperature=0.2)
    (positive,) = view.scores[anchor][view.mask[anchor] == 1]
    negatives = np.where(view.mask[anchor] == 2, view.scores[anchor], -2)
    assert view.names[anchor].endswith("(cross)")
    assert view.column_names[int(negatives.argmax())].endswith("(cross)")
    assert negatives.max() > positive

    def share(beta: float) -> float:
        each = push("false_negative", loss="hard_negative", beta=beta)
        return float(each[0] / each.sum())

    assert share(1.0) < 0.5
    assert share(3.0) > 0.7
    left_out = {m: viewed("false_negative", negative_margin=m).extras["left_out"][anchor] for m in (0.0, -0.3, -0.5)}
    assert left_out == {0.0: 1, -0.3: 4, -0.5: 4}
    nearest = np.argsort(-negatives)[:4]
    assert all(view.column_names[j].endswith("(cross)") for j in nearest)


def test_what_the_lesson_on_clip_and_siglip_says_is_so() -> None:
    def ratio(loss: str, **knobs: float) -> float:
        view, anchor = viewed("sigmoid", loss=loss, **knobs), int(BY_NAME["sigmoid"].address["anchor"])
        grad, mask = view.grad[anchor], view.mask[anchor]
        return float(grad[mask == 2].sum() / -grad[mask == 1].sum())

    for temperature in (0.5, 0.1, 0.05):
        assert ratio("info_nce", temperature=temperature) == pytest.approx(1, abs=1e-4)
    found = {bias: ratio("siglip", bias=bias) for bias in (-10.0, -9.0, -5.0)}
    assert found[-10] < 0.5 < found[-9] < 2 < 100 < found[-5]


def test_the_words_name_what_is_there() -> None:
    names = viewed("views", temperature=0.5).names
    assert names[0] == "image 1, view a (disc)"
    assert names[39].endswith("(cross)")
    view = viewed("too_low", temperature=0.02)
    hardest = np.argmax(np.where(view.mask[39] == 2, view.scores[39], -2))
    assert view.column_names[hardest].endswith("(cross)")


def test_what_the_first_lesson_says_of_pairs_agrees_with_the_alignment_on_explore() -> None:
    drawn = batch("views")
    assert isinstance(drawn, LabBatch)
    a, b = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (drawn.rows[:, 0], drawn.rows[:, 1]))
    of_views = ((a - b) ** 2).sum(1).mean()
    arrays = read_npz(results.shipped_path("scores", BY_NAME["views"].address["run"], "test", "z"))
    on_explore = json.loads(arrays["meta"].tobytes())["scores"]["own"]["alignment"]
    assert on_explore["extras"]["pairs"] == "same class"
    for value in (of_views, on_explore["value"]):
        assert f"{value:.2f}" in BY_NAME["views"].concept


def test_every_lesson_has_its_words() -> None:
    for name, lesson in BY_NAME.items():
        assert all((lesson.title, lesson.task, lesson.question, lesson.goals, lesson.said, lesson.concept)), name
        assert bool(lesson.wrong) == any(check.name == "other_view" for check in lesson.checks)
        assert len(lesson.goals) == len(lesson.checks)
        for choice in lesson.choices:
            assert choice.label
            assert all(choice.options.values())


def at_lesson(app: AppTest, number: int) -> dict[str, Any]:
    app.radio(key="loss_lab-lesson").set_value(number).run()
    assert not app.exception
    return dict(app.query_params)


def test_a_lesson_sets_the_page_and_leaving_it_keeps_that(monkeypatch: pytest.MonkeyPatch) -> None:
    app = page_on("loss_lab", monkeypatch, run="simclr-digits")
    assert "lesson" not in app.query_params
    for number, lesson in enumerate(LESSONS, 1):
        address = at_lesson(app, number)
        shared = {name: text for name, text in lesson.address.items() if name in query_params.ADDRESS}
        assert shared.items() <= address.items(), lesson.name
        assert address["lesson"] == str(number)
        assert app.session_state["run"] == address["run"] == lesson.address["run"]
    before = {k: v for k, v in address.items() if k not in ("lesson", "trade")}
    after = at_lesson(app, 0)
    assert "lesson" not in after
    assert before.items() <= after.items()


def test_the_list_holds_all_lessons_and_ticks_those_that_are_done(monkeypatch: pytest.MonkeyPatch) -> None:
    for number in (1, 10):
        lesson_panel._keep({"number": number, "met": ["9 %"], "isDone": True})
    lessons = page_on("loss_lab", monkeypatch).radio(key="loss_lab-lesson")
    assert len(lessons.options) == 1 + len(LESSONS)
    assert [" ✓" in text for text in lessons.options] == [False, True, *[False] * 8, True]


def test_a_goal_that_was_met_outlives_a_reload_until_the_lesson_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    lesson_panel._keep({"number": 9, "met": ["71 %"], "isDone": False})
    lesson_panel._keep({"number": 99, "met": ["1"], "isDone": True})
    lesson_panel._keep({"number": 2, "met": "none", "isDone": True})
    assert lesson_panel._kept() == ([], {"9": ["71 %"]})
    monkeypatch.setattr(lesson_panel, "_round", lambda: 0)
    assert lesson_panel.panel_of(9)["met"] == ["71 %"]
    monkeypatch.setattr(lesson_panel, "_round", lambda: 1)
    assert lesson_panel.panel_of(9)["met"] == []
    lesson_panel._keep({"number": 9, "met": ["71 %", "4"], "isDone": True})
    assert lesson_panel._kept() == ([9], {})


def test_after_the_last_lesson_there_is_a_next_step() -> None:
    assert lesson_panel.panel_of(10)["next"]["number"] == 1
    for number in range(1, 10):
        lesson_panel._keep({"number": number, "met": ["1"], "isDone": True})
    assert lesson_panel.panel_of(10)["next"] == {"number": lesson_panel.TRAIN, "text": "Train your own encoder →"}
    assert lesson_panel.panel_of(3)["next"]["number"] == 4


def test_another_run_or_another_view_ends_a_lesson(monkeypatch: pytest.MonkeyPatch) -> None:
    app = page_on("loss_lab", monkeypatch)
    assert at_lesson(app, 3)["lesson"] == "3"
    app.selectbox(key="run-picker").set_value("simclr-digits").run()
    assert "lesson" not in app.query_params
    assert at_lesson(app, 3)["lesson"] == "3"
    app.button_group(key="loss_lab-on").set_value("circle").run()
    assert "lesson" not in app.query_params
    assert not app.exception
