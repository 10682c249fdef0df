"""BYOL and SimSiam on the circle: whether a training without negatives collapses."""

from functools import partial
from typing import Any

import streamlit as st

from contrastive_lab import query_params
from contrastive_lab.components.shared.transport import SliderKnob
from contrastive_lab.components.siamese import SiameseStart, SiameseView, draw_siamese
from contrastive_lab.locale import N_, _
from contrastive_lab.loss_lab.controls import formula, reported
from contrastive_lab.loss_lab.lesson_panel import hear, key_of, panel_of

LOSS = "negative_cosine"  # that the page shows this for
METHODS = ("simsiam", "byol")
KNOBS = {  # label, from, to, and the value that the measured facts of the lesson hold for
    "rate": (N_("learning rate of the encoder"), 0.01, 3.0, 0.3),
    "predictor_rate": (N_("learning rate of the predictor"), 0.001, 10.0, 1.0),
    "momentum": (N_("m, momentum of BYOL's target"), 0.0, 1.0, 0.9),
}
WORDS = N_(
    "A training small enough to watch: 16 images, a small encoder that puts two views of each on the circle, and a "
    "small predictor. There are no negatives. Turn off the stop-gradient or the predictor, press Run, and the points "
    "collapse into one."
)
MODEL = N_(
    "Each image is four random numbers; a view adds noise to them. Encoder and predictor are networks with one hidden "
    "layer of 16 tanh units, and their two outputs are scaled to length 1. Each step is plain gradient descent on "
    "−cos(p, z) over all images and both directions. BYOL's targets come from a moving average of the encoder; without "
    "stop-gradient they come from the encoder itself. BYOL's own loss, 2 − 2 cos, is the same with twice the gradient."
)


def on_circle(about: dict[str, Any], lesson: int) -> None:
    """The live training and its formula. about: the loss's entry in the catalog."""
    if not lesson:
        st.caption(_(WORDS))
    key = key_of("siamese", lesson)
    report = reported(key)
    values = dict(report.get("more") or {})
    knobs = [_knob(name, values.get(name)) for name in KNOBS]
    start = _start(report)
    query_params.keep(
        method=start.method,
        predictor=_word(start.predictor),
        stop_gradient=_word(start.stop_gradient),
        seed=start.seed,
        pace=start.speed,
        **{knob.name: knob.value for knob in knobs},
    )
    draw_siamese(SiameseView(start, knobs, panel_of(lesson), report.get("report")), key, partial(hear, key))
    st.caption(_(MODEL))
    formula(LOSS, about)


def _knob(name: str, value: float | None) -> SliderKnob:
    """A knob at its reported value, else at the address's, else at its default."""
    label, low, high, default = KNOBS[name]
    if value is None:
        value = float(query_params.kept_number(name, default, low, high))
    return SliderKnob(_(label), low, high, value, log=low > 0, name=name)


def _start(report: dict[str, Any]) -> SiameseStart:
    """What was chosen: as the part said itself, or as the address asks."""
    first = SiameseStart()
    method = report.get("method", query_params.kept_value("method"))
    return SiameseStart(
        method if method in METHODS else first.method,
        report.get("predictor", query_params.kept_value("predictor") != "no"),
        report.get("stop_gradient", query_params.kept_value("stop_gradient") != "no"),
        int(report.get("seed", query_params.kept_number("seed", first.seed, 0, 9999))),
        int(report.get("speed", query_params.kept_number("pace", first.speed, 0, 1000))),
    )


def _word(flag: bool) -> str:
    return "yes" if flag else "no"
