"""The Loss Lab on a batch: rows of an encoder under a loss whose knob is dragged in the browser."""

import json
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from contrastive_core.engine import client
from contrastive_core.records import lab_files, lab_view, loaded_vectors, runs
from contrastive_core.records.lab_towers import DIRECTIONS, SOURCE, TowerBatch
from contrastive_core.records.lab_view import SOURCES, BatchRequest, LabBatch, LabView
from contrastive_core.records.run import Run
from contrastive_lab import cache, format, query_params, recordings
from contrastive_lab.components.loss_view import Alternatives, LossSetting, LossView, PairAxes, draw_loss_view
from contrastive_lab.components.shared.thumbnails import NO_THUMBNAILS, ThumbnailSheet, thumbnail_sheet
from contrastive_lab.locale import N_, Deferred, _, sentence
from contrastive_lab.loss_lab.choices import choose_batch, in_one_line, key_of_rows
from contrastive_lab.loss_lab.controls import PanelState, formula, knob_form, offer_trade, panel_state, reported
from contrastive_lab.loss_lab.dimensions import draw_dimensions, key_of_part
from contrastive_lab.loss_lab.lesson_panel import hear, key_of, panel_of
from contrastive_lab.loss_lab.towers import losses_across
from contrastive_lab.loss_setting import dragged, knobs_to_compute, live_knob, setting_of
from contrastive_lab.report import button

SETTINGS = "lab-settings"  # the expander
OPEN = "lab-settings-open"  # of the session: with another line it is another one, and as open
FROZEN = N_("The encoder is frozen: the slider changes how the loss weighs these pairs, not their embeddings.")


@dataclass(frozen=True)
class LabSetting:
    """A loss with its knobs on rows of a run; `about`: the loss's entry in the catalog."""

    rows: tuple[str, str, BatchRequest]  # the run's name, what its rows are made of, and which
    pairing: str
    loss: str
    about: dict[str, Any]
    knobs: dict[str, Any]


def on_batch(run: Run, losses: dict[str, Any], lesson: int = 0) -> None:
    """Controls, the live view, and the formula where it is asked for."""
    key = key_of("lab", lesson)
    of_file = query_params.current("rows", ["file"], "", key_of_rows(run)) == "file"
    line, is_open = in_one_line(run, losses), st.session_state.get(OPEN, of_file)
    with st.expander(f"**{line}**", is_open, icon=":material/tune:", key=SETTINGS, on_change=_keep_open):
        loss, pairing, request = choose_batch(run, losses)
        about = losses[loss]
        key = key_of_part(key, about)
        panels = panel_state(key)
        trained = run.config.get("loss_knobs", {}) if run.config.get("loss") == loss else {}
        knobs = knob_form(key, loss, about, trained)
        st.caption(_(FROZEN) + (f" {_(recordings.LACKS)}" if run.is_recording else ""))
    query_params.keep(**asdict(panels))
    if request is None:
        st.info(_("Open a file of vectors in the settings above."))
        return
    content = str(run.manifest.get("id")) if run.is_recording else run.weights_hash()  # a recorded step never changes
    setting = LabSetting((run.name, content, request), pairing, loss, about, knobs)
    _show(run, setting, losses, panels, lesson)
    button.offer([run.name])


def _show(run: Run, setting: LabSetting, losses: dict[str, Any], panels: PanelState, lesson: int) -> None:
    """The live view of a setting, its formula, and the trade of temperatures where it can be asked for."""
    loss, about, knobs = setting.loss, setting.about, setting.knobs
    key = key_of_part(key_of("lab", lesson), about)
    live_part, letters = st.container(), st.empty()
    keeps_formula = panels.panel == "formula" or bool(about["matrix"])
    if keeps_formula or not _was_computed(setting):  # known while the batch is computed
        with letters.container():
            formula(loss, about)
    with live_part:
        try:
            view = computed(setting)
        except ValueError as error:
            st.warning(format.plain(error))
            return
        if view.note:
            st.caption(format.plain(view.note))
        if view.views is None:
            draw(run, setting, view, losses, panels, lesson)
        else:
            content = cache.digest(setting.rows, setting.pairing, setting.loss)
            draw_dimensions(view, (loss, about), knobs, content, key, lesson)
    if not keeps_formula:
        letters.empty()
    if live_knob(about) == "temperature":
        offer_trade(run, view, partial(_classes, setting, view), float(knobs["temperature"]))


def _keep_open() -> None:
    st.session_state[OPEN] = bool(st.session_state[SETTINGS])


def _classes(setting: LabSetting, view: LabView) -> tuple[np.ndarray, np.ndarray] | None:
    """Classes of the anchors and of the candidates; None where rows of a memory stand beside."""
    batch = _batch(*setting.rows)
    if isinstance(batch, TowerBatch) or batch.memory is not None:
        return None
    views = batch.rows.shape[1]
    return batch.labels[np.array(view.row_thumbs) // views], batch.labels[np.array(view.column_thumbs) // views]


def computed(setting: LabSetting) -> LabView:
    """The loss on the batch; where the browser has a kernel, from the one at its default knob. Raises ValueError."""
    where = (*setting.rows, setting.pairing, setting.loss)
    at_first = knobs_to_compute(setting.about, setting.knobs)
    view = _view(*where, json.dumps(at_first, sort_keys=True))
    if at_first == setting.knobs or view.views is not None:
        return view
    if view.kernel is not None and not view.reason:
        return view.with_knobs(
            **{name: setting.knobs[name] for name in dragged(setting.about) if name in setting.knobs}
        )
    return _view(*where, json.dumps(setting.knobs, sort_keys=True))


def _was_computed(setting: LabSetting) -> bool:
    """Whether this process computed it before, or a shipped run brings it."""
    knobs = json.dumps(knobs_to_compute(setting.about, setting.knobs), sort_keys=True)
    asked = lab_files.question(*setting.rows[1:], setting.pairing, setting.loss, knobs)
    return asked in _questions() or lab_files.read_view(runs.load(setting.rows[0]), setting.loss, asked) is not None


def draw(run: Run, setting: LabSetting, view: LabView, losses: dict[str, Any], panels: PanelState, lesson: int) -> None:
    """The live view, with what may be set beside it."""
    key, other_rows = key_of_part(key_of("lab", lesson), setting.about), _other_rows(run, setting.rows[2].source)
    anchor = lab_view.confusable_anchor(view) if panels.anchor is None else panels.anchor
    offered = losses_across(losses) if setting.pairing in DIRECTIONS else losses
    others = [(f"loss:{n}", about["title"]) for n, about in offered.items() if n != setting.loss]
    shown = LossView(
        _as_drawn(setting, view),
        PairAxes.of(view, _sheet(run, setting)),
        *(setting.loss, setting.about["title"], min(anchor, len(view.names) - 1), asdict(panels)),
        Alternatives(others, [(f"rows:{s}", title) for s, title in other_rows.items()]),
        panels.second,
        _second(setting, view, losses, other_rows, panels),
        panel_of(lesson),
        reported(key).get("report"),
    )
    draw_loss_view(shown, key, partial(hear, key))
    if view.kernel is None:
        st.caption(_("The server computes this loss when you release the slider."))


def _sheet(run: Run, setting: LabSetting) -> ThumbnailSheet:
    """Thumbnails of the batch; none where vectors came without images."""
    request = setting.rows[2]
    kind, _colon, key = request.source.partition(":")
    lacks_images = kind == "file" and not loaded_vectors.loaded()[key]["images"]
    return NO_THUMBNAILS if lacks_images or (run.is_recording and request.memory) else _thumbnails(*setting.rows)


def _as_drawn(setting: LabSetting, view: LabView) -> LossSetting:
    """A loss on a batch, as the browser gets it."""
    held = {k: v for k, v in setting.knobs.items() if k not in dragged(setting.about) or view.kernel is None}
    content = cache.digest(setting.rows, setting.pairing, setting.loss, sorted(held.items()))
    return setting_of(view, setting.about, setting.knobs, content)


# --- the second setting ------------------------------------------------------------------------


def _other_rows(run: Run, source: str) -> dict[str, str]:
    """Rows of the same images, to set beside these: other encoders, or other snapshots."""
    if source.startswith("file:") or source in SOURCE:
        return {}
    sources = SOURCES if source in SOURCES else lab_view.snapshots_of(run)
    if run.is_recording:
        sources = {**lab_view.steps_of(run), **sources}
    return {s: title for s, title in sources.items() if s not in (source, "file")}


def _second(
    first: LabSetting, view: LabView, losses: dict[str, Any], other_rows: dict[str, str], panels: PanelState
) -> LossSetting | None:
    """Another loss, or other rows, for the panel of two settings."""
    kind, _colon, name = panels.second.partition(":")
    if panels.panel != "two" or name not in {"loss": losses, "rows": other_rows}.get(kind, {}):
        return None
    if kind == "loss":
        second = replace(first, loss=name, about=losses[name], knobs={})
    else:
        second = replace(first, rows=(*first.rows[:2], replace(first.rows[2], source=name)))
    if live := live_knob(second.about):
        first_value = second.knobs.get(live, second.about["knobs"][live]["default"])
        value = first_value if panels.second_value is None else panels.second_value
        second = replace(second, knobs=second.knobs | {live: value})
    reason: str = _("The second setting compares other pairs, so there is no difference to show.")
    try:
        second_view = computed(second)
        if second_view.scores.shape == view.scores.shape:
            return _as_drawn(second, second_view)
    except ValueError as error:
        reason = sentence(error)
    return LossSetting(cache.digest(reason, name), reason=reason)


# --- kept for all sessions ---------------------------------------------------------------------


@st.cache_resource(max_entries=6, show_spinner=Deferred(N_("Encoding a batch…")))
def _batch(run: str, weights: str, request: BatchRequest) -> LabBatch | TowerBatch:
    batch: LabBatch | TowerBatch = client.call("contrastive_core.loss_lab.batch:load_batch", runs.load(run), request)
    return batch


@st.cache_resource(max_entries=24, show_spinner=Deferred(N_("Computing the loss of each pair…")))
def _view(run: str, weights: str, request: BatchRequest, pairing: str, loss: str, knobs: str) -> LabView:
    asked = lab_files.question(weights, request, pairing, loss, knobs)
    if (shipped := lab_files.read_view(runs.load(run), loss, asked)) is not None:
        return shipped
    batch, values = _batch(run, weights, request), json.loads(knobs)
    view: LabView = client.call("contrastive_core.loss_lab.view:compute_view", batch, pairing, loss, values)
    _questions().add(asked)
    return view


@st.cache_resource(show_spinner=False)
def _questions() -> set[str]:
    """The losses on batches that this process computed."""
    return set()


@st.cache_resource(max_entries=6, show_spinner=False)
def _thumbnails(run: str, weights: str, request: BatchRequest) -> ThumbnailSheet:
    thumbs = lab_files.read_thumbs(runs.load(run), lab_files.question(weights, request))
    return thumbnail_sheet(_batch(run, weights, request).thumbs if thumbs is None else thumbs)
