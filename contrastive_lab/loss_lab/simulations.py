"""Stages of the Loss Lab that need no batch: points on a circle that follow a loss's own gradient, a training of BYOL
or SimSiam on the circle that shows whether they collapse without negatives, and the playground."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from contrastive_core.base.registry import Knobs, LossEntry
from contrastive_core.data.named_sets import GENERATED
from contrastive_core.engine import client
from contrastive_core.runs.run import Run
from contrastive_core.spaces import loaded_vectors
from contrastive_core.spaces.small_samples import SmallImages
from contrastive_lab import format, query_params
from contrastive_lab.components.circle import CircleStart, CircleView, pack_circle
from contrastive_lab.components.shared.mount import SliderKnob, digest, mount, pack
from contrastive_lab.locale import N_, _
from contrastive_lab.loss_lab.choices import LOSS_KEY, STAGE
from contrastive_lab.loss_lab.controls import formula, knob_form, reported
from contrastive_lab.loss_lab.lesson_panel import hear, key_of, panel_of
from contrastive_lab.loss_setting import dragged, further_knobs_of, knob_of, live_knob
from contrastive_lab.path_input import path_input
from contrastive_lab.playground import pack_playground
from contrastive_lab.stage import errors_shown

OPENED = "play-opened"  # of the session: how often own samples were chosen
DIGITS = "digits"
MINUTES = 10  # for which a folder's images are kept
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
    with toolbar, st.popover(titles[query_params.current("loss", titles, first, key)], key="lab-circle-settings"):
        loss = query_params.one_of(st.selectbox, _("Loss"), titles, name="loss", default=first, key=key)
        if loss == SIAMESE:
            st.write(_(TRAINING))
            st.caption(_(MODEL))
        else:
            knobs = knob_form(key_of(f"circle-{loss}", lesson), loss, losses[loss], {}, SAME_ON_A_CIRCLE)
        formula(loss, losses[loss])
    if loss == SIAMESE:
        _draw_training(lesson)
    else:
        _draw_points(loss, losses[loss], knobs, lesson)


def _draw_points(loss: str, about: LossEntry, knobs: Knobs, lesson: int) -> None:
    """Draw points that follow the loss's own gradient, without an encoder. They begin as last reported, or as the URL
    says."""
    key = key_of(f"circle-{loss}", lesson)
    report = reported(key)
    numbers = {
        name: int(report.get(name, query_params.kept_number(name, getattr(CircleStart, name), *limits)))
        for name, limits in LIMITS.items()
    }
    start = CircleStart(**numbers, at=str(report.get("at", query_params.kept_value("at") or "")))
    query_params.keep(**asdict(start))
    live, moved = live_knob(about), dragged(about)
    if all(value == about["knobs"][n]["default"] for n, value in knobs.items() if n not in moved):
        kernel = {**(about["kernel"] or {}), **{name: knobs[name] for name in moved}}  # known without torch
    else:
        kernel = _kernel(loss, json.dumps(knobs, sort_keys=True))
    if kernel is None:
        st.info(_("The browser cannot compute this loss; choose a softmax or hinge loss."))
        return
    view = CircleView(
        kernel=kernel,
        score=about["score"],
        knob=knob_of(about, live, knobs[live]) if live else None,
        start=start,
        lesson=panel_of(lesson),
        heard=report.get("report"),
        more=further_knobs_of(about, knobs),
    )
    mount("circle", pack_circle(view), "chosen", key, first={}, on_change=partial(_hear, key, loss))


def _hear(key: str, loss: str) -> None:
    """Handle a lesson's buttons, and the button that opens the same loss on real images."""
    hear(key)
    if reported(key).get("next"):
        query_params.choose(STAGE, "star")
        query_params.choose(LOSS_KEY, loss, in_popover=True)


def _draw_training(lesson: int) -> None:
    """Draw the live training without negatives. Its settings are as last reported, as the URL says, or the defaults."""
    key = key_of("siamese", lesson)
    report = reported(key)
    values = dict(report.get("more") or {})
    knobs = []
    for name, (label, low, high, default) in KNOBS.items():
        value = values.get(name)
        value = float(query_params.kept_number(name, default, low, high)) if value is None else value
        knobs.append(SliderKnob(_(label), low, high, value, log=low > 0, name=name))
    method = report.get("method", query_params.kept_value("method"))
    start = {
        "method": method if method in METHODS else METHODS[0],
        "predictor": report.get("predictor", query_params.kept_value("predictor") != "no"),
        "stopGradient": report.get("stop_gradient", query_params.kept_value("stop_gradient") != "no"),
        "seed": int(report.get("seed", query_params.kept_number("seed", 0, 0, 9999))),
        "speed": int(report.get("speed", query_params.kept_number("pace", 600, 0, 1000))),  # on a logarithmic scale
    }
    names = {"speed": "pace", "stopGradient": "stop_gradient"}  # in the address
    address = {names.get(name, name): value for name, value in start.items()}
    query_params.keep(**address, **{knob.name: knob.value for knob in knobs})
    blob = pack(start=start, knobs=knobs, lesson=panel_of(lesson), heard=report.get("report"))
    mount("siamese", blob, "chosen", key, first={}, on_change=partial(_hear, key, SIAMESE))


@st.cache_data(max_entries=24, show_spinner=False)
def _kernel(loss: str, knobs: str) -> Any:
    """Return the browser kernel of a loss with these knobs, or None."""
    return client.about_loss(loss, json.loads(knobs))["kernel"]


# --- the playground ---


@st.cache_data(ttl=60 * MINUTES, max_entries=8, show_spinner=False)
def _samples(name: str, root: str | None) -> SmallImages:
    return client.small_samples(name, root)


def choose_samples(run: Run) -> str:
    """Draw the list of samples: data sets without a download, the run's own, loaded vectors, and the user's folder or
    file; return the name of the chosen ones, as for `load_samples`."""
    number, key = st.session_state.setdefault(OPENED, 0), query_params.key_of("images")
    with st.popover(_("Open my own"), icon=":material/folder_open:", key=f"play-own-{number}"):
        help = _("Images need one subfolder per class for the kNN accuracy. A file of vectors has one sample per row.")
        own = path_input(_("Folder of images, or file of vectors"), "folder", "/path/to/images", help)
        if st.button(_("Use it"), type="primary", disabled=not own, key="play-use-own"):
            st.session_state[OPENED] += 1  # another popover, which is closed
            query_params.choose(key, own)
            st.rerun()
    vectors = {f"{loaded_vectors.PREFIX}{key}": about["name"] for key, about in loaded_vectors.loaded().items()}
    run_data = str(run.config.get("dataset") or DIGITS)
    names = list(dict.fromkeys([DIGITS, *GENERATED, run_data, *vectors, *filter(None, [own])]))
    look: dict[str, Any] = {"format_func": lambda name: vectors.get(name) or format.data_of(name)}
    look |= {"label_visibility": "collapsed", "key": key}
    return query_params.one_of(st.selectbox, _("Images"), names, name="images", default=DIGITS, **look)


def draw_playground(name: str, run: Run, kernels: Mapping[str, Mapping[str, object]]) -> None:
    """Draw the playground with images of a data set; the URL keeps its setting."""
    with errors_shown():
        with st.spinner(_("Reading images…")):
            small = _samples(name, run.config.get("root"))
        first = query_params.requested("play") or ""
        key = f"playground-{digest(name)}"
        setting = mount("playground", pack_playground(small, kernels, first), "setting", key, first=first)
        query_params.keep(play=setting or None)
