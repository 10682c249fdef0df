"""The text tower of a method with captions: a small one, or a pretrained one from a folder of sentence-transformers."""

import contextlib
from pathlib import Path

import streamlit as st

from contrastive_core.records.towers import SENTENCE_TOWER
from contrastive_lab import query_params
from contrastive_lab.locale import N_, _, text
from contrastive_lab.path_input import path_input

FOLDER = "sentence-transformers"
KINDS = {
    "": N_("small transformer (default)"),
    "bag_of_words": N_("bag of words"),
    FOLDER: N_("folder of sentence-transformers…"),
}


def choose_text_tower(needs_captions: bool) -> tuple[list[str], str]:
    """Settings of the text tower that was chosen, and what is wrong with it; no field for a method without captions."""
    if not needs_captions:
        return [], ""
    help = _("Encoder of the captions. A pretrained one knows words that no caption has.")
    kind = query_params.one_of(
        st.selectbox, _("Text tower"), list(KINDS), name="text_tower", format_func=lambda k: text(KINDS[k]), help=help
    )
    if kind != FOLDER:
        return ([f"method.text_encoder={kind}"] if kind else []), ""
    folder = path_input(
        _("Folder of the text tower"),
        "text_tower_folder",
        placeholder="/path/to/all-MiniLM-L6-v2",
        help=_("A model of sentence-transformers on this machine, with model.safetensors. Nothing is downloaded."),
    )
    help = _("Train it too, at 1 % of the learning rate. Off: it stays as it is, and only its head is trained.")
    trains = query_params.switch(st.checkbox, _("Train the text tower"), name="train_text_tower", help=help)
    settings = [f"method.text_tower={SENTENCE_TOWER}{folder}", f"method.train_text_tower={'on' if trains else 'off'}"]
    return settings, wrong_folder(folder)


def wrong_folder(folder: str) -> str:
    """Why a folder holds no text tower, as far as can be told without opening it."""
    if not folder:
        return _("Name the folder of the text tower.")
    with contextlib.suppress(OSError, ValueError, RuntimeError):
        path = Path(folder).expanduser()
        if (path / "modules.json").is_file():
            return ""
        if path.is_dir():
            template = _("{folder} is not a model of sentence-transformers: it has no modules.json.")
            return template.format(folder=folder)
    return _("There is no folder {folder}.").format(folder=folder)
