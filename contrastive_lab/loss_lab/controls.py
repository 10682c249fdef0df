"""A loss's knobs as controls: one is dragged in the browser part, the others stand in a row."""

from __future__ import annotations

from typing import Any

from contrastive_lab.components.shared.knob import Knob
from contrastive_lab.query_params import Address

__all__ = ["knob_form", "knob_of", "live_of"]

LIVE = ("temperature", "margin")


def knob_form(loss: str, knobs: dict[str, Any], address: Address) -> dict[str, Any]:
    """Controls for the knobs that are not dragged."""
    import streamlit as st

    found: dict[str, Any] = {}
    rest = [name for name in knobs if name not in LIVE]
    if not rest:
        return found
    with st.container(horizontal=True, gap="large", vertical_alignment="bottom"):
        for name in rest:
            value = _control(name, knobs[name], f"lab-{loss}-{name}", address)
            if value is not None:
                found[name] = value
    return found


def _control(name: str, k: dict[str, Any], key: str, address: Address) -> Any:
    import streamlit as st

    label, default = name.replace("_", " "), k["default"]
    if k["choices"]:
        first = address.text(name, default, k["choices"])
        return st.segmented_control(
            label, k["choices"], default=first, help=k["help"], key=key,
            format_func=lambda c: c.replace("_", " "),
        ) or default  # fmt: skip
    if isinstance(default, bool):
        first = address.text(name, "yes" if default else "no") == "yes"
        return st.toggle(label, first, help=k["help"], key=key)
    first = address.number(name, default, k["low"], k["high"])
    return st.number_input(label, k["low"], k["high"], first, help=k["help"], key=key, width=180)


def live_of(about: dict[str, Any]) -> str | None:
    return next((k for k in LIVE if k in about["knobs"]), None)


def knob_of(about: dict, live: str, value: float) -> Knob:
    """What is dragged: its label, range and value."""
    k = about["knobs"][live]
    low, high = (0.01, 10.0) if live == "temperature" else (k["low"], min(k["high"], 4.0))
    label = "τ, temperature" if live == "temperature" else "ε, margin"
    value = min(high, max(low, float(value)))
    return Knob(label, low, high, value, k["log"])
