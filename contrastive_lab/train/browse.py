"""A folder is chosen as in a file dialog: the folders of this computer, each with its pictures."""

from __future__ import annotations

import os
from pathlib import Path

import streamlit as st

from contrastive_core.engine.images import pictures_in, subfolders
from contrastive_core.records.files import printable
from contrastive_lab import cache, command_files, format
from contrastive_lab.locale import _, ngettext

OPEN, PLACE = "browsing", "browsed folder"
RECENT = 3


def browser(key: str) -> None:
    """A button, and while it is pressed the dialog; `key` is that of the field it writes into."""
    is_open = bool(st.session_state.get(OPEN))
    st.button(
        _("Close the list") if is_open else _("Browse…"),
        key="browse",
        on_click=_toggle,
        args=(key,),
        icon=":material/folder_open:",
    )
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
    _shortcuts(place)
    try:
        folders = subfolders(place)
    except OSError as error:
        st.error(format.plain(_("This folder cannot be read: {reason}").format(reason=error.strerror)))
        return
    with st.container(height=240, gap=None):
        for one in folders:
            st.button(
                f"{format.plain(printable(one.name))} · {_pictures(one.pictures, one.is_exact)}",
                icon=":material/folder:",
                type="tertiary",
                on_click=_go,
                args=(one.path,),
                key=f"folder-{cache.digest(str(one.path))}",
            )
        if not folders:
            st.caption(_("No folders in here."))
    count, is_exact = pictures_in(place)
    st.button(
        _("Use this folder: {pictures}").format(pictures=_pictures(count, is_exact)),
        key="browse-use",
        type="primary",
        disabled=not count,
        on_click=_use,
        args=(place, key),
    )


def _shortcuts(place: Path) -> None:
    """Buttons to the parent folder, the home folder and recent ones."""
    row = st.container(horizontal=True)
    row.button(
        _("Up"),
        icon=":material/arrow_upward:",
        key="browse-up",
        disabled=place == place.parent,
        on_click=_go,
        args=(place.parent,),
    )
    row.button(_("Home"), icon=":material/home:", key="browse-home", on_click=_go, args=(Path.home(),))
    for path in [p for p in command_files.folders() if p != place][:RECENT]:
        row.button(
            format.plain(printable(path.name)),
            icon=":material/history:",
            help=printable(path),
            key=f"recent-{cache.digest(str(path))}",
            on_click=_go,
            args=(path,),
        )


def _pictures(count: int, is_exact: bool) -> str:
    if not count:
        return _("no images") if is_exact else _("not looked through")
    if not is_exact:
        return _("{count} or more images").format(count=f"{count:,}")
    return ngettext("{count} image", "{count} images", count).format(count=f"{count:,}")


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
