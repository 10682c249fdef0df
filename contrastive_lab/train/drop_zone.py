"""A folder of images is dropped onto the page: copied below the lab's home, then chosen."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import streamlit as st

from contrastive_core.engine.images import MOST_BYTES, MOST_FILES, parts_of, save_uploads
from contrastive_core.records import BadSetting, data_home
from contrastive_lab import format
from contrastive_lab.locale import _

ROUND = "drops"  # counts what was taken over, so that the next drop finds an empty field
CHOSEN, LEFT_OUT = "dropped folder", "dropped and left out"
NAMED = 50  # files that are left out, by name


def drop_zone() -> None:
    """The field, and once files lie in it, what they are and the button that takes them over."""
    files = st.file_uploader(
        _("or drop a folder of images here"),
        accept_multiple_files="directory",
        key=f"drop-{st.session_state.get(ROUND, 0)}",
        help=_("One folder per class inside it, or images only. Your own files are not touched."),
    )
    st.caption(
        _(
            "At most {most_files} files and {most_bytes} MB. They are copied to {data_home}; of "
            "a folder whose path is written above nothing is copied."
        ).format(
            most_files=f"{MOST_FILES:,}",
            most_bytes=f"{MOST_BYTES / 1000000.0:,.0f}",
            data_home=format.plain(data_home() / "dropped"),
        )
    )
    if not files:
        return
    st.markdown(f"**{format.plain(_summary([f.name for f in files]))}**")
    if not st.button(_("Use these images"), type="primary", icon=":material/check:", key="drop-use"):
        return
    bar = st.progress(0.0, _("Copying them…"))
    try:
        folder, without = save_uploads(files, partial(_report, bar))
    except (BadSetting, OSError) as error:
        bar.empty()
        st.error(format.plain(error))
        return
    st.session_state[CHOSEN] = str(folder)
    st.session_state[LEFT_OUT] = (str(folder), without)
    st.session_state[ROUND] = st.session_state.get(ROUND, 0) + 1
    st.rerun()


def _report(bar: Any, share: float) -> None:
    bar.progress(share, _("Copying them…"))


def chosen(key: str) -> None:
    """Write the folder that was taken over into the field of this key, before it is drawn."""
    if folder := st.session_state.pop(CHOSEN, None):
        st.session_state[key] = folder


def left_out(folder: str) -> None:
    """What of a dropped folder was not copied, and why."""
    of, files = st.session_state.get(LEFT_OUT, ("", []))
    if of != folder or not files:
        return
    with st.expander(_("{files} dropped files were not copied").format(files=f"{len(files):,}")):
        lines = [f"{name}: {reason}" for name, reason in files[:NAMED]]
        st.code("\n".join(lines), language=None)
        if len(files) > NAMED:
            st.caption(_("… and {files} more").format(files=f"{len(files) - NAMED:,}"))


def _summary(names: list[str]) -> str:
    """How many files, in which folders."""
    counts = Counter(parts[-2] for name in names if len(parts := parts_of(name)) > 1)
    listed = ", ".join(f"{name} {n:,}" for name, n in counts.most_common(6))
    more = _(" and {counts} more").format(counts=len(counts) - 6) if len(counts) > 6 else ""
    return (
        _("{names} files in {counts} folders: {listed}{more}").format(
            names=f"{len(names):,}", counts=len(counts), listed=listed, more=more
        )
        if counts
        else _("{names} files").format(names=f"{len(names):,}")
    )
