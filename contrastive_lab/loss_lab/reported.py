"""What the browser parts of the Loss Lab reported last, and what the address asks for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import streamlit as st

from contrastive_lab import query_params

__all__ = ["Shown", "live_value", "reported", "shown_by"]

VALUES = "lab-values"  # of the session: the knob's last value, by loss
BEFORE = "lab-before"  # of the session: the report that an address came after


@dataclass(frozen=True)
class Shown:
    """What the live view shows; "" and None: as at first."""

    view: str = ""
    panel: str = ""
    order: str = ""
    second: str = ""  # the second setting, as `loss:NAME`, `rows:SOURCE` or a form
    second_value: float | None = None
    masks: bool | None = None
    anchor: int = 0


def reported(key: str) -> dict[str, Any]:
    """What the part of this key reported last."""
    return dict((st.session_state.get(key) or {}).get("chosen") or {})


def shown_by(key: str) -> Shown:
    """What the live view shows: as it said itself, or as the address asks."""
    said, address = reported(key), query_params.Address("loss_lab")
    texts = {n: said.get(n, address.text(n, "")) for n in ("view", "panel", "order", "second")}
    return Shown(
        **texts,
        second_value=said.get("second_value", address.number("second_value")),
        masks=said.get("masks", address.text("masks", "") == "yes") or None,
        anchor=int(said.get("anchor", address.number("anchor", 0)) or 0),
    )


def live_value(key: str, loss: str, knob: dict[str, Any], name: str, default: float) -> float:
    """The knob's value: that of the address on arrival, then the one last let go, or the default.

    Args: key: of the part; knob: the catalog's entry of the knob, `name` its name.
    """
    values, said = st.session_state.setdefault(VALUES, {}), reported(key)
    asked = _number(query_params.take(name))
    if asked is not None:
        values[loss] = min(knob["high"], max(knob["low"], asked))
        st.session_state[BEFORE] = said
        return float(values[loss])
    is_new = said.get("of", loss) == loss and said != st.session_state.get(BEFORE)
    if is_new and said.get("value") is not None:
        values[loss] = said["value"]
    return float(values.get(loss, default))


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) else None
