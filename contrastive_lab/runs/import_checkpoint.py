"""A checkpoint from elsewhere: what it is first, then a run of it. A child process opens it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import streamlit as st

from contrastive_core.engine import queue
from contrastive_core.engine.importing import preview as preview_import
from contrastive_core.records.run_names import default_run_name
from contrastive_lab import cache, format, query_params
from contrastive_lab.locale import N_, _
from contrastive_lab.path_input import path_input
from contrastive_lab.runs.import_model import of_library
from contrastive_lab.runs.import_preview import judged_on, preview
from contrastive_lab.runs.importing import begin, follow_imports, kept_upload

ENDINGS = ["pt", "pth", "tar", "ckpt", "safetensors"]
SOURCES = {"file": N_("A checkpoint file"), "model": N_("A model of torchvision or timm")}


def elsewhere() -> None:
    """A file, or a library's model by its name; above it, what is being imported."""
    follow_imports()
    source = query_params.one_of(
        st.segmented_control, _("What to import"), SOURCES, name="source", format_func=lambda s: SOURCES[s]
    )
    {"file": _of_file, "model": of_library}[source]()


def _of_file() -> None:
    """Choose a file, see what it is, import it."""
    upload = st.file_uploader(
        _("MoCo, SupContrast, SimCLR, lightly, solo-learn, torchvision, timm or safetensors"),
        ENDINGS,
        help=_("Opened without running anything in it, in a process of its own."),
    )
    typed = path_input(_("or its path on this computer"), "file", placeholder="/path/to/checkpoint.pth.tar")
    a, b, c = st.columns(3)
    dataset = judged_on(a)
    name = b.text_input(_("Name of the run"), placeholder=_("made from the file's name")).strip()
    encoder = c.text_input(_("Encoder, if it cannot be told"), placeholder="timm:NAME").strip()
    if upload is None and not typed:
        return
    arguments = ["--dataset", dataset]
    arguments += ["--encoder", encoder] if encoder else []
    key = cache.digest(upload.file_id if upload else typed, encoder)
    try:
        with _file(upload, typed) as path:
            previews = st.session_state.setdefault("previews", {})
            if key not in previews:
                with st.spinner(_("Opening it in a process of its own…")):
                    previews[key] = preview_import(path, *arguments)
            preview(previews[key])
            bad = bool(previews[key]["missing"] or previews[key]["unlike"])
            if st.button(_("Import"), type="primary", disabled=bad):
                name = name or queue.free_name(default_run_name(previews[key]))
                begin(name, [kept_upload(name, upload) if upload else path, *arguments])
    except (ValueError, OSError) as error:
        refused = _("Not imported.")
        st.error(f"{refused}  \n{format.plain(error)}")


@contextmanager
def _file(upload: Any, typed: str) -> Iterator[str]:
    """The path of what was given, for as long as it is needed."""
    if upload is None:
        yield typed
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / Path(upload.name).name
        path.write_bytes(upload.getbuffer())
        yield str(path)
