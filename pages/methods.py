"""Methods: their family tree, the data flow of one method, and its idea and loss, from its metadata."""

from __future__ import annotations

from functools import partial

import streamlit as st

from contrastive_lab import query_params, stage, state
from contrastive_lab.components.family import draw_family
from contrastive_lab.locale import _
from contrastive_lab.methods import (
    choose_method,
    choose_others,
    draw_details,
    draw_flow,
    inspect_one,
    inspect_several,
    take_click,
    tree_of,
)
from contrastive_lab.progress import catalog_or_wait


def page() -> None:
    st.title(_("Methods"))
    if (catalog := catalog_or_wait()) is None:
        return
    methods = catalog["methods"]
    with stage.toolbar():
        name = choose_method(methods)
        st.space("stretch")
        with stage.more():
            others = choose_others(name, methods)
    picture, inspector = stage.columns()
    with picture:
        has = (query_params.requested("has") or "").split(",")
        draw_family(tree_of(methods, name, others, has), partial(take_click, name, others))
        for each in (name, *others):
            draw_flow(each)
    with inspector:
        if others:
            inspect_several([name, *others], catalog)
        else:
            inspect_one(name, catalog)
    if not others:
        with stage.below():
            draw_details(methods[name])


state.run(page)
