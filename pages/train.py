"""Train: the augmented views of a training beside its form, or a running training."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from contrastive_lab import stage, state
from contrastive_lab.locale import _
from contrastive_lab.train import augmentations, folder, watch
from contrastive_lab.train.form import Draft, form


def page() -> None:
    st.title(_("Train"))
    if name := watch.shown():
        watch.watch(name)
    else:
        new_run()


def new_run() -> None:
    """Draw the form, and the images augmented with its settings."""
    bar = stage.toolbar()
    with bar:
        subject = st.container(key="train-subject", width="content")
        st.caption(_("The encoder must learn to ignore:"), width="content")
        chips = st.container(key="train-chips")
        st.space("stretch")
        draw = st.container(key="train-draw")
        watch.way_back()
    picture, inspector = stage.columns()
    with inspector:
        draft = form(subject, chips)
    with picture:
        has_views = show_images(draft, draw)
    if has_views and draft.data.files:
        with stage.below():
            folder.contents(draft.data.files)


def show_images(draft: Draft, draw: DeltaGenerator) -> bool:
    """Draw the views of a real batch, and return whether they are available. Otherwise draw a folder's images until the
    user asks for their views, or the drop field."""
    data = draft.data
    if not data.name:
        with st.container(key="train-folder"):
            folder.drop_zone()
        return False
    is_asked = st.session_state.get(augmentations.ASKED) == data.name
    if not draft.method or data.download or not (augmentations.is_quick(data.name, draft.config) or is_asked):
        with st.container(key="train-folder"):
            if data.files:
                folder.contents(data.files)
            if draft.method and not data.download:
                augmentations.ask(data.name, draft.is_off)
        return False
    with draw:
        augmentations.draw_again()
    augmentations.draw(data.name, draft.method, draft.card, None if draft.is_off else draft.views)
    return True


state.run(page)
