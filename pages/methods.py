"""Methods: their family tree, the data flow of one method, and its idea and loss, from its metadata."""

from __future__ import annotations

import streamlit as st

from contrastive_lab import cache, stage, state
from contrastive_lab.locale import _
from contrastive_lab.methods import (
    choose_method,
    choose_others,
    draw_details,
    draw_flow,
    draw_tree,
    inspect_one,
    inspect_several,
)


def page() -> None:
    st.title(_("Methods"))
    catalog = cache.catalog()
    methods = catalog["methods"]
    with stage.toolbar():
        name = choose_method(methods)
        st.space("stretch")
        with stage.more():
            others = choose_others(name, methods)
    picture, inspector = stage.columns()
    with picture:
        draw_tree(methods, name, others)
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
