"""The Loss Lab on a batch: rows of an encoder under a loss with a knob to drag in the browser. For a loss over
dimensions the browser computes its matrix of dimensions and its terms."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from contrastive_core import runs
from contrastive_core.base.registry import Knobs, LossEntry
from contrastive_core.data import datasets
from contrastive_core.data.dataset import KNOWN
from contrastive_core.engine import client
from contrastive_core.lab import lab_view
from contrastive_core.lab.lab_view import BatchRequest, LabBatch, LabView, TowerBatch
from contrastive_core.runs.run import Run
from contrastive_core.spaces import loaded_vectors, recorded_rows
from contrastive_core.spaces.space import Space
from contrastive_lab import cache, format, locale, path_input, pictures, query_params, recordings
from contrastive_lab import stage as frame
from contrastive_lab.components.loss_view import LossSetting, LossView, PairAxes, draw_loss_view
from contrastive_lab.components.shared.mount import NO_THUMBNAILS, ThumbnailSheet, mount, pack, thumbnail_sheet
from contrastive_lab.locale import N_, Deferred, _, message, sentence
from contrastive_lab.loss_lab import choices, lesson_panel
from contrastive_lab.loss_lab.controls import ViewState, draw_trade, formula, knob_form, reported, view_state
from contrastive_lab.loss_setting import further_knobs_of, knobs_to_compute, live_knob, setting_of
from contrastive_lab.state import pick_run, set_subject

FROZEN = N_("The encoder is frozen: the slider changes how the loss weighs these pairs, not their embeddings.")
MOST_ROWS = 6  # snapshots or steps that can be pinned, including the first and the last


@dataclass(frozen=True)
class LabSetting:
    """A loss with its knobs on rows of a run; `about`: the loss's entry in the catalog."""

    rows: tuple[str, str, BatchRequest]  # the run's name, what its rows are made of, and which
    pairing: str
    loss: str
    about: LossEntry
    knobs: Knobs


@dataclass(frozen=True)
class Lab:
    """What the page shows: a loss on rows, as computed, and the state of the page."""

    run: Run
    losses: dict[str, LossEntry]
    setting: LabSetting
    view: LabView
    state: ViewState
    stage: str
    key: str  # of the component
    lesson: int
    forward: lesson_panel.NextStep | None


def on_batch(
    run: Run, losses: dict[str, LossEntry], lesson: int, subject: DeltaGenerator, stages: DeltaGenerator
) -> str:
    """Draw the settings in the toolbar, and the view; return the name of the shown space for `Space.of_name`, or ""."""
    above = st.container(key="lab-above")
    set_subject(file := choices.shown_source(run)[1])
    name = loaded_vectors.loaded()[file]["name"] if file else run.name
    title = f"{name} · {choices.loss_title(run, losses)}"  # no markup: a screen reader would hear its escapes
    with subject, st.popover(title, key="lab-settings"):
        pick_run(file)
        loss, pairing, request = choices.choose_batch(run, losses, above)
        about = losses[loss]
        is_file = request is None or request.source.startswith("file:")
        key = lesson_panel.key_of("lab-dimensions" if about["matrix"] else "lab", lesson)
        state = view_state(key)
        kind, _colon, epoch = request.source.partition(":") if request else ("", "", "")
        is_past = f"{kind}:" in (lab_view.EPOCH, lab_view.SNAPSHOT) and not run.is_recording
        of_run = {} if is_file else lab_view.loss_knobs(run, int(epoch) if is_past else None)
        if run.config.get("loss") != loss:
            of_run = {name: of_run[name] for name in ("temperature",) if name in of_run}
        knobs = knob_form(key, loss, about, of_run)
        st.caption(_(FROZEN) + (f" {_(recordings.LACKS)}" if run.is_recording else ""))
        formula(loss, about)
    kept = {name: value for name, value in asdict(state).items() if name != "order"}
    query_params.keep(**kept, arrange="" if state.order == "group" else state.order)  # by group: as at first
    with stages:  # a star needs a picture of each row; a loss over dimensions has matrices alone
        has_pictures = not is_file and pairing not in lab_view.DIRECTIONS and not run.is_recording
        left_out = ["star"] * (not has_pictures) + ["star", "curves"] * bool(about["matrix"])
        offered = choices.offered_stages(left_out=left_out)
        stage = choices.choose_stage(offered, "matrix" if lesson else offered[0])
    if request is None:
        above.info(_("Open a file of vectors to see them under the loss."))
        return ""
    shown = f"{loaded_vectors.PREFIX}{request.source.removeprefix('file:')}" if is_file else run.name
    content = str(run.manifest.get("id")) if run.is_recording else run.weights_hash()  # a recorded step never changes
    setting = LabSetting((run.name, content, request), pairing, loss, about, knobs)
    forward = lesson_panel.next_step()
    if is_file:
        forward = lesson_panel.NextStep(number=lesson_panel.REVIEW, text=_("Review these rows →"))
        if lesson_panel.is_pressed(lesson_panel.REVIEW):
            st.switch_page("pages/samples.py", query_params={"on": shown})
    elif can_train(run):
        forward = lesson_panel.NextStep(number=lesson_panel.WITH_THIS, text=_("Train with this →"))
        if lesson_panel.is_pressed(lesson_panel.WITH_THIS):
            st.switch_page("pages/train.py", query_params=train_address(run, setting))
    try:
        view = computed(setting)
    except ValueError as error:
        above.warning(format.plain(error))
        return "" if is_file else shown
    lab = Lab(
        run, losses, setting, view, state, forward=None if lesson else forward, stage=stage, key=key, lesson=lesson
    )
    if view.views is None:
        _draw_pairs(lab)
    else:
        _draw_dimensions(lab, view.views)
    with frame.below():
        _draw_notes(lab, of_run.get("temperature"))
    return shown


def _draw_dimensions(lab: Lab, views: np.ndarray) -> None:
    """Draw the matrices and terms of a loss over dimensions. views: (b, 2, d), the first two of each image."""
    setting, count = lab.setting, len(lab.view.names) // len(views)
    blob = pack(
        content=cache.digest(setting.rows, setting.pairing, setting.loss),
        form=setting.about["matrix"],
        views=views,
        names=[name for row, name in enumerate(lab.view.names) if row % count < 2],
        name=setting.loss,
        title=setting.about["title"],
        knobs=further_knobs_of(setting.about, setting.knobs),
        heard=reported(lab.key).get("report"),
        lesson=lesson_panel.panel_of(lab.lesson),
        forward=lab.forward,
        export=choices.asked_export(),
    )
    mount("dimension_view", blob, "chosen", lab.key, first={}, on_change=partial(lesson_panel.hear, lab.key))


def _draw_pairs(lab: Lab) -> None:
    """Draw the live view of all pairs, optionally with a pinned second loss or other rows of the same images."""
    setting, view, run, request = lab.setting, lab.view, lab.run, lab.setting.rows[2]
    others: dict[str, str] = {}
    if not request.source.startswith("file:") and request.source not in lab_view.SOURCE:
        is_encoded = request.source in lab_view.SOURCES or request.source.startswith(lab_view.EPOCH)
        others = lab_view.SOURCES | lab_view.epochs_of(run) if is_encoded else _some(lab_view.snapshots_of(run))
        if run.is_recording:
            numbers = recorded_rows.steps(run)
            steps = {f"{lab_view.STEP}{n}": message("Vectors of step {step}", step=f"{n:,}") for n in numbers}
            others = _some(steps) | others
        others = {source: title for source, title in others.items() if source not in (request.source, "file")}
    kind, _colon, name = request.source.partition(":")
    lacks_images = kind == "file" and not loaded_vectors.loaded()[name]["images"]
    lacks_images |= run.is_recording and bool(request.memory)
    anchor = lab_view.confusable_anchor(view) if lab.state.anchor is None else lab.state.anchor
    losses = choices.offered_losses(lab.losses, setting.pairing in lab_view.DIRECTIONS)
    first = setting_of(view, setting.about, setting.knobs, setting.rows, setting.pairing)
    if lab.lesson:  # the margin is the one of the two limits on false negatives that lesson 9 is about
        first = replace(first, more=[knob for knob in first.more if knob.name != "positive_share"])
    shown = LossView(
        first=first,
        axes=PairAxes.of(view, NO_THUMBNAILS if lacks_images else _thumbnails(*setting.rows)),
        name=setting.loss,
        title=setting.about["title"],
        anchor=min(anchor, len(view.names) - 1),
        start=asdict(lab.state),
        losses=[(f"loss:{name}", about["title"]) for name, about in losses.items() if name != setting.loss],
        other_rows=[(f"rows:{source}", title) for source, title in others.items()],
        choice=lab.state.second,
        second=_second(lab, others),
        lesson=lesson_panel.panel_of(lab.lesson),
        stage=lab.stage,
        forward=lab.forward,
        export=choices.asked_export(),
        heard=reported(lab.key).get("report"),
    )

    def hear_view() -> None:
        lesson_panel.hear(lab.key)
        report = reported(lab.key)
        if report.get("go") is not None:  # another lesson has its own stage
            return
        if report.get("stage") in choices.STAGES:
            query_params.choose(choices.STAGE, report["stage"])
        if loss := report.get("loss"):
            query_params.choose(choices.LOSS_KEY, loss, in_popover=True)

    draw_loss_view(shown, lab.key, hear_view)


def _some(sources: Mapping[str, str]) -> dict[str, str]:
    """Return at most MOST_ROWS evenly spaced sources, including the first and the last."""
    names, count = list(sources), min(len(sources), MOST_ROWS)
    return {names[round(q)]: sources[names[round(q)]] for q in np.linspace(0, len(names) - 1, count)}


def _second(lab: Lab, others: dict[str, str]) -> LossSetting | None:
    """Return the pinned setting A: another loss, or one of the other rows; None if nothing is pinned."""
    first, (kind, _colon, name) = lab.setting, lab.state.second.partition(":")
    if kind == "loss" and name in lab.losses:
        second = replace(first, loss=name, about=lab.losses[name], knobs={})
    elif kind == "rows" and name in others:
        second = replace(first, rows=(*first.rows[:2], replace(first.rows[2], source=name)))
    else:
        return None
    if live := live_knob(second.about):
        value = second.knobs.get(live, second.about["knobs"][live]["default"])
        value = value if lab.state.second_value is None else lab.state.second_value
        second = replace(second, knobs={**second.knobs, live: value})
    reason: str = _("The second setting compares different pairs, so no difference can be shown.")
    try:
        view = computed(second)
        if view.scores.shape == lab.view.scores.shape:
            return setting_of(view, second.about, second.knobs, second.rows, second.pairing)
    except ValueError as error:
        reason = sentence(error)
    return LossSetting(cache.digest(reason, name), reason=reason)


def _draw_notes(lab: Lab, trained_at: float | None) -> None:
    """Draw what stands below the picture: why a pair is alike, notes, and the trade-off of the temperature. Args:
    trained_at: the run's temperature."""
    setting, view = lab.setting, lab.view
    is_encoded = setting.rows[2].source in ("z", "h", *lab_view.SOURCE)
    is_split = is_encoded and not lab.run.is_recording and view.views is None
    if not lab.lesson and is_split and pictures.is_likeness_wanted():
        _explain_pair(lab)
    if view.note:
        st.caption(format.plain(view.note))
    if view.kernel is None and view.views is None:
        st.caption(_("The server computes this loss when you release the slider."))
    if live_knob(setting.about) != "temperature" or lab.stage != "curves":
        return
    batch, same = _batch(*setting.rows), None
    if isinstance(batch, LabBatch) and batch.memory is None and (batch.labels >= 0).any():
        rows, columns = (
            batch.labels[np.array(at) // batch.rows.shape[1]] for at in (view.row_thumbs, view.column_thumbs)
        )
        same = (rows[:, None] == columns) & (rows[:, None] >= 0)
    draw_trade(view, same, at=float(setting.knobs["temperature"]), trained=trained_at)


def _explain_pair(lab: Lab) -> None:
    """Draw why the anchor is similar to the candidate last clicked in the matrix, at first to its nearest negative."""
    view, request, anchor = lab.view, lab.setting.rows[2], lab.state.anchor
    anchor = min(lab_view.confusable_anchor(view) if anchor is None else anchor, len(view.names) - 1)
    negative = np.where(view.mask[anchor] == lab_view.NEGATIVE, view.scores[anchor], np.nan)
    if (candidate := reported(lab.key).get("candidate")) is None or candidate >= len(negative):
        near = np.nan_to_num(-negative if "distance" in view.score_name else negative, nan=-np.inf)
        candidate = int(near.argmax())
    rows: list[int | str] = [view.row_thumbs[anchor], view.column_thumbs[candidate]]
    for k, (texts, at) in enumerate(((view.texts, anchor), (view.column_texts, candidate))):
        rows[k] = texts[at] if rows[k] == -1 and texts else rows[k]
    if -1 in rows:
        st.info(_("One of the two rows has no picture, so their similarity cannot be split into patches."))
        return
    layer = "h" if request.source == "h" else "z"
    values = {"space": Space.of_run(lab.run, request.split, layer).values, "batch": asdict(request), "rows": rows}
    names = (view.names[anchor], view.column_names[candidate])
    pictures.explain_likeness(values, (locale.text(names[0]), locale.text(names[1])))


# --- a training with this loss ---


def can_train(run: Run) -> bool:
    """Return whether Train supports the run's method and data; not for recordings, imported runs and two towers."""
    data = str(run.config.get("dataset"))
    if run.is_recording or run.has_towers or "imported" in run.manifest:
        return False
    is_known = data in KNOWN or datasets.is_files(data)
    return is_known and str(run.config.get("method")) in cache.catalog()["methods"]


def train_address(run: Run, setting: LabSetting) -> dict[str, str]:
    """Return the URL parameters of the Train page for such a run with this loss and these knobs. Raises OSError."""
    method, defaults = str(run.config["method"]), setting.about["knobs"]
    card = cache.catalog()["methods"][method]
    own = {*card["loss_knobs"], *(run.config.get("loss_knobs") or {})}  # whose defaults may be the method's
    texts = {
        name: f"{v:.10g}" if isinstance(v, float) else v if isinstance(v, str) else json.dumps(v)
        for name, v in setting.knobs.items()
        if v is not None and (name in own or v != defaults[name]["default"])
    }
    address = {"method": method, "loss": setting.loss, **path_input.address_of(str(run.config["dataset"]))}
    if "temperature" in texts:  # which has a field of its own
        address["temperature"] = texts.pop("temperature")
    return address | ({"further": "\n".join(f"loss.{n}={v}" for n, v in texts.items())} if texts else {})


# --- kept for all sessions ---


def computed(setting: LabSetting) -> LabView:
    """Compute the loss on the batch, at the default knob if the browser has a kernel. Raises ValueError."""
    where = (*setting.rows, setting.pairing, setting.loss)
    at_first = knobs_to_compute(setting.about, setting.knobs)
    view = _view(*where, json.dumps(at_first, sort_keys=True))
    if at_first == setting.knobs or view.views is not None or (view.kernel is not None and not view.reason):
        return view
    return _view(*where, json.dumps(setting.knobs, sort_keys=True))


@st.cache_resource(max_entries=6, show_spinner=Deferred(N_("Encoding a batch…")))
def _batch(run: str, weights: str, request: BatchRequest) -> LabBatch | TowerBatch:
    return client.lab_batch(runs.load(run), request)


@st.cache_resource(max_entries=24, show_spinner=Deferred(N_("Computing the loss of each pair…")))
def _view(run: str, weights: str, request: BatchRequest, pairing: str, loss: str, knobs: str) -> LabView:
    asked = lab_view.question(weights, request, pairing, loss, knobs)
    if (shipped := lab_view.read_view(runs.load(run), loss, asked)) is not None:
        return shipped
    return client.lab_view(_batch(run, weights, request), pairing, loss, json.loads(knobs))


@st.cache_resource(max_entries=6, show_spinner=False)
def _thumbnails(run: str, weights: str, request: BatchRequest) -> ThumbnailSheet:
    thumbs = lab_view.read_thumbs(runs.load(run), lab_view.question(weights, request))
    return thumbnail_sheet(_batch(run, weights, request).thumbs if thumbs is None else thumbs)
