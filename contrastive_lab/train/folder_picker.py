"""Two ways to choose a folder of images besides its path: a folder dialog, and a field to drop one on."""

import os
from collections import Counter
from pathlib import Path

import streamlit as st

from contrastive_core.base.errors import BadSetting
from contrastive_core.base.paths import data_home
from contrastive_core.base.safe_files import printable
from contrastive_core.data.folder_selection import (
    MOST_BYTES,
    MOST_FILES,
    parts_of,
    pictures_in,
    save_uploads,
    subfolders,
)
from contrastive_lab import cache, format, path_input, query_params
from contrastive_lab.locale import _, ngettext

OPEN, PLACE = "browsing", "browsed folder"
RECENT = 3
ROUND = "drops"  # counts what was taken over, so that the next drop finds an empty field
CHOSEN, LEFT_OUT = "dropped folder", "dropped and left out"
NAMED = 50  # files that are left out, by name


def browser(key: str) -> None:
    """Draw a button that opens the dialog; `key` is that of the field to fill."""
    is_open = bool(st.session_state.get(OPEN))
    label = _("Close the list") if is_open else _("Browse…")
    st.button(label, key="browse", on_click=_toggle, args=(key,), icon=":material/folder_open:")
    if is_open:
        with st.container(border=True, gap="small"):
            place = Path(st.session_state.get(PLACE) or Path.home())
            _dialog(place if _is_folder(place) else Path.home(), key)


def _toggle(key: str) -> None:
    st.session_state[OPEN] = not st.session_state.get(OPEN)
    typed = Path(str(st.session_state.get(key) or "")).expanduser()
    if typed.is_absolute() and _is_folder(typed):
        st.session_state[PLACE] = str(typed)


def _dialog(place: Path, field: str) -> None:
    st.markdown(f"**{format.plain(printable(place))}**")
    row = st.container(horizontal=True)
    up, is_top = place.parent, place == place.parent
    row.button(_("Up"), "browse-up", on_click=_go, args=(up,), icon=":material/arrow_upward:", disabled=is_top)
    row.button(_("Home"), "browse-home", on_click=_go, args=(Path.home(),), icon=":material/home:")
    for path in [p for p in path_input.folders() if p != place][:RECENT]:
        name, key = format.plain(printable(path.name)), f"recent-{cache.digest(str(path))}"
        row.button(name, key, printable(path), on_click=_go, args=(path,), icon=":material/history:")
    try:
        folders = subfolders(place)
    except OSError as error:
        st.error(format.plain(_("This folder cannot be read: {reason}").format(reason=error.strerror)))
        return
    with st.container(height=240, gap=None):
        for one in folders:
            label = f"{format.plain(printable(one.name))} · {_pictures(one.pictures, one.is_exact)}"
            key = f"folder-{cache.digest(str(one.path))}"
            st.button(label, key, on_click=_go, args=(one.path,), icon=":material/folder:", type="tertiary")
        if not folders:
            st.caption(_("No folders in here."))
    count, is_exact = pictures_in(place)
    label = _("Use this folder: {pictures}").format(pictures=_pictures(count, is_exact))
    st.button(label, "browse-use", on_click=_use, args=(place, field), type="primary", disabled=not count)


def _pictures(count: int, is_exact: bool) -> str:
    if not count:
        return _("no images") if is_exact else _("not searched")
    if not is_exact:
        return _("{count} or more images").format(count=f"{count:,}")
    return ngettext("{count} image", "{count} images", count).format(count=f"{count:,}")


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir() and os.access(path, os.R_OK)
    except (OSError, ValueError):
        return False


def _go(place: Path) -> None:
    st.session_state[PLACE] = str(place)


def _use(place: Path, key: str) -> None:
    query_params.choose(key, str(place))
    st.session_state[OPEN] = False


# --- a folder that is dropped ------------------------------------------------------------------


def drop_zone() -> None:
    """Draw the drop field, then a summary of its files and a button that copies them."""
    help = _("The folder contains one folder per class, or images only. Your files are not changed.")
    label, key = _("or drop a folder of images here"), f"drop-{st.session_state.get(ROUND, 0)}"
    files = st.file_uploader(label, accept_multiple_files="directory", key=key, help=help)
    text = _(
        "At most {most_files} files and {most_bytes} MB. They are copied to {data_home}. A folder given by its path "
        "is not copied."
    )
    most, home = (f"{MOST_FILES:,}", f"{MOST_BYTES / 1e6:,.0f}"), format.plain(data_home() / "dropped")
    st.caption(text.format(most_files=most[0], most_bytes=most[1], data_home=home))
    if not files:
        return
    st.markdown(f"**{format.plain(_summary([f.name for f in files]))}**")
    if not st.button(_("Use these images"), type="primary", icon=":material/check:", key="drop-use"):
        return
    bar = st.progress(0.0, _("Copying them…"))

    def report(share: float) -> None:
        bar.progress(share, _("Copying them…"))

    try:
        folder, without = save_uploads(files, report)
    except (BadSetting, OSError) as error:
        bar.empty()
        st.error(format.plain(error))
        return
    st.session_state[CHOSEN], st.session_state[LEFT_OUT] = str(folder), (str(folder), without)
    st.session_state[ROUND] = st.session_state.get(ROUND, 0) + 1
    st.rerun()


def take_over_drop(key: str) -> None:
    """Write the copied folder into the field with this key, before it is drawn."""
    if folder := st.session_state.pop(CHOSEN, None):
        query_params.choose(key, folder)


def show_left_out(folder: str) -> None:
    """Draw the files of a dropped folder that were not copied, with the reasons."""
    of, files = st.session_state.get(LEFT_OUT, ("", []))
    if of != folder or not files:
        return
    with st.expander(_("{files} dropped files were not copied").format(files=f"{len(files):,}")):
        lines = [f"{name}: {reason}" for name, reason in files[:NAMED]]
        st.code("\n".join(lines), language=None)
        if len(files) > NAMED:
            st.caption(_("… and {files} more").format(files=f"{len(files) - NAMED:,}"))


def _summary(names: list[str]) -> str:
    """Describe the number of files and their folders."""
    counts = Counter(parts[-2] for name in names if len(parts := parts_of(name)) > 1)
    listed = ", ".join([*(f"{name} {n:,}" for name, n in counts.most_common(6)), *(["…"] if len(counts) > 6 else [])])
    template = ngettext("{names} file", "{names} files", len(names))
    if counts:
        template = _("{names} files in {counts} folders: {listed}")
    if len(counts) == 1:
        template = ngettext("{names} file in a folder: {listed}", "{names} files in a folder: {listed}", len(names))
    return template.format(names=f"{len(names):,}", counts=len(counts), listed=listed)
