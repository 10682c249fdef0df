"""A recording while it grows: how far it is, its figures over the steps, and what it left out."""

from __future__ import annotations

from typing import Any

import streamlit as st

from contrastive_core.embeddings.recorded import kinds_of
from contrastive_core.runs import Run
from contrastive_core.runs.metrics_reader import MetricsReader
from contrastive_lab import format, plots

__all__ = ["LACKS", "describe", "figures", "follow"]

LACKS = (
    "A recording holds embeddings and figures of a training that ran elsewhere; no weights, so "
    "nothing can be embedded anew, trained on, or taken elsewhere."
)
FEW = 300  # points of a curve
SHOWN = {
    "loss": "Loss",
    "effective_negatives": "Negatives that matter",
    "active_negatives": "Negatives still pushed",
    "rankme": "RankMe",
    "knn": "kNN of the step",
}
CURVES = {  # by title: names of figures, and the name of the axis
    "Loss": ({"loss": "recorded", "caller_loss": "the caller's"}, "loss"),
    "Negatives": (
        {"effective_negatives": "that matter", "negatives": "all", "active_negatives": "pushed"},
        "negatives of an anchor",
    ),
    "Gradient by pair class": (
        {"grad_positive": "positives", "grad_negative": "negatives"}, "length of the gradient",
    ),
    "Alignment and uniformity": (
        {"alignment": "alignment", "uniformity": "uniformity"}, "squared distance, nats"
    ),
    "RankMe": ({"rankme": "of the step", "probe_rankme": "of the probe set"}, "dimensions"),
    "kNN": ({"knn": "of the step", "probe_knn": "of the probe set"}, "share right, leave one out"),
    "Temperature": ({"temperature": "τ"}, "τ"),
}  # fmt: skip


def describe(run: Run) -> str:
    """One line on a recording: its loss, how far it is, and how it stands."""
    status = run.status()
    knobs = ", ".join(f"{k} {v}" for k, v in (run.config.get("loss_knobs") or {}).items())
    loss = run.config.get("loss") or "the caller's own loss"
    state = "growing" if status["status"] == "running" else status["status"]
    step = int(status.get("step") or 0)
    return f"Recording · {loss}{f' ({knobs})' if knobs else ''} · step {step:,} · {state}"


@st.fragment(run_every=1.0)
def follow(name: str, drawn: dict[str, list[int]]) -> None:
    """How far a growing recording is, every second; the page is drawn anew when it has other rows
    than those drawn, or has ended."""
    from contrastive_core import runs

    try:
        run = runs.load(name)
    except (ValueError, OSError):
        st.rerun()
    st.caption(format.plain(describe(run)))
    if kinds_of(run) != drawn or not run.is_alive():
        st.rerun()


@st.fragment(run_every=1.0)
def growing_figures(name: str) -> None:
    """The same as `figures`, drawn again every second; the page is when the recording ends."""
    from contrastive_core import runs

    try:
        run = runs.load(name)
    except (ValueError, OSError):
        st.rerun()
    if not run.is_alive():
        st.rerun()
    _figures(run)


def figures(run: Run) -> None:
    """The newest figures, and how each came about; they follow while it grows."""
    if run.is_alive():
        growing_figures(run.name)
    else:
        _figures(run)


def _figures(run: Run) -> None:
    st.caption(format.plain(describe(run)))
    path = run.path / "metrics.jsonl"
    reader: MetricsReader = st.session_state.setdefault(f"read {path}", MetricsReader(path))
    reader.update()
    if not reader.steps:
        st.info("No step has been recorded yet.")
        return
    _newest(reader.latest[-1])
    lines = [*reader.steps[:: -(-len(reader.steps) // FEW)], *reader.epochs]
    lines.sort(key=lambda line: int(line["step"]))
    known = set().union(*lines)
    curves = [(t, names, unit) for t, (names, unit) in CURVES.items() if known & names.keys()]
    left, right = st.columns(2)
    for place, (title, names, unit) in enumerate(curves):
        series = {text: _series(lines, name) for name, text in names.items() if name in known}
        with (left, right)[place % 2]:
            st.markdown(f"**{title}**")
            figure = plots.curves(series, "step", unit, height=220)
            st.plotly_chart(figure, key=f"recorded-{run.name}-{title}")


def _newest(line: dict[str, Any]) -> None:
    row = st.container(horizontal=True, gap="small")
    for name, title in SHOWN.items():
        value = line.get(name)
        if value is None or (name == "active_negatives" and "effective_negatives" in line):
            continue
        text = f"{100 * value:.1f} %" if name == "knn" else f"{value:,.3g}"
        if name.endswith("negatives") and line.get("negatives") is not None:
            text = f"{value:,.0f} of {line['negatives']:,.0f}"
        row.metric(title, text)
    st.caption(f"At step {int(line['step']):,}, of the images of that step.")


def _series(lines: list[dict[str, Any]], name: str) -> tuple[list[float], list[float]]:
    points = [(line["step"], line[name]) for line in lines if line.get(name) is not None]
    return [x for x, _ in points], [y for _, y in points]
