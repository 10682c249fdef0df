"""A knob as an axis: runs of one method as curves of accuracy, uniformity and tolerance."""

from __future__ import annotations

from typing import Any

import streamlit as st

from contrastive_core.evaluation.record import Evaluation
from contrastive_core.runs import Run
from contrastive_lab import cache, guard, plots, query_params, state

__all__ = ["axis"]

GROUPS = ("loss_knobs", "method_knobs", "encoder_knobs")
CURVE = 280  # pixels of a figure; below each other where there is no room beside each other
PLAIN = ("epochs", "batch_size", "lr")


def axis(ready: list[Run], layer: str) -> None:
    """Curves over a knob that differs between scored runs of one method on one data set."""
    groups: dict[str, list[Run]] = {}
    for run in ready:
        name = f"{run.config.get('method')} with {run.config.get('loss')} on {state.data_key(run)}"
        groups.setdefault(name.strip(), []).append(run)
    offered = {
        (name, knob): points
        for name, runs in groups.items()
        for knob, points in _knobs(runs).items()
    }
    if not offered:
        st.info(
            "Curves need runs of one method that differ in a knob: τ, margin, momentum, head … "
            "The sweep *temperature* trains some."
        )
        st.page_link("pages/runs.py", label="Start a sweep", icon=":material/tune:",
                     query_params={"view": "sweeps", "sweep": "temperature"})  # fmt: skip
        return
    name, knob = query_params.one_of(
        st.selectbox, "Runs and knob", offered, name="knob", text=lambda o: f"{o[0]}: {o[1]}",
        format_func=lambda o: f"{o[0]}: {o[1]}",
    )  # fmt: skip
    rows = []
    for value, run in sorted(offered[name, knob], key=lambda p: (str(type(p[0])), p[0])):
        record = cache.scores(run)
        rows.append({knob: value, "run": run.name, **(_values(record, layer) if record else {})})
    numbers = all(isinstance(r[knob], (int, float)) for r in rows)
    row = st.container(horizontal=True)
    for title, unit in SHOWN.items():
        measured = [r for r in rows if r.get(title) is not None]
        figure = _curve(measured, knob, title, unit)
        if numbers and knob == "temperature":
            xs = sorted({r[knob] for r in measured})
            figure.update_xaxes(type="log", tickvals=xs, ticktext=[f"{x:g}" for x in xs])
        with row.container(width=CURVE):
            st.plotly_chart(figure, key=f"axis {title}")
    dilemma = (
        "The dilemma: a low τ spreads the samples (uniformity falls) and tears apart what is alike "
        "(tolerance falls); accuracy is best in between. "
    )
    st.caption(
        (dilemma if knob == "temperature" else "")
        + "A dot is a run, the line goes through their means. Tolerance is the mean cosine within "
        "a class. Where a value has one run, a small step may be its seed."
    )
    st.dataframe(rows, hide_index=True)


SHOWN = {
    "kNN accuracy": "kNN accuracy, %",
    "uniformity": "uniformity, nats (lower: more even)",
    "tolerance": "tolerance (higher: classes together)",
}


def _curve(rows: list[dict[str, Any]], knob: str, title: str, unit: str) -> Any:
    """A dot for each run, and a line through the mean of those with one value of the knob."""
    values = {r[knob]: [q[title] for q in rows if q[knob] == r[knob]] for r in rows}
    means = [sum(v) / len(v) for v in values.values()]
    figure = plots.curves({"mean": (list(values), means)}, knob, unit)
    figure.update_layout(showlegend=False)
    if len(rows) > len(values):
        figure.add_scatter(x=[r[knob] for r in rows], y=[r[title] for r in rows], mode="markers",
                           opacity=0.5, text=[r["run"] for r in rows], name="run")  # fmt: skip
    return figure


def _values(record: Evaluation, layer: str) -> dict[str, float | None]:
    knn = record.value(layer, "knn")
    return {
        "kNN accuracy": None if knn is None else 100 * knn,
        "uniformity": record.value(layer, "uniformity"),
        "tolerance": record.value(layer, "tolerance"),
    }


def _knobs(runs: list[Run]) -> dict[str, list[tuple[Any, Run]]]:
    """Knobs of which these runs have two values or more, with (value, run)."""
    values_by_knob: dict[str, list[tuple[Any, Run]]] = {}
    for run in runs:
        with guard.on_its_own(run.name):
            if cache.scores(run) is None:
                continue
            settings = {k: run.config.get(k) for k in PLAIN}
            for group in GROUPS:
                settings |= run.config.get(group) or {}
            for knob, value in settings.items():
                if isinstance(value, (int, float, str)):
                    values_by_knob.setdefault(knob, []).append((value, run))
    return {k: v for k, v in values_by_knob.items() if len({str(value) for value, _ in v}) > 1}
