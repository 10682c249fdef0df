"""What the temperature trades on a batch: a figure over τ, and where the run stands on it."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

from contrastive_core.engine import client
from contrastive_core.records.lab_view import LabView, Trade
from contrastive_core.records.run import Run
from contrastive_lab import format, plots, query_params
from contrastive_lab.locale import N_, _

NEGATIVE = 2  # of the view's mask
SCHEDULE = (0.1, 1.0)  # ends of a schedule that moves τ, as Kukleva et al. 2023 take them


def offer(run: Run, view: LabView, classes: tuple[np.ndarray, np.ndarray] | None, at: float) -> None:
    """The section, where it is asked for. Args: classes: of the anchors (n) and of the candidates (w), −1 where there
    is none; at: the τ that the slider was let go at."""
    if not query_params.switch(st.toggle, _("What τ trades"), name="trade"):
        return
    same = None
    if classes is not None and (classes[0] >= 0).any():
        same = (classes[0][:, None] == classes[1]) & (classes[0][:, None] >= 0)
    try:
        found: list[Trade] = client.call(
            "contrastive_core.loss_lab.trade:trade", view.scores, view.mask == NEGATIVE, same
        )
    except ValueError as error:
        st.caption(format.plain(error))
        return
    trained = run.config.get("loss_knobs", {}).get("temperature")
    st.plotly_chart(_figure(found, at, trained), key="trade")
    st.caption(_in_words(found, at))


def _figure(found: list[Trade], at: float, trained: Any) -> Any:
    shares = {
        N_("negatives that matter, of all"): [f.spread for f in found],
        N_("push on images of the anchor's class"): [f.own_class for f in found if f.own_class is not None],
        N_("push on the hardest negative"): [f.hardest for f in found],
    }
    x = [f.temperature for f in found]
    figure = plots.curves({name: (x, values) for name, values in shares.items() if values}, "τ", "share", height=300)
    dashes = dict(zip(shares, ("solid", "dash", "dot"), strict=True))
    figure.for_each_trace(lambda trace: trace.update(mode="lines", line={"dash": dashes[trace.name]}))
    gray = "#7C8794"
    figure.add_vline(at, annotation_text=f"τ {at:g}", line={"color": gray})
    if isinstance(trained, (int, float)) and abs(trained - at) > 1e-9:
        text, line = _("trained at {trained}").format(trained=f"{trained:g}"), {"color": gray, "dash": "dash"}
        figure.add_vline(trained, annotation_text=text, annotation_position="bottom right", line=line)
    figure.update_xaxes(type="log")
    figure.update_yaxes(range=[0, 1])
    figure.update_layout(margin={"t": 20}, legend={"y": 1.15})
    return figure


def _in_words(found: list[Trade], at: float) -> str:
    """Where the chosen τ stands, and what a schedule would do."""
    here = min(found, key=lambda f: abs(np.log(f.temperature / at)))
    low, high = (min(found, key=lambda f: abs(f.temperature - end)) for end in SCHEDULE)

    def percent(share: float) -> str:
        return f"{100 * share:.0f}"

    template = _("At τ {at} the push is spread over {spread} % of the negatives")
    text = template.format(at=f"{at:g}", spread=percent(here.spread))
    if here.own_class is not None:
        own = _("; {own_class} % of it falls on images of the anchor's own class")
        text += own.format(own_class=percent(here.own_class))
    text += (
        ". A low τ spreads images (uniformity) and pushes hardest what is alike; a high one keeps "
        "what is alike together (tolerance) and separates little. "
        f"A schedule between {SCHEDULE[0]:g} and {SCHEDULE[1]:g} goes to and fro between "
        f"{percent(low.spread)} and {percent(high.spread)} %"
    )
    if low.own_class is not None and high.own_class is not None:
        ends = _(", and {low} and {high} % on its own class")
        text += ends.format(low=percent(low.own_class), high=percent(high.own_class))
    return _("{text}. (Wang and Liu, 2021; Kukleva et al., 2023.)").format(text=text)
