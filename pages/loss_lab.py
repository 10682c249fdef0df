"""Loss Lab: drag the temperature or the margin, see every pair answer."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import streamlit as st

from contrastive_core.embeddings import ref
from contrastive_core.loss_lab.batch import MEMORIES, SNAPSHOT, snapshots_of
from contrastive_core.loss_lab.view import SOURCES
from contrastive_core.runs import Run
from contrastive_lab import cache, format, state
from contrastive_lab.components import Address, live_view, second_setting
from contrastive_lab.loss_lab.circle import on_circle
from contrastive_lab.loss_lab.controls import knob_form, knob_of, live_of
from contrastive_lab.loss_lab.formula import formula
from contrastive_lab.loss_lab.rows import choices, vectors

MODES = {"batch": "A batch of real images", "circle": "Points on a circle"}
SHOWN = ("view", "panel", "order", "second")  # texts that the view reports, besides its numbers


def page() -> None:
    st.title("Loss Lab")
    run = state.chosen_run()
    if run is None or not run.weights.exists():
        st.info("The Loss Lab needs a run with weights. Choose one in the sidebar, or train one.")
        st.page_link("pages/train.py", label="Go to Train", icon=":material/play_circle:")
        return
    losses, address = cache.catalog()["losses"], Address("loss_lab")
    mode = st.segmented_control(
        "On", list(MODES), default=address.text("on", "batch", MODES), format_func=MODES.get,
        label_visibility="collapsed", key="lab-mode",
    )  # fmt: skip
    if mode == "circle":
        on_circle(losses, address)
    else:
        on_batch(run, losses, address)


# --- a batch -----------------------------------------------------------------------------------


def on_batch(run: Run, losses: dict[str, Any], address: Address) -> None:
    st.caption(
        "Drag the knob and every pair answers. The encoder is frozen: what moves is the loss's "
        "view of these rows, not the training. “Effective negatives” says over how many "
        "negatives the loss spreads its push."
    )
    loss, pairing, source, size, seed = choices(run, losses, address)
    same = loss == address.text("loss", loss)
    own = run.config.get("loss_knobs", {}) if run.config.get("loss") == loss else {}
    first = {
        n: {**k, "default": own.get(n, k["default"])} for n, k in losses[loss]["knobs"].items()
    }
    knobs = knob_form(loss, first, address)
    shown = reported(address)
    live = live_of(losses[loss])
    if live:
        knobs[live] = start(run, loss, losses[loss], live, address if same else None)
    file = vectors(address) if source == "file" else None
    address.keep(
        on="batch", loss=loss, pairing=pairing, rows=source, size=size, batch=seed, file=file,
        **knobs, **shown,
    )  # fmt: skip
    if source == "file" and file is None:
        return
    rows = f"file:{file}" if file else source
    key = (run.name, run.weights_hash(), rows, *batch_size(rows, pairing, size, seed))
    try:
        view = seen(key, pairing, loss, losses[loss], knobs)
    except ValueError as error:
        st.warning(f"{error}")
        return
    if view.told:
        st.caption(format.plain(view.told))
    draw(run, key, pairing, loss, losses, knobs, shown, view)
    if shown["panel"] == "formula":
        formula(loss, losses[loss])


def batch_size(rows: str, pairing: str, size: int, seed: int) -> tuple[int, int, int, str]:
    """Images, views, seed and the memory beside them, so that the matrix has `size` columns."""
    single = rows.startswith(("file:", SNAPSHOT))
    if pairing not in MEMORIES or rows.startswith(SNAPSHOT):
        return size // 2, 2, seed, ""
    return (size, 2, seed, "") if single else (size // 4, 2, seed, pairing)


def start(run: Run, loss: str, about: dict, live: str, address: Address | None) -> float:
    """The value last let go, that of the address, of the run's own loss, or the default."""
    k, values = about["knobs"][live], st.session_state.setdefault("lab-values", {})
    said = told()
    if said.get("of") == loss and said.get("value") is not None:
        values[loss] = said["value"]
    elif address and (given := address.number(live, None, k["low"], k["high"])) is not None:
        values[loss] = given
    own = run.config.get("loss_knobs", {}) if run.config.get("loss") == loss else {}
    return float(values.get(loss, own.get(live, k["default"])))


def told() -> dict[str, Any]:
    """What the view reported last."""
    return dict((st.session_state.get("lab") or {}).get("chosen") or {})


def reported(address: Address) -> dict[str, Any]:
    """What the view shows: as it said itself, or as the address asks."""
    said = told()
    found: dict[str, Any] = {name: said.get(name, address.text(name, "")) for name in SHOWN}
    found["masks"] = said.get("masks", address.text("masks", "") == "yes") or None
    found["anchor"] = int(said.get("anchor", address.number("anchor", 0)) or 0)
    found["second_value"] = said.get("second_value", address.number("second_value"))
    return found


def seen(key: tuple, pairing: str, loss: str, about: dict, knobs: dict[str, Any]) -> Any:
    """The loss on the batch. A softmax is asked for at its default τ: the browser computes every
    other, so that letting go of the slider costs the server nothing. Raises ValueError."""
    live = live_of(about)
    if live == "temperature" and (about["kernel"] or {}).get("family") == "softmax":
        fixed = knobs | {live: about["knobs"][live]["default"]}
        view = cache.lab_view(key, pairing, loss, json.dumps(fixed, sort_keys=True))
        if view.kernel is not None:
            return replace(view, kernel=view.kernel | {live: knobs[live]})
    return cache.lab_view(key, pairing, loss, json.dumps(knobs, sort_keys=True))


def draw(
    run: Run, key: tuple, pairing: str, loss: str, losses: dict, knobs: dict, shown: dict, view: Any
) -> None:
    loaded = key[2].startswith("file:")
    bare = loaded and not ref.loaded()[key[2].removeprefix("file:")]["images"]
    sprite, across = (b"", 1) if bare else cache.lab_sprite(key)
    live = live_of(losses[loss])
    held = {k: v for k, v in knobs.items() if k != live or view.kernel is None}
    rows = others(run, key[2])
    live_view(
        view.scores,
        view.mask,
        view.kernel,
        fixed={"pair": view.weight, "grad": view.grad, "loss": view.per_anchor},
        content=cache.digest(key, pairing, loss, sorted(held.items())),
        names=view.names,
        column_names=view.column_names,
        knob=knob_of(losses[loss], live, knobs[live]) if live else None,
        score_name=view.score_name,
        sprite=sprite,
        across=across,
        row_thumbs=[] if bare else view.row_thumbs,
        column_thumbs=[] if bare else view.column_thumbs,
        anchor=min(shown["anchor"], len(view.names) - 1),
        loss=view.value,
        reason=view.reason,
        name=loss,
        title=losses[loss]["title"],
        start=shown,
        others={
            "losses": [(f"loss:{n}", about["title"]) for n, about in losses.items() if n != loss],
            "rows": [(f"rows:{s}", title) for s, title in rows.items()],
        },
        second=second(rows, key, pairing, loss, losses, knobs, shown, view),
        key="lab",
    )
    if view.kernel is None:
        st.caption("This loss is computed by the server, when the knob is let go.")


def others(run: Run, rows: str) -> dict[str, str]:
    """Rows of the same images, to set beside these: other encoders, or other snapshots."""
    if rows.startswith("file:"):
        return {}
    known = SOURCES if rows in SOURCES else snapshots_of(run)
    return {s: title for s, title in known.items() if s not in (rows, "file")}


def second(
    known: dict,
    key: tuple,
    pairing: str,
    loss: str,
    losses: dict,
    knobs: dict,
    shown: dict,
    view: Any,
) -> dict[str, Any] | None:
    """Another loss, or other rows, for the panel of two settings."""
    kind, _, name = shown["second"].partition(":")
    if shown["panel"] != "two" or name not in {"loss": losses, "rows": known}.get(kind, {}):
        return None
    other = name if kind == "loss" else loss
    rows = key if kind == "loss" else (*key[:2], name, *key[3:])
    live, setting = live_of(losses[other]), {} if kind == "loss" else dict(knobs)
    if live:
        value = setting.get(live, losses[other]["knobs"][live]["default"])
        setting[live] = value if shown["second_value"] is None else shown["second_value"]
    try:
        found = seen(rows, pairing, other, losses[other], setting)
    except ValueError as error:
        return second_setting(shown["second"], cache.digest(error), reason=f"{error}")
    if found.scores.shape != view.scores.shape:
        text = "The second setting compares other pairs, so there is no difference to show."
        return second_setting(shown["second"], cache.digest(text, rows, other), reason=text)
    held = {k: v for k, v in setting.items() if k != live or found.kernel is None}
    return second_setting(
        shown["second"],
        cache.digest(rows, pairing, other, sorted(held.items())),
        scores=found.scores,
        mask=found.mask,
        kernel=found.kernel,
        fixed={"pair": found.weight, "grad": found.grad, "loss": found.per_anchor},
        knob=knob_of(losses[other], live, setting[live]) if live else None,
        loss=found.value,
        reason=found.reason,
        scoreName=found.score_name,
    )


state.run(page)
