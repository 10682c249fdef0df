"""Which lesson is on, what the browser part gets of it, and what is heard from its panel."""

import contextlib
from dataclasses import asdict
from pathlib import Path
from typing import Any

import streamlit as st

from contrastive_core.records import SHIPPED, data_home, json_files
from contrastive_lab import query_params, state
from contrastive_lab.locale import _
from contrastive_lab.loss_lab.controls import VALUES, reported
from contrastive_lab.loss_lab.lessons import LESSONS, PANEL, RUN, LessonOption

CHOSEN = "loss_lab-lesson"  # the widget
ROUND = "lesson-round"  # of the session: counts the beginnings, each of which is drawn anew
HEARD = "lesson-heard"  # of the session: the last press of a setting in the panel
BY_PANEL = "lesson-by-panel"  # of the session: the beginning that was asked for in the panel


def choose_lesson() -> int:
    """The control above the Loss Lab; returns the number of the lesson, 0 for none."""
    if not (SHIPPED / RUN).exists():
        return 0
    run, asked = state.chosen_run(), _known(query_params.requested("lesson"))
    number = asked or _known(query_params.page_values().get(CHOSEN))
    address = LESSONS[number - 1].address if number else {}
    is_its_run = run is not None and run.name == address.get("run")
    if asked:
        if not is_its_run:  # the run that a lesson looks at is the sidebar's, too
            st.session_state["run"] = address["run"]
            st.rerun()
        query_params.ask({name: text for name, text in address.items() if name != "run"})
    elif not is_its_run:
        leave()  # what a lesson says holds for its run alone
    titles, label = {n: _title(n) for n in range(len(LESSONS) + 1)}, _words()["control"]
    look: dict[str, Any] = {"format_func": titles.get, "label_visibility": "collapsed", "width": 430}
    return query_params.one_of(
        st.selectbox, label, titles, name="lesson", key=CHOSEN, text=lambda n: str(n or ""), on_change=_picked, **look
    )


def leave() -> None:
    """Free play: all stays as it is, without a lesson."""
    query_params.choose(CHOSEN, 0)


def key_of(key: str, number: int) -> str:
    """The key of a browser part: each beginning of a lesson is a part of its own."""
    return f"{key} lesson {number} {_round()}" if number else key


def panel_of(number: int) -> dict[str, Any] | None:
    """A lesson as components/shared/lesson.js draws it; None for no lesson."""
    if not number:
        return None
    lesson = LESSONS[number - 1]
    return {
        "number": number,
        "title": _title(number),
        "next": _(LESSONS[number].title) if number < len(LESSONS) else "",
        "question": _(lesson.question),
        "goals": [_(goal) for goal in lesson.goals],
        "said": f"{_(lesson.said)}\n{_(lesson.concept)}",
        "wrong": _(lesson.wrong),
        "checks": [asdict(check) for check in lesson.checks],
        "region": lesson.region,
        "first": int(lesson.address.get("anchor", 0)),
        "words": _words(),
        "choices": [_choice(choice) for choice in lesson.choices],
        "heard": st.session_state.get(HEARD, 0),
        "focus": st.session_state.get(BY_PANEL) == _round(),
    }


def hear(key: str) -> None:
    """Handle a click in the lesson panel: another lesson, or a setting of this one."""
    report = reported(key)
    _keep_done(_known(report.get("done")))
    if (number := report.get("go")) is not None:
        _begin(_known(number))
        st.session_state[BY_PANEL] = _round()
    if isinstance(press := report.get("press"), int):
        st.session_state[HEARD] = press
    for choice in (c for lesson in LESSONS for c in lesson.choices):
        if (value := (report.get("set") or {}).get(choice.name)) in choice.options:
            query_params.choose(choice.key, value)


def next_lesson() -> int:
    """The first lesson that was not done on this computer; the first of all once all were."""
    done = _done()
    return next((n for n in range(1, len(LESSONS) + 1) if n not in done), 1)


def _done() -> list[int]:
    try:
        return [int(n) for n in json_files.read_object(_done_path())["done"]]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _keep_done(number: int) -> None:
    if number and number not in (done := _done()):
        with contextlib.suppress(OSError):  # a full disk: the lesson is offered again
            json_files.write_json(_done_path(), {"done": sorted([*done, number])})


def _done_path() -> Path:
    return data_home() / "lessons.json"


def _begin(number: int) -> None:
    """A lesson from its start, or free play."""
    if not number:
        leave()
        return
    st.session_state[ROUND] = _round() + 1
    st.session_state[HEARD] = 0
    st.session_state.pop(VALUES, None)  # knobs that the lesson does not set begin at their defaults
    query_params.begin(LESSONS[number - 1].address | {"lesson": str(number)})


def _round() -> int:
    return int(st.session_state.get(ROUND, 0))


def _picked() -> None:
    _begin(_known(query_params.chosen(CHOSEN)))


def _known(number: Any) -> int:
    """The number of a lesson; 0 for what is none."""
    text = str(number)
    return int(text) if text.isdecimal() and int(text) <= len(LESSONS) else 0


def _words() -> dict[str, str]:
    """The words of the panel in the session's language."""
    return {name: _(text) for name, text in PANEL.items()}


def _title(number: int) -> str:
    if not number:
        return _words()["free"]
    name = _words()["name"].format(n=number, of=len(LESSONS))
    return f"{name} · {_(LESSONS[number - 1].title)}"


def _choice(choice: LessonOption) -> dict[str, Any]:
    chosen = query_params.current("", choice.options, next(iter(choice.options)), choice.key)
    options = {value: _(text) for value, text in choice.options.items()}
    return {"name": choice.name, "label": _(choice.label), "options": options, "chosen": chosen}
