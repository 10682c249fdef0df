"""Methods: a card each, in the order of their years, made from the method's own metadata."""

from __future__ import annotations

import streamlit as st

from contrastive_lab import locale, query_params, state
from contrastive_lab.locale import _
from contrastive_lab.methods import card, family, side_by_side
from contrastive_lab.progress import catalog_or_wait


def page() -> None:
    st.title(_("Methods"))
    if (catalog := catalog_or_wait()) is None:
        return
    methods = catalog["methods"]
    fitting = side_by_side.fitting(methods)
    if not fitting:
        st.info(_("No method has all of these. Take one away."))
        return
    name = query_params.one_of(
        st.segmented_control,
        _("Method"),
        fitting,
        name="method",
        format_func=lambda n: f"{methods[n]['year']} {locale.text(methods[n]['title'])}",
        label_visibility="collapsed",
    )
    others = side_by_side.choose_others(name, methods)
    family.show(methods, [name, *others])
    if others:
        side_by_side.show([name, *others], catalog)
        return
    about = methods[name]
    card.head(name, about)
    card.loss(catalog["losses"][about["default_loss"]])
    card.defaults(about)
    left, right = st.columns(2)
    with left:
        card.measured_by_paper(about)
    with right:
        card.differences(about)
    card.measured(name)


state.run(page)
