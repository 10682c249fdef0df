"""The playground as a stage of the Loss Lab."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from contrastive_core.data.named_sets import GENERATED
from contrastive_core.engine import calls
from contrastive_core.runs.run import Run
from contrastive_core.spaces import loaded_vectors
from contrastive_core.spaces.small_samples import SmallImages
from contrastive_lab import format, query_params
from contrastive_lab.components.shared.mount import mount
from contrastive_lab.components.shared.transport import digest
from contrastive_lab.guard import errors_shown
from contrastive_lab.locale import _
from contrastive_lab.path_input import path_input
from contrastive_lab.playground import pack_playground

OPENED = "play-opened"  # of the session: how often own samples were chosen
DIGITS = "digits"
MINUTES = 10  # for which a folder's images are kept


@st.cache_data(ttl=60 * MINUTES, max_entries=8, show_spinner=False)
def _samples(name: str, root: str | None) -> SmallImages:
    return calls.small_samples(name, root)


def choose_samples(run: Run) -> str:
    """Draw the list of samples: data sets without a download, the run's own, loaded vectors, and the user's folder or
    file; return the name of the chosen ones, as for `load_samples`."""
    number, key = st.session_state.setdefault(OPENED, 0), query_params.key_of("images")
    with st.popover(_("Open my own"), icon=":material/folder_open:", key=f"play-own-{number}"):
        help = _("Images need one subfolder per class for the kNN accuracy. A file of vectors has one sample per row.")
        own = path_input(_("Folder of images, or file of vectors"), "folder", "/path/to/images", help)
        if st.button(_("Use it"), type="primary", disabled=not own, key="play-use-own"):
            st.session_state[OPENED] += 1  # another popover, which is closed
            query_params.choose(key, own)
            st.rerun()
    vectors = {f"{loaded_vectors.PREFIX}{key}": about["name"] for key, about in loaded_vectors.loaded().items()}
    run_data = str(run.config.get("dataset") or DIGITS)
    names = list(dict.fromkeys([DIGITS, *GENERATED, run_data, *vectors, *filter(None, [own])]))
    look: dict[str, Any] = {"format_func": lambda name: vectors.get(name) or format.data_of(name)}
    look |= {"label_visibility": "collapsed", "key": key}
    return query_params.one_of(st.selectbox, _("Images"), names, name="images", default=DIGITS, **look)


def draw_stage(name: str, run: Run, kernels: Mapping[str, Mapping[str, object]]) -> None:
    """Draw the playground with images of a data set; the URL keeps its setting."""
    with errors_shown():
        with st.spinner(_("Reading images…")):
            small = _samples(name, run.config.get("root"))
        first = query_params.requested("play") or ""
        key = f"playground-{digest(name)}"
        setting = mount("playground", pack_playground(small, kernels, first), "setting", key, first=first)
        query_params.keep(play=setting or None)
