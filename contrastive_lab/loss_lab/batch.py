"""The Loss Lab on a batch: rows of an encoder under a loss with a knob to drag in the browser. For a loss over
dimensions the browser computes its matrix of dimensions and its terms."""

import json
from dataclasses import asdict, dataclass, replace
from functools import partial

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from contrastive_core import runs
from contrastive_core.base.cards import LossEntry
from contrastive_core.base.registry import Knobs
from contrastive_core.data import datasets
from contrastive_core.data.dataset import KNOWN
from contrastive_core.engine import calls
from contrastive_core.lab import lab_view
from contrastive_core.lab.lab_view import (
    DIRECTIONS,
    EPOCH,
    NEGATIVE,
    SNAPSHOT,
    SOURCE,
    SOURCES,
    BatchRequest,
    LabBatch,
    LabView,
    TowerBatch,
)
from contrastive_core.runs.run import Run
from contrastive_core.spaces import loaded_vectors
from contrastive_core.spaces.space import Space
from contrastive_lab import cache, format, locale, path_input, pictures, query_params, recordings
from contrastive_lab import stage as frame
from contrastive_lab.components.dimension_view import DimensionView, draw_dimension_view
from contrastive_lab.components.loss_view import Alternatives, LossSetting, LossView, PairAxes, draw_loss_view
from contrastive_lab.components.shared.transport import NO_THUMBNAILS, ThumbnailSheet, thumbnail_sheet
from contrastive_lab.locale import N_, Deferred, _, sentence
from contrastive_lab.loss_lab.choices import (
    STAGE,
    STAGES,
    asked_export,
    choose_batch,
    choose_stage,
    first_loss,
    loss_title,
    losses_across,
    offered_stages,
    shown_source,
)
from contrastive_lab.loss_lab.controls import ViewState, draw_trade, formula, knob_form, reported, view_state
from contrastive_lab.loss_lab.lesson_panel import (
    REVIEW,
    WITH_THIS,
    NextStep,
    hear,
    is_pressed,
    key_of,
    next_step,
    panel_of,
)
from contrastive_lab.loss_setting import dragged, further_knobs_of, knobs_to_compute, live_knob, setting_of
from contrastive_lab.state import pick_run, set_subject

SETTINGS = "lab-settings"  # the button with the settings of the loss
FROZEN = N_("The encoder is frozen: the slider changes how the loss weighs these pairs, not their embeddings.")


@dataclass(frozen=True)
class Toolbar:
    """Containers in the page's toolbar for the run and its loss with all settings, and for the stages."""

    subject: DeltaGenerator
    stages: DeltaGenerator


@dataclass(frozen=True)
class LabSetting:
    """A loss with its knobs on rows of a run; `about`: the loss's entry in the catalog."""

    rows: tuple[str, str, BatchRequest]  # the run's name, what its rows are made of, and which
    pairing: str
    loss: str
    about: LossEntry
    knobs: Knobs


def on_batch(run: Run, losses: dict[str, LossEntry], lesson: int, toolbar: Toolbar) -> str:
    """Draw the settings, the live view, and the trade-off of the temperature. Returns the name of the shown space, as
    for `Space.of_name`; "" if there is none."""
    above = st.container(key="lab-above")
    set_subject(file := shown_source(run)[1])
    name = loaded_vectors.loaded()[file]["name"] if file else run.name
    title = f"{name} · {loss_title(run, losses)}"  # a name has no markup; a screen reader would hear its escapes
    with toolbar.subject, st.popover(title, key=SETTINGS):
        pick_run(file)
        loss, pairing, request = choose_batch(run, losses, above)
        about = losses[loss]
        is_file = request is None or request.source.startswith("file:")
        key = key_of("lab-dimensions" if about["matrix"] else "lab", lesson)
        state = view_state(key)
        kind, _colon, epoch = request.source.partition(":") if request else ("", "", "")
        is_past = f"{kind}:" in (EPOCH, SNAPSHOT) and not run.is_recording
        of_run = {} if is_file else lab_view.loss_knobs(run, int(epoch) if is_past else None)
        if run.config.get("loss") != loss:
            of_run = {name: of_run[name] for name in ("temperature",) if name in of_run}
        knobs = knob_form(key, loss, about, of_run)
        st.caption(_(FROZEN) + (f" {_(recordings.LACKS)}" if run.is_recording else ""))
        formula(loss, about)
    kept = asdict(state)
    order = kept.pop("order")
    query_params.keep(**kept, arrange="" if order == "group" else order)  # by group: as at first
    with toolbar.stages:  # a star needs a picture of each row; a loss over dimensions has matrices alone
        has_pictures = not is_file and pairing not in DIRECTIONS and not run.is_recording
        left_out = {"star", "curves"} if about["matrix"] else set() if has_pictures else {"star"}
        offered = offered_stages(left_out=left_out)
        stage = choose_stage(offered, "matrix" if lesson else offered[0])
    if request is None:
        with above:
            st.info(_("Open a file of vectors to see them under the loss."))
        return ""
    shown = f"{loaded_vectors.PREFIX}{request.source.removeprefix('file:')}" if is_file else run.name
    content = str(run.manifest.get("id")) if run.is_recording else run.weights_hash()  # a recorded step never changes
    setting = LabSetting((run.name, content, request), pairing, loss, about, knobs)
    is_trainable = can_train(run) and not is_file
    if is_pressed(WITH_THIS) and is_trainable:
        st.switch_page("pages/train.py", query_params=train_address(run, loss, about, knobs))
    if is_pressed(REVIEW) and is_file:
        st.switch_page("pages/samples.py", query_params={"on": shown})
    forward = NextStep(number=REVIEW, text=_("Review these rows →")) if is_file else next_step()
    if is_trainable:
        forward = NextStep(number=WITH_THIS, text=_("Train with this →"))
    page = PageState(state, stage, key, lesson, None if lesson else forward)
    try:
        view = computed(setting)
    except ValueError as error:
        with above:
            st.warning(format.plain(error))
        return "" if is_file else shown
    if view.views is not None:
        _draw_dimensions(setting, view, page)
        return shown
    draw_pairs(run, setting, view, losses, page)
    with frame.below():
        _notes(run, setting, view, page, of_run.get("temperature"))
    return shown


def _notes(run: Run, setting: LabSetting, view: LabView, page: "PageState", trained_at: float | None) -> None:
    """Draw what stands below the picture: why a pair is alike, notes, and the trade-off of the temperature. Args:
    trained_at: the run's temperature."""
    source = setting.rows[2].source
    if not page.lesson and source in ("z", "h", *SOURCE) and not run.is_recording and pictures.is_likeness_wanted():
        _why_alike(run, setting, view, page)
    if view.note:
        st.caption(format.plain(view.note))
    if view.kernel is None:
        st.caption(_("The server computes this loss when you release the slider."))
    if live_knob(setting.about) == "temperature":
        tau = float(setting.knobs["temperature"])
        if page.stage == "curves":
            draw_trade(trained_at, view, partial(_classes, setting, view), tau)


def _why_alike(run: Run, setting: LabSetting, view: LabView, page: "PageState") -> None:
    """Draw why the anchor is similar to the candidate last clicked in the matrix, at first to its nearest negative."""
    request, anchor = setting.rows[2], page.view.anchor
    anchor = min(lab_view.confusable_anchor(view) if anchor is None else anchor, len(view.names) - 1)
    negative = np.where(view.mask[anchor] == NEGATIVE, view.scores[anchor], np.nan)
    if (candidate := reported(page.key).get("candidate")) is None or candidate >= len(negative):
        near = np.nan_to_num(-negative if "distance" in view.score_name else negative, nan=-np.inf)
        candidate = int(near.argmax())
    rows: list[int | str] = [view.row_thumbs[anchor], view.column_thumbs[candidate]]
    for k, (texts, at) in enumerate(((view.texts, anchor), (view.column_texts, candidate))):
        rows[k] = texts[at] if rows[k] == -1 and texts else rows[k]
    if -1 in rows:
        st.info(_("One of the two rows has no picture, so their similarity cannot be split into patches."))
        return
    layer = "h" if request.source == "h" else "z"
    values = {"space": Space.of_run(run, request.split, layer).values, "batch": asdict(request), "rows": rows}
    names = (view.names[anchor], view.column_names[candidate])
    pictures.explain_likeness(values, (locale.text(names[0]), locale.text(names[1])))


def _draw_dimensions(setting: LabSetting, view: LabView, page: "PageState") -> None:
    """Draw the matrices and terms of a loss over dimensions."""
    assert view.views is not None
    count = len(view.names) // len(view.views)  # views of each image, the first two are compared
    shown = DimensionView(
        content=cache.digest(setting.rows, setting.pairing, setting.loss),
        form=setting.about["matrix"],
        views=view.views,
        names=[name for row, name in enumerate(view.names) if row % count < 2],
        name=setting.loss,
        title=setting.about["title"],
        knobs=further_knobs_of(setting.about, setting.knobs),
        heard=reported(page.key).get("report"),
        lesson=panel_of(page.lesson),
        forward=page.forward,
        export=asked_export(),
    )
    draw_dimension_view(shown, page.key, partial(hear, page.key))
    if view.note:
        with frame.below():
            st.caption(format.plain(view.note))


def _classes(setting: LabSetting, view: LabView) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the classes of the anchors and of the candidates; None if candidates come from a memory."""
    batch = _batch(*setting.rows)
    if isinstance(batch, TowerBatch) or batch.memory is not None:
        return None
    views = batch.rows.shape[1]
    return batch.labels[np.array(view.row_thumbs) // views], batch.labels[np.array(view.column_thumbs) // views]


def computed(setting: LabSetting) -> LabView:
    """Compute the loss on the batch, at the default knob if the browser has a kernel. Raises ValueError."""
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


@dataclass(frozen=True)
class PageState:
    """The state of the page: the view's own state, the stage, the component's key, the lesson, the next step."""

    view: ViewState
    stage: str
    key: str
    lesson: int
    forward: NextStep | None


def draw_pairs(run: Run, setting: LabSetting, view: LabView, losses: dict[str, LossEntry], page: PageState) -> None:
    """Draw the live view of all pairs, optionally with a pinned second loss or other rows of the same images."""
    request, state, other_rows = setting.rows[2], page.view, {}
    if not request.source.startswith("file:") and request.source not in SOURCE:
        is_encoded = request.source in SOURCES or request.source.startswith(EPOCH)
        sources = SOURCES | lab_view.epochs_of(run) if is_encoded else lab_view.snapshots_of(run)
        sources = {**(lab_view.steps_of(run) if run.is_recording else {}), **sources}
        other_rows = {s: title for s, title in sources.items() if s not in (request.source, "file")}
    kind, _colon, name = request.source.partition(":")
    lacks_images = kind == "file" and not loaded_vectors.loaded()[name]["images"]
    lacks_images |= run.is_recording and bool(request.memory)
    anchor = lab_view.confusable_anchor(view) if state.anchor is None else state.anchor
    offered = losses_across(losses) if setting.pairing in DIRECTIONS else losses
    others = [(f"loss:{n}", about["title"]) for n, about in offered.items() if n != setting.loss]
    first = _as_drawn(setting, view)
    if page.lesson:  # the margin is the one of the two limits on false negatives that lesson 9 is about
        first = replace(first, more=[knob for knob in first.more if knob.name != "positive_share"])
    shown = LossView(
        first=first,
        axes=PairAxes.of(view, NO_THUMBNAILS if lacks_images else _thumbnails(*setting.rows)),
        name=setting.loss,
        title=setting.about["title"],
        anchor=min(anchor, len(view.names) - 1),
        start=asdict(state),
        alternatives=Alternatives(others, [(f"rows:{s}", title) for s, title in other_rows.items()]),
        choice=state.second,
        second=_second(setting, view, losses, other_rows, state),
        lesson=panel_of(page.lesson),
        stage=page.stage,
        forward=page.forward,
        export=asked_export(),
        heard=reported(page.key).get("report"),
    )
    loss_key = first_loss(run, offered, setting.pairing in DIRECTIONS)[1]
    draw_loss_view(shown, page.key, partial(_hear, page.key, loss_key))


def _hear(key: str, loss_key: str) -> None:
    """Handle the view's report: the lesson's events, another stage, another loss."""
    hear(key)
    report = reported(key)
    if report.get("go") is not None:  # another lesson has its own stage
        return
    if report.get("stage") in STAGES:
        query_params.choose(STAGE, report["stage"])
    if loss := report.get("loss"):
        query_params.choose(loss_key, loss, in_popover=True)


def _as_drawn(setting: LabSetting, view: LabView) -> LossSetting:
    """Return a loss on a batch in the form sent to the browser."""
    held = {k: v for k, v in setting.knobs.items() if k not in dragged(setting.about) or view.kernel is None}
    content = cache.digest(setting.rows, setting.pairing, setting.loss, sorted(held.items()))
    return setting_of(view, setting.about, setting.knobs, content)


def _second(
    first: LabSetting, view: LabView, losses: dict[str, LossEntry], other_rows: dict[str, str], state: ViewState
) -> LossSetting | None:
    """Return the pinned setting A: another loss, or other rows; None if nothing is pinned."""
    kind, _colon, name = state.second.partition(":")
    if name not in (losses if kind == "loss" else other_rows if kind == "rows" else ()):
        return None
    if kind == "loss":
        second = replace(first, loss=name, about=losses[name], knobs={})
    else:
        second = replace(first, rows=(*first.rows[:2], replace(first.rows[2], source=name)))
    if live := live_knob(second.about):
        first_value = second.knobs.get(live, second.about["knobs"][live]["default"])
        value = first_value if state.second_value is None else state.second_value
        second = replace(second, knobs={**second.knobs, live: value})
    reason: str = _("The second setting compares different pairs, so no difference can be shown.")
    try:
        second_view = computed(second)
        if second_view.scores.shape == view.scores.shape:
            return _as_drawn(second, second_view)
    except ValueError as error:
        reason = sentence(error)
    return LossSetting(cache.digest(reason, name), reason=reason)


# --- a training with this loss ---


def can_train(run: Run) -> bool:
    """Return whether Train supports the run's method and data; not for recordings, imported runs and two towers."""
    data = str(run.config.get("dataset"))
    is_other = run.is_recording or run.has_towers or "imported" in run.manifest
    is_known = str(run.config.get("method")) in cache.catalog()["methods"] and (
        data in KNOWN or datasets.is_files(data)
    )
    return is_known and not is_other


def train_address(run: Run, loss: str, about: LossEntry, knobs: Knobs) -> dict[str, str]:
    """Return the URL parameters of the Train page for such a run with this loss and these knobs. Raises OSError. Args:
    about: the loss's entry in the catalog."""
    method = str(run.config["method"])
    card = cache.catalog()["methods"][method]
    own = {*card["loss_knobs"], *(run.config.get("loss_knobs") or {})}  # whose defaults may be the method's
    changed = {n: v for n, v in knobs.items() if v is not None and (n in own or v != about["knobs"][n]["default"])}
    texts = {
        n: f"{v:.10g}" if isinstance(v, float) else v if isinstance(v, str) else json.dumps(v)
        for n, v in changed.items()
    }
    address = {"method": method, "loss": loss, **path_input.address_of(str(run.config["dataset"]))}
    if "temperature" in texts:  # which has a field of its own
        address["temperature"] = texts.pop("temperature")
    return address | ({"further": "\n".join(f"loss.{n}={v}" for n, v in texts.items())} if texts else {})


# --- kept for all sessions ---


@st.cache_resource(max_entries=6, show_spinner=Deferred(N_("Encoding a batch…")))
def _batch(run: str, weights: str, request: BatchRequest) -> LabBatch | TowerBatch:
    return calls.lab_batch(runs.load(run), request)


@st.cache_resource(max_entries=24, show_spinner=Deferred(N_("Computing the loss of each pair…")))
def _view(run: str, weights: str, request: BatchRequest, pairing: str, loss: str, knobs: str) -> LabView:
    asked = lab_view.question(weights, request, pairing, loss, knobs)
    if (shipped := lab_view.read_view(runs.load(run), loss, asked)) is not None:
        return shipped
    return calls.lab_view(_batch(run, weights, request), pairing, loss, json.loads(knobs))


@st.cache_resource(max_entries=6, show_spinner=False)
def _thumbnails(run: str, weights: str, request: BatchRequest) -> ThumbnailSheet:
    thumbs = lab_view.read_thumbs(runs.load(run), lab_view.question(weights, request))
    return thumbnail_sheet(_batch(run, weights, request).thumbs if thumbs is None else thumbs)
