"""What a loss is, in letters and words."""

from __future__ import annotations

import streamlit as st

from contrastive_core.loss_lab.view import DERIVATIVES
from contrastive_lab.setting_names import shown_value

__all__ = ["formula"]


def formula(loss: str, about: dict) -> None:
    """The loss in letters, its paper, and what each knob does."""
    st.header(f"{about['title']} ({about['year']})")
    st.latex(about["formula"])
    if loss in DERIVATIVES:
        st.latex(DERIVATIVES[loss])
    st.markdown(f"{about['summary']} [Paper]({about['paper']})")
    st.markdown(
        "\n".join(
            f"- **{name.replace('_', ' ')}** (by default {shown_value(k['default'])}): {k['help']}"
            for name, k in about["knobs"].items()
        )
    )
