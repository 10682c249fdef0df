"""Opening vectors from elsewhere: by upload or by path, with a sentence for whatever is wrong."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from contrastive_core.embeddings import file_formats, kept_vectors
from contrastive_core.embeddings.open_vectors import open_upload, open_vectors
from contrastive_lab import format, query_params

__all__ = ["about_left_out", "chosen", "opener"]


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
            _open(None if path.strip() else upload, path.strip(), pictures.strip(), names)
        _recent_files()


def _open(upload: object, path: str, pictures: str, left_out: list[str]) -> None:
    name = getattr(upload, "name", path)
    try:
        with st.spinner(f"Reading {format.plain(Path(name).name)}…"):
            if upload is None:
                key = open_vectors(path, Path(path).name, pictures or None, left_out)
            else:
                content = upload.getbuffer()  # type: ignore[attr-defined]
                key = open_upload(name, content, pictures or None, left_out)
    except FileNotFoundError:
        st.error(format.plain(f"There is no file {path}."))
    except IsADirectoryError:
        st.error(format.plain(f"{path} is a folder; give the path of a file in it."))
    except (ValueError, OSError) as error:
        st.error(format.plain(error))
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
