"""Not sure? A look at the chosen images, and an adviser that finds settings by trying them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import streamlit as st

from contrastive_core.advice import plan as plans
from contrastive_core.advice.space import QUESTIONS
from contrastive_core.errors import Locked
from contrastive_core.jobs import queue
from contrastive_core.jobs.task import Task
from contrastive_core.progress import Progress
from contrastive_core.storage.lock import is_locked
from contrastive_core.sweeps.grid import arguments_of
from contrastive_lab import cache, format, query_params
from contrastive_lab.progress import answer_or_wait, bar
from contrastive_lab.train.folder import with_change
from contrastive_lab.train.watch import watch_next

__all__ = ["adviser"]

MINUTES = "adviser-minutes"  # the key of their field
LONGER = 5  # times as many epochs, when the winner is trained for longer
NAMES = {
    "batch_size": "Batch size", "loss.temperature": "Temperature τ", "recipe.flip": "Mirroring",
    "recipe.hue": "Color", "exclude": "Copies", "classes": "Classes",
}  # fmt: skip


def adviser(data: str, method: str) -> None:
    """The whole section, for the data and the method that the form has chosen."""
    if not query_params.switch(st.toggle, "Not sure? Let it find out", name="adviser"):
        return
    with st.container(border=True):
        st.header("What these images say")
        _look(data, method)
        st.header("Let it try")
        _begin(data, method)
        if begun := [n for n in plans.names() if _is_of(n, data)]:
            name = query_params.one_of(
                st.selectbox, "Adviser", begun, name="advice", key=_picker(data),
                format_func=_titled,
            )  # fmt: skip
            _follow(name)


def _picker(data: str) -> str:
    return f"advice-{cache.digest(data)}"


def _titled(name: str) -> str:
    """What an adviser is asked, and for how long, beside its name."""
    plan = plans.load(name)
    assert plan is not None
    return f"{name}: {', '.join(plan.choose)}, {plan.minutes:g} min"


def _is_of(name: str, data: str) -> bool:
    try:
        plan = plans.load(name)
    except ValueError:
        return False
    return plan is not None and plan.dataset == data


def _asked(data: str, method: str, **more: Any) -> dict[str, Any]:
    """The values of an analysis; a folder that changed is another one."""
    return with_change({"dataset": data, "method": method, **more})


def _look(data: str, method: str) -> None:
    result = answer_or_wait("look", _asked(data, method), "A first look")
    if result is None:
        return
    st.markdown(format.plain(result.meta["sentence"]))
    for one in result.meta["suggestions"]:
        name = NAMES.get(one["setting"], one["setting"])
        st.markdown(f"**{format.plain(name)}**: {format.plain(one['text'])}")
        st.caption(format.plain(one["reason"]))
    values = {k: v for one in result.meta["suggestions"] for k, v in one["values"].items()}
    if values:
        st.caption("As further settings, one a line:")
        st.code("\n".join(f"{k}={v}" for k, v in values.items()), language=None)


def _begin(data: str, method: str) -> None:
    """What to choose and within how long; the plan is said before anything starts."""
    choose = query_params.many_of(
        st.multiselect, "What to choose", list(QUESTIONS), name="choose", default=["temperature"],
    )  # fmt: skip
    minutes = query_params.number(
        st.number_input, "Minutes", 1, 10_000, name="minutes", default=30, key=MINUTES
    )
    if not choose:
        st.caption("Choose at least one question: " + "; ".join(
            f"{name}: {what}" for name, what in QUESTIONS.items()
        ))  # fmt: skip
        return
    asked = _asked(data, method, minutes=float(minutes), choose=list(choose))
    planned = f"planned {cache.digest(asked)}"
    if query_params.button(
        st.button, "Plan it", of=[MINUTES], icon=":material/timer:",
        help="Times a few steps; trains nothing.",
    ):  # fmt: skip
        st.session_state[planned] = True
    if not st.session_state.get(planned):
        return
    plan = answer_or_wait("advice_plan", asked, "What it would take")
    if plan is None:
        return
    st.markdown(format.plain(plan.meta["sentence"]))
    key = f"advise-{cache.digest(data, method)}"
    busy = next((n for n in plans.names() if _is_of(n, data) and _is_at_work(n)), None)
    if busy:
        st.caption(format.plain(f"{busy} is at work on these images; the next can start after it."))
    if query_params.button(
        st.button, "Let it try", of=[MINUTES], icon=":material/science:", key=key,
        disabled=busy is not None,
    ):  # fmt: skip
        shown = plans.of_json(plan.meta["plan"])
        name = plans.free_name(shown.name)
        plans.save(replace(shown, name=name))  # what was said is what is tried
        _start(name, data, method, list(choose), float(minutes))
        query_params.choose(_picker(data), name)


def _task(name: str, arguments: tuple[str, ...] = ()) -> Task:
    return Task(f"adviser.{name}", ("advise", *arguments), plans.folder_of(name) / "answer.json")


def _start(name: str, data: str, method: str, choose: list[str], minutes: float) -> None:
    arguments = (
        data, "--method", method, "--choose", ",".join(choose), "--minutes", f"{minutes:g}",
        "--name", name,
    )  # fmt: skip
    try:
        _task(name, arguments).start(label=f"Adviser {name}")
    except (OSError, Locked) as error:
        st.error(format.plain(error))
        return


def _is_at_work(name: str) -> bool:
    """Here, or in another process, such as a terminal."""
    return _task(name).is_running() or is_locked(plans.lock_of(name))


@st.fragment(run_every=2.0)
def _follow(name: str) -> None:
    """How far it is, and what it has found so far."""
    plan, found, task = plans.load(name), plans.read_answer(name), _task(name)
    assert plan is not None
    if task.is_running():
        a, b = st.columns([5, 1], vertical_alignment="center")
        bar(task.progress() or Progress("starting"), name, a)
        if b.button("Stop", icon=":material/stop:", key=f"stop-{name}"):
            task.stop()
    elif is_locked(plans.lock_of(name)):
        st.info(format.plain(f"{name} is at work in another process; its answer grows below."))
    elif not (found or {}).get("done"):
        st.warning(format.plain(task.failure() or f"{name} is not at work."))
        if st.button("Go on", icon=":material/play_arrow:", key=f"go-on-{name}"):
            _start(name, plan.dataset, plan.method, list(plan.choose), plan.minutes)
    if found:
        _answer(name, found)
    if (found or {}).get("done") and not task.is_running():
        _more_time(name, plan)


def _more_time(name: str, plan: plans.Plan) -> None:
    """What was tried is kept: it goes on where it ended."""
    a, b = st.columns([1, 3], vertical_alignment="bottom")
    key = f"more-minutes-{name}"
    more = query_params.number(
        a.number_input, "More minutes", 1, 10_000, name="", default=max(1, round(plan.minutes)),
        key=key,
    )  # fmt: skip
    if query_params.button(
        b.button, "Give it more time", of=[key], icon=":material/more_time:", key=f"more-{name}"
    ):
        longer = replace(plan, minutes=plan.minutes + more)
        plans.save(longer)
        _start(name, plan.dataset, plan.method, list(plan.choose), longer.minutes)


def _answer(name: str, found: dict[str, Any]) -> None:
    if found.get("done") and (found["best"] or {}).get("shown") == "better":
        st.success(format.plain(found["verdict"]))
    else:
        st.info(format.plain(found["verdict"]))
    if test := found.get("test"):
        st.markdown(format.plain(test["sentence"]))
    st.dataframe([_line(row, found) for row in found["rows"]], hide_index=True)
    if beside := found.get("baselines"):
        parts = [f"{name}: {100 * share:.1f} %" for name, share in beside.items()]
        st.caption(format.plain(f"Without any training, on the same images: {', '.join(parts)}."))
    for label, why in found["failed"].items():
        st.caption(format.plain(f"{label} failed: {why}"))
    if untried := found.get("untried"):
        st.caption(format.plain(f"There was no time for: {', '.join(untried)}."))
    if len({p["value"] for p in found["curve"]}) > 1:
        st.plotly_chart(_curve(found), key=f"curve-{name}")
    _why(name, found)
    if found.get("done") and (best := found["best"]):
        chosen = found.get("recommended") or best
        for row in [chosen] if chosen["label"] == best["label"] else [chosen, best]:
            label = f"Train {row['label']} for {LONGER * row['epochs']} epochs"
            key = f"longer-{name}-{row['label']}"
            if st.button(format.plain(label), icon=":material/play_arrow:", key=key):
                _longer(row, found["plan"])


def _line(row: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """A row of the table."""
    points = 100 if found["plan"]["labeled"] else 1
    shown = {
        "settings": row["label"] + (" (default)" if row["is_default"] else ""),
        found["criterion"]: round(points * row["mean"], 2),
        "95 %": _interval(row["interval"], points),
        "epochs": row["epochs"],
        "seeds": row["seeds"],
        "to the default, same seeds": "",
        "": row["shown"],
    }
    if "difference" in row:
        shown["to the default, same seeds"] = f"{points * row['difference']:+.2f}"
        if interval := _interval(row.get("difference_interval"), points):
            shown["to the default, same seeds"] += f" ({interval})"
    return shown


def _interval(interval: list[float] | None, points: int) -> str:
    return "" if not interval else f"{points * interval[0]:.1f} to {points * interval[1]:.1f}"


def _curve(found: dict[str, Any]) -> Any:
    """The criterion over the value that was chosen, a line for each number of epochs."""
    import plotly.graph_objects as go

    figure, points = go.Figure(), 100 if found["plan"]["labeled"] else 1
    smooth = found.get("smooth", [])  # answers of older versions have none
    if smooth:
        _band(figure, smooth, points)
    for epochs in sorted({p["epochs"] for p in found["curve"]}):
        rows = [p for p in found["curve"] if p["epochs"] == epochs]
        bars = [
            (points * (p["interval"][1] - p["score"]), points * (p["score"] - p["interval"][0]))
            if p["interval"]
            else (0, 0)
            for p in rows
        ]
        figure.add_scatter(
            x=[p["value"] for p in rows], y=[points * p["score"] for p in rows],
            error_y={"array": [b[0] for b in bars], "arrayminus": [b[1] for b in bars]},
            name=f"{epochs} epochs", mode="markers" if smooth or len(rows) < 4 else "markers+lines",
            text=[f"{p['label']}, seed {p['seed']}" for p in rows],
        )  # fmt: skip
    ticks = [m * 10.0**e for e in range(-3, 5) for m in (1, 2, 5)]
    title = found["rows"][0]["label"].rpartition(" ")[0]
    figure.update_xaxes(type="log", tickvals=ticks, title=title)
    figure.update_layout(
        height=340, margin={"l": 10, "r": 10, "t": 30, "b": 10}, yaxis_title=found["criterion"],
        legend={"orientation": "h", "yanchor": "top", "y": -0.25},  # above stands Plotly's bar
    )  # fmt: skip
    return figure


def _band(figure: Any, smooth: list[dict[str, float]], points: int) -> None:
    """The curve through all runs, and its interval."""
    values = [r["value"] for r in smooth]
    low, score, high = ([points * r[k] for r in smooth] for k in ("low", "score", "high"))
    figure.add_scatter(
        x=values + values[::-1], y=high + low[::-1], fill="toself", line={"width": 0}, opacity=0.35,
        name="95 % of the curve", hoverinfo="skip",
    )  # fmt: skip
    figure.add_scatter(x=values, y=score, mode="lines", name="curve through all runs")


def _why(name: str, found: dict[str, Any]) -> None:
    """Effective negatives, uniformity and tolerance over τ; classes that gain and lose."""
    why = found["why"]
    for title, key in (("Gain most", "gain"), ("Lose most", "lose")):
        if rows := why.get(key):
            parts = [f"{r['class']} {100 * r['change']:+.1f} ({r['n']:,} images)" for r in rows]
            st.caption(format.plain(f"{title}: {', '.join(parts)}"))
    if not (spread := why.get("effective_negatives")):
        return
    first = min(p["epochs"] for p in found["curve"])
    by_value = {p["value"]: p for p in found["curve"] if p["epochs"] == first}
    rows = [
        {
            "τ": row["value"],
            f"effective negatives of {row['of']}": round(row["negatives"], 1),
            "uniformity": _rounded(by_value.get(row["value"], {}).get("uniformity")),
            "tolerance": _rounded(by_value.get(row["value"], {}).get("tolerance")),
        }
        for row in spread
    ]
    with st.expander("Why: whom each τ pushes, and how far rows spread"):
        st.dataframe(rows, hide_index=True, key=f"why-{name}")
        st.caption(
            "Effective negatives: in the default run's space. Uniformity (lower: more spread) and "
            f"tolerance (mean cosine within a class): of the runs of {first} epochs. "
            f"{_known_of_tau(rows)}"
        )


def _known_of_tau(rows: list[dict[str, Any]]) -> str:
    """What τ is known to do, and whether these runs show it."""
    known = [(r["τ"], r["tolerance"]) for r in rows if r["tolerance"] is not None]
    text = (
        "After enough training a low τ spreads images and tears classes apart, and a high one "
        "keeps both together (Wang and Liu, 2021)"
    )
    if len(known) < 2:
        return f"{text}."
    low, high = min(known), max(known)
    return f"{text}, as here." if high[1] > low[1] else f"{text}; these runs do not show it."


def _rounded(value: float | None) -> float | None:
    return None if value is None or value != value else round(value, 3)


def _longer(row: dict[str, Any], plan: dict[str, Any]) -> None:
    """Let these settings wait for their turn, on all training images, with more epochs."""
    settings = {
        "method": plan["method"], "dataset": plan["dataset"], "epochs": LONGER * row["epochs"],
        **plans.of_json(plan).base(), **row["settings"],
    }  # fmt: skip
    name = queue.free_name(f"{plan['name']}-longer")
    try:
        queue.enqueue(name, arguments_of(settings, 0))
    except (ValueError, OSError, Locked) as error:
        st.error(format.plain(error))
        return
    watch_next(name)
