"""Not sure? A look at the chosen images, and an adviser that finds settings by trying them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import streamlit as st

from contrastive_core.records import Progress, frozen, is_locked
from contrastive_core.records.advice import (
    QUESTIONS,
    START,
    WITHOUT_LABELS,
    Plan,
    adviser_names,
    load_plan,
    lock_of,
    plan_from_json,
    save_plan,
)
from contrastive_core.records.advice_answer import read_answer
from contrastive_core.records.runs import free_name
from contrastive_lab import cache, format, frozen_encoders, guard, locale, number_inputs, query_params
from contrastive_lab.locale import N_, _, message
from contrastive_lab.progress import answer_or_wait, bar
from contrastive_lab.train import running_advisers
from contrastive_lab.train.advice_answer import show_answer
from contrastive_lab.train.folder import with_change

SHOWN = {START: N_("whether to train")}  # of questions whose name says too little
MINUTES = "adviser-minutes"  # the key of their field
NAMES = {"batch_size": N_("Batch size"), "loss.temperature": N_("Temperature τ"), "recipe.flip": N_("Mirroring")}
NAMES |= {"recipe.hue": N_("Color"), "exclude": N_("Copies"), "classes": N_("Classes")}


def adviser(data: str, method: str) -> None:
    """The whole section, for the data and the method that the form has chosen."""
    if not query_params.switch(st.toggle, _("Not sure? Find settings"), name="adviser"):
        return
    with st.container(border=True):
        st.header(_("Findings and suggestions"))
        seen = _show_look(data, method)
        is_labeled = seen is None or int(seen["facts"]["classes"]) > 1
        st.header(_("Let it try"))
        fitting = [*cache.titles("methods")] if seen is None else list(seen["methods"])
        _show_start(data, method, [*QUESTIONS] if is_labeled else ["temperature"], fitting)
        if names := [n for n in adviser_names() if _is_of(n, data)]:
            name = query_params.one_of(
                st.selectbox, _("Adviser"), names, name="advice", key=_picker(data), format_func=_title
            )
            _show_progress(name)


def _picker(data: str) -> str:
    return f"advice-{cache.digest(data)}"


def _title(name: str) -> str:
    """Return the name of an adviser with its questions and time limit."""
    plan, template = load_plan(name), _("{name}: {choose}, {minutes} min")
    assert plan is not None
    return template.format(
        name=name, choose=", ".join(locale.text(SHOWN.get(q, q)) for q in plan.choose), minutes=f"{plan.minutes:g}"
    )


def _is_of(name: str, data: str) -> bool:
    try:
        plan = load_plan(name)
    except ValueError:
        return False
    return plan is not None and plan.dataset == data


def _show_look(data: str, method: str) -> Mapping[str, Any] | None:
    """Show what a first look found, and return it; None while that is not known."""
    result = answer_or_wait("look", with_change({"dataset": data, "method": method}), message("A first look"))
    if result is None:
        return None
    st.markdown(format.plain(result.meta["sentence"]))
    values: dict[str, Any] = {}
    for one in result.meta["suggestions"]:
        name = NAMES.get(one["setting"], one["setting"])
        st.markdown(f"**{format.plain(name)}**: {format.plain(one['text'])}")
        st.caption(format.plain(one["reason"]))
        values |= one["values"]
    if values:
        st.caption(_("As further settings, one a line:"))
        st.code("\n".join(f"{k}={v}" for k, v in values.items()), language=None)
    return result.meta


def _show_start(data: str, method: str, questions: list[str], fitting: list[str]) -> None:
    """What to choose and within how long; the plan is said before anything starts."""
    choose = query_params.many_of(
        st.multiselect,
        _("What to choose"),
        questions,
        name="choose",
        default=["temperature"],
        format_func=lambda name: locale.text(SHOWN.get(name, name)),
    )
    if questions != [*QUESTIONS]:
        st.caption(_(WITHOUT_LABELS))
    elif START in choose:
        frozen_encoders.manage()
    methods = _among(fitting) if "method" in choose else []
    minutes = number_inputs.number(st.number_input, _("Minutes"), 1, 10_000, name="minutes", default=30, key=MINUTES)
    if len(methods) == 1:
        st.caption(_("Choose at least two methods, or none to compare all that fit."))
    elif choose:
        values = with_change({"dataset": data, "method": method, "minutes": float(minutes), "choose": choose})
        _plan_and_try(data, method, values | ({"methods": methods} if methods else {}))
    else:
        offered = [f"{locale.text(name)}: {locale.text(QUESTIONS[name])}" for name in questions]
        st.caption(_("Choose at least one question: ") + "; ".join(offered))


def _among(fitting: list[str]) -> list[str]:
    """The methods to choose from; [] for all that fit the data."""
    help = _(
        "The search compares only these. The method above is the default if it is one of them, else the first of them. "
        "Empty: all methods that fit the data."
    )
    return query_params.many_of(
        st.multiselect,
        _("Methods to compare"),
        fitting,
        name="among",
        placeholder=_("all that fit"),
        format_func=cache.method_title,
        help=help,
    )


def _plan_and_try(data: str, method: str, values: dict[str, Any]) -> None:
    """Plan what is asked for, then start it."""
    if START in values["choose"]:
        values["frozen"] = [encoder.text for encoder in frozen.read_list()]
    plan_key = f"planned {cache.digest(values)}"
    help, icon = _("Times a few steps; trains nothing."), ":material/timer:"
    if is_of_methods := values["choose"] == ["method"]:
        help = _("Times a few steps of every method, which can take minutes; trains nothing.")
    if number_inputs.button(st.button, _("Plan it"), of=[MINUTES], icon=icon, help=help):
        st.session_state[plan_key] = True
    if not st.session_state.get(plan_key):
        return
    place = st.container()
    plan = answer_or_wait("advice_plan", values, message("Planning the search"), may_stop=True)
    if plan is None:
        if is_of_methods:
            text = _(
                "Each method is timed first, to tell how many epochs fit into the time. Nothing is trained yet. Stop "
                "ends the timing."
            )
            place.caption(text)
        return
    st.markdown(format.plain(plan.meta["sentence"]))
    key, icon = f"advise-{cache.digest(data, method)}", ":material/science:"
    busy = next((n for n in adviser_names() if _is_of(n, data) and running_advisers.is_running(n)), None)
    if busy:
        st.caption(
            format.plain(
                _("{busy} is already running on these images. Wait for it to finish or stop it.").format(busy=busy)
            )
        )
    if number_inputs.button(st.button, _("Let it try"), of=[MINUTES], icon=icon, key=key, disabled=busy is not None):
        draft = plan_from_json(plan.meta["plan"])
        name = free_name(draft.name, adviser_names())
        query_params.choose(_picker(data), name)
        _start(replace(draft, name=name))  # what was said is what is tried


def _start(plan: Plan) -> None:
    """Begin to try it, or go on with it: what was tried is kept."""
    save_plan(plan)
    choose, minutes = ",".join(plan.choose), f"{plan.minutes:g}"
    arguments = (plan.dataset, "--method", plan.method, "--choose", choose, "--minutes", minutes, "--name", plan.name)
    with guard.errors_shown():
        running_advisers.task_of(plan.name, arguments).start(label=message("Adviser {name}", name=plan.name))
        st.rerun()  # all of the page: it says above what is training


@st.fragment(run_every=2.0)
def _show_progress(name: str) -> None:
    """How far it is, and what it has found so far."""
    plan, answer, task = load_plan(name), read_answer(name), running_advisers.task_of(name)
    assert plan is not None
    is_done = answer is not None and answer.get("done") and plan_from_json(answer["plan"]).minutes >= plan.minutes
    if task.is_running():
        a, b = st.columns([5, 1], vertical_alignment="center")
        bar(task.progress() or Progress("starting"), name, a)
        if b.button(_("Stop"), icon=":material/stop:", key=f"stop-{name}"):
            task.stop()
    elif is_locked(lock_of(name)):
        st.info(format.plain(_("{name} is running in another process. Its answer appears below.").format(name=name)))
    elif not is_done:
        st.warning(format.plain(task.failure() or message("{name} is not running.", name=name)))
        if st.button(_("Go on"), icon=":material/play_arrow:", key=f"go-on-{name}"):
            _start(plan)
    if not answer:
        return
    show_answer(name, answer)
    if not is_done or task.is_running():
        return
    a, b = st.columns([1, 3], vertical_alignment="bottom")
    key, as_long = f"more-minutes-{name}", max(1, round(plan.minutes))
    more = number_inputs.number(a.number_input, _("More minutes"), 1, 10_000, name="", default=as_long, key=key)
    if number_inputs.button(
        b.button, _("Give it more time"), of=[key], icon=":material/more_time:", key=f"more-{name}"
    ):
        _start(replace(plan, minutes=plan.minutes + more))
