"""What a loss is, in letters and words."""

from __future__ import annotations

import streamlit as st

from contrastive_core.records.lab_view import DERIVATIVES
from contrastive_lab.locale import _
from contrastive_lab.setting_names import shown_value


def formula(loss: str, about: dict) -> None:
    """The loss in letters, its paper, and what each knob does."""
    st.header(f"{about['title']} ({about['year']})")
    st.latex(about["formula"])
    if loss in DERIVATIVES:
        st.latex(DERIVATIVES[loss])
    paper = _("Paper")
    st.markdown(f"{_(about['summary'])} [{paper}]({about['paper']})")
    st.markdown(
        "\n".join(
            _("- **{name}** (by default {value}): {help}").format(
                name=_(name.replace("_", " ")), value=shown_value(k["default"]), help=_(k["help"])
            )
            for name, k in about["knobs"].items()
        )
    )
