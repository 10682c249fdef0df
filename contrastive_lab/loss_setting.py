"""A loss on a batch, shared by the app, notebooks and report files. Imports no Streamlit and no torch."""

import contextlib

from contrastive_core.base.cards import LossEntry
from contrastive_core.base.registry import Knobs
from contrastive_core.lab.lab_view import MEMORIES, SNAPSHOT, STEP, BatchRequest, LabView
from contrastive_core.runs.run import Run
from contrastive_core.spaces import recorded_rows
from contrastive_lab.components.loss_view import ComputedLoss, LossSetting
from contrastive_lab.components.shared.transport import SliderKnob
from contrastive_lab.locale import N_, _

LIVE = ("temperature", "margin")
LIMITS = {  # of the further knobs that are dragged: from, to, and what one is switched on at
    "bias": (-20.0, 5.0, None),
    "beta": (0.0, 4.0, None),
    "tau_plus": (0.0, 0.5, None),
    "sigma": (0.1, 2.0, None),
    "q": (0.01, 1.0, None),
    "density_weight": (0.001, 1.0, None),
    "negative_margin": (-0.5, 0.5, 0.0),
    "positive_share": (0.5, 1.2, 0.95),
    "off_diagonal": (0.0, 10.0, None),
    "invariance": (0.0, 100.0, None),
    "variance": (0.0, 100.0, None),
    "covariance": (0.0, 100.0, None),
    "deviation": (0.0, 10.0, None),
    "trade_off": (0.0, 1.0, None),
    "directions": (1.0, 8192.0, None),
}
LABELS = {
    "bias": N_("b, bias"),
    "beta": N_("β, weight of hard negatives"),
    "tau_plus": N_("τ⁺, share of false negatives"),
    "sigma": N_("σ, width of the weights"),
    "q": N_("q, robustness"),
    "density_weight": N_("λ, weight of all pairs"),
    "negative_margin": N_("m, margin for false negatives"),
    "positive_share": N_("share of the positive from which a negative may be false"),
    "off_diagonal": N_("λ, weight off the diagonal"),
    "invariance": N_("λ, invariance"),
    "variance": N_("μ, variance"),
    "covariance": N_("ν, covariance"),
    "deviation": N_("γ, least deviation"),
    "trade_off": N_("λ, weight of the Gaussian term"),
    "directions": N_("M, random directions"),
}
FROM_ZERO = (
    "off_diagonal",
    "invariance",
    "variance",
    "covariance",
    "trade_off",
)  # fine steps near zero, and zero itself
PAIRED_BY = {"moco_v1": "queue", "moco_v2": "queue", "inst_disc": "bank", "sup_con": "classes", "metric": "classes"}


def live_knob(about: LossEntry) -> str | None:
    """Return the name of the main knob to drag; None without one. about: the loss's entry in the catalog."""
    return next((k for k in LIVE if k in about["knobs"]), None)


def further_knobs(about: LossEntry) -> list[str]:
    """Return the names of the knobs below the main one. about: the loss's entry in the catalog."""
    in_browser = about.get("kernel") or about.get("matrix")
    return [name for name in LIMITS if name in about["knobs"]] if in_browser else []


def dragged(about: LossEntry) -> list[str]:
    """Return the names of all knobs that can be dragged."""
    return [*filter(None, [live_knob(about)]), *further_knobs(about)]


def knobs_to_compute(about: LossEntry, knobs: Knobs) -> Knobs:
    """Return the knobs for the library's computation: dragged ones at their defaults if the browser computes all other
    values."""
    if about["kernel"] or about.get("matrix"):
        return {**knobs, **{name: about["knobs"][name]["default"] for name in dragged(about)}}
    return knobs


def knob_of(about: LossEntry, live: str, value: float) -> SliderKnob:
    """Return the dragged knob: its label, range and value."""
    k = about["knobs"][live]
    low, high = (0.01, 10.0) if live == "temperature" else (k["low"], min(k["high"], 4.0))
    label = _("τ, temperature") if live == "temperature" else _("ε, margin")
    value = min(high, max(low, float(value)))
    return SliderKnob(label, low, high, value, k["log"])


def further_knobs_of(about: LossEntry, knobs: Knobs) -> list[SliderKnob]:
    """Return the further knobs that can be dragged and have an effect, with their values."""
    found = []
    for name in further_knobs(about):
        if name == "sigma" and knobs.get("weighting", about["knobs"]["weighting"]["default"]) == "none":
            continue  # nothing is weighed
        low, high, first = LIMITS[name]
        value = knobs.get(name, about["knobs"][name]["default"])
        held = None if value is None else min(high, max(low, float(value)))
        is_log = name in FROM_ZERO or (about["knobs"][name]["log"] and low > 0)
        is_whole = isinstance(about["knobs"][name]["default"], int)
        found.append(
            SliderKnob(
                label=_(LABELS[name]),
                low=low,
                high=high,
                value=held,
                log=is_log,
                name=name,
                first=first,
                is_whole=is_whole,
            )
        )
    return found


def setting_of(view: LabView, about: LossEntry, knobs: Knobs, content: str) -> LossSetting:
    """Return a loss with its knobs on a batch; `content` changes when the batch does."""
    knob = knob_of(about, live, knobs[live]) if (live := live_knob(about)) else None
    return LossSetting(
        content=content,
        scores=view.scores,
        mask=view.mask,
        kernel=view.kernel,
        computed=ComputedLoss(view.weight, view.grad, view.per_anchor),
        knob=knob,
        loss=view.value,
        score_name=view.score_name,
        reason=view.reason,
        more=further_knobs_of(about, knobs) if view.kernel is not None or about.get("matrix") else [],
    )


def request_of(source: str, pairing: str, size: int, seed: int) -> BatchRequest:
    """Return a batch request whose images, views and memory give a matrix of `size` columns."""
    if source.startswith(STEP) and pairing == "queue":
        return BatchRequest(source, size // 4, 2, seed, pairing)
    if pairing not in MEMORIES or source.startswith((SNAPSHOT, STEP)):
        return BatchRequest(source, size // 2, 2, seed)
    if source.startswith("file:"):
        return BatchRequest(source, size, 2, seed)
    return BatchRequest(source, size // 4, 2, seed, pairing)


def default_pairing(run: Run) -> str:
    """Return the pairing of a run's own loss; for a recording, the pairing of its newest rows."""
    if not run.is_recording:
        return PAIRED_BY.get(str(run.config.get("method")), "views")
    with contextlib.suppress(ValueError, OSError):
        if steps := recorded_rows.steps(run):
            rows = recorded_rows.read(run, steps[-1])
            return "queue" if len(rows.queue) else "views" if rows.has_views else "classes"
    return "classes"
