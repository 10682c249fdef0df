"""Opening vectors from elsewhere: by upload or by path, with a sentence for whatever is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import streamlit as st

from contrastive_core.embeddings import file_formats, kept_vectors, label_files
from contrastive_core.embeddings.open_vectors import open_vectors, uploaded
from contrastive_core.storage.regular import printable
from contrastive_lab import format, query_params

__all__ = ["about_left_out", "chosen", "opener"]


class Given(NamedTuple):
    """A file that is to be read: where it lies, and what a person calls it."""

    path: str
    name: str


def chosen() -> str | None:
    """The key of the vectors that are looked at, kept in the address; None: a run is."""
    key = query_params.requested("vectors") or st.session_state.get("vectors")
    if key not in kept_vectors.loaded():
        key = None
    st.session_state["vectors"] = key or ""
    query_params.keep(vectors=key)
    return key


def look_at(key: str | None) -> None:
    st.session_state["vectors"] = key or ""
    st.session_state["vectors-opened"] = st.session_state.get("vectors-opened", 0) + 1


def opener() -> None:
    """The popover that opens a file, or comes back to one, or to the run."""
    key = f"vectors-{st.session_state.get('vectors-opened', 0)}"  # a new one closes the popover
    with st.popover("Open my embeddings", icon=":material/folder_open:", key=key, width="content"):
        st.caption(
            "Rows of numbers in .npy, .npz, .parquet or .csv. The columns id, label, class and "
            "split are known by name; a column image holds pictures or their file names."
        )
        upload = st.file_uploader(
            "A file", [e[1:] for e in file_formats.ENDINGS], key="vectors-file"
        )
        path = st.text_input("or, instead, its path on this computer", key="vectors-path")
        label_upload = st.file_uploader(
            "Labels of its rows, if they lie in a file of their own",
            [e[1:] for e in label_files.ENDINGS], key="vectors-label-file",
            help="A .npy of one label a row, or a text or CSV with one label a line: names of "
            "classes or whole numbers, in the order of the rows.",
        )  # fmt: skip
        label_path = st.text_input("or the path of the labels", key="vectors-label-path")
        pictures = st.text_input(
            "Folder of its pictures, if it holds file names", key="vectors-pictures",
            placeholder="the file's own folder", help="File names are followed below this folder "
            "and below the file's own, and nowhere else.",
        )  # fmt: skip
        left_out = st.text_input(
            "A table's columns that are no part of the vectors", key="vectors-left-out",
            placeholder="price, weight", help="By commas. Numbered columns (d0, d1, …) are the "
            "vectors; where there are none, all columns of numbers are, but these.",
        )  # fmt: skip
        if st.button("Look at it", type="primary", disabled=not (upload or path.strip())):
            names = [name.strip() for name in left_out.split(",") if name.strip()]
            with (
                _given(upload, path.strip(), "vectors") as vectors,
                _given(label_upload, label_path.strip(), "labels") as labels,
            ):
                if vectors is not None:
                    _open(vectors, labels, pictures.strip(), names)
        _recent_files()


@contextmanager
def _given(upload: Any, path: str, stem: str) -> Iterator[Given | None]:
    """What was named: a path counts before an upload."""
    if path or upload is None:
        yield Given(path, Path(path).name) if path else None
        return
    with uploaded(upload.name, upload.getbuffer(), stem) as copy:
        yield Given(str(copy), upload.name)


def _open(vectors: Given, labels: Given | None, pictures: str, left_out: list[str]) -> None:
    files = [vectors] if labels is None else [vectors, labels]
    try:
        with st.spinner(f"Reading {format.plain(vectors.name)}…"):
            key = open_vectors(
                vectors.path, vectors.name, pictures or None, left_out, labels and labels.path
            )
    except FileNotFoundError:
        gone = [f.path for f in files if not Path(f.path).expanduser().exists()] or [vectors.path]
        st.error(format.plain(f"There is no file {gone[0]}."))
    except IsADirectoryError:
        folder = [f.path for f in files if Path(f.path).expanduser().is_dir()] or [vectors.path]
        st.error(format.plain(f"{folder[0]} is a folder; give the path of a file in it."))
    except (ValueError, OSError) as error:
        said = str(error)
        for file in files:  # of what was uploaded, a copy with another name was read
            said = said.replace(Path(file.path).name, printable(file.name))
        st.error(format.plain(said))
    else:
        look_at(key)
        st.rerun()


def _recent_files() -> None:
    """Files that were opened before, and the way back to the run."""
    now = chosen()
    if now and st.button("Back to the run", icon=":material/arrow_back:"):
        look_at(None)
        st.rerun()
    for key, about in list(kept_vectors.loaded().items())[:8]:
        a, b = st.columns([5, 1])
        text = f"{about['name']} · {about['rows']:,} × {about['width']:,}"
        if a.button(format.plain(text), key=f"open-{key}", disabled=key == now, width="stretch"):
            look_at(key)
            st.rerun()
        if b.button("", icon=":material/close:", key=f"forget-{key}", help="Forget"):
            kept_vectors.forget(key)
            if key == now:
                look_at(None)
            st.rerun()


def about_left_out(key: str) -> str:
    """What was not taken over from the file, in sentences; "" if all was."""
    about = kept_vectors.loaded()[key]
    counts = about.get("left_out", {})
    reasons = {"not_finite": "with values that are not finite", "zero": "of zeros only"}
    parts = [f"{n} {reasons[k]}" for k, n in counts.items()]
    rows = f"Rows left out: {', '.join(parts)}." if parts else ""
    return f"{rows} {about.get('note', '')}".strip()
