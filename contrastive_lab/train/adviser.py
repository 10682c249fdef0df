"""A quick inspection of the chosen images, an adviser that tries settings, and the advisers that run."""

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from contrastive_core.advice import plan as plans
from contrastive_core.base.lock import is_locked
from contrastive_core.base.progress import STARTING
from contrastive_core.compare.evaluation import references_on
from contrastive_core.engine import queue
from contrastive_core.engine.jobs import Job
from contrastive_core.runs import free_name
from contrastive_core.runs.run import data_key
from contrastive_core.runs.train_config import TrainConfig
from contrastive_core.sweeps import sweep_results
from contrastive_core.sweeps.sweep_file import arguments_of
from contrastive_lab import cache, figures, format, locale, path_input, query_params, score_strip, stage
from contrastive_lab.figures import draw_table
from contrastive_lab.locale import N_, _, message
from contrastive_lab.progress import answer_or_wait, bar
from contrastive_lab.train.folder import with_change
from contrastive_lab.train.watch import watch_next

SHOWN = {plans.START: N_("whether to train")}  # of questions whose name says too little
MINUTES = "adviser-minutes"  # the key of their field
NAMES = {"batch_size": N_("Batch size"), "loss.temperature": N_("Temperature τ"), "recipe.flip": N_("Mirroring")}
NAMES["recipe.hue"] = N_("Color")
MEASURED_METHOD = "simclr"  # whose best temperature is measured
LONGER = 5  # times as many epochs, when the winner is trained for longer


def adviser_card(data: str, method: str, config: TrainConfig | None, is_quick: bool) -> None:
    """Draw the adviser's suggestion for the temperature, and a button for more. Args: config: the resolved settings;
    is_quick: whether the images need no decoding first."""
    usual = config.loss_knobs.get("temperature") if config else None
    key = query_params.key_of("temperature")
    chosen = query_params.page_values().get(key)
    with st.container(border=True, key="adviser-card", gap="small"):
        values = with_change(data, method=method)
        found = answer_or_wait("look", values, message("A first look")) if is_quick else cache.result("look", values)
        suggested = found.meta["suggestions"] if found and usual is not None else []
        temperature = next((s for s in suggested if s["setting"] == "loss.temperature"), None)
        if temperature is None:
            st.markdown(_("**Not sure?**"))
            st.caption(_("The app inspects your images and suggests a batch size, a temperature and augmentations."))
        else:
            text = _("**Temperature τ {value}**") if chosen is not None else _("**Temperature τ {value}** (default)")
            st.markdown(text.format(value=f"{usual if chosen is None else chosen:g}"))
            st.caption(format.as_sentence(temperature["reason"]))
        with st.container(horizontal=True, gap="small"):
            best = temperature["best"] if temperature and method == MEASURED_METHOD else None
            if best is not None and best != chosen:
                label, choose = _("Use {value}").format(value=f"{best:g}"), query_params.choose
                st.button(label, on_click=choose, args=(key, best), kwargs={"in_popover": True}, key="use-best")
            if st.button(_("Let it try, 30 min…"), key="open-adviser"):
                query_params.keep(adviser="yes")
        if running():
            _watch()
    if query_params.kept_value("adviser") == "yes":
        query_params.keep(adviser="yes")
        close = partial(query_params.keep, adviser=None)
        dialog = st.dialog(_("Find settings"), width="large", position="right", on_dismiss=close)
        dialog(_adviser)(data, method)


def _adviser(data: str, method: str) -> None:
    """Draw the advisers on these images, the suggestions from the images, and a search that tries settings."""
    if here := _plans_on(data):
        template, titles = _("{name}: {choose}, {minutes} min"), dict[str, str]()
        for name, plan in here.items():
            choose = ", ".join(locale.text(SHOWN.get(q, q)) for q in plan.choose)
            titles[name] = template.format(name=name, choose=choose, minutes=f"{plan.minutes:g}")
        name = query_params.one_of(st.selectbox, _("Adviser"), titles, name="advice", key=_picker(data))
        _show_progress(here[name])
    st.header(_("Findings and suggestions"))
    n_classes, fitting = None, [*cache.titles("methods")]
    if look := answer_or_wait("look", with_change(data, method=method), message("A first look")):
        n_classes, fitting = int(look.meta["facts"]["classes"]), look.meta["methods"]
        st.markdown(format.plain(look.meta["sentence"]))
        values: dict[str, object] = {}
        for one in look.meta["suggestions"]:
            name = NAMES.get(one["setting"], one["setting"])
            st.markdown(f"**{format.plain(name)}**: {format.plain(one['text'])}")
            st.caption(format.as_sentence(one["reason"]))
            values |= one["values"]
        lines = [f"{name}={value:g}" for name, value in values.items()]
        label = _("Use {value}").format(value=", ".join(lines))
        if lines and st.button(format.plain(label), on_click=_use, args=(lines,), key="use-suggestions"):
            st.rerun()  # all of the page: the form has them
    st.header(_("Let it try"))
    if n_classes is None or n_classes > 1:
        _show_start(data, method, fitting)
    else:
        st.caption(_(plans.NEEDS_LABELS))


def _use(lines: list[str]) -> None:
    """Add `key=value` lines to the form's further settings, instead of earlier values."""
    key, names = query_params.key_of("further"), {line.partition("=")[0] for line in lines}
    before = str(query_params.page_values().get(key) or "").splitlines()
    kept = [line for line in before if line.partition("=")[0].strip() not in names]
    query_params.choose(key, "\n".join([*kept, *lines]), in_popover=True)
    query_params.keep(adviser=None)


def _picker(data: str) -> str:
    return f"advice-{cache.digest(data)}"


def _plans_on(data: str) -> dict[str, plans.Plan]:
    """Return the plans of the advisers on these images by name, without damaged ones."""
    found = {}
    for name in plans.adviser_names():
        with contextlib.suppress(ValueError):
            if (plan := plans.load_plan(name)) is not None and plan.dataset == data:
                found[name] = plan
    return found


def _show_start(data: str, method: str, fitting: list[str]) -> None:
    """Draw the choice of questions and time, and the plan before the start."""
    choose = query_params.many_of(
        st.multiselect,
        _("Questions"),
        [*plans.QUESTIONS],
        name="choose",
        default=["temperature"],
        format_func=lambda name: locale.text(SHOWN.get(name, name)),
    )
    if plans.START in choose:
        score_strip.manage_references()
    methods: list[str] = []
    if choose == ["method"]:
        help = _(
            "The search compares only these methods. It starts from the method above if that is one of them. Leave it "
            "empty to compare all methods that fit the data."
        )
        methods = query_params.many_of(
            st.multiselect,
            _("Methods to compare"),
            fitting,
            name="among",
            placeholder=_("all that fit"),
            format_func=cache.method_title,
            help=help,
        )
    minutes = query_params.number(st.number_input, _("Minutes"), 1, 10_000, name="minutes", default=30, key=MINUTES)
    if len(methods) == 1:
        st.caption(_("Choose at least two methods, or none to compare all that fit."))
    elif choose:
        values = {"methods": methods} if methods else {}
        if plans.START in choose:
            values["references"] = [run.name for run in references_on(data_key(data, None))]
        _plan_and_try(data, method, float(minutes), choose, values)
    else:
        offered = [f"{locale.text(name)}: {locale.text(plans.QUESTIONS[name])}" for name in plans.QUESTIONS]
        st.caption(_("Choose at least one question: {questions}").format(questions="; ".join(offered)))


def _plan_and_try(data: str, method: str, minutes: float, choose: list[str], compared: Mapping[str, list[str]]) -> None:
    """Plan the chosen search, then start it. Args: compared: methods and references, if any."""
    values = with_change(data, method=method, minutes=minutes, choose=choose, **compared)
    plan_key = f"planned {cache.digest(values)}"
    help, icon = _("Times a few steps; trains nothing."), ":material/timer:"
    if of_methods := "method" in choose:
        help = _("Times a few steps of every method, which can take minutes; trains nothing.")
    if st.button(_("Plan it"), icon=icon, help=help):
        st.session_state[plan_key] = True
    if not st.session_state.get(plan_key):
        return
    place = st.container()
    found = answer_or_wait("advice_plan", values, message("Planning the search"), may_stop=True)
    if found is None:
        if of_methods:
            text = _(
                "Each method is timed first, to find how many epochs fit into the time. Nothing is trained yet. Stop "
                "ends the timing."
            )
            place.caption(text)
        return
    st.markdown(format.plain(found.meta["sentence"]))
    key, icon = f"advise-{cache.digest(data, method)}", ":material/science:"
    busy = next(filter(is_running, _plans_on(data)), None)
    if busy:
        text = _("{busy} is already running on these images. Wait for it to finish or stop it.")
        st.caption(format.plain(text.format(busy=busy)))
    if st.button(_("Let it try"), icon=icon, key=key, disabled=busy is not None):
        plan = plans.Plan.from_dict(found.meta["plan"])
        plan = replace(plan, name=free_name(plan.name, plans.adviser_names()))
        query_params.choose(_picker(data), plan.name)
        plans.save_plan(plan)  # what was said is what is tried
        del st.session_state[plan_key]  # its progress is drawn instead
        _start(plan)


def _start(plan: plans.Plan) -> None:
    """Start or continue a saved plan; finished trials are kept."""
    with stage.errors_shown():
        job = job_of(plan.name, (plan.dataset, "--name", plan.name))
        job.start(label=message("Adviser {name}", name=plan.name))
        st.rerun()  # all of the page: it says above what is training


@st.fragment(run_every=2.0)
def _show_progress(plan: plans.Plan) -> None:
    """Draw the progress of a search, and its results so far."""
    name = plan.name
    answer, job = plans.read_answer(name), job_of(name)
    is_done = answer is not None and answer["done"]
    if job.is_running():
        a, b = st.columns([5, 1], vertical_alignment="center")
        bar(job.progress() or STARTING, name, a)
        if b.button(_("Stop"), icon=":material/stop:", key=f"stop-{name}"):
            job.stop()
    elif is_locked(plans.lock_of(name)):
        st.info(format.plain(_("{name} is running in another process. Its answer appears below.").format(name=name)))
    elif not is_done:
        st.warning(format.plain(job.failure() or message("{name} is not running.", name=name)))
        if st.button(_("Go on"), icon=":material/play_arrow:", key=f"go-on-{name}"):
            _start(plan)
    if answer:
        show_answer(plan, answer)


# --- its answer ---


def show_answer(plan: plans.Plan, answer: plans.Answer) -> None:
    """Draw the verdict, the table, the chart and the comparisons of the trials so far."""
    is_final = answer["done"] and answer["is_shown"]
    (st.success if is_final else st.info)(format.plain(answer["verdict"]))
    if answer["test"]:
        st.markdown(format.plain(answer["test"]))
    shown = []
    for one in (*answer["rows"], *answer["references"]):
        label, ends = locale.text(one["label"]), one["interval"]
        shown.append(
            {
                "settings": _("{value} (default)").format(value=label) if one["is_default"] else label,
                plans.CRITERION: round(100 * one["mean"], 1),
                "95 %": f"{100 * ends[0]:.1f} – {100 * ends[1]:.1f}" if ends else "",
                N_("interval over"): one["basis"],
                "epochs": one["epochs"] or "",
                N_("training, s"): round(one["seconds"], 1) if one["epochs"] else "",
                "seeds": one["seeds"] or "",
                N_("answer"): "✓" if one["is_chosen"] and answer["done"] else "",
            }
        )
    draw_table(shown, hide_index=True)
    text = _("{criterion}: {held_out} of {all} training images, which are not used for training.")
    counts = {"held_out": f"{plan.held_out:,}", "all": f"{plan.train + plan.held_out:,}"}
    st.caption(format.plain(text.format(criterion=locale.text(plans.CRITERION), **counts)))
    for label, why in answer["failed"].items():
        st.caption(format.plain(_("{label} failed: {why}").format(label=label, why=why)))
    if untried := answer["untried"]:
        said = _("Not enough time for: {untried}.") if answer["done"] else _("Not tried yet: {untried}.")
        st.caption(format.plain(said.format(untried=", ".join(map(locale.text, untried)))))
    if sum(row["value"] is not None for row in answer["rows"]) > 1:
        figures.draw(_chart(answer["rows"]), plan.name, f"chart-{plan.name}")
    if answer["comparisons"]:
        with st.expander(_("Why: the comparisons")):
            st.markdown("\n".join(f"- {format.plain(sentence)}" for sentence in answer["comparisons"]))
    if answer["done"] and (row := answer["recommended"]):
        label = _("Train {label} for {longer} epochs").format(label=row["label"], longer=LONGER * row["epochs"])
        if st.button(format.plain(label), icon=":material/play_arrow:", key=f"longer-{plan.name}"):
            settings = {**plan.settings, "epochs": LONGER * row["epochs"], **row["settings"]}  # on all training images
            name = queue.free_name(f"{plan.name}-longer")
            with stage.errors_shown():
                queue.enqueue(name, arguments_of(settings, 0))
                watch_next(name)
                query_params.keep(adviser=None)
                st.rerun()


def _chart(rows: list[plans.AnswerRow]) -> Any:
    """Return a figure with the mean at each value, its interval, and a dot for each seed."""
    import plotly.graph_objects as go

    placed, cells = sorted((row for row in rows if row["value"] is not None), key=lambda row: row["value"] or 0.0), []
    for row in placed:
        low, high = row["interval"] or (row["mean"], row["mean"])
        scores = tuple(100 * one for one in row["values"])
        score = sweep_results.Figure(tuple(range(len(scores))), scores, 100 * row["mean"], (100 * low, 100 * high))
        cells.append({"value": row["value"], "score": score})
    figure = go.Figure()
    sweep_results.add_series(figure, cells, "value", "score", _("mean, 95 %"), sweep_results.COLORS[0])
    ticks = [m * 10.0**e for e in range(-3, 5) for m in (1, 2, 5)]
    figure.update_xaxes(type="log", tickvals=ticks, title=placed[0]["label"].rpartition(" ")[0])
    figure.update_layout(
        height=340,
        margin={"l": 10, "r": 10, "t": 30, "b": 10},
        yaxis_title=f"{locale.text(plans.CRITERION)}, %",
        legend={"orientation": "h", "yanchor": "top", "y": -0.25},  # above stands Plotly's bar
    )
    return figure


# --- advisers that run ---


def job_of(name: str, arguments: tuple[str, ...] = ()) -> Job:
    """Return the job of an adviser. arguments: of the command line after `advise`."""
    return Job(f"_adviser.{name}", plans.folder_of(name) / "answer.json", ("advise", *arguments))


def is_running(name: str) -> bool:
    """Return whether an adviser runs here or in another process, such as a terminal."""
    return job_of(name).is_running() or is_locked(plans.lock_of(name))


def running() -> list[str]:
    """Return the names of the running advisers, newest first."""
    return [name for name in plans.adviser_names() if is_running(name)]


@st.fragment(run_every=2.0)
def _watch() -> None:
    """Draw each running adviser; redraw the page when the last one has ended."""
    names = running()
    if not names:
        st.rerun()
    for name in names:
        try:
            plan = plans.load_plan(name)
        except ValueError:  # its plan is damaged: the adviser says so
            continue
        if plan is None:  # it was deleted meanwhile
            continue
        job = job_of(name)
        text = _(
            "The adviser {name} is training on {dataset}. It runs one try after another and then gives its answer."
        )
        st.info(format.plain(text.format(name=name, dataset=format.data_of(plan.dataset))))
        if job.is_running():
            bar(job.progress() or STARTING, message("Adviser {name}", name=name))
        icon, key = ":material/visibility:", f"watch-adviser-{name}"
        if st.button(_("Watch the adviser"), icon=icon, key=key, on_click=_open, args=(plan,)):
            st.rerun()  # all of the page


def _open(plan: plans.Plan) -> None:
    """Restart the page with an adviser and its images, before the fields are drawn."""
    where = path_input.address_of(plan.dataset)
    query_params.begin({**where, "method": plan.method, "adviser": "yes", "advice": plan.name})
