"""A loss on a batch, as it is asked for and drawn: the same for the app, a notebook and a file.

Imports no Streamlit and no torch.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from contrastive_core.loss_lab.batch import MEMORIES, SNAPSHOT, STEP, BatchRequest
from contrastive_core.loss_lab.view import LabView
from contrastive_core.runs import Run, recorded
from contrastive_lab.components.loss_view import ComputedLoss, LossSetting
from contrastive_lab.components.shared.knob import Knob

__all__ = [
    "LIVE",
    "about_loss",
    "default_pairing",
    "knob_of",
    "live_knob",
    "request_of",
    "setting_of",
]

LIVE = ("temperature", "margin")


def live_knob(about: dict[str, Any]) -> str | None:
    """The name of the knob that is dragged. about: the loss's entry in the catalog."""
    return next((k for k in LIVE if k in about["knobs"]), None)


def knob_of(about: dict[str, Any], live: str, value: float) -> Knob:
    """What is dragged: its label, range and value."""
    k = about["knobs"][live]
    low, high = (0.01, 10.0) if live == "temperature" else (k["low"], min(k["high"], 4.0))
    label = "τ, temperature" if live == "temperature" else "ε, margin"
    value = min(high, max(low, float(value)))
    return Knob(label, low, high, value, k["log"])


def setting_of(
    view: LabView, about: dict[str, Any], knobs: dict[str, Any], content: str
) -> LossSetting:
    """A loss with its knobs on a batch; `content` changes when the batch does."""
    live = live_knob(about)
    return LossSetting(
        content, view.scores, view.mask, view.kernel,
        ComputedLoss(view.weight, view.grad, view.per_anchor),
        knob_of(about, live, knobs[live]) if live else None, view.value, view.score_name,
        view.reason,
    )  # fmt: skip


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
    if run.is_recording:
        return _pairing_of_recording(run)
    method = run.config.get("method")
    return {
        "sup_con": "classes", "metric": "classes", "moco_v1": "queue", "moco_v2": "queue",
        "inst_disc": "bank",
    }.get(str(method), "views")  # fmt: skip


def _pairing_of_recording(run: Run) -> str:
    """As the recorded loss paired its newest rows."""
    steps = recorded.steps(run)
    try:
        rows = recorded.read(run, steps[-1]) if steps else None
    except (ValueError, OSError):
        rows = None
    if rows is None:
        return "classes"
    if len(rows.queue):
        return "queue"
    return "views" if rows.has_views else "classes"


def about_loss(loss: str, knobs: dict[str, Any] | None = None) -> dict[str, Any]:
    """A loss as the catalog has it, and `values` of its knobs.

    Raises: UnknownName, and ValueError for a setting that it does not have or cannot take.
    """
    from contrastive_core import losses

    criterion, registered = losses.create(loss, **(knobs or {})), losses.knobs(loss)
    values = {name: getattr(criterion, name) for name in registered}
    return {
        "title": criterion.title, "score": criterion.score, "kernel": criterion.kernel(),
        "knobs": {name: asdict(knob) for name, knob in registered.items()}, "values": values,
    }  # fmt: skip
