"""The adviser's answer on Train: verdict, table, curve, reasons, and training the winner for longer."""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from contrastive_core.engine import queue
from contrastive_core.records.advice import OPTIONS, plan_from_json
from contrastive_core.records.advice_answer import Answer, AnswerRow, CurvePoint, Decision, Regime
from contrastive_core.records.sweep_grid import arguments_of
from contrastive_lab import figures, format, guard, locale, plots
from contrastive_lab.components.scatter.categories import PALETTE
from contrastive_lab.locale import N_, _
from contrastive_lab.tables import draw_table
from contrastive_lab.train.watch import watch_next

LONGER = 5  # times as many epochs, when the winner is trained for longer


def show_answer(name: str, answer: Answer) -> None:
    """The verdict, the table, the curve and the reasons, as far as the search has come."""
    decision, regimes = answer.get("decision"), answer.get("regimes") or []
    is_decided = any(one["best"] for one in regimes) or bool(decision and decision["answer"])
    is_better = answer.get("done") and (is_decided or (answer["best"] or {}).get("shown") == "better")
    (st.success if is_better else st.info)(format.plain(answer["verdict"]))
    if test := answer.get("test"):
        st.markdown(format.plain(test["sentence"]))
    if decision:
        _show_decision(decision)
    elif regimes:
        for regime in regimes:
            _show_regime(regime, answer)
    else:
        draw_table([_table_row(row, answer) for row in answer["rows"]], hide_index=True)
    plan = plan_from_json(answer["plan"])
    text = _("{criterion}: {held_out} of {all} training images, which no try trains on.")
    counts = {"held_out": f"{plan.held_out:,}", "all": f"{plan.train + plan.held_out:,}"}
    st.caption(format.plain(text.format(criterion=locale.text(answer["criterion"]), **counts)))
    if beside := answer.get("baselines"):
        parts = [f"{locale.text(name)}: {100 * share:.1f} %" for name, share in beside.items()]
        text = _("Without any training, on the same {held_out} held-out images: {parts}.")
        st.caption(format.plain(text.format(parts=", ".join(parts), **counts)))
    for label, why in answer["failed"].items():
        st.caption(format.plain(_("{label} failed: {why}").format(label=label, why=why)))
    if untried := answer.get("untried"):
        said = _("Not enough time for: {untried}.") if answer.get("done") else _("Not tried yet: {untried}.")
        st.caption(format.plain(said.format(untried=", ".join(untried))))
    if len({p["value"] for p in answer["curve"]}) > 1:
        figures.draw(_curve(answer), name, f"curve-{name}")
    _show_reasons(name, answer)
    if decision or regimes:
        if answer.get("done") and (winner := answer["recommended"]):
            _offer_longer([winner], name, answer)
    elif answer.get("done") and (best := answer["best"]):
        chosen = answer.get("recommended") or best
        _offer_longer([chosen] if chosen["label"] == best["label"] else [chosen, best], name, answer)


def _offer_longer(rows: Sequence[AnswerRow], name: str, answer: Answer) -> None:
    """A button for each of some settings that trains it for longer."""
    for row in rows:
        label = _("Train {label} for {longer} epochs").format(label=row["label"], longer=LONGER * row["epochs"])
        key = f"longer-{name}-{row['label']}"
        if st.button(format.plain(label), icon=":material/play_arrow:", key=key):
            _train_longer(row, answer)


def _show_decision(decision: Decision) -> None:
    """Every option with its score, then the comparisons that the answer rests on."""
    rows = [
        {
            N_("option"): row["label"],
            N_("kNN on held-out images"): round(100 * row["mean"], 1),
            **_interval_cells(row, 100),
            "seeds": row["seeds"] or "",
            N_("answer"): _(OPTIONS[row["option"]]) if row["is_chosen"] else "",
        }
        for row in decision["rows"]
    ]
    draw_table(rows, hide_index=True)
    with st.expander(_("Why: the comparisons")):
        pairs = [
            {
                "A": pair["a"],
                "B": pair["b"],
                "A − B": f"{100 * pair['difference']:+.1f}",
                "95 %": _interval(pair["interval"], 100),
                "": pair["shown"],
            }
            for pair in decision["pairs"]
        ]
        draw_table(pairs, hide_index=True)
        text = _(
            "Intervals are over images and seeds, corrected for the number of comparisons. To answer “train”, training "
            "has to beat raw pixels, the best frozen encoder, an untrained encoder and naming the largest class."
        )
        st.caption(text)


def _show_regime(regime: Regime, answer: Answer) -> None:
    """Methods at equal epochs, or at equal time."""
    st.markdown(f"**{format.plain(locale.text(regime['title']))}**")
    points = 100 if answer["plan"]["labeled"] else 1
    rows = [
        {
            "method": row["label"],
            answer["criterion"]: round(points * row["mean"], 1),
            **_interval_cells(row, points),
            "epochs": row["epochs"],
            N_("training, s"): round(row["seconds"], 1),
            "seeds": row["seeds"],
        }
        for row in regime["rows"]
    ]
    draw_table(rows, hide_index=True)


def _table_row(row: AnswerRow, answer: Answer) -> dict[str, object]:
    """A row of the table."""
    points = 100 if answer["plan"]["labeled"] else 1
    difference = f"{points * row['difference']:+.2f}" if "difference" in row else ""
    interval = _interval(row.get("difference_interval"), points) if difference else ""
    on_curve = {N_("on the curve"): round(points * row["on_curve"], 2)} if "on_curve" in row else {}
    return {
        "settings": row["label"] + (_(" (default)") if row["is_default"] else ""),
        answer["criterion"]: round(points * row["mean"], 2),
        **on_curve,
        **_interval_cells(row, points),
        "epochs": row["epochs"],
        "seeds": row["seeds"],
        N_("to the default, same seeds"): f"{difference} ({interval})" if interval else difference,
        "": row["shown"],
    }


def _interval_cells(row: Mapping[str, Any], points: int) -> dict[str, str]:
    """A row's interval and what it is over; one that was answered before this was recorded has only the first."""
    return {"95 %": _interval(row["interval"], points), N_("95 % over"): locale.text(row.get("basis", ""))}


def _interval(interval: Sequence[float] | None, points: int) -> str:
    low, high = (f"{points * end:.1f}" for end in interval or (0, 0))
    return _("{low} to {high}").format(low=low, high=high) if interval else ""


def _curve(answer: Answer) -> Any:
    """The criterion over the value that was chosen, a line for each number of epochs."""
    import plotly.graph_objects as go

    figure, points = go.Figure(), 100 if answer["plan"]["labeled"] else 1
    if smooth := answer["smooth"]:
        values = [r["value"] for r in smooth]
        bands = [(r["low"], r["high"]) for r in smooth]
        if ends := [(points * low, points * high) for low, high in bands if low is not None and high is not None]:
            name = _("95 % over images and seeds") if points == 100 else _("95 % over seeds")
            plots.band(figure, values, ends, name, PALETTE[0])
        scores = [points * r["score"] for r in smooth]
        figure.add_scatter(x=values, y=scores, mode="lines", name=_("curve through all runs"))
    for epochs in sorted({p["epochs"] for p in answer["curve"]}):
        rows = [p for p in answer["curve"] if p["epochs"] == epochs]
        figure.add_scatter(
            x=[p["value"] for p in rows],
            y=[points * p["score"] for p in rows],
            name=format.epochs(epochs),
            mode="markers" if smooth or len(rows) < 4 else "markers+lines",
            text=[_("{label}, seed {seed}").format(label=p["label"], seed=p["seed"]) for p in rows],
        )
    if (best := answer["best"]) and "on_curve" in best:
        place = next(p["value"] for p in answer["curve"] if p["label"] == best["label"])
        mark = {"symbol": "star", "size": 14}
        figure.add_scatter(x=[place], y=[points * best["on_curve"]], mode="markers", marker=mark, name=best["label"])
    ticks = [m * 10.0**e for e in range(-3, 5) for m in (1, 2, 5)]
    title = answer["rows"][0]["label"].rpartition(" ")[0]
    figure.update_xaxes(type="log", tickvals=ticks, title=title)
    figure.update_layout(
        height=340,
        margin={"l": 10, "r": 10, "t": 30, "b": 10},
        yaxis_title=answer["criterion"],
        legend={"orientation": "h", "yanchor": "top", "y": -0.25},  # above stands Plotly's bar
    )
    return figure


def _show_reasons(name: str, answer: Answer) -> None:
    """Effective negatives, uniformity and tolerance over τ; classes that gain and lose."""
    why = answer["why"]
    for title, key in ((_("Gain most"), "gain"), (_("Lose most"), "lose")):
        if rows := why.get(key):
            text = _("{name} {change} ({n} images)")
            parts = [text.format(name=r["class"], change=f"{100 * r['change']:+.1f}", n=f"{r['n']:,}") for r in rows]
            st.caption(format.plain(f"{title}: {', '.join(parts)}"))
    if not (spread := why.get("effective_negatives")):
        return
    first = min(p["epochs"] for p in answer["curve"])
    by_value = {p["value"]: p for p in answer["curve"] if p["epochs"] == first}
    rows = [
        {
            "τ": row["value"],
            _("effective negatives of {of}").format(of=row["of"]): round(row["negatives"], 1),
            **_spread_of(by_value.get(row["value"])),
        }
        for row in spread
    ]
    with st.expander(_("Why: which pairs each τ pushes, and how far rows spread")):
        draw_table(rows, hide_index=True, key=f"why-{name}")
        template = _(
            "Effective negatives: in the default run's space. Uniformity (lower: more spread) and tolerance (mean "
            "cosine within a class): of the runs of {epochs}. {literature}"
        )
        st.caption(template.format(epochs=format.epochs(first), literature=_literature_on_tau(rows)))


def _literature_on_tau(rows: list[dict[str, Any]]) -> str:
    """Describe the known effect of τ, and whether these runs show it."""
    known = [(r["τ"], r["tolerance"]) for r in rows if r["tolerance"] is not None]
    text = _(
        "After enough training a low τ spreads images and tears classes apart, and a high "
        "one keeps both together (Wang and Liu, 2021)"
    )
    if len(known) < 2:
        return f"{text}."
    is_shown = max(known)[1] > min(known)[1]
    return (_("{text}, as here.") if is_shown else _("{text}; these runs do not show it.")).format(text=text)


def _spread_of(point: CurvePoint | None) -> dict[str, float | None]:
    """How far the rows of a run spread, as far as it was measured."""
    measured = {} if point is None else {"uniformity": point["uniformity"], "tolerance": point["tolerance"]}
    known = {name: round(value, 3) for name, value in measured.items() if value is not None and value == value}
    return {"uniformity": None, "tolerance": None, **known}


def _train_longer(row: AnswerRow, answer: Answer) -> None:
    """Queue a training with these settings, on all training images, for more epochs."""
    plan = plan_from_json(answer["plan"])
    chosen = {"method": plan.method, "dataset": plan.dataset, "epochs": LONGER * row["epochs"]}
    settings = {**chosen, **plan.base(), **row["settings"]}
    name = queue.free_name(f"{plan.name}-longer")
    with guard.errors_shown():
        queue.enqueue(name, arguments_of(settings, 0))
        watch_next(name)
