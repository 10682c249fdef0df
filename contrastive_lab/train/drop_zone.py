"""A folder of images is dropped onto the page: copied below the lab's home, then chosen."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import streamlit as st

from contrastive_core.data.dropped import MOST_BYTES, MOST_FILES, keep, parts_of
from contrastive_core.errors import BadSetting
from contrastive_core.paths import data_home
from contrastive_lab import format

__all__ = ["chosen", "drop_zone", "left_out"]

ROUND = "drops"  # counts what was taken over, so that the next drop finds an empty field
CHOSEN, LEFT_OUT = "dropped folder", "dropped and left out"
NAMED = 50  # files that are left out, by name


def drop_zone() -> None:
    """The field, and once files lie in it, what they are and the button that takes them over."""
    files = st.file_uploader(
        "or drop a folder of images here", accept_multiple_files="directory",
        key=f"drop-{st.session_state.get(ROUND, 0)}",
        help="One folder per class inside it, or images only. Your own files are not touched.",
    )  # fmt: skip
    st.caption(
        f"At most {MOST_FILES:,} files and {MOST_BYTES / 1e6:,.0f} MB. They are copied to "
        f"{format.plain(data_home() / 'dropped')}; of a folder whose path is written above nothing "
        "is copied."
    )
    if not files:
        return
    st.markdown(f"**{format.plain(_summary([f.name for f in files]))}**")
    if not st.button("Use these images", type="primary", icon=":material/check:", key="drop-use"):
        return
    bar = st.progress(0.0, "Copying them…")
    try:
        folder, without = keep(files, partial(_report, bar))
    except (BadSetting, OSError) as error:
        bar.empty()
        st.error(format.plain(error))
        return
    st.session_state[CHOSEN] = str(folder)
    st.session_state[LEFT_OUT] = (str(folder), without)
    st.session_state[ROUND] = st.session_state.get(ROUND, 0) + 1
    st.rerun()


def _report(bar: Any, share: float) -> None:
    bar.progress(share, "Copying them…")


def chosen(key: str) -> None:
    """Write the folder that was taken over into the field of this key, before it is drawn."""
    if folder := st.session_state.pop(CHOSEN, None):
        st.session_state[key] = folder


def left_out(folder: str) -> None:
    """What of a dropped folder was not copied, and why."""
    of, files = st.session_state.get(LEFT_OUT, ("", []))
    if of != folder or not files:
        return
    with st.expander(f"{len(files):,} dropped files were not copied"):
        lines = [f"{name}: {reason}" for name, reason in files[:NAMED]]
        st.code("\n".join(lines), language=None)
        if len(files) > NAMED:
            st.caption(f"… and {len(files) - NAMED:,} more")


def _summary(names: list[str]) -> str:
    """How many files, in which folders."""
    counts = Counter(parts[-2] for name in names if len(parts := parts_of(name)) > 1)
    listed = ", ".join(f"{name} {n:,}" for name, n in counts.most_common(6))
    more = f" and {len(counts) - 6} more" if len(counts) > 6 else ""
    return f"{len(names):,} files{f' in {len(counts)} folders: {listed}{more}' if counts else ''}"
