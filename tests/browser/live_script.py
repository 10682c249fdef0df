"""A page with one live view on made-up rows; the address chooses size, loss, what is wrong, and
what the view begins with."""

import numpy as np
import streamlit as st

from contrastive_lab.components import live_view, second_setting, sprite

asked = st.query_params
n, kind = int(asked.get("n", 64)), asked.get("kind", "softmax")
rng = np.random.default_rng(0)
groups = np.arange(n) // (n if kind == "one group" else 4)
rows = rng.standard_normal((groups[-1] + 1, 32))[groups] + rng.standard_normal((n, 32))
rows /= np.linalg.norm(rows, axis=1, keepdims=True)
dots = (rows @ rows.T).astype(np.float32)
mask = np.where(groups[:, None] == groups[None], 1, 2).astype(np.uint8)
np.fill_diagonal(mask, 3)
if kind == "lonely":
    mask[mask == 1] = 0
names = [f"<b>row {i}</b>" for i in range(n)]
temperature = {"label": "τ, temperature", "low": 0.01, "high": 10.0, "log": True}
margin = {"label": "ε, margin", "low": 0.0, "high": 2.0, "log": False}
softmax = {
    "family": "softmax", "knob": "temperature", "temperature": 0.5, "denominator": "all",
    "aggregate": "out", "scale": "none", "base": None, "sign": 1,
}  # fmt: skip
hinge = {"family": "hinge", "knob": "margin", "margin": 0.5}
far = np.maximum(0, 2 - 2 * dots)
view = {
    "softmax": (dots, softmax, temperature, "similarity"),
    "one group": (dots, softmax, temperature, "similarity"),
    "lonely": (dots, softmax, temperature, "similarity"),
    "pair": (np.sqrt(far), hinge | {"form": "pair", "squared": False}, margin, "distance"),
    "triplet": (
        far, hinge | {"form": "triplet", "mining": "all", "average": "all"}, margin,
        "squared distance",
    ),
    "server": (dots, None, temperature, "similarity"),
}[kind]  # fmt: skip
st.session_state.runs = st.session_state.get("runs", 0) + 1
chosen = st.session_state.get("lab", {}).get("chosen") or {}
value = chosen.get("value") or 0.5
start = {k: asked[k] for k in ("view", "panel", "order", "second", "masks") if k in asked}
fixed = {"pair": dots, "grad": dots, "loss": dots.sum(1)}
second = {
    "loss:pair": second_setting(
        "loss:pair", f"pair {n}", scores=np.sqrt(far), mask=mask, loss=0.0, scoreName="distance",
        kernel=hinge | {"form": "pair", "squared": False}, knob=margin | {"value": 0.5},
    ),
    "loss:server": second_setting(
        "loss:server", f"server {n}", scores=dots, mask=mask, fixed=fixed, loss=1.5,
        scoreName="similarity",
    ),
    "loss:refused": second_setting("loss:refused", "refused", reason="It needs labels."),
}.get(chosen.get("second", start.get("second", "")))  # fmt: skip
thumbs, across = sprite(rng.integers(0, 255, (n, 3, 8, 8)).astype(np.uint8))
found = live_view(
    view[0], mask, None if view[1] is None else view[1] | {view[1]["knob"]: value},
    content=f"{n} {kind}", names=names, knob=view[2] | {"value": value}, score_name=view[3],
    fixed=fixed, loss=1.5, second=second,
    start=start | {"second_value": chosen.get("second_value")},
    others={"losses": [(f"loss:{k}", k) for k in ("pair", "server", "refused")]},
    anchor=int(asked.get("anchor", 0)),
    sprite=thumbs, across=across, row_thumbs=range(n), column_thumbs=range(n),
    reason="No anchor has a positive in this batch." if kind == "lonely" else "", key="lab",
)  # fmt: skip
st.text(f"runs {st.session_state.runs} value {found.get('value')} anchor {found.get('anchor')}")
