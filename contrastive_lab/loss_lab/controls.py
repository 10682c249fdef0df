"""A loss on the page: its knobs, what the browser part reported, its formula, and what τ trades on a batch."""

import contextlib
import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st

from contrastive_core.engine import client
from contrastive_core.records.lab_view import DERIVATIVES, LabView, Trade
from contrastive_core.records.run import Run
from contrastive_lab import figures, format, number_inputs, plots, query_params
from contrastive_lab.components.shared.mount import reported_state
from contrastive_lab.locale import N_, _
from contrastive_lab.loss_setting import LIMITS, LIVE, dragged, further_knobs, live_knob
from contrastive_lab.setting_names import shown_value

VALUES = "lab-values"  # of the session: the dragged knob's last value, by loss
BEFORE = "lab-before"  # of the session: the report that an address came after


@dataclass(frozen=True)
class PanelState:
    """The state of the live view; "" and None: the initial state."""

    view: str = ""
    panel: str = ""
    order: str = ""
    second: str = ""  # the second setting, as `loss:NAME`, `rows:SOURCE` or a form
    second_value: float | None = None
    masks: bool | None = None
    share: bool | None = None  # bars among the negatives
    anchor: int | None = None  # None: one that is easily confused


def reported(key: str) -> dict[str, Any]:
    """What the part of this key reported last."""
    return dict(reported_state(key, "chosen") or {})


def panel_state(key: str) -> PanelState:
    """What the live view shows: as it said itself, or as the address asks."""
    report = reported(key)
    texts: dict[str, Any] = {
        n: report.get(n, query_params.kept_value(n) or "") for n in ("view", "panel", "order", "second")
    }
    flags: dict[str, Any] = {n: report.get(n, query_params.kept_value(n) == "yes") or None for n in ("masks", "share")}
    second_value, anchor = (report.get(n, query_params.kept_number(n)) for n in ("second_value", "anchor"))
    return PanelState(**texts, second_value=second_value, **flags, anchor=None if anchor is None else int(anchor))


def knob_form(
    key: str, loss: str, about: dict[str, Any], first: dict[str, Any], left_out: Collection[str] = ()
) -> dict[str, Any]:
    """Every knob of a loss with its value; controls in a row for those that are not dragged in the part of this key.

    Args: about: the loss's entry in the catalog; first: values to begin with, where not the
    defaults; left_out: knobs that get no control and stay as they are."""
    values = {}
    if shown := [name for name in about["knobs"] if name not in (*dragged(about), *LIVE, *left_out)]:
        with st.container(horizontal=True, gap="large", vertical_alignment="bottom"):
            values = {n: _control(n, about["knobs"][n], f"lab-{loss}-{n}", first.get(n)) for n in shown}
    values = {name: value for name, value in values.items() if value is not None}
    if live := live_knob(about):
        values[live] = _live_value(key, loss, live, about["knobs"][live], first.get(live))
        query_params.keep(**{live: values[live]})
    for name in further_knobs(about):
        values[name] = _further_value(key, loss, name, first.get(name, about["knobs"][name]["default"]))
        query_params.keep(**{name: values[name]})
    return values


def _control(name: str, k: dict[str, Any], key: str, first: Any) -> Any:
    label, default = name.replace("_", " "), k["default"] if first is None else first
    about = {"name": name, "default": default, "key": key, "help": k["help"]}
    if k["choices"]:
        return query_params.one_of(
            st.segmented_control, label, k["choices"], format_func=lambda c: str(c).replace("_", " "), **about
        )
    if isinstance(default, bool):
        return query_params.switch(st.toggle, label, **about)
    empty = _("not given") if default is None else None  # an empty field says something of its own
    return number_inputs.number(st.number_input, label, k["low"], k["high"], width=180, placeholder=empty, **about)


def _live_value(key: str, loss: str, name: str, knob: dict[str, Any], first: float | None) -> float:
    """The dragged knob's value: that of the address on arrival, then the one last let go, or the first."""
    values, report = st.session_state.setdefault(VALUES, {}), reported(key)
    try:
        from_address = float(query_params.take(name) or "nan")
    except ValueError:
        from_address = math.nan
    if math.isfinite(from_address):
        values[loss] = min(knob["high"], max(knob["low"], from_address))
        st.session_state[BEFORE] = report
    elif report.get("of", loss) == loss and report != st.session_state.get(BEFORE) and report.get("value") is not None:
        values[loss] = report["value"]
    return float(values.get(loss, knob["default"] if first is None else first))


def _further_value(key: str, loss: str, name: str, first: float | None) -> float | None:
    """The same of a knob that stands below; None where it is switched off."""
    values, report = st.session_state.setdefault(VALUES, {}), reported(key)
    if (asked := query_params.take(name)) is not None:
        with contextlib.suppress(ValueError):
            low, high, _start = LIMITS[name]
            values[loss, name] = min(high, max(low, float(asked)))
            st.session_state[BEFORE] = report
    elif report.get("of", loss) == loss and report != st.session_state.get(BEFORE) and name in report.get("more", {}):
        values[loss, name] = report["more"][name]
    value = values.get((loss, name), first)
    return None if value is None else float(value)


def formula(loss: str, about: dict[str, Any]) -> None:
    """The loss in letters, its paper, and what each knob does."""
    st.header(f"{about['title']} ({about['year']})")
    st.latex(about["formula"])
    if loss in DERIVATIVES:
        st.latex(DERIVATIVES[loss])
    paper = _("Paper")
    st.markdown(f"{_(about['summary'])} [{paper}]({about['paper']})")
    line = _("- **{name}** (by default {value}): {help}")
    knobs = [(_(name.replace("_", " ")), shown_value(k["default"]), _(k["help"])) for name, k in about["knobs"].items()]
    st.markdown("\n".join(line.format(name=name, value=value, help=help) for name, value, help in knobs))


# --- what the temperature trades -----------------------------------------------------------------


NEGATIVE = 2  # of the view's mask
TICKS = (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2)
SCHEDULE = (0.1, 1.0)  # ends of a schedule that moves τ, as Kukleva et al. 2023 take them


def offer_trade(
    run: Run, view: LabView, classes_of: Callable[[], tuple[np.ndarray, np.ndarray] | None], at: float
) -> None:
    """The section, where it is asked for. Args: classes_of: gives classes of the anchors (n) and of the candidates
    (w), −1 where there is none; at: the τ that the slider was let go at."""
    if not query_params.switch(st.toggle, _("The trade-off of τ"), name="trade"):
        return
    same, classes = None, classes_of()
    if classes is not None and (classes[0] >= 0).any():
        same = (classes[0][:, None] == classes[1]) & (classes[0][:, None] >= 0)
    try:
        found: list[Trade] = client.call(
            "contrastive_core.loss_lab.view:trade", view.scores, view.mask == NEGATIVE, same
        )
    except ValueError as error:
        st.caption(format.plain(error))
        return
    trained = run.config.get("loss_knobs", {}).get("temperature")
    figures.draw(_figure(found, at, trained), "temperature", "trade")
    st.caption(_in_words(found, at))


def _figure(found: list[Trade], at: float, trained: Any) -> Any:
    shares = {
        N_("negatives that matter, of all"): [f.spread for f in found],
        N_("push on the anchor's own class"): [f.own_class for f in found if f.own_class is not None],
        N_("push on the hardest negative"): [f.hardest for f in found],
    }
    x = [f.temperature for f in found]
    figure = plots.curves({name: (x, values) for name, values in shares.items() if values}, "τ", "share", height=300)
    dashes = dict(zip(shares, ("solid", "dash", "dot"), strict=True))
    figure.for_each_trace(lambda trace: trace.update(mode="lines", line={"dash": dashes[trace.name]}))
    gray = "#7C8794"
    figure.add_vline(at, annotation_text=f"τ {at:g}", line={"color": gray})
    if isinstance(trained, (int, float)) and abs(trained - at) > 1e-9:
        text, line = _("trained at {trained}").format(trained=f"{trained:g}"), {"color": gray, "dash": "dash"}
        figure.add_vline(trained, annotation_text=text, annotation_position="bottom right", line=line)
    figure.update_xaxes(type="log", tickvals=TICKS, ticktext=[f"{t:g}" for t in TICKS])
    figure.update_yaxes(range=[0, 1])
    figure.update_layout(margin={"t": 20}, legend={"y": 1.15})
    return figure


def _in_words(found: list[Trade], at: float) -> str:
    """Where the chosen τ stands, and what a schedule would do."""
    here = min(found, key=lambda f: abs(np.log(f.temperature / at)))
    low, high = (min(found, key=lambda f: abs(f.temperature - end)) for end in SCHEDULE)

    def percent(share: float) -> str:
        return f"{100 * share:.0f}"

    template = _("At τ {at} the push covers {spread} % of the negatives")
    text = template.format(at=f"{at:g}", spread=percent(here.spread))
    if here.own_class is not None:
        own = _("; {own_class} % of it falls on the anchor's own class")
        text += own.format(own_class=percent(here.own_class))
    schedule = _(
        ". A low τ spreads embeddings (uniformity) and pushes hardest what is alike; a high one keeps what is alike "
        "together (tolerance) and separates little. A schedule between τ {first} and {last} moves this share between "
        "{low} and {high} %"
    )
    first, last = (f"{end:g}" for end in SCHEDULE)
    text += schedule.format(first=first, last=last, low=percent(low.spread), high=percent(high.spread))
    if low.own_class is not None and high.own_class is not None:
        ends = _(", and {low} and {high} % on its own class")
        text += ends.format(low=percent(low.own_class), high=percent(high.own_class))
    return _("{text}. (Wang and Liu, 2021; Kukleva et al., 2023.)").format(text=text)
