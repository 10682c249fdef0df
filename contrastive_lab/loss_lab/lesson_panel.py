"""Which lesson is on, what the browser part gets of it, and what is heard from its panel."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import streamlit as st

from contrastive_core.records import SHIPPED
from contrastive_lab import query_params, state
from contrastive_lab.components.shared.mount import component_key
from contrastive_lab.loss_lab import lesson_words
from contrastive_lab.loss_lab.lesson_words import Words
from contrastive_lab.loss_lab.lessons import LESSONS, RUN, LessonOption

CHOSEN = "loss_lab-lesson"  # the widget
ROUND = "lesson-round"  # of the session: counts the beginnings, each of which is drawn anew
HEARD = "lesson-heard"  # of the session: the last press of a setting in the panel
BY_PANEL = "lesson-by-panel"  # of the session: the beginning that was asked for in the panel


def choose_lesson(widget: Any = st.selectbox) -> int:
    """The control above the Loss Lab; returns the number of the lesson, 0 for none."""
    if not (SHIPPED / RUN).exists():
        return 0
    if asked := _known(query_params.requested("lesson")):
        _open_its_run()
        address = LESSONS[asked - 1].address
        query_params.ask({name: text for name, text in address.items() if name != "run"})
    elif (run := state.chosen_run()) is None or run.name != RUN:
        leave()  # what a lesson says holds for its run alone
    words = lesson_words.words()
    titles = {n: _title(words, n) for n in range(len(LESSONS) + 1)}
    return int(
        query_params.one_of(
            widget,
            words.panel["control"],
            titles,
            name="lesson",
            key=CHOSEN,
            default=0,
            text=lambda n: str(n or ""),
            format_func=titles.get,
            on_change=_picked,
            label_visibility="collapsed",
            width=430,
        )
    )


def leave() -> None:
    """Free play: all stays as it is, without a lesson."""
    query_params.choose(CHOSEN, 0)


def key_of(key: str, number: int) -> str:
    """The key of a browser part: each beginning of a lesson is a part of its own."""
    return f"{key} lesson {number} {st.session_state.get(ROUND, 0)}" if number else key


def panel_of(number: int) -> dict[str, Any] | None:
    """A lesson as components/shared/lesson.js draws it; None for no lesson."""
    if not number:
        return None
    lesson, words = LESSONS[number - 1], lesson_words.words()
    said = words.lessons[lesson.name]
    following = words.lessons[LESSONS[number].name].title if number < len(LESSONS) else ""
    return {
        "number": number,
        "title": _title(words, number),
        "next": following,
        "question": said.question,
        "goals": said.goals,
        "said": said.said,
        "wrong": said.wrong,
        "checks": [asdict(check) for check in lesson.checks],
        "region": lesson.region,
        "first": int(lesson.address.get("anchor", 0)),
        "words": words.panel,
        "choices": [_choice(words, choice) for choice in lesson.choices],
        "heard": st.session_state.get(HEARD, 0),
        "focus": st.session_state.get(BY_PANEL) == st.session_state.get(ROUND, 0),
    }


def hear(key: str) -> None:
    """What was pressed in a part's panel: another lesson, or a setting of this one."""
    report = (st.session_state.get(component_key(key)) or {}).get("chosen") or {}
    if (number := report.get("go")) is not None:
        _begin(_known(number))
        st.session_state[BY_PANEL] = st.session_state.get(ROUND, 0)
    if isinstance(press := report.get("press"), int):
        st.session_state[HEARD] = press
    for choice in (c for lesson in LESSONS for c in lesson.choices):
        if (value := (report.get("set") or {}).get(choice.name)) in choice.options:
            query_params.choose(choice.key, value)


def _begin(number: int) -> None:
    """A lesson from its start, or free play."""
    if not number:
        leave()
        return
    st.session_state[ROUND] = st.session_state.get(ROUND, 0) + 1
    st.session_state[HEARD] = 0
    query_params.begin(LESSONS[number - 1].address | {"lesson": str(number)})


def _picked() -> None:
    _begin(_known(query_params.chosen(CHOSEN)))


def _open_its_run() -> None:
    """The run that lessons look at is the sidebar's, too."""
    run = state.chosen_run()
    if run is None or run.name != RUN:
        st.session_state["run"] = RUN
        st.rerun()


def _known(number: Any) -> int:
    """The number of a lesson; 0 for what is none."""
    text = str(number)
    return int(text) if text.isdecimal() and int(text) <= len(LESSONS) else 0


def _title(words: Words, number: int) -> str:
    if not number:
        return words.panel["free"]
    name = words.panel["name"].format(n=number, of=len(LESSONS))
    return f"{name} · {words.lessons[LESSONS[number - 1].name].title}"


def _choice(words: Words, choice: LessonOption) -> dict[str, Any]:
    label, options = words.choices[choice.name]
    chosen = query_params.current("", choice.options, choice.options[0], choice.key)
    return {"name": choice.name, "label": label, "options": options, "chosen": chosen}
