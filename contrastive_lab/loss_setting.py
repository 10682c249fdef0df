"""A loss on a batch, the same for the app, a notebook and a file. Imports no Streamlit and no torch."""

import contextlib
from typing import Any

from contrastive_core.records import recorded_rows
from contrastive_core.records.lab_view import MEMORIES, SNAPSHOT, STEP, BatchRequest, LabView
from contrastive_core.records.run import Run
from contrastive_lab.components.loss_view import ComputedLoss, LossSetting
from contrastive_lab.components.shared.transport import SliderKnob
from contrastive_lab.locale import _

LIVE = ("temperature", "margin")
PAIRED_BY = {"moco_v1": "queue", "moco_v2": "queue", "inst_disc": "bank", "sup_con": "classes", "metric": "classes"}


def live_knob(about: dict[str, Any]) -> str | None:
    """The name of the knob that is dragged. about: the loss's entry in the catalog."""
    return next((k for k in LIVE if k in about["knobs"]), None)


def knobs_to_compute(about: dict[str, Any], knobs: dict[str, Any]) -> dict[str, Any]:
    """The knobs that the library computes a batch with: τ or the margin at its default where the browser computes every
    other."""
    if (live := live_knob(about)) and about["kernel"]:
        return knobs | {live: about["knobs"][live]["default"]}
    return knobs


def knob_of(about: dict[str, Any], live: str, value: float) -> SliderKnob:
    """Return the dragged knob: its label, range and value."""
    k = about["knobs"][live]
    low, high = (0.01, 10.0) if live == "temperature" else (k["low"], min(k["high"], 4.0))
    label = _("τ, temperature") if live == "temperature" else _("ε, margin")
    value = min(high, max(low, float(value)))
    return SliderKnob(label, low, high, value, k["log"])


def setting_of(view: LabView, about: dict[str, Any], knobs: dict[str, Any], content: str) -> LossSetting:
    """A loss with its knobs on a batch; `content` changes when the batch does."""
    knob = knob_of(about, live, knobs[live]) if (live := live_knob(about)) else None
    pairs, computed = (view.scores, view.mask, view.kernel), ComputedLoss(view.weight, view.grad, view.per_anchor)
    return LossSetting(content, *pairs, computed, knob, view.value, view.score_name, view.reason)


def request_of(source: str, pairing: str, size: int, seed: int) -> BatchRequest:
    """Images, views and the memory beside them, so that the matrix has `size` columns."""
    if source.startswith(STEP) and pairing == "queue":
        return BatchRequest(source, size // 4, 2, seed, pairing)
    if pairing not in MEMORIES or source.startswith((SNAPSHOT, STEP)):
        return BatchRequest(source, size // 2, 2, seed)
    if source.startswith("file:"):
        return BatchRequest(source, size, 2, seed)
    return BatchRequest(source, size // 4, 2, seed, pairing)


def default_pairing(run: Run) -> str:
    """How a run's own loss pairs rows; a recorded one as it paired its newest rows."""
    if not run.is_recording:
        return PAIRED_BY.get(str(run.config.get("method")), "views")
    with contextlib.suppress(ValueError, OSError):
        if steps := recorded_rows.steps(run):
            rows = recorded_rows.read(run, steps[-1])
            return "queue" if len(rows.queue) else "views" if rows.has_views else "classes"
    return "classes"
