"""A loss on a batch and its knobs, shared by the app, notebooks and report files. Imports no Streamlit and no torch."""

from contrastive_core.base.registry import Knobs, LossEntry
from contrastive_core.lab.lab_view import LabView
from contrastive_lab.components.loss_view import LossSetting
from contrastive_lab.components.shared.mount import SliderKnob, digest
from contrastive_lab.locale import N_, _

LIVE = ("temperature", "margin")  # the main knob
FURTHER = {  # knobs dragged below it: label, from, to, and what one is switched on at
    "bias": (N_("b, bias"), -20.0, 5.0, None),
    "beta": (N_("β, weight of hard negatives"), 0.0, 4.0, None),
    "tau_plus": (N_("τ⁺, share of false negatives"), 0.0, 0.5, None),
    "sigma": (N_("σ, width of the weights"), 0.1, 2.0, None),
    "q": (N_("q, robustness"), 0.01, 1.0, None),
    "density_weight": (N_("λ, weight of all pairs"), 0.001, 1.0, None),
    "negative_margin": (N_("m, margin for false negatives"), -0.5, 0.5, 0.0),
    "positive_share": (N_("share of the positive from which a negative may be false"), 0.5, 1.2, 0.95),
    "off_diagonal": (N_("λ, weight off the diagonal"), 0.0, 10.0, None),
    "invariance": (N_("λ, invariance"), 0.0, 100.0, None),
    "variance": (N_("μ, variance"), 0.0, 100.0, None),
    "covariance": (N_("ν, covariance"), 0.0, 100.0, None),
    "deviation": (N_("γ, least deviation"), 0.0, 10.0, None),
    "trade_off": (N_("λ, weight of the Gaussian term"), 0.0, 1.0, None),
    "directions": (N_("M, random directions"), 1.0, 8192.0, None),
}
FROM_ZERO = ("off_diagonal", "invariance", "variance", "covariance", "trade_off")  # fine steps near zero, and zero


def live_knob(about: LossEntry) -> str | None:
    """Return the name of the main knob to drag; None without one. about: the loss's entry in the catalog."""
    return next((k for k in LIVE if k in about["knobs"]), None)


def dragged(about: LossEntry) -> list[str]:
    """Return the names of all knobs that can be dragged: the main one, and others if the browser has a kernel."""
    live, in_browser = live_knob(about), about.get("kernel") or about.get("matrix")
    further = [name for name in FURTHER if name in about["knobs"]] if in_browser else []
    return [live, *further] if live else further


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
    return SliderKnob(label, low, high, min(high, max(low, float(value))), k["log"])


def further_knobs_of(about: LossEntry, knobs: Knobs) -> list[SliderKnob]:
    """Return the further knobs that can be dragged and have an effect, with their values."""
    found = []
    for name in dragged(about):
        k = about["knobs"][name]
        is_unused = name == "sigma" and knobs.get("weighting", about["knobs"]["weighting"]["default"]) == "none"
        if name in LIVE or is_unused:
            continue
        label, low, high, first = FURTHER[name]
        value = knobs.get(name, k["default"])
        knob = SliderKnob(
            label=_(label),
            low=low,
            high=high,
            value=None if value is None else min(high, max(low, float(value))),
            log=name in FROM_ZERO or (k["log"] and low > 0),
            name=name,
            first=first,
            is_whole=isinstance(k["default"], int),
        )
        found.append(knob)
    return found


def setting_of(view: LabView, about: LossEntry, knobs: Knobs, *rows: object) -> LossSetting:
    """Return a loss with its knobs on a batch. rows: plain values that change when the batch does."""
    is_live = view.kernel is not None  # dragged knobs change nothing of what is sent
    moved = [name for name in dragged(about) if name in knobs]
    held = sorted((k, v) for k, v in knobs.items() if not (is_live and k in moved))
    live = live_knob(about)
    return LossSetting(
        content=digest(*rows, about.get("title"), held),
        scores=view.scores,
        mask=view.mask,
        kernel={**view.kernel, **{name: knobs[name] for name in moved}} if view.kernel is not None else None,
        computed=None if is_live else {"pair": view.weight, "grad": view.grad, "loss": view.per_anchor},
        knob=knob_of(about, live, knobs[live]) if live else None,
        loss=view.value,
        score_name=view.score_name,
        reason=view.reason,
        more=further_knobs_of(about, knobs) if is_live or about.get("matrix") else [],
    )
