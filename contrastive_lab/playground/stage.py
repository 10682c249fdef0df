"""The playground as a stage of the Loss Lab."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from contrastive_core.data.generated_sets import GENERATED
from contrastive_core.data.small_images import SmallImages
from contrastive_core.engine import calls
from contrastive_core.runs.run import Run
from contrastive_lab import format, query_params
from contrastive_lab.components.playground import draw_playground
from contrastive_lab.components.shared.transport import digest
from contrastive_lab.guard import errors_shown
from contrastive_lab.locale import _
from contrastive_lab.playground import view_of

LINK = "play"  # the parameter of the address that holds the setting
DIGITS = "digits"
MINUTES = 10  # for which a folder's images are kept


@st.cache_data(ttl=60 * MINUTES, max_entries=8, show_spinner=False)
def _images(name: str, root: str | None) -> SmallImages:
    return calls.small_images(name, root)


def choose_images(run: Run) -> str:
    """Draw the list of data sets: those without a download, and the run's own; return the chosen one."""
    names = list(dict.fromkeys([DIGITS, *GENERATED, str(run.config.get("dataset") or DIGITS)]))
    look: dict[str, Any] = {"format_func": format.data_of, "label_visibility": "collapsed"}
    return query_params.one_of(st.selectbox, _("Images"), names, name="images", default=DIGITS, **look)


def draw_stage(name: str, run: Run, kernels: Mapping[str, Mapping[str, Any]]) -> None:
    """Draw the playground with images of a data set; the URL keeps its setting."""
    with errors_shown():
        with st.spinner(_("Reading images…")):
            small = _images(name, run.config.get("root"))
        view = view_of(small, kernels, query_params.requested(LINK) or "")
        setting = draw_playground(view, f"playground-{digest(name)}")
        query_params.keep(**{LINK: setting or None})
