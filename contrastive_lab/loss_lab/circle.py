"""The Loss Lab without an encoder: points on a circle that follow a loss's own gradient, or a training of BYOL or
SimSiam on the circle that shows whether they collapse without negatives."""

import json
from dataclasses import asdict, fields
from functools import partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from contrastive_core.base.cards import LossEntry
from contrastive_core.base.registry import Knobs
from contrastive_core.engine import calls
from contrastive_lab import query_params
from contrastive_lab.components.circle import CircleStart, CircleView, draw_circle
from contrastive_lab.components.shared.transport import SliderKnob
from contrastive_lab.components.siamese import SiameseStart, SiameseView, draw_siamese
from contrastive_lab.locale import N_, _
from contrastive_lab.loss_lab.controls import formula, knob_form, reported
from contrastive_lab.loss_lab.lesson_panel import hear, key_of, panel_of
from contrastive_lab.loss_setting import dragged, further_knobs_of, knob_of, live_knob

SETTINGS = "lab-circle-settings"  # the button with the settings of the loss
SAME_ON_A_CIRCLE = ("normalize", "critic")  # knobs that change nothing for rows of length one
LIMITS = {"groups": (1, 20), "points": (2, 400), "scatter": (0, 9999), "towers": (0, 1), "speed": (0, 1000)}

SIAMESE = "negative_cosine"  # the loss of BYOL and SimSiam, for which a training is shown
METHODS = ("simsiam", "byol")
KNOBS = {  # label, from, to, and the value that the measured facts of the lesson hold for
    "rate": (N_("learning rate of the encoder"), 0.01, 3.0, 0.3),
    "predictor_rate": (N_("learning rate of the predictor"), 0.001, 10.0, 1.0),
    "momentum": (N_("m, momentum of BYOL's target"), 0.0, 1.0, 0.9),
}
TRAINING = N_(
    "A training small enough to watch: 16 images, a small encoder that puts two views of each on the circle, and a "
    "small predictor. There are no negatives. Turn off the stop-gradient or the predictor, press Run (▶), and "
    "the points collapse into one."
)
MODEL = N_(
    "Each image is four random numbers; a view adds noise to them. Encoder and predictor are networks with one hidden "
    "layer of 16 ReLU units and two outputs; only the direction of the outputs counts. Each step is plain gradient "
    "descent on −cos(p, z) over all images and both directions. BYOL's targets come from a moving average of the "
    "encoder; without stop-gradient they come from the encoder itself. BYOL's own loss, 2 − 2 cos, is the same with "
    "twice the gradient."
)


def on_circle(toolbar: DeltaGenerator, losses: dict[str, LossEntry], lesson: int = 0) -> None:
    """Draw a loss on the circle: points that follow its gradient, or a small training for BYOL and SimSiam."""
    titles = {n: about["title"] for n, about in losses.items() if about["kernel"] or n == SIAMESE}
    titles[SIAMESE] = _("{title} (BYOL, SimSiam)").format(title=_(titles[SIAMESE]))
    key, first = "lab-loss-circle", "nt_xent"
    knobs: Knobs = {}
    with toolbar, st.popover(titles[query_params.current("loss", titles, first, key)], key=SETTINGS):
        loss = query_params.one_of(
            st.selectbox, _("Loss"), titles, name="loss", default=first, key=key, format_func=titles.get
        )
        if loss == SIAMESE:
            st.write(_(TRAINING))
            st.caption(_(MODEL))
        else:
            knobs = knob_form(key_of(f"circle-{loss}", lesson), loss, losses[loss], {}, SAME_ON_A_CIRCLE)
        formula(loss, losses[loss])
    if loss == SIAMESE:
        _training(lesson)
    else:
        _points(loss, losses[loss], knobs, lesson)


def _points(loss: str, about: LossEntry, knobs: Knobs, lesson: int) -> None:
    """Draw points that follow the loss's own gradient, without an encoder."""
    key = key_of(f"circle-{loss}", lesson)
    live, start = live_knob(about), circle_start(key)
    query_params.keep(**asdict(start))
    knob = knob_of(about, live, knobs[live]) if live else None
    moved = dragged(about)
    if all(value == about["knobs"][n]["default"] for n, value in knobs.items() if n not in moved):
        kernel = {**(about["kernel"] or {}), **{name: knobs[name] for name in moved}}  # known without torch
    else:
        kernel = _kernel(loss, json.dumps(knobs, sort_keys=True))
    if kernel is None:
        st.info(_("The browser cannot compute this loss; choose a softmax or hinge loss."))
    else:
        heard = reported(key).get("report")
        more = further_knobs_of(about, knobs)
        view = CircleView(
            kernel=kernel, score=about["score"], knob=knob, start=start, lesson=panel_of(lesson), heard=heard, more=more
        )
        draw_circle(view, key, partial(_hear, key, loss))


def _hear(key: str, loss: str) -> None:
    """Handle a lesson's buttons, and the button that opens the same loss on real images."""
    hear(key)
    if reported(key).get("next"):
        query_params.choose("loss_lab-on", "star")
        query_params.choose("lab-loss-True", loss, in_popover=True)


def circle_start(key: str) -> CircleStart:
    """Return the initial settings of the circle, from its last report or from the URL."""
    report = reported(key)
    first = {f.name: f.default for f in fields(CircleStart)}
    numbers = {
        name: int(report.get(name, query_params.kept_number(name, first[name], *limits)))
        for name, limits in LIMITS.items()
    }
    return CircleStart(**numbers, at=str(report.get("at", query_params.kept_value("at") or "")))


def _training(lesson: int) -> None:
    """Draw the live training without negatives."""
    key = key_of("siamese", lesson)
    report = reported(key)
    values = dict(report.get("more") or {})
    knobs = []
    for name, (label, low, high, default) in KNOBS.items():  # as reported, else of the address, else by default
        value = values.get(name)
        value = float(query_params.kept_number(name, default, low, high)) if value is None else value
        knobs.append(SliderKnob(_(label), low, high, value, log=low > 0, name=name))
    first = SiameseStart()
    method = report.get("method", query_params.kept_value("method"))
    start = SiameseStart(
        method if method in METHODS else first.method,
        report.get("predictor", query_params.kept_value("predictor") != "no"),
        report.get("stop_gradient", query_params.kept_value("stop_gradient") != "no"),
        int(report.get("seed", query_params.kept_number("seed", first.seed, 0, 9999))),
        int(report.get("speed", query_params.kept_number("pace", first.speed, 0, 1000))),
    )
    query_params.keep(
        method=start.method,
        predictor="yes" if start.predictor else "no",
        stop_gradient="yes" if start.stop_gradient else "no",
        seed=start.seed,
        pace=start.speed,
        **{knob.name: knob.value for knob in knobs},
    )
    view = SiameseView(start, knobs, panel_of(lesson), report.get("report"))
    draw_siamese(view, key, partial(_hear, key, SIAMESE))


@st.cache_data(max_entries=24, show_spinner=False)
def _kernel(loss: str, knobs: str) -> Any:
    """Return the browser kernel of a loss with these knobs, or None."""
    return calls.about_loss(loss, json.loads(knobs))["kernel"]
