"""Methods: their family tree, the data flow of one method, and its idea and loss, from its metadata."""

from __future__ import annotations

from functools import partial

import streamlit as st

from contrastive_lab import query_params, stage, state
from contrastive_lab.components.family import draw_family
from contrastive_lab.locale import _
from contrastive_lab.methods import card, family, flow
from contrastive_lab.progress import catalog_or_wait


def page() -> None:
    st.title(_("Methods"))
    if (catalog := catalog_or_wait()) is None:
        return
    methods = catalog["methods"]
    with stage.toolbar():
        name = card.choose(methods)
        st.space("stretch")
        with stage.more():
            others = card.choose_others(name, methods)
    picture, inspector = stage.columns()
    with picture:
        has = (query_params.requested("has") or "").split(",")
        draw_family(family.tree_of(methods, name, others, has), partial(card.take_click, name, others))
        for each in (name, *others):
            flow.drawing(each)
    with inspector:
        if others:
            card.inspect_several([name, *others], catalog)
        else:
            card.inspect(name, catalog)
    if not others:
        with stage.below():
            card.details(methods[name])


state.run(page)
