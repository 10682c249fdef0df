"""The live view in the app, on the rows of a file that the command line names."""

import sys
from dataclasses import asdict

import numpy as np
import streamlit as st

from contrastive_core import losses
from contrastive_core.lab.lab_view import LabBatch
from contrastive_core.lab.view import compute_view
from contrastive_lab.components.loss_view import LossView, PairAxes, draw_loss_view
from contrastive_lab.loss_setting import setting_of

given = np.load(sys.argv[1])
batch = LabBatch(given["z"], given["labels"], None, tuple("abcdefghij"), [])
criterion = losses.create("sup_con")
view = compute_view(batch, "classes", "sup_con", {})
about = {"knobs": {name: asdict(knob) for name, knob in losses.knobs("sup_con").items()}}
setting = setting_of(view, about, {"temperature": criterion.temperature}, "given")
draw_loss_view(LossView(setting, PairAxes(view.names, view.column_names)))
st.text("drawn")
