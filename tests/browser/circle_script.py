"""A page with points on a circle; the address chooses the loss, how many and how many groups."""

import streamlit as st

from contrastive_core import losses
from contrastive_lab.components.circle import CircleStart, CircleView, pack_circle
from contrastive_lab.components.shared.mount import SliderKnob, mount

asked = st.query_params
loss = losses.create(asked.get("loss", "nt_xent"))
kernel = loss.kernel()
name = kernel["knob"] if kernel else "none"
knob = SliderKnob(name, 0.01, 3.0, kernel[name], log=True)
start = CircleStart(groups=int(asked.get("groups", 3)), points=int(asked.get("n", 24)))
blob = pack_circle(CircleView(kernel, loss.score, knob, start))
chosen = dict(mount("circle", blob, "chosen", "ring", first={}) or {})
st.text(f"chosen {chosen}")
