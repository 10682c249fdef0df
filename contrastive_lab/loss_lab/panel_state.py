"""What the browser parts of the Loss Lab reported last, and what the address asks for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import streamlit as st

from contrastive_lab import query_params

VALUES = "lab-values"  # of the session: the knob's last value, by loss
BEFORE = "lab-before"  # of the session: the report that an address came after


@dataclass(frozen=True)
class PanelState:
    """What the live view shows; "" and None: as at first."""

    view: str = ""
    panel: str = ""
    order: str = ""
    second: str = ""  # the second setting, as `loss:NAME`, `rows:SOURCE` or a form
    second_value: float | None = None
    masks: bool | None = None
    share: bool | None = None  # bars among the negatives
    anchor: int | None = None  # None: one that is easily confused


def reported(key: str) -> dict[str, Any]:
    """What the part of this key reported last."""
    return dict((st.session_state.get(key) or {}).get("chosen") or {})


def panel_state(key: str) -> PanelState:
    """What the live view shows: as it said itself, or as the address asks."""
    report = reported(key)
    texts = {n: report.get(n, query_params.kept_value(n) or "") for n in ("view", "panel", "order", "second")}
    anchor = report.get("anchor", query_params.kept_number("anchor"))
    return PanelState(
        **texts,
        second_value=report.get("second_value", query_params.kept_number("second_value")),
        masks=report.get("masks", query_params.kept_value("masks") == "yes") or None,
        share=report.get("share", query_params.kept_value("share") == "yes") or None,
        anchor=None if anchor is None else int(anchor),
    )


def live_value(key: str, loss: str, knob: dict[str, Any], name: str, default: float) -> float:
    """The knob's value: that of the address on arrival, then the one last let go, or the default.

    Args: key: of the part; knob: the catalog's entry of the knob, `name` its name.
    """
    values, report = st.session_state.setdefault(VALUES, {}), reported(key)
    from_address = _number(query_params.take(name))
    if from_address is not None:
        values[loss] = min(knob["high"], max(knob["low"], from_address))
        st.session_state[BEFORE] = report
        return float(values[loss])
    is_new = report.get("of", loss) == loss and report != st.session_state.get(BEFORE)
    if is_new and report.get("value") is not None:
        values[loss] = report["value"]
    return float(values.get(loss, default))


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) else None
