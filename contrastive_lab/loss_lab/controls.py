"""Controls of a loss: its knobs, the component's reports, its formula, and the trade-off of τ on a batch."""

import contextlib
import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st

from contrastive_core.base.registry import KnobEntry, Knobs, LossEntry
from contrastive_core.engine import client
from contrastive_core.lab.lab_view import DERIVATIVES, NEGATIVE, LabView
from contrastive_lab import figures, format, query_params
from contrastive_lab.components.shared.mount import reported_state
from contrastive_lab.locale import N_, _
from contrastive_lab.loss_setting import FURTHER, LIVE, dragged
from contrastive_lab.setting_names import shown_value

VALUES = "lab-values"  # of the session: the dragged knob's last value, by loss
BEFORE = "lab-before"  # of the session: the report that an address came after


@dataclass(frozen=True)
class ViewState:
    """Values reported by the live view; "" and None: not changed yet."""

    view: str = ""
    order: str = ""
    second: str = ""  # what is pinned as A: `loss:NAME`, `rows:SOURCE` or a form
    second_value: float | None = None
    masks: bool | None = None
    anchor: int | None = None  # None: one that is easily confused


def reported(key: str) -> dict[str, Any]:
    """Return the last report of the component with this key."""
    return dict(reported_state(key, "chosen") or {})


def view_state(key: str) -> ViewState:
    """Return the state of the live view, from its last report or from the URL."""
    report = reported(key)
    view, second = (report.get(n, query_params.kept_value(n) or "") for n in ("view", "second"))
    order = report.get("order", query_params.kept_value("arrange") or "")
    masks = report.get("masks", query_params.kept_value("masks") == "yes") or None
    second_value, anchor = (report.get(n, query_params.kept_number(n)) for n in ("second_value", "anchor"))
    return ViewState(view, order, second, second_value, masks, None if anchor is None else int(anchor))


def knob_form(key: str, loss: str, about: LossEntry, first: Knobs, left_out: Collection[str] = ()) -> Knobs:
    """Draw controls for all knobs except those dragged in the component with this key; return every knob's value.

    Args: about: the loss's entry in the catalog; first: initial values other than the
        defaults; left_out: knobs without a control, which keep their values."""
    values, moved = {}, dragged(about)
    query_params.share(about["knobs"])
    if shown := [name for name in about["knobs"] if name not in (*moved, *LIVE, *left_out)]:
        with st.container(horizontal=True, gap="large", vertical_alignment="bottom"):
            values = {n: _control(n, about["knobs"][n], f"lab-{loss}-{n}", first.get(n)) for n in shown}
    values = {name: value for name, value in values.items() if value is not None}
    report, kept = reported(key), st.session_state.setdefault(VALUES, {})
    told = {**(report.get("more") or {})}
    if report.get("value") is not None:
        told |= dict.fromkeys(LIVE, report["value"])
    for name in moved:
        k = about["knobs"][name]
        low, high = (k["low"], k["high"]) if name in LIVE else FURTHER[name][1:3]
        place = name if name == "temperature" else (loss, name)  # one temperature for all losses
        value = math.nan
        with contextlib.suppress(ValueError):
            value = float(query_params.take(name) or "nan")
        if math.isfinite(value):  # of the URL; else the last released one, else the initial one
            kept[place] = value
            st.session_state[BEFORE] = report
        elif report.get("of", loss) == loss and report != st.session_state.get(BEFORE) and name in told:
            kept[place] = told[name]
        chosen = kept.get(place, first.get(name, k["default"]))
        values[name] = None if chosen is None else min(high, max(low, float(chosen)))  # None: off
        query_params.keep(**{name: values[name]})
    return values


def _control(name: str, k: KnobEntry, key: str, first: Any) -> Any:
    label, default = name.replace("_", " "), k["default"] if first is None else first
    about = {"name": name, "default": default, "key": key, "help": k["help"]}
    if k["choices"]:
        return query_params.one_of(
            st.segmented_control, label, k["choices"], format_func=lambda c: str(c).replace("_", " "), **about
        )
    if isinstance(default, bool):
        return query_params.switch(st.toggle, label, **about)
    empty = _("not given") if default is None else None  # an empty field says something of its own
    return query_params.number(st.number_input, label, k["low"], k["high"], width=180, placeholder=empty, **about)


def formula(loss: str, about: LossEntry) -> None:
    """Draw the loss as a formula, its paper, and the effect of each knob."""
    st.header(f"{about['title']} ({about['year']})")
    st.latex(about["formula"])
    if loss in DERIVATIVES:
        st.latex(DERIVATIVES[loss])
    paper = _("Paper")
    st.markdown(f"{_(about['summary'])} [{paper}]({about['paper']})")
    line = _("- **{name}** (by default {value}): {help}")
    knobs = [(_(name.replace("_", " ")), shown_value(k["default"]), _(k["help"])) for name, k in about["knobs"].items()]
    st.markdown("\n".join(line.format(name=name, value=value, help=help) for name, value, help in knobs))


TICKS = (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2)
GRAY = "#7C8794"


def draw_trade(view: LabView, same: np.ndarray | None, at: float, trained: Any) -> None:
    """Draw the trade-off of τ. Args: same: (n, w) bool, pairs of one class, or None without labels; at: the last
    released τ of the slider; trained: the τ used to train the rows, if known."""
    try:
        found = client.temperature_trade(view.scores, view.mask == NEGATIVE, same)
    except ValueError as error:
        st.caption(format.plain(error))
        return
    x = [f.temperature for f in found]
    shares = {
        N_("negatives that matter, of all"): (x, [f.spread for f in found]),
        N_("push on the anchor's own class"): (x, [f.own_class for f in found if f.own_class is not None]),
        N_("push on the hardest negative"): (x, [f.hardest for f in found]),
    }
    figure = figures.curves({name: curve for name, curve in shares.items() if curve[1]}, "τ", "share", height=300)
    dashes = dict(zip(shares, ("solid", "dash", "dot"), strict=True))
    figure.for_each_trace(lambda trace: trace.update(mode="lines", line={"dash": dashes[trace.name]}))
    figure.add_vline(at, annotation_text=f"τ {at:g}", line={"color": GRAY})
    if isinstance(trained, (int, float)) and abs(trained - at) > 1e-9:
        text, line = _("trained at {trained}").format(trained=f"{trained:g}"), {"color": GRAY, "dash": "dash"}
        figure.add_vline(trained, annotation_text=text, annotation_position="bottom right", line=line)
    figure.update_xaxes(type="log", tickvals=TICKS, ticktext=[f"{t:g}" for t in TICKS])
    figure.update_yaxes(range=[0, 1])
    figures.draw(figure, "temperature", "trade")
    here = min(found, key=lambda f: abs(np.log(f.temperature / at)))
    template = _("At τ {temperature} the push covers {spread} % of the negatives.")
    if here.own_class is not None:
        template = _(
            "At τ {temperature} the push covers {spread} % of the negatives; {own_class} % of it is on the "
            "anchor's own class."
        )
    own_class = f"{100 * (here.own_class or 0):.0f}"
    text = template.format(temperature=f"{at:g}", spread=f"{100 * here.spread:.0f}", own_class=own_class)
    about = _("A low τ separates similar samples, a high τ keeps them together.")
    st.caption(f"{text} {about} (Wang and Liu, 2021; Kukleva et al., 2023.)")
