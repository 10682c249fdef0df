"""What the temperature trades on a batch: a figure over τ, and where the run stands on it."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

from contrastive_core.loss_lab.trade import Trade, trade
from contrastive_core.loss_lab.view import LabView
from contrastive_core.runs import Run
from contrastive_lab import format, query_params

__all__ = ["offer"]

NEGATIVE = 2  # of the view's mask
SCHEDULE = (0.1, 1.0)  # ends of a schedule that moves τ, as Kukleva et al. 2023 take them


def offer(
    run: Run, view: LabView, classes: tuple[np.ndarray, np.ndarray] | None, at: float
) -> None:
    """The section, where it is asked for.

    Args: classes: of the anchors (n) and of the candidates (w), −1 where there is none; at: the τ
    that the slider was let go at.
    """
    if not query_params.switch(st.toggle, "What τ trades", name="trade"):
        return
    same = None
    if classes is not None and (classes[0] >= 0).any():
        same = (classes[0][:, None] == classes[1]) & (classes[0][:, None] >= 0)
    try:
        found = trade(view.scores, view.mask == NEGATIVE, same)
    except ValueError as error:
        st.caption(format.plain(error))
        return
    trained = run.config.get("loss_knobs", {}).get("temperature")
    st.plotly_chart(_figure(found, at, trained), key="trade")
    st.caption(_in_words(found, at))


def _figure(found: list[Trade], at: float, trained: Any) -> Any:
    import plotly.graph_objects as go

    figure, x = go.Figure(), [f.temperature for f in found]
    lines: dict[str, list[Any]] = {
        "negatives that matter, of all": [f.spread for f in found],
        "push on images of the anchor's class": [f.own_class for f in found],
        "push on the hardest negative": [f.hardest for f in found],
    }
    for (name, values), dash in zip(lines.items(), ("solid", "dash", "dot"), strict=True):
        if values[0] is not None:
            figure.add_scatter(x=x, y=values, name=name, mode="lines", line={"dash": dash})
    figure.add_vline(at, annotation_text=f"τ {at:g}", line={"color": "#7C8794"})
    if isinstance(trained, (int, float)) and abs(trained - at) > 1e-9:
        figure.add_vline(
            trained, annotation_text=f"trained at {trained:g}", annotation_position="bottom right",
            line={"color": "#7C8794", "dash": "dash"},
        )  # fmt: skip
    figure.update_xaxes(type="log", title="τ")
    figure.update_yaxes(range=[0, 1], title="share")
    figure.update_layout(
        height=300, margin={"l": 10, "r": 10, "t": 20, "b": 10},
        legend={"orientation": "h", "y": 1.15},
    )  # fmt: skip
    return figure


def _in_words(found: list[Trade], at: float) -> str:
    """Where the chosen τ stands, and what a schedule would do."""
    here = min(found, key=lambda f: abs(np.log(f.temperature / at)))
    low, high = (min(found, key=lambda f: abs(f.temperature - end)) for end in SCHEDULE)
    text = f"At τ {at:g} the push is spread over {100 * here.spread:.0f} % of the negatives"
    if here.own_class is not None:
        text += f"; {100 * here.own_class:.0f} % of it falls on images of the anchor's own class"
    text += (
        ". A low τ spreads images (uniformity) and pushes hardest what is alike; a high one keeps "
        "what is alike together (tolerance) and separates little. "
        f"A schedule between {SCHEDULE[0]:g} and {SCHEDULE[1]:g} goes to and fro between "
        f"{100 * low.spread:.0f} and {100 * high.spread:.0f} %"
    )
    if low.own_class is not None and high.own_class is not None:
        text += f", and {100 * low.own_class:.0f} and {100 * high.own_class:.0f} % on its own class"
    return f"{text}. (Wang and Liu, 2021; Kukleva et al., 2023.)"
