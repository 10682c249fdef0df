"""The Loss Lab without an encoder: points on a circle that follow a loss's own gradient."""

from __future__ import annotations

from typing import Any

import streamlit as st

from components import Address, circle
from components.knobs import knob_of
from layout.lab_words import formula

__all__ = ["on_circle"]


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
    said = dict((st.session_state.get(f"circle-{loss}") or {}).get("chosen") or {})
    live = about["kernel"].get("knob")
    given = address.number(live) if live and loss == address.text("loss", loss) else None
    value = said.get("value") or given or (about["knobs"][live]["default"] if live else None)
    placed = {
        name: int(said.get(name) or address.number(name, first, low, high))
        for name, first, low, high in (
            ("groups", 2, 1, 20), ("points", 24, 2, 400), ("scatter", 0, 0, 9999)
        )
    }  # fmt: skip
    address.keep(on="circle", loss=loss, **({live: value} if live else {}), **placed)
    knob = knob_of(about, live, value) if live else None
    circle(about["kernel"], about["score"], knob=knob, key=f"circle-{loss}", **placed)
    formula(loss, about)
