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
from contrastive_lab.components.loss_view import (
    Alternatives,
    ComputedLoss,
    LossSetting,
    LossView,
    PairAxes,
    draw_loss_view,
)
from contrastive_lab.components.shared.thumbnails import NO_THUMBNAILS
from contrastive_lab.loss_lab.circle import on_circle
from contrastive_lab.loss_lab.controls import knob_form, knob_of, live_of
from contrastive_lab.loss_lab.formula import formula
from contrastive_lab.loss_lab.rows import choices, vectors
from contrastive_lab.query_params import Address

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
    rows = others(run, key[2])
    axes = PairAxes(
        view.names, view.column_names, NO_THUMBNAILS if bare else cache.lab_thumbnails(key),
        [] if bare else view.row_thumbs, [] if bare else view.column_thumbs,
    )  # fmt: skip
    alternatives = Alternatives(
        [(f"loss:{n}", about["title"]) for n, about in losses.items() if n != loss],
        [(f"rows:{s}", title) for s, title in rows.items()],
    )
    first = setting_of(key, pairing, loss, losses[loss], knobs, view)
    draw_loss_view(
        LossView(
            first, axes, loss, losses[loss]["title"], min(shown["anchor"], len(view.names) - 1),
            shown, alternatives, shown["second"],
            second(rows, key, pairing, loss, losses, knobs, shown, view),
        ),
        key="lab",
    )  # fmt: skip
    if view.kernel is None:
        st.caption("This loss is computed by the server, when the knob is let go.")


def others(run: Run, rows: str) -> dict[str, str]:
    """Rows of the same images, to set beside these: other encoders, or other snapshots."""
    if rows.startswith("file:"):
        return {}
    known = SOURCES if rows in SOURCES else snapshots_of(run)
    return {s: title for s, title in known.items() if s not in (rows, "file")}


def setting_of(
    key: tuple, pairing: str, loss: str, about: dict, knobs: dict, view: Any
) -> LossSetting:
    """A loss on a batch, as the browser gets it."""
    live = live_of(about)
    held = {k: v for k, v in knobs.items() if k != live or view.kernel is None}
    return LossSetting(
        cache.digest(key, pairing, loss, sorted(held.items())), view.scores, view.mask,
        view.kernel, ComputedLoss(view.weight, view.grad, view.per_anchor),
        knob_of(about, live, knobs[live]) if live else None, view.value, view.score_name,
        view.reason,
    )  # fmt: skip


def second(
    known: dict,
    key: tuple,
    pairing: str,
    loss: str,
    losses: dict,
    knobs: dict,
    shown: dict,
    view: Any,
) -> LossSetting | None:
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
        return LossSetting(cache.digest(error), reason=f"{error}")
    if found.scores.shape != view.scores.shape:
        text = "The second setting compares other pairs, so there is no difference to show."
        return LossSetting(cache.digest(text, rows, other), reason=text)
    return setting_of(rows, pairing, other, losses[other], setting, found)


state.run(page)
