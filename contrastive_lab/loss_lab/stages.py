"""The stage of the Loss Lab, and its save menu."""

from collections.abc import Collection, Sequence
from typing import Any

import streamlit as st

from contrastive_lab import query_params
from contrastive_lab.locale import N_, _
from contrastive_lab.loss_lab.lesson_panel import leave
from contrastive_lab.report import button

PLAYGROUND = "playground"  # which the list of lessons leads to
STAGES = {"star": N_("Star"), "matrix": N_("Matrix"), "curves": N_("Curves")} | {
    "circle": N_("Circle"),
    PLAYGROUND: N_("Playground"),
}
OWN = ("circle", PLAYGROUND)  # which rest on no batch
STAGE = "loss_lab-on"  # the widget
EXPORT = "lab-export"  # of the session: what was asked for last, and how often
OF_CURVES = ("none", "scores", "grads", "curves", "formula", "pushes")  # panels of addresses before there were stages


def read_old_address() -> None:
    """Convert the old URL parameters `on=batch` with `view`, `panel` or `trade` into a stage."""
    if query_params.requested("on") in STAGES or query_params.requested("lesson"):
        return
    panel, has_trade = query_params.take("panel"), query_params.take("trade") == "yes"
    if panel in OF_CURVES[1:5] or has_trade:
        query_params.choose(STAGE, "curves")
    elif panel in (*OF_CURVES, "two") or any(map(query_params.requested, ("view", "order", "masks"))):
        query_params.choose(STAGE, "matrix")
        if panel == "two":
            query_params.ask({"second": "same"})


def without_batch() -> str:
    """Return the stage if it needs no batch, before its control is drawn; else ""."""
    shown = query_params.current("on", STAGES, "")
    return shown if shown in OWN else ""


def offered_stages(shown: str = "", left_out: Collection[str] = ()) -> list[str]:
    """Return the stages to offer; the playground only while it is shown: the list of lessons leads to it."""
    return [name for name in STAGES if name not in left_out and name in (shown, *list(STAGES)[:-1])]


def choose_stage(offered: Sequence[str], first: str) -> str:
    """Draw the control for the stage and return it; a change leaves the lesson."""
    look: dict[str, Any] = {"format_func": STAGES.get, "label_visibility": "collapsed", "on_change": leave}
    return query_params.one_of(st.segmented_control, _("Show"), offered, name="on", default=first, **look)


def export(name: str = "") -> None:
    """Draw the menu that saves the picture, its numbers and, with a name, a report on that run or those vectors."""
    with st.popover(_("Export"), key="lab-export-menu"):
        for what in ("png", "csv"):
            st.button(what.upper(), key=f"lab-export-{what}", on_click=_ask, args=(what,), width="stretch")
        if name:
            button.offer([name])


def asked_export() -> tuple[str, int]:
    """Return the last request in the menu, and the number of requests."""
    asked: tuple[str, int] = st.session_state.get(EXPORT, ("", 0))
    return asked


def _ask(what: str) -> None:
    st.session_state[EXPORT] = (what, asked_export()[1] + 1)
