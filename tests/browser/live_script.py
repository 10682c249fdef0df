"""A page with one live view on made-up rows; the address chooses size, loss, what is wrong, and
what the view begins with."""

from dataclasses import replace

import numpy as np
import streamlit as st

from contrastive_lab.components.loss_view import LossSetting, LossView, PairAxes, draw_loss_view
from contrastive_lab.components.shared.mount import SliderKnob, thumbnail_sheet

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
temperature = SliderKnob("τ, temperature", 0.01, 10.0, 0.5, log=True)
margin = SliderKnob("ε, margin", 0.0, 2.0, 0.5)
softmax = {
    "family": "softmax",
    "knob": "temperature",
    "temperature": 0.5,
    "denominator": "all",
    "aggregate": "out",
    "scale": "none",
    "base": None,
    "sign": 1,
}
of_towers = kind.startswith("towers")
if of_towers:  # n images and n captions, two of each fourth image
    owner = np.arange(n) - (np.arange(n) % 4 == 3)
    captions = rows[owner] + rng.standard_normal((n, 32)) / np.sqrt(32)
    captions /= np.linalg.norm(captions, axis=1, keepdims=True)
    dots = (rows @ captions.T).astype(np.float32)
    mask = np.where(np.arange(n)[:, None] == owner, 1, 2).astype(np.uint8)
own = softmax | {"denominator": "own_positive"}
sigmoid = {"family": "sigmoid", "knob": "temperature", "temperature": 0.5, "bias": -10.0, "sign": 1}
hinge = {"family": "hinge", "knob": "margin", "margin": 0.5}
far = np.maximum(0, 2 - 2 * dots)
view = {
    "softmax": (dots, softmax, temperature, "similarity"),
    "towers": (dots, own, temperature, "cosine similarity"),
    "towers hard": (dots, own | {"negatives": "hard", "beta": 1.0, "tau_plus": 0.1}, temperature, "cosine similarity"),
    "towers siglip": (dots, sigmoid, temperature, "cosine similarity"),
    "one group": (dots, softmax, temperature, "similarity"),
    "lonely": (dots, softmax, temperature, "similarity"),
    "pair": (np.sqrt(far), hinge | {"form": "pair", "squared": False}, margin, "distance"),
    "triplet": (far, hinge | {"form": "triplet", "mining": "all", "average": "all"}, margin, "squared distance"),
    "server": (dots, None, temperature, "similarity"),
}[kind]
st.session_state.runs = st.session_state.get("runs", 0) + 1
chosen = st.session_state.get("lab", {}).get("chosen") or {}
value = chosen.get("value") or 0.5
start = {k: asked[k] for k in ("view", "stage", "order", "second", "masks") if k in asked}
computed = {"pair": dots, "grad": dots, "loss": dots.sum(1)}
choice = chosen.get("second", start.get("second", ""))
second = {
    "loss:pair": LossSetting(
        f"pair {n}",
        np.sqrt(far),
        mask,
        hinge | {"form": "pair", "squared": False},
        knob=margin,
        loss=0.0,
        score_name="distance",
    ),
    "loss:server": LossSetting(f"server {n}", dots, mask, computed=computed, loss=1.5),
    "loss:refused": LossSetting("refused", reason="It needs labels."),
}.get(choice)
scores, kernel, knob, score_name = view
first = LossSetting(
    f"{n} {kind}",
    scores,
    mask,
    None if kernel is None else kernel | {kernel["knob"]: value},
    computed if kernel is None else None,
    replace(knob, value=value),
    1.5,
    score_name,
    "No anchor has a positive in this batch." if kind == "lonely" else "",
)
thumbs = thumbnail_sheet(rng.integers(0, 255, (n, 3, 8, 8)).astype(np.uint8))
axes = PairAxes(names, names, thumbs, range(n), range(n))
if of_towers:
    texts = [f"of {names[owner[i]]}, " + "long " * 30 for i in range(n)]
    captions = [f"caption {i}" for i in range(n)]
    axes = replace(axes, column_names=captions, column_thumbs=[-1] * n, towers=("image", "caption"), column_texts=texts)
found = draw_loss_view(
    LossView(
        first,
        axes,
        anchor=int(asked.get("anchor", 0)),
        start=start | {"second_value": chosen.get("second_value")},
        losses=[(f"loss:{k}", k) for k in ("pair", "server", "refused")],
        choice=choice,
        second=second,
        heard=chosen.get("report"),
    ),
    key="lab",
)
st.button("again")  # the server answers once more
st.text(f"runs {st.session_state.runs} value {found.get('value')} anchor {found.get('anchor')}")
