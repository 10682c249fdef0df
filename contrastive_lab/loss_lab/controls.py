"""A loss on the page: its knobs, of which one is dragged in the browser part, what that reported last,
and its formula."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import streamlit as st

from contrastive_core.records.lab_view import DERIVATIVES
from contrastive_lab import number_inputs, query_params
from contrastive_lab.components.shared.mount import reported_state
from contrastive_lab.locale import _
from contrastive_lab.loss_setting import LIVE, live_knob
from contrastive_lab.setting_names import shown_value

VALUES = "lab-values"  # of the session: the dragged knob's last value, by loss
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
    return dict(reported_state(key, "chosen") or {})


def panel_state(key: str) -> PanelState:
    """What the live view shows: as it said itself, or as the address asks."""
    report = reported(key)
    texts: dict[str, Any] = {
        n: report.get(n, query_params.kept_value(n) or "") for n in ("view", "panel", "order", "second")
    }
    flags: dict[str, Any] = {n: report.get(n, query_params.kept_value(n) == "yes") or None for n in ("masks", "share")}
    second_value, anchor = (report.get(n, query_params.kept_number(n)) for n in ("second_value", "anchor"))
    return PanelState(**texts, second_value=second_value, **flags, anchor=None if anchor is None else int(anchor))


def knob_form(
    key: str, loss: str, about: dict[str, Any], first: dict[str, Any], left_out: Collection[str] = ()
) -> dict[str, Any]:
    """Every knob of a loss with its value; controls in a row for those that are not dragged in the part of this key.

    Args: about: the loss's entry in the catalog; first: values to begin with, where not the
    defaults; left_out: knobs that get no control and stay as they are.
    """
    values = {}
    if shown := [name for name in about["knobs"] if name not in (*LIVE, *left_out)]:
        with st.container(horizontal=True, gap="large", vertical_alignment="bottom"):
            values = {n: _control(n, about["knobs"][n], f"lab-{loss}-{n}", first.get(n)) for n in shown}
    values = {name: value for name, value in values.items() if value is not None}
    if live := live_knob(about):
        values[live] = _live_value(key, loss, live, about["knobs"][live], first.get(live))
        query_params.keep(**{live: values[live]})
    return values


def _control(name: str, k: dict[str, Any], key: str, first: Any) -> Any:
    label, default = name.replace("_", " "), k["default"] if first is None else first
    about = {"name": name, "default": default, "key": key, "help": k["help"]}
    if k["choices"]:
        return query_params.one_of(
            st.segmented_control, label, k["choices"], format_func=lambda c: str(c).replace("_", " "), **about
        )
    if isinstance(default, bool):
        return query_params.switch(st.toggle, label, **about)
    empty = _("not given") if default is None else None  # an empty field says something of its own
    return number_inputs.number(st.number_input, label, k["low"], k["high"], width=180, placeholder=empty, **about)


def _live_value(key: str, loss: str, name: str, knob: dict[str, Any], first: float | None) -> float:
    """The dragged knob's value: that of the address on arrival, then the one last let go, or the first."""
    values, report = st.session_state.setdefault(VALUES, {}), reported(key)
    from_address = _number(query_params.take(name))
    if from_address is not None:
        values[loss] = min(knob["high"], max(knob["low"], from_address))
        st.session_state[BEFORE] = report
    elif report.get("of", loss) == loss and report != st.session_state.get(BEFORE) and report.get("value") is not None:
        values[loss] = report["value"]
    return float(values.get(loss, knob["default"] if first is None else first))


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def formula(loss: str, about: dict[str, Any]) -> None:
    """The loss in letters, its paper, and what each knob does."""
    st.header(f"{about['title']} ({about['year']})")
    st.latex(about["formula"])
    if loss in DERIVATIVES:
        st.latex(DERIVATIVES[loss])
    paper = _("Paper")
    st.markdown(f"{_(about['summary'])} [{paper}]({about['paper']})")
    line = _("- **{name}** (by default {value}): {help}")
    knobs = [(_(name.replace("_", " ")), shown_value(k["default"]), _(k["help"])) for name, k in about["knobs"].items()]
    st.markdown("\n".join(line.format(name=name, value=value, help=help) for name, value, help in knobs))
