"""A knob as an axis: runs of one method as curves of accuracy, uniformity and tolerance."""

from __future__ import annotations

from typing import Any

import streamlit as st

import session
from contrastive_core import figures
from contrastive_core.runs import Run

__all__ = ["axis"]

GROUPS = ("loss_knobs", "method_knobs", "encoder_knobs")
PLAIN = ("epochs", "batch_size", "lr")


def axis(ready: list[Run], which: str) -> None:
    """Curves over a knob that differs between scored runs of one method on one data set."""
    groups: dict[str, list[Run]] = {}
    for run in ready:
        name = (
            f"{run.config.get('method')} with {run.config.get('loss')} on {session.data_key(run)}"
        )
        groups.setdefault(name.strip(), []).append(run)
    offered = {
        (name, knob): points
        for name, runs in groups.items()
        for knob, points in _knobs(runs).items()
    }
    if not offered:
        st.info(
            "Runs of one method that differ in a knob (τ, margin, momentum, head …) are needed. "
            "sweeps/temperature.toml trains some: python -m contrastive_core sweep FILE."
        )
        return
    name, knob = st.selectbox(
        "Runs and knob", list(offered), format_func=lambda o: f"{o[0]}: {o[1]}"
    )
    rows = []
    for value, run in sorted(offered[name, knob], key=lambda p: (str(type(p[0])), p[0])):
        scores = (session.scores(run) or {}).get("scores", {}).get(which, {})
        rows.append({knob: value, "run": run.name, **_values(scores)})
    numbers = all(isinstance(r[knob], (int, float)) for r in rows)
    for column, (title, unit) in zip(st.columns(3), SHOWN.items(), strict=True):
        with column:
            known = [r for r in rows if r.get(title) is not None]
            xs = [r[knob] for r in known]
            figure = figures.curves({title: (xs, [r[title] for r in known])}, knob, unit)
            if numbers and knob == "temperature":
                figure.update_xaxes(type="log", tickvals=xs, ticktext=[f"{x:g}" for x in xs])
            st.plotly_chart(figure, key=f"axis {title}")
    st.caption(
        "The dilemma: a low τ spreads the samples (uniformity falls) and tears apart what is alike "
        "(tolerance falls); accuracy is best in between. Tolerance is the mean cosine within a "
        "class. One run each: a small step may be its seed."
    )
    st.dataframe(rows, hide_index=True)


SHOWN = {
    "kNN accuracy": "kNN accuracy, %",
    "uniformity": "uniformity, nats (lower: more even)",
    "tolerance": "tolerance (higher: classes together)",
}


def _values(scores: dict[str, Any]) -> dict[str, float | None]:
    knn = scores.get("knn", {}).get("value")
    return {
        "kNN accuracy": None if knn is None else 100 * knn,
        "uniformity": scores.get("uniformity", {}).get("value"),
        "tolerance": scores.get("tolerance", {}).get("value"),
    }


def _knobs(runs: list[Run]) -> dict[str, list[tuple[Any, Run]]]:
    """Knobs of which these runs have two values or more, with (value, run)."""
    found: dict[str, list[tuple[Any, Run]]] = {}
    for run in runs:
        if session.scores(run) is None:
            continue
        known = {k: run.config.get(k) for k in PLAIN}
        for group in GROUPS:
            known |= run.config.get(group) or {}
        for knob, value in known.items():
            if isinstance(value, (int, float, str)):
                found.setdefault(knob, []).append((value, run))
    return {k: v for k, v in found.items() if len({str(value) for value, _ in v}) > 1}
