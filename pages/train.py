"""Train: what to train on the left; its views, or the run at work, on the right;
below them, where settings are in doubt, the adviser."""

from __future__ import annotations

import streamlit as st

from contrastive_lab import state
from contrastive_lab.locale import _
from contrastive_lab.train.adviser import adviser
from contrastive_lab.train.augmentations import preview
from contrastive_lab.train.folder import contents
from contrastive_lab.train.form import form
from contrastive_lab.train.watch import comes_first, watch


def page() -> None:
    st.title(_("Train"))
    left, right = st.columns([2, 3], gap="large")
    with left:
        data = form()
    with right:
        first, second = st.container(), st.container()
        is_first = comes_first()
        with second if is_first else first:
            if values := st.session_state.get("preview"):
                preview(values)
            elif data.files:
                contents(data.files)
        with first if is_first else second:
            watch()
    if data.name and data.method and not data.download:
        adviser(data.name, data.method)


state.run(page)
