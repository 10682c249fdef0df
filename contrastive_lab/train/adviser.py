"""Not sure? A look at the chosen images, and an adviser that finds settings by trying them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import streamlit as st

from contrastive_core.engine.task import Task
from contrastive_core.records import Locked, Progress
from contrastive_core.records.advice import (
    QUESTIONS,
    Plan,
    adviser_names,
    folder_of,
    free_name,
    load_plan,
    lock_of,
    plan_from_json,
    read_answer,
    save_plan,
)
from contrastive_core.records.files import is_locked
from contrastive_lab import cache, format, locale, query_params
from contrastive_lab.locale import N_, _, message
from contrastive_lab.progress import answer_or_wait, bar
from contrastive_lab.train.advice_answer import show_answer
from contrastive_lab.train.folder import with_change

MINUTES = "adviser-minutes"  # the key of their field
NAMES = {
    "batch_size": N_("Batch size"),
    "loss.temperature": N_("Temperature τ"),
    "recipe.flip": N_("Mirroring"),
    "recipe.hue": N_("Color"),
    "exclude": N_("Copies"),
    "classes": N_("Classes"),
}


def adviser(data: str, method: str) -> None:
    """The whole section, for the data and the method that the form has chosen."""
    if not query_params.switch(st.toggle, _("Not sure? Let it find out"), name="adviser"):
        return
    with st.container(border=True):
        st.header(_("What these images say"))
        _show_look(data, method)
        st.header(_("Let it try"))
        _show_start(data, method)
        if names := [n for n in adviser_names() if _is_of(n, data)]:
            name = query_params.one_of(
                st.selectbox, _("Adviser"), names, name="advice", key=_picker(data), format_func=_title
            )
            _show_progress(name)


def _picker(data: str) -> str:
    return f"advice-{cache.digest(data)}"


def _title(name: str) -> str:
    """What an adviser is asked, and for how long, beside its name."""
    plan = load_plan(name)
    assert plan is not None
    return _("{name}: {choose}, {minutes} min").format(
        name=name, choose=", ".join(map(locale.text, plan.choose)), minutes=f"{plan.minutes:g}"
    )


def _is_of(name: str, data: str) -> bool:
    try:
        plan = load_plan(name)
    except ValueError:
        return False
    return plan is not None and plan.dataset == data


def _values(data: str, method: str, **more: Any) -> dict[str, Any]:
    """The values of an analysis; a folder that changed is another one."""
    return with_change({"dataset": data, "method": method, **more})


def _show_look(data: str, method: str) -> None:
    result = answer_or_wait("look", _values(data, method), message("A first look"))
    if result is None:
        return
    st.markdown(format.plain(result.meta["sentence"]))
    for one in result.meta["suggestions"]:
        name = NAMES.get(one["setting"], one["setting"])
        st.markdown(f"**{format.plain(name)}**: {format.plain(one['text'])}")
        st.caption(format.plain(one["reason"]))
    values = {k: v for one in result.meta["suggestions"] for k, v in one["values"].items()}
    if values:
        st.caption(_("As further settings, one a line:"))
        st.code("\n".join(f"{k}={v}" for k, v in values.items()), language=None)


def _show_start(data: str, method: str) -> None:
    """What to choose and within how long; the plan is said before anything starts."""
    choose = query_params.many_of(
        st.multiselect, _("What to choose"), list(QUESTIONS), name="choose", default=["temperature"]
    )
    minutes = query_params.number(st.number_input, _("Minutes"), 1, 10_000, name="minutes", default=30, key=MINUTES)
    if not choose:
        st.caption(
            _("Choose at least one question: ")
            + "; ".join(f"{locale.text(name)}: {locale.text(what)}" for name, what in QUESTIONS.items())
        )
        return
    values = _values(data, method, minutes=float(minutes), choose=list(choose))
    plan_key = f"planned {cache.digest(values)}"
    if query_params.button(
        st.button, _("Plan it"), of=[MINUTES], icon=":material/timer:", help=_("Times a few steps; trains nothing.")
    ):
        st.session_state[plan_key] = True
    if not st.session_state.get(plan_key):
        return
    plan = answer_or_wait("advice_plan", values, message("What it would take"))
    if plan is None:
        return
    st.markdown(format.plain(plan.meta["sentence"]))
    key = f"advise-{cache.digest(data, method)}"
    busy = next((n for n in adviser_names() if _is_of(n, data) and _is_running(n)), None)
    if busy:
        st.caption(format.plain(_("{busy} is at work on these images; the next can start after it.").format(busy=busy)))
    if query_params.button(
        st.button, _("Let it try"), of=[MINUTES], icon=":material/science:", key=key, disabled=busy is not None
    ):
        draft = plan_from_json(plan.meta["plan"])
        name = free_name(draft.name)
        save_plan(replace(draft, name=name))  # what was said is what is tried
        _start(name, data, method, list(choose), float(minutes))
        query_params.choose(_picker(data), name)


def _adviser_task(name: str, arguments: tuple[str, ...] = ()) -> Task:
    return Task(f"adviser.{name}", ("advise", *arguments), folder_of(name) / "answer.json")


def _start(name: str, data: str, method: str, choose: list[str], minutes: float) -> None:
    arguments = (data, "--method", method, "--choose", ",".join(choose), "--minutes", f"{minutes:g}", "--name", name)
    try:
        _adviser_task(name, arguments).start(label=message("Adviser {name}", name=name))
    except (OSError, Locked) as error:
        st.error(format.plain(error))
        return


def _is_running(name: str) -> bool:
    """Here, or in another process, such as a terminal."""
    return _adviser_task(name).is_running() or is_locked(lock_of(name))


@st.fragment(run_every=2.0)
def _show_progress(name: str) -> None:
    """How far it is, and what it has found so far."""
    plan, answer, task = load_plan(name), read_answer(name), _adviser_task(name)
    assert plan is not None
    if task.is_running():
        a, b = st.columns([5, 1], vertical_alignment="center")
        bar(task.progress() or Progress("starting"), name, a)
        if b.button(_("Stop"), icon=":material/stop:", key=f"stop-{name}"):
            task.stop()
    elif is_locked(lock_of(name)):
        st.info(format.plain(_("{name} is at work in another process; its answer grows below.").format(name=name)))
    elif answer is None or not answer.get("done"):
        st.warning(format.plain(task.failure() or message("{name} is not at work.", name=name)))
        if st.button(_("Go on"), icon=":material/play_arrow:", key=f"go-on-{name}"):
            _start(name, plan.dataset, plan.method, list(plan.choose), plan.minutes)
    if answer:
        show_answer(name, answer)
    if answer and answer.get("done") and not task.is_running():
        _offer_more_time(name, plan)


def _offer_more_time(name: str, plan: Plan) -> None:
    """What was tried is kept: it goes on where it ended."""
    a, b = st.columns([1, 3], vertical_alignment="bottom")
    key = f"more-minutes-{name}"
    more = query_params.number(
        a.number_input, _("More minutes"), 1, 10_000, name="", default=max(1, round(plan.minutes)), key=key
    )
    if query_params.button(b.button, _("Give it more time"), of=[key], icon=":material/more_time:", key=f"more-{name}"):
        longer = replace(plan, minutes=plan.minutes + more)
        save_plan(longer)
        _start(name, plan.dataset, plan.method, list(plan.choose), longer.minutes)
