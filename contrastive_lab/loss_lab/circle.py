"""The Loss Lab without an encoder: points on a circle that follow a loss's own gradient."""

from __future__ import annotations

import json
from typing import Any

import streamlit as st

from contrastive_lab import cache
from contrastive_lab.components.circle import CircleStart, draw_circle
from contrastive_lab.loss_lab.controls import knob_form, knob_of
from contrastive_lab.loss_lab.formula import formula
from contrastive_lab.query_params import Address

__all__ = ["on_circle"]

SAME_ON_A_CIRCLE = ("normalize", "critic")  # knobs that change nothing for rows of length one
CONTROLS = {
    "groups": (2, 1, 20), "points": (24, 2, 400), "scatter": (0, 0, 9999), "speed": (600, 0, 1000)
}  # fmt: skip


def on_circle(losses: dict[str, Any], address: Address) -> None:
    """Points that follow the loss's own gradient: what it wants, without an encoder in between."""
    st.caption(
        "Each point is a row of length one. Run, and the points follow the loss's own gradient: "
        "arrows show the force on each. Drag a point and watch the forces change."
    )
    known = [n for n, about in losses.items() if about["kernel"]]
    loss = st.selectbox(
        "Loss", known, known.index(address.text("loss", "nt_xent", known)),
        format_func=lambda n: losses[n]["title"], key="lab-loss-circle",
    )  # fmt: skip
    about = losses[loss]
    same = loss == address.text("loss", loss)
    forms = {n: k for n, k in about["knobs"].items() if n not in SAME_ON_A_CIRCLE}
    settings = knob_form(loss, forms, address)
    said = dict((st.session_state.get(f"circle-{loss}") or {}).get("chosen") or {})
    live = about["kernel"].get("knob")
    if live:
        settings[live] = said.get("value")
        if settings[live] is None:
            first = about["knobs"][live]["default"]
            settings[live] = address.number(live, first) if same else first
    placed = {
        name: int(said.get(name, address.number(name, first, low, high)))
        for name, (first, low, high) in CONTROLS.items()
    }
    at = str(said.get("at", address.text("at", "")))
    address.keep(on="circle", loss=loss, **settings, **placed, at=at)
    knob = knob_of(about, live, settings[live]) if live else None
    if all(value == about["knobs"][n]["default"] for n, value in settings.items() if n != live):
        kernel = about["kernel"] | ({live: settings[live]} if live else {})  # known without torch
    else:
        kernel = cache.lab_kernel(loss, json.dumps(settings, sort_keys=True))
    start = CircleStart(**placed, at=at)
    draw_circle(kernel, about["score"], knob, start, key=f"circle-{loss}")
    formula(loss, about)
