"""A page with points on a circle; the address chooses the loss, how many and how many groups."""

import streamlit as st

from contrastive_core import losses
from contrastive_lab.components import circle

asked = st.query_params
loss = losses.create(asked.get("loss", "nt_xent"))
kernel = loss.kernel()
name = kernel["knob"] if kernel else "none"
knob = {"label": name, "low": 0.01, "high": 3.0, "log": True, "value": kernel[name]}
chosen = circle(
    kernel, loss.score, knob=knob, groups=int(asked.get("groups", 3)),
    points=int(asked.get("n", 24)), key="ring",
)  # fmt: skip
st.text(f"chosen {chosen}")
