"""A folder is chosen as in a file dialog: the folders of this computer, each with its pictures."""

from __future__ import annotations

import os
from pathlib import Path

import streamlit as st

from contrastive_core.data.subfolders import pictures_in, subfolders
from contrastive_core.storage.regular import printable
from contrastive_lab import cache, format, opened

__all__ = ["browser"]

OPEN, PLACE = "browsing", "browsed folder"
RECENT = 3


def browser(key: str) -> None:
    """A button, and while it is pressed the dialog; `key` is that of the field it writes into."""
    is_open = bool(st.session_state.get(OPEN))
    st.button(
        "Close the list" if is_open else "Browse…", key="browse", on_click=_toggle, args=(key,),
        icon=":material/folder_open:",
    )  # fmt: skip
    if is_open:
        with st.container(border=True, gap="small"):
            _dialog(_place(), key)


def _toggle(key: str) -> None:
    st.session_state[OPEN] = not st.session_state.get(OPEN)
    typed = Path(str(st.session_state.get(key) or "")).expanduser()
    if typed.is_absolute() and _is_folder(typed):
        st.session_state[PLACE] = str(typed)


def _dialog(place: Path, key: str) -> None:
    st.markdown(f"**{format.plain(printable(place))}**")
    row = st.container(horizontal=True)
    row.button(
        "Up", icon=":material/arrow_upward:", key="browse-up", disabled=place == place.parent,
        on_click=_go, args=(place.parent,),
    )  # fmt: skip
    row.button("Home", icon=":material/home:", key="browse-home", on_click=_go, args=(Path.home(),))
    for path in [p for p in opened.folders() if p != place][:RECENT]:
        row.button(
            format.plain(printable(path.name)), icon=":material/history:", help=printable(path),
            key=f"recent-{cache.digest(str(path))}", on_click=_go, args=(path,),
        )  # fmt: skip
    try:
        folders = subfolders(place)
    except OSError as error:
        st.error(format.plain(f"This folder cannot be read: {error.strerror}"))
        return
    with st.container(height=240, gap=None):
        for one in folders:
            st.button(
                f"{format.plain(printable(one.name))} · {_pictures(one.pictures, one.is_exact)}",
                icon=":material/folder:", type="tertiary", on_click=_go, args=(one.path,),
                key=f"folder-{cache.digest(str(one.path))}",
            )  # fmt: skip
        if not folders:
            st.caption("No folders in here.")
    count, is_exact = pictures_in(place)
    st.button(
        f"Use this folder: {_pictures(count, is_exact)}", key="browse-use", type="primary",
        disabled=not count, on_click=_use, args=(place, key),
    )  # fmt: skip


def _pictures(count: int, is_exact: bool) -> str:
    if not count:
        return "no images" if is_exact else "not looked through"
    return f"{count:,}{'' if is_exact else ' or more'} image{'s' * (count > 1 or not is_exact)}"


def _place() -> Path:
    place = Path(st.session_state.get(PLACE) or Path.home())
    return place if _is_folder(place) else Path.home()


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir() and os.access(path, os.R_OK)
    except (OSError, ValueError):
        return False


def _go(place: Path) -> None:
    st.session_state[PLACE] = str(place)


def _use(place: Path, key: str) -> None:
    st.session_state[key], st.session_state[OPEN] = str(place), False
