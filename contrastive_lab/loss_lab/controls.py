"""A loss's knobs as controls: one is dragged in the browser part, the others stand in a row."""

from __future__ import annotations

from typing import Any

import streamlit as st

from contrastive_lab import query_params
from contrastive_lab.locale import _
from contrastive_lab.loss_setting import LIVE


def knob_form(loss: str, knobs: dict[str, Any], first: dict[str, Any] | None = None) -> dict[str, Any]:
    """Controls for the knobs that are not dragged; returns their values.

    Args: knobs: entries of the catalog; first: values to begin with, where not the defaults.
    """
    not_dragged = [name for name in knobs if name not in LIVE]
    if not not_dragged:
        return {}
    with st.container(horizontal=True, gap="large", vertical_alignment="bottom"):
        values = {n: _control(n, knobs[n], f"lab-{loss}-{n}", (first or {}).get(n)) for n in not_dragged}
    return {name: value for name, value in values.items() if value is not None}


def _control(name: str, k: dict[str, Any], key: str, first: Any) -> Any:
    label, default = name.replace("_", " "), k["default"] if first is None else first
    if k["choices"]:
        return query_params.one_of(
            st.segmented_control,
            label,
            k["choices"],
            name=name,
            default=default,
            key=key,
            help=k["help"],
            format_func=lambda c: str(c).replace("_", " "),
        )
    if isinstance(default, bool):
        return query_params.switch(st.toggle, label, name=name, default=default, key=key, help=k["help"])
    low, high = k["low"], k["high"]
    if default is None:  # an empty field says something of its own
        return query_params.number(
            st.number_input,
            label,
            low,
            high,
            name=name,
            key=key,
            help=k["help"],
            width=180,
            default=None,
            placeholder=_("not given"),
        )
    return query_params.number(
        st.number_input, label, low, high, name=name, default=default, key=key, help=k["help"], width=180
    )
