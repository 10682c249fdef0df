"""The fields of a second file of vectors: the other tower, the names of both, and the column that pairs their rows."""

from typing import Any, NamedTuple

import streamlit as st

from contrastive_core.engine.vectors import OtherTower, file_formats
from contrastive_lab.locale import _


class SecondFile(NamedTuple):
    """What the fields say."""

    upload: Any
    path: str
    names: tuple[str, str]
    by: str

    def tower(self, path: str, name: str) -> OtherTower:
        """The second file as it is read from `path`."""
        return OtherTower(path, name, self.names, self.by)


def draw(number: int) -> SecondFile:
    """Draw the fields. number: of the popover; a new one has empty fields."""
    help = _(
        "For example the captions of the images, or the answers to the questions, from an encoder into the same space. "
        "A table with two columns of vectors, or an .npz with two arrays, needs no second file. A column named text "
        "contains the captions."
    )
    kinds = [ending.removeprefix(".") for ending in file_formats.ENDINGS]
    upload = st.file_uploader(_("File of the other tower"), kinds, key=f"vectors-other-file-{number}", help=help)
    path = st.text_input(_("or the path of the other tower"), key=f"vectors-other-path-{number}").strip()
    a, b = st.columns(2)
    first = a.text_input(_("Name of the first"), key=f"vectors-tower-a-{number}", placeholder=_("its file's name"))
    other = b.text_input(_("Name of the other"), key=f"vectors-tower-b-{number}", placeholder=_("its file's name"))
    help = _(
        "A column of both files whose value partners share; several partners are fine. Empty: the first of pair, group "
        "and id that both files have, else row by row. Enter row to pair row by row anyway."
    )
    label = _("Column that pairs the rows")
    by = st.text_input(label, key=f"vectors-by-{number}", placeholder=_("pair, group or id"), help=help)
    return SecondFile(upload, path, (first.strip(), other.strip()), by.strip())
