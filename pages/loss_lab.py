"""Loss Lab: drag the temperature or the margin, see every pair answer."""

from __future__ import annotations

import json
from typing import Any

import streamlit as st

import session
from components import circle, live_view
from contrastive_core.lab import PAIRINGS, SOURCES
from contrastive_core.runs import Run

SIZES = (16, 32, 64, 128, 256, 512)
LIVE = ("temperature", "margin")
MODES = ("A batch of real images", "Points on a circle")


def page() -> None:
    st.title("Loss Lab")
    run = session.chosen_run()
    if run is None or not run.weights.exists():
        st.info("The Loss Lab needs a run with weights. Choose one in the sidebar, or train one.")
        st.page_link("pages/train.py", label="Go to Train", icon=":material/play_circle:")
        return
    losses = session.catalogue()["losses"]
    mode = st.segmented_control(
        "On", MODES, default=MODES[st.query_params.get("on") == "circle"],
        label_visibility="collapsed",
    )  # fmt: skip
    st.query_params["on"] = "circle" if mode == MODES[1] else "batch"
    if mode == MODES[1]:
        on_circle(losses)
        return
    loss, pairing, source, size = choices(run, losses)
    knobs = knob_form(losses[loss]["knobs"])
    key = (run.name, run.weights_hash(), source, size // 2, 2, seed(), "test")
    live = next((k for k in LIVE if k in losses[loss]["knobs"]), None)
    if live:
        knobs[live] = st.session_state.get(f"lab-{loss}-{live}", start(run, loss, losses, live))
    view = compute(key, pairing, loss, knobs)
    if view is not None:
        draw(key, pairing, loss, losses[loss], knobs, live, view)
        formula(losses[loss], knobs, view)


def on_circle(losses: dict[str, Any]) -> None:
    """Points that follow the loss's own gradient: what it wants, without an encoder in between."""
    known = [n for n, about in losses.items() if about["kernel"]]
    wanted = st.query_params.get("loss", "nt_xent")
    loss = st.selectbox(
        "Loss", known, known.index(wanted) if wanted in known else 0,
        format_func=lambda n: losses[n]["title"], key="lab-loss-circle",
    )  # fmt: skip
    st.query_params["loss"] = loss
    about = losses[loss]
    live = about["kernel"].get("knob")
    knob = knob_of(about, live, about["knobs"][live]["default"]) if live else None
    circle(about["kernel"], about["score"], knob=knob, key=f"circle-{loss}")
    st.latex(about["formula"])
    st.markdown(about["summary"])


def knob_of(about: dict, live: str, value: float) -> dict[str, Any]:
    """What is dragged: its label, range and value."""
    k = about["knobs"][live]
    low, high = (0.01, 10.0) if live == "temperature" else (k["low"], min(k["high"], 4.0))
    label = "τ, temperature" if live == "temperature" else "ε, margin"
    value = min(high, max(low, float(value)))
    return {"label": label, "low": low, "high": high, "log": k["log"], "value": value}


def choices(run: Run, losses: dict[str, Any]) -> tuple[str, str, str, int]:
    """Loss, pairing, source of the rows and their number, kept in the address."""
    names = list(losses)
    default = run.config.get("loss") if run.config.get("loss") in names else "nt_xent"
    a, b, c, d, e = st.columns([3, 4, 3, 2, 2])
    loss = a.selectbox(
        "Loss", names, names.index(st.query_params.get("loss", default))
        if st.query_params.get("loss", default) in names else 0,
        format_func=lambda n: losses[n]["title"], key="lab-loss",
    )  # fmt: skip
    pairing = b.selectbox(
        "Who is compared", list(PAIRINGS), index(PAIRINGS, "pairing", default_pairing(run)),
        format_func=PAIRINGS.get, key="lab-pairing",
    )  # fmt: skip
    source = c.selectbox(
        "Rows from", list(SOURCES), index(SOURCES, "rows", "z"), format_func=SOURCES.get,
        key="lab-source",
    )  # fmt: skip
    size = d.selectbox("Rows", SIZES, SIZES.index(int(st.query_params.get("size", 64))))
    e.number_input("Batch", 0, 9999, int(st.query_params.get("batch", 0)), key="lab-seed",
                   help="Another number draws other images and other augmentations.")  # fmt: skip
    st.query_params.update(
        {"loss": loss, "pairing": pairing, "rows": source, "size": str(size), "batch": str(seed())}
    )
    return loss, pairing, source, size


def index(known: dict[str, str], name: str, default: str) -> int:
    wanted = st.query_params.get(name, default)
    return list(known).index(wanted if wanted in known else default)


def default_pairing(run: Run) -> str:
    method = run.config.get("method")
    return {
        "sup_con": "classes", "metric": "classes", "moco_v1": "queue", "moco_v2": "queue",
        "inst_disc": "bank",
    }.get(str(method), "views")  # fmt: skip


def seed() -> int:
    return int(st.session_state.get("lab-seed", 0))


def start(run: Run, loss: str, losses: dict[str, Any], live: str) -> float:
    """The value of the address, of the run's own loss, or the loss's default."""
    if (given := st.query_params.get(live)) is not None:
        try:
            k = losses[loss]["knobs"][live]
            return min(k["high"], max(k["low"], float(given)))
        except ValueError:
            pass
    own = run.config.get("loss_knobs", {}) if run.config.get("loss") == loss else {}
    return float(own.get(live, losses[loss]["knobs"][live]["default"]))


def knob_form(knobs: dict[str, Any]) -> dict[str, Any]:
    """Controls for the knobs that are not dragged."""
    found: dict[str, Any] = {}
    rest = [k for k in knobs if k not in LIVE]
    if not rest:
        return found
    for column, name in zip(st.columns(max(4, len(rest))), rest, strict=False):
        k = knobs[name]
        label = name.replace("_", " ")
        if k["choices"]:
            found[name] = (
                column.segmented_control(
                    label, k["choices"], default=k["default"], help=k["help"], key=f"lab-k-{name}"
                )
                or k["default"]
            )
        elif isinstance(k["default"], bool):
            found[name] = column.toggle(label, k["default"], help=k["help"], key=f"lab-k-{name}")
        else:
            value = column.number_input(
                label, k["low"], k["high"], k["default"], help=k["help"], key=f"lab-k-{name}"
            )
            if value is not None:
                found[name] = value
    return found


def compute(key: tuple, pairing: str, loss: str, knobs: dict[str, Any]) -> Any:
    try:
        return session.lab_view(key, pairing, loss, json.dumps(knobs, sort_keys=True))
    except ValueError as error:
        st.warning(f"{error}")
        return None


def draw(
    key: tuple, pairing: str, loss: str, about: dict, knobs: dict, live: str | None, view: Any
) -> None:
    sprite, across = session.lab_sprite(key)
    knob = knob_of(about, live, knobs[live]) if live else None
    others = {k: v for k, v in knobs.items() if k != live}
    chosen = live_view(
        view.scores,
        view.mask,
        view.kernel,
        fixed={"pair": view.weight, "grad": view.grad, "loss": view.per_anchor},
        content=session.digest(key, pairing, loss, sorted(others.items())),
        names=view.names,
        column_names=view.column_names,
        knob=knob,
        score_name=view.score_name,
        sprite=sprite,
        across=across,
        row_thumbs=view.row_thumbs,
        column_thumbs=view.column_thumbs,
        loss=view.value,
        reason=view.reason,
        key="lab",
    )
    st.session_state["lab-anchor"] = int(chosen.get("anchor") or 0)
    value = chosen.get("value")
    if live and value is not None and abs(value - knobs[live]) > 1e-9:
        st.session_state[f"lab-{loss}-{live}"] = value
        st.query_params[live] = f"{value:g}"
        st.rerun()
    st.caption(
        "The encoder is frozen: what moves is the loss's view of it, not the training. "
        + (
            (view.kernel is None and "This loss is computed by the server when the knob is let go.")
            or "Everything above is computed in the browser while you drag."
        )
    )


def formula(about: dict, knobs: dict, view: Any) -> None:
    """The loss, typeset, with the chosen anchor's numbers."""
    with st.expander(f"Formula: {about['title']} ({about['year']})", expanded=False):
        st.latex(about["formula"])
        st.markdown(f"{about['summary']} [Paper]({about['paper']})")
        i = min(st.session_state.get("lab-anchor", 0), len(view.names) - 1)
        positives = (view.mask[i] == 1).nonzero()[0]
        told = [
            f"anchor **{view.names[i]}**: |P| = {len(positives)}, "
            f"|N| = {int((view.mask[i] == 2).sum())}, L = {view.per_anchor[i]:.4f}"
        ]
        for j in positives[:3]:
            told.append(
                f"positive {view.column_names[j]}: {view.score_name} {view.scores[i, j]:.4f}, "
                f"weight {view.weight[i, j]:.4f}, ∂L/∂s = {view.grad[i, j]:.4f}"
            )
        for name in ("effective_negatives", "negative_entropy", "active", "semi_hard", "hard"):
            if name in view.extras:
                told.append(f"{name.replace('_', ' ')}: {float(view.extras[name][i]):.2f}")
        if "mutual_information_bound" in view.extras:
            told.append(
                f"bound on mutual information: {view.extras['mutual_information_bound']:.3f} nats"
            )
        st.markdown("\n".join(f"- {t}" for t in told))
        st.caption(", ".join(f"{k} = {v}" for k, v in knobs.items()))
        for name, k in about["knobs"].items():
            st.caption(f"**{name}**: {k['help']}")


session.run(page)
