"""The current lesson, its data for the browser, and the events of its panel."""

import contextlib
import html
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, TypedDict

import streamlit as st

from contrastive_core.base import json_files
from contrastive_core.base.storage import SHIPPED, data_home
from contrastive_lab import query_params, state
from contrastive_lab.locale import _
from contrastive_lab.loss_lab.controls import VALUES, reported
from contrastive_lab.loss_lab.lessons import FINGERS, ICONS, LESSONS, PANEL, PLAYED, PRESETS, RUN, TWINS

CHOSEN = "loss_lab-lesson"  # the widget
ROUND = "lesson-round"  # of the session: counts the beginnings, each of which is drawn anew
HEARD = "lesson-heard"  # of the session: the last press of a setting in the panel
BY_PANEL = "lesson-by-panel"  # of the session: the beginning that was asked for in the panel
ONWARD = "lesson-onward"  # of the session: the number that was pressed last
TRAIN = len(LESSONS) + 1  # what follows the last lesson, by its number
PLAY = -2  # the playground, with twins of a low and a high temperature, by its number
WITH_THIS = -1  # a training with the loss and knobs on the page, by its number
REVIEW = -3  # Samples with the file on the page, by its number
LONGEST = 40  # characters of what a goal read
KEPT = "lessons.json"  # in the folder of data


class NextStep(TypedDict):
    """A button that leads on: the number of a lesson or a page, and its text."""

    number: int
    text: str


def choose_lesson() -> int:
    """Draw the list of lessons and the heading of the current one in the toolbar; return its number, 0 for none."""
    if is_pressed(TRAIN):
        st.switch_page("pages/train.py")
    if is_pressed(PLAY):
        query_params.begin({"on": "playground", "play": TWINS})
    if not (SHIPPED / RUN).exists():
        return 0
    run, asked = state.chosen_run(), _known(query_params.requested("lesson"))
    number = asked or _known(query_params.page_values().get(CHOSEN))
    address = LESSONS[number - 1].address if number else {}
    is_its_run = run is not None and run.name == address.get("run")
    if asked:
        if not is_its_run:  # the run that a lesson looks at is the app's, too
            st.session_state["run"] = address["run"]
            st.rerun()
        query_params.ask({name: text for name, text in address.items() if name != "run"})
    elif not is_its_run:
        leave()  # what a lesson says holds for its run alone
        number = 0
    done = _kept()[0]
    with st.container(key="lesson-head" if number else "lesson-none", horizontal=True, wrap=False):
        number = _choose_from_list(number, done)
        if number:
            text = _("Lesson {number} of {total}, {done} done")
            about = text.format(number=number, total=len(LESSONS), done=len(done))
            looks = [f"{'now ' * (n == number)}{'done' * (n in done)}" for n in range(1, len(LESSONS) + 1)]
            dots = "".join(f'<i class="{look}"></i>' for look in looks)
            st.html(f'<div class="dots" role="img" aria-label="{html.escape(about)}">{dots}</div>')
            st.button(_("Leave"), key="lesson-leave", icon=":material/close:", on_click=leave)
    return number


def _choose_from_list(number: int, done: list[int]) -> int:
    """Draw all lessons with a tick for each finished one, in a popover that closes when one starts."""
    title, free = (_(PANEL[name]) for name in ("control", "free"))
    titles: dict[int, str] = {0: free}
    for n, lesson in enumerate(LESSONS, 1):
        titles[n] = f":material/{ICONS[n - 1]}: {n} · {_(lesson.title)}{' ✓' if n in done else ''}"

    def play() -> None:
        st.session_state[ROUND] = _round() + 1  # closes the list
        query_params.begin({"on": "playground"})

    look: dict[str, Any] = {"text": lambda n: str(n or ""), "label_visibility": "collapsed"}
    look["on_change"] = lambda: _begin(_known(query_params.chosen(CHOSEN)))
    with st.popover(f"{title} {len(done)}/{len(LESSONS)}", key=f"lessons-{_round()}-{number}"):
        chosen = query_params.one_of(st.radio, title, titles, name="lesson", key=CHOSEN, **look)
        label = _("Playground: train a small encoder")
        st.button(label, key="lab-playground", icon=":material/sports_esports:", on_click=play, width="stretch")
    return chosen


def leave() -> None:
    """Leave the lesson and keep the current settings."""
    query_params.choose(CHOSEN, 0)


def key_of(key: str, number: int) -> str:
    """Return the key of a browser component; each start of a lesson gets a new one."""
    return f"{key} lesson {number} {_round()}" if number else key


def panel_of(number: int) -> dict[str, object] | None:
    """Return a lesson's data for components/shared/lesson.js; None for no lesson."""
    if not number:
        return None
    lesson, (done, met) = LESSONS[number - 1], _kept()
    words = {name: _(text) for name, text in PANEL.items()}
    after, choices = number + 1, []
    if number == len(LESSONS):  # the first unfinished one, or a training
        after = next((n for n in range(1, number) if n not in done), TRAIN)
    onward = words["end"] + " →" if after == TRAIN else words["next"].format(title=_(LESSONS[after - 1].title))
    for one in lesson.choices:
        chosen = query_params.current("", one.options, next(iter(one.options)), one.key)
        options = {value: _(text) for value, text in one.options.items()}
        choices.append({"name": one.name, "label": _(one.label), "options": options, "chosen": chosen})
    return {
        "number": number,
        "title": f"{words['name'].format(n=number, total=len(LESSONS))} · {_(lesson.title)}",
        "next": {"number": after, "text": onward},
        "play": {"number": PLAY, "text": words["play"]} if lesson.name in PLAYED else None,
        "task": _(lesson.task),
        "question": _(lesson.question),
        "goals": [_(goal) for goal in lesson.goals],
        "said": f"{_(lesson.said)}\n{_(lesson.concept)}",
        "wrong": _(lesson.wrong),
        "checks": [asdict(check) for check in lesson.checks],
        "region": lesson.region,
        "first": int(lesson.address.get("anchor", 0)),
        "words": words,
        "choices": choices,
        "heard": st.session_state.get(HEARD, 0),
        "focus": st.session_state.get(BY_PANEL) == _round(),
        "finished": number in done,
        "finger": FINGERS.get(lesson.name, ""),
        "met": met.get(str(number), [])[: len(lesson.goals)] if not _round() else [],
    }


def hear(key: str) -> None:
    """Handle the lesson panel's reports: a met goal, another lesson, a pressed button, or a changed setting."""
    report = reported(key)
    if isinstance(told := report.get("done"), dict):
        _keep(told)
    if (number := report.get("go")) is not None:
        st.session_state[ONWARD] = number
        _begin(_known(number))
        st.session_state[BY_PANEL] = _round()
    if isinstance(press := report.get("press"), int):
        st.session_state[HEARD] = press
    for choice in (c for lesson in LESSONS for c in lesson.choices):
        if (value := (report.get("set") or {}).get(choice.name)) in choice.options:
            if value != query_params.page_values().get(choice.key):
                query_params.ask(PRESETS.get(value, {}))
            query_params.choose(choice.key, value, in_popover=True)


def is_pressed(number: int) -> bool:
    """Return whether the button with this number was pressed since the last call."""
    return st.session_state.get(ONWARD) == number and st.session_state.pop(ONWARD) == number


def next_step() -> NextStep:
    """Return number and name of the first unfinished lesson, or of the first one if all are finished."""
    done = _kept()[0]
    number = next((n for n in range(1, len(LESSONS) + 1) if n not in done), 1)
    name = _("Lesson {number}: {title}").format(number=number, title=_(LESSONS[number - 1].title))
    return {"number": number, "text": f"{name} →"}


def number_done() -> int:
    """Return the number of lessons finished on this computer."""
    return len(_kept()[0])


def _kept() -> tuple[list[int], dict[str, list[str | None]]]:
    """Return the finished lessons, and the values at which goals of other lessons were met, from this computer's
    file."""
    try:
        kept = json_files.read_object(data_home() / KEPT)
        met = {
            str(n): [None if now is None else str(now)[:LONGEST] for now in goals]
            for n, goals in kept.get("met", {}).items()
        }
        return [int(n) for n in kept["done"]], met
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return [], {}


def _keep(told: Mapping[str, object]) -> None:
    """Store a lesson whose goals are all or partly met."""
    number, (done, met) = _known(told.get("number")), _kept()
    goals = told.get("met")
    if not number or number in done or not isinstance(goals, list):
        return
    if told.get("isDone"):
        done = sorted([*done, number])
        met.pop(str(number), None)
    else:
        met[str(number)] = goals
    with contextlib.suppress(OSError):  # a full disk: the lesson is offered again
        json_files.write_json(data_home() / KEPT, {"done": done, "met": met})


def _begin(number: int) -> None:
    """Start a lesson, or leave it for 0."""
    if not number:
        leave()
        return
    st.session_state[ROUND] = _round() + 1
    st.session_state[HEARD] = 0
    st.session_state.pop(VALUES, None)  # knobs that the lesson does not set begin at their defaults
    query_params.begin(LESSONS[number - 1].address | {"lesson": str(number)})


def _round() -> int:
    return int(st.session_state.get(ROUND, 0))


def _known(number: Any) -> int:
    """Return the number of a lesson; 0 for an unknown one."""
    text = str(number)
    return int(text) if text.isdecimal() and int(text) <= len(LESSONS) else 0
