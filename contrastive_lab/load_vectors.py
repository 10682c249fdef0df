"""Open vector files by upload or path, with one sentence per error. A second file can be the other tower; fields set
the names of both towers and the column that pairs their rows."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import streamlit as st

from contrastive_core.base.lock import scratch_folder
from contrastive_core.base.messages import printable
from contrastive_core.spaces import attached_files, file_formats, loaded_vectors
from contrastive_core.spaces.loaded_vectors import OtherTower, open_vectors
from contrastive_lab import format, query_params
from contrastive_lab.locale import _

ASKED = "vectors-asked"  # of the session: a file is to be read; lasts until it was, since another rerun may come first
REFUSED = "vectors-refused"  # of the session: the dropped file that was read last
RECENT = 8  # files that are listed


class File(NamedTuple):
    """A file to read: its path and its displayed name."""

    path: str
    name: str


def chosen() -> str | None:
    """Return the key of the current vectors, kept in the URL; None if a run is shown."""
    key = query_params.requested("vectors") or st.session_state.get("vectors")
    if key not in loaded_vectors.loaded():
        key = None
    st.session_state["vectors"] = key or ""
    query_params.keep(vectors=key)
    return key


def look_at(key: str | None) -> None:
    """Show vectors, or a run. A new key closes the popover and clears its fields."""
    st.session_state["vectors"] = key or ""
    st.session_state["vectors-opened"] = st.session_state.get("vectors-opened", 0) + 1


def opener(on_open: Callable[[str], None] | None = None) -> None:
    """Draw the popover that opens a file, a recent file, or the run. `on_open`: called with the key of the opened file;
    by default Explore shows it."""
    number = st.session_state.get("vectors-opened", 0)
    with st.popover(_("Open my embeddings"), icon=":material/folder_open:", key=f"vectors-{number}", width="content"):
        text = _(
            "Rows of numbers in .npy, .npz, .parquet or .csv. The columns id, label, class and split are recognized "
            "by name. A column named image contains images or their file names, a column named text the captions. "
            "Triplets (anchor, positive, negative) in .jsonl, .parquet or .csv and folders of BEIR are recognized too."
        )
        path_label = _("or, instead, its path on this computer")
        upload, path = _file_fields(_("A file"), path_label, file_formats.OPENED, "", number, text)
        st.button(
            _("Look at it"),
            type="primary",
            disabled=not (upload or path),
            on_click=lambda: st.session_state.update({ASKED: True}),
        )
        said = st.container()
        with st.expander(_("The other tower, if there is one")):
            other_upload, other_path, towers, by = _tower_fields(number)
        with st.expander(_("Labels, pictures and columns")):
            label_upload, label_path, pictures, left_out = _more_fields(number)
        if st.session_state.get(ASKED) and (upload or path):
            with said, ExitStack() as copies:
                vectors, labels = _file(copies, upload, path), _file(copies, label_upload, label_path)
                other = _file(copies, other_upload, other_path)
                assert vectors is not None  # the button is off without it
                with _reading(vectors, *(file for file in (other, labels) if file)):
                    tower = other and OtherTower(other.path, other.name, towers, by)
                    rest = (pictures or None, left_out, labels and labels.path, tower)
                    key = open_vectors(vectors.path, vectors.name, *rest)
                    (on_open or look_at)(key)
                    st.session_state["vectors-opened"] = number + 1
                    st.session_state[ASKED] = False
                    st.rerun()
            st.session_state[ASKED] = False
        if on_open is None:
            _recent_files()


def open_dropped(key: str, on_open: Callable[[str], None]) -> None:
    """Draw an upload field for a file of vectors, and open the file; say once as a toast why it cannot be opened,
    because the field is out of view. key: of the field."""
    kinds = [ending.removeprefix(".") for ending in file_formats.OPENED]
    upload = st.file_uploader(_("Drop a file of vectors to open it"), kinds, key=key)
    if upload is None or st.session_state.get(REFUSED) == upload.file_id:
        return
    st.session_state[REFUSED] = upload.file_id
    with ExitStack() as copies:
        if file := _file(copies, upload, ""):
            with _reading(file, show=partial(st.toast, icon=":material/error:", duration="infinite")):
                on_open(open_vectors(file.path, file.name))


def _tower_fields(number: int) -> tuple[Any, str, tuple[str, str], str]:
    """Draw the fields of the other tower; return its upload, its path, the towers' names, and the column that pairs
    rows."""
    help = _(
        "For example the captions of the images, or the answers to the questions, from an encoder that embeds "
        "into the same space. A table with two columns of vectors, or an .npz with two arrays, needs no second "
        "file. A column named text contains the captions. For triplets or BEIR, this is the file of their "
        "vectors, or the path of a sentence-transformers folder that encodes them."
    )
    label, path_label = _("File of the other tower"), _("or the path of the other tower")
    upload, path = _file_fields(label, path_label, file_formats.OPENED, "other-", number, help)
    a, b = st.columns(2)
    first = a.text_input(
        _("Name of the first tower"), key=f"vectors-tower-a-{number}", placeholder=_("its file's name")
    )
    other = b.text_input(
        _("Name of the other tower"), key=f"vectors-tower-b-{number}", placeholder=_("its file's name")
    )
    help = _(
        "A column in both files that has the same value for partners; a row may have several partners. Empty: "
        "the first of pair, group and id that both files have, otherwise row by row. Enter row to always pair "
        "row by row."
    )
    label = _("Column that pairs the rows")
    by = st.text_input(label, key=f"vectors-by-{number}", placeholder=_("pair, group or id"), help=help)
    return upload, path, (first.strip(), other.strip()), by.strip()


def _more_fields(number: int) -> tuple[Any, str, str, list[str]]:
    """Draw the fields of labels and columns; return the labels' upload and path, the image folder, and columns to leave
    out."""
    label, path_label = _("Labels of its rows, if they are in a separate file"), _("or the path of the labels")
    help = _(
        "A .npy file with one label per row, or a text or CSV file with one label per line. Labels are class names "
        "or whole numbers, in the order of the rows."
    )
    upload, path = _file_fields(label, path_label, attached_files.ENDINGS, "label-", number, help)
    label, place = _("Image folder, if the file lists file names"), _("the file's own folder")
    help = _("Images are read only from this folder, from the file's own folder and from folders inside them.")
    pictures = st.text_input(label, key=f"vectors-pictures-{number}", placeholder=place, help=help)
    label, example = _("Columns of a table that are not part of the vectors"), _("price, weight")
    help = _(
        "Separated by commas. Numbered columns (d0, d1, …) are the vectors. Without such columns, all other numeric "
        "columns are the vectors."
    )
    names = st.text_input(label, key=f"vectors-left-out-{number}", placeholder=example, help=help)
    return upload, path, pictures.strip(), [name.strip() for name in names.split(",") if name.strip()]


def _file_fields(
    label: str, path_label: str, endings: Sequence[str], what: str, number: int, help: str
) -> tuple[Any, str]:
    """Draw the fields of an upload and of a path; return both."""
    kinds = [ending.removeprefix(".") for ending in endings]
    upload = st.file_uploader(label, kinds, key=f"vectors-{what}file-{number}", help=help)
    return upload, st.text_input(path_label, key=f"vectors-{what}path-{number}").strip()


def _file(copies: ExitStack, upload: Any, path: str) -> File | None:
    """Return the named file; a path takes precedence over an upload, which is read from a copy."""
    if path:
        return File(path, Path(path).name)
    if upload is None:
        return None
    copy = copies.enter_context(scratch_folder()) / f"{upload.file_id}{Path(upload.name).suffix.lower()}"
    copy.write_bytes(upload.getbuffer())
    return File(str(copy), upload.name)


@contextmanager
def _reading(*files: File, show: Callable[[str], object] = st.error) -> Iterator[None]:
    """Draw a spinner while files are read, or why they cannot be, with their displayed names."""
    try:
        with st.spinner(_("Reading {name}…").format(name=format.plain(files[0].name))):
            yield
    except (ValueError, OSError) as error:
        paths = [Path(file.path).expanduser() for file in files]
        if isinstance(error, FileNotFoundError):
            gone = next((path for path in paths if not path.exists()), paths[0])
            said = _("There is no file {gone}.").format(gone=gone)
        elif isinstance(error, IsADirectoryError):
            folder = next((path for path in paths if path.is_dir()), paths[0])
            said = _("{folder} is a folder; give the path of a file in it.").format(folder=folder)
        else:
            said = str(error)
            for file in files:  # of what was uploaded, a copy with another name was read
                said = said.replace(Path(file.path).name, printable(file.name))
        show(format.plain(said))


def _recent_files() -> None:
    """Draw the files that were opened before, and a button that returns to the run."""
    now = chosen()
    if now:
        st.button(_("Show a run instead"), icon=":material/arrow_back:", on_click=look_at, args=[None])
    texts = {key: f"{a['name']} · {a['rows']:,} × {a['width']:,}" for key, a in loaded_vectors.loaded().items()}
    for key, text in [*list(texts.items())[:RECENT], *list(loaded_vectors.damaged().items())[:RECENT]]:
        left, right = st.columns([5, 1])
        if key in texts:
            label, is_shown = format.plain(text), key == now
            left.button(label, f"open-{key}", on_click=look_at, args=[key], disabled=is_shown, width="stretch")
        else:
            left.warning(format.plain(text))
        icon, forget = ":material/close:", loaded_vectors.forget
        right.button("", f"forget-{key}", icon=icon, help=_("Forget"), on_click=forget, args=[key])


def about_left_out(key: str) -> str:
    """Describe the parts of the file that were left out; "" if none."""
    about = loaded_vectors.loaded()[key]
    return f"{left_out(about['left_out'])} {about['note']}".strip()


def left_out(counts: Mapping[str, int]) -> str:
    """Describe how many rows were left out, by reason; "" if none."""
    reasons = {
        "not_finite": _("with values that are not finite"),
        "zero": _("with only zeros"),
        "unpaired": _("without a usable partner"),
    }
    parts = ", ".join(f"{n:,} {reasons[k]}" for k, n in counts.items())
    return _("Rows left out: {parts}.").format(parts=parts) if parts else ""
