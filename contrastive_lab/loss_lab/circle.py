"""The Loss Lab without an encoder: points on a circle that follow a loss's own gradient."""

import json
from dataclasses import asdict, fields
from functools import partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from contrastive_core.engine import client
from contrastive_lab import query_params
from contrastive_lab.components.circle import CircleStart, CircleView, draw_circle
from contrastive_lab.locale import _
from contrastive_lab.loss_lab import collapse
from contrastive_lab.loss_lab.controls import formula, knob_form, reported
from contrastive_lab.loss_lab.lesson_panel import hear, key_of, panel_of
from contrastive_lab.loss_setting import dragged, further_knobs_of, knob_of, live_knob

SAME_ON_A_CIRCLE = ("normalize", "critic")  # knobs that change nothing for rows of length one
LIMITS = {"groups": (1, 20), "points": (2, 400), "scatter": (0, 9999), "towers": (0, 1), "speed": (0, 1000)}


def on_circle(losses: dict[str, Any], lesson: int = 0) -> None:
    """A loss on the circle: points that follow its gradient, or, where only an encoder collapses, a small training."""
    choices = st.expander(_("Settings"), icon=":material/tune:") if lesson else st.container()
    with choices:  # a lesson sets them itself
        shown = [n for n, about in losses.items() if about["kernel"] or n == collapse.LOSS]
        titles, key = {n: losses[n]["title"] for n in shown}, "lab-loss-circle"
        titles[collapse.LOSS] = _("{title} (BYOL, SimSiam)").format(title=_(titles[collapse.LOSS]))
        loss = query_params.one_of(
            st.selectbox, _("Loss"), titles, name="loss", default="nt_xent", key=key, format_func=titles.get
        )
    if loss == collapse.LOSS:
        collapse.on_circle(losses[loss], lesson)
    else:
        _points(loss, losses[loss], lesson, choices)


def _points(loss: str, about: dict[str, Any], lesson: int, choices: DeltaGenerator) -> None:
    """Points that follow the loss's own gradient: what it wants, without an encoder in between."""
    if not lesson:
        text = _(
            "Each point is an embedding, on a circle instead of a sphere. Run, and the points follow the loss's own "
            "gradient: arrows show the force on each. Drag a point and watch the forces change."
        )
        st.caption(text)
    key = key_of(f"circle-{loss}", lesson)
    with choices:
        knobs = knob_form(key, loss, about, {}, SAME_ON_A_CIRCLE)
    live, start = live_knob(about), circle_start(key)
    query_params.keep(**asdict(start))
    knob = knob_of(about, live, knobs[live]) if live else None
    moved = dragged(about)
    if all(value == about["knobs"][n]["default"] for n, value in knobs.items() if n not in moved):
        kernel = about["kernel"] | {name: knobs[name] for name in moved}  # known without torch
    else:
        kernel = _kernel(loss, json.dumps(knobs, sort_keys=True))
    if kernel is None:
        st.info(_("The browser has no kernel for this loss; choose one of the softmax or hinge kind."))
    else:
        heard = reported(key).get("report")
        more = further_knobs_of(about, knobs)
        view = CircleView(kernel, about["score"], knob, start, False, panel_of(lesson), heard, more)
        draw_circle(view, key, partial(hear, key))
    formula(loss, about)


def circle_start(key: str) -> CircleStart:
    """Where the circle begins: as it said itself, or as the address asks."""
    report = reported(key)
    first = {f.name: f.default for f in fields(CircleStart)}
    numbers = {
        name: int(report.get(name, query_params.kept_number(name, first[name], *limits)))
        for name, limits in LIMITS.items()
    }
    return CircleStart(**numbers, at=str(report.get("at", query_params.kept_value("at") or "")))


@st.cache_data(max_entries=24, show_spinner=False)
def _kernel(loss: str, knobs: str) -> Any:
    """Return the browser kernel of a loss with these knobs, or None."""
    return client.call("contrastive_lab.loss_description:about_loss", loss, json.loads(knobs))["kernel"]
