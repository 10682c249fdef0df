"""Open vector files by upload or path, with one sentence per fault."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import streamlit as st

from contrastive_core.engine.vectors import OtherTower, file_formats, label_files, open_vectors, uploaded
from contrastive_core.records import loaded_vectors, printable
from contrastive_lab import format, query_params, tower_fields
from contrastive_lab.locale import _


class Given(NamedTuple):
    """A file that is to be read: where it lies, and what a person calls it."""

    path: str
    name: str


class OpenRequest(NamedTuple):
    """What the popover's fields say when its button is pressed."""

    vectors: Given
    labels: Given | None
    other: OtherTower | None
    pictures: str
    left_out: list[str]

    @property
    def files(self) -> list[Given]:
        other = [] if self.other is None else [Given(str(self.other.path), self.other.name)]
        return [self.vectors, *other, *([] if self.labels is None else [self.labels])]


def chosen() -> str | None:
    """The key of the vectors that are looked at, kept in the address; None: a run is."""
    key = query_params.requested("vectors") or st.session_state.get("vectors")
    if key not in loaded_vectors.loaded():
        key = None
    st.session_state["vectors"] = key or ""
    query_params.keep(vectors=key)
    return key


def look_at(key: str | None) -> None:
    st.session_state["vectors"] = key or ""
    _close()


def _close() -> None:
    """Another number makes another popover: closed, with empty fields."""
    st.session_state["vectors-opened"] = st.session_state.get("vectors-opened", 0) + 1


def opener(on_open: Callable[[str], None] | None = None) -> None:
    """The popover that opens a file, or comes back to one, or to the run. `on_open`: what is done with the key of a
    file on a page that lists files itself; else Explore looks at it."""
    number = st.session_state.get("vectors-opened", 0)
    with st.popover(_("Open my embeddings"), icon=":material/folder_open:", key=f"vectors-{number}", width="content"):
        text = _(
            "Rows of numbers in .npy, .npz, .parquet or .csv. The columns id, label, class and split are recognized "
            "by name. A column named image contains images or their file names, a column named text the captions."
        )
        upload = st.file_uploader(_("A file"), _kinds(file_formats.ENDINGS), key=f"vectors-file-{number}", help=text)
        path = st.text_input(_("or, instead, its path on this computer"), key=f"vectors-path-{number}").strip()
        is_asked = st.button(_("Look at it"), type="primary", disabled=not (upload or path))
        said = st.container()
        with st.expander(_("The other tower, if there is one")):
            second = tower_fields.draw(number)
        with st.expander(_("Labels, pictures and columns")):
            label_upload, label_path, pictures, left_out = _more_fields(number)
        if is_asked:
            with said, ExitStack() as copies:
                vectors, labels = _given(copies, upload, path), _given(copies, label_upload, label_path)
                other = _given(copies, second.upload, second.path)
                if vectors is not None:
                    request = OpenRequest(vectors, labels, other and second.tower(*other), pictures, left_out)
                    _open(request, on_open or look_at)
        if on_open is None:
            _recent_files()


def _more_fields(number: int) -> tuple[Any, str, str, list[str]]:
    """A file of labels as it was uploaded, and the path of one; the folder of pictures; columns to leave out."""
    label, kinds = _("Labels of its rows, if they are in a separate file"), _kinds(label_files.ENDINGS)
    help = _(
        "A .npy file with one label per row, or a text or CSV file with one label per line. Labels are class names "
        "or whole numbers, in the order of the rows."
    )
    upload = st.file_uploader(label, kinds, key=f"vectors-label-file-{number}", help=help)
    path = st.text_input(_("or the path of the labels"), key=f"vectors-label-path-{number}").strip()
    label, place = _("Image folder, if the file lists file names"), _("the file's own folder")
    help = _("Images are read only from this folder, from the file's own folder and from folders inside them.")
    pictures = st.text_input(label, key=f"vectors-pictures-{number}", placeholder=place, help=help)
    label, example = _("A table's columns that are no part of the vectors"), _("price, weight")
    help = _(
        "Separated by commas. Numbered columns (d0, d1, …) are the vectors. Without such columns, all other numeric "
        "columns are the vectors."
    )
    names = st.text_input(label, key=f"vectors-left-out-{number}", placeholder=example, help=help)
    return upload, path, pictures.strip(), [name.strip() for name in names.split(",") if name.strip()]


def _kinds(endings: Iterable[str]) -> list[str]:
    return [ending.removeprefix(".") for ending in endings]


def _given(copies: ExitStack, upload: Any, path: str) -> Given | None:
    """What was named: a path counts before an upload, which is read from a copy."""
    if path:
        return Given(path, Path(path).name)
    if upload is None:
        return None
    return Given(str(copies.enter_context(uploaded(upload.name, upload.getbuffer(), upload.file_id))), upload.name)


def _open(request: OpenRequest, on_open: Callable[[str], None]) -> None:
    vectors, labels = request.vectors, request.labels
    files = request.files
    try:
        with st.spinner(_("Reading {name}…").format(name=format.plain(vectors.name))):
            key = open_vectors(
                vectors.path,
                vectors.name,
                request.pictures or None,
                request.left_out,
                labels and labels.path,
                request.other,
            )
    except FileNotFoundError:
        gone = [f.path for f in files if not Path(f.path).expanduser().exists()] or [vectors.path]
        st.error(format.plain(_("There is no file {gone}.").format(gone=gone[0])))
    except IsADirectoryError:
        folder = [f.path for f in files if Path(f.path).expanduser().is_dir()] or [vectors.path]
        st.error(format.plain(_("{folder} is a folder; give the path of a file in it.").format(folder=folder[0])))
    except (ValueError, OSError) as error:
        said = str(error)
        for file in files:  # of what was uploaded, a copy with another name was read
            said = said.replace(Path(file.path).name, printable(file.name))
        st.error(format.plain(said))
    else:
        on_open(key)
        _close()
        st.rerun()


def _recent_files() -> None:
    """Files that were opened before, and the way back to the run."""
    now = chosen()
    if now and st.button(_("Back to the run"), icon=":material/arrow_back:"):
        look_at(None)
        st.rerun()
    for key, about in list(loaded_vectors.loaded().items())[:8]:
        a, b = st.columns([5, 1])
        text = f"{about['name']} · {about['rows']:,} × {about['width']:,}"
        if a.button(format.plain(text), key=f"open-{key}", disabled=key == now, width="stretch"):
            look_at(key)
            st.rerun()
        if b.button("", icon=":material/close:", key=f"forget-{key}", help=_("Forget")):
            loaded_vectors.forget(key)
            if key == now:
                look_at(None)
            st.rerun()


def about_left_out(key: str) -> str:
    """Describe the parts of the file that were left out; "" if none."""
    about = loaded_vectors.loaded()[key]
    return f"{left_out(about.get('left_out', {}))} {about.get('note', '')}".strip()


def left_out(counts: Mapping[str, int]) -> str:
    """Describe how many rows were left out, by the reason; "" if none."""
    reasons = {"not_finite": _("with values that are not finite"), "zero": _("of zeros only")}
    reasons["unpaired"] = _("without a usable partner")
    parts = ", ".join(f"{n:,} {reasons[k]}" for k, n in counts.items())
    return _("Rows left out: {parts}.").format(parts=parts) if parts else ""
