"""Imports of checkpoints or library models, with a preview first and no download without consent. The URL parameter
`importing` names an import started here; the page shows its run at the end."""

import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import streamlit as st

from contrastive_core import runs
from contrastive_core.base import storage
from contrastive_core.base.lock import scratch_folder
from contrastive_core.base.storage import data_home
from contrastive_core.cli.import_checkpoint import ImportRecord
from contrastive_core.cli.import_checkpoint import import_preview as preview_import
from contrastive_core.data.folder_selection import name_of
from contrastive_core.engine import queue, training
from contrastive_core.runs import default_run_name
from contrastive_lab import cache, format, locale, query_params
from contrastive_lab.locale import N_, _, message
from contrastive_lab.path_input import path_input
from contrastive_lab.progress import follow_begun

ENDINGS = ["pt", "pth", "tar", "ckpt", "safetensors"]
SOURCES = {"file": N_("A checkpoint file"), "model": N_("A model of torchvision or timm")}
DATA = ["shapes", "digits", "cifar10", "cifar100", "stl10"]


def elsewhere() -> None:
    """Draw the forms that import a file or a library's model, below the current imports."""
    follow_imports()
    source = query_params.one_of(st.segmented_control, _("What to import"), SOURCES, name="source")
    try:
        _of_file() if source == "file" else _of_library()
    except (ValueError, OSError) as error:
        refused = _("Not imported.")
        st.error(f"{refused}  \n{format.plain(error)}")


def _of_file() -> None:
    label = _("MoCo, SupContrast, SimCLR, lightly, solo-learn, torchvision, timm or safetensors")
    upload = st.file_uploader(
        label, ENDINGS, help=_("Opened in a separate process, without running any code in the file.")
    )
    typed = path_input(_("or its path on this computer"), "file", placeholder="/path/to/checkpoint.pth.tar")
    encoder = st.text_input(_("Encoder, if not detected"), placeholder="timm:NAME").strip()
    if upload is None and not typed:
        return
    words = [typed, *(["--encoder", encoder] if encoder else [])]
    report = _report(words, upload)
    preview(report)
    _import(words, report, upload)


def _of_library() -> None:
    help = _(
        "Any model of torchvision, or of timm if it is installed. A tag after a dot selects one of several weights."
    )
    model = st.text_input(_("Model"), placeholder="torchvision:resnet50, timm:…", help=help).strip()
    if not model:
        st.caption(_("It is opened without training, at its own image size and color normalization."))
        return
    words = [model if model.startswith(("torchvision:", "timm:")) else f"timm:{model}"]
    label = _("Path of its weights, if they are not in the library's own cache")
    file = path_input(label, "weights", placeholder="/path/to/weights.safetensors")
    a, b = st.columns(2, vertical_alignment="bottom")
    label, help = (
        _("Image size in pixels (0: its own)"),
        _("The position embedding of a vision transformer is resized to it."),
    )
    pixels = query_params.number(a.number_input, label, 0, 2048, name="", default=0, key="import-pixels", help=help)
    random = b.checkbox(_("Random weights"), disabled=bool(file), help=_("An encoder that has learned nothing."))
    words += ["--pixels", str(int(pixels))] if pixels else []
    if file:
        words += ["--weights", file]
    elif random:
        words.append("--random")
    report = _report(words)
    if "matched" in report:
        preview(report)
        _import(words, report)
        return
    text = _("The weights of {encoder} are not on this computer. Choose a weights file or random weights.")
    st.info(format.plain(text.format(encoder=report["encoder"])))
    if report["host"]:
        st.info(format.plain(_("Or fetch them from {source}.").format(source=locale.text(report["source"]))))
        fetch = st.checkbox(_("Fetch them"))
        _import([*words, "--fetch"], report, is_ready=fetch)


def _report(words: list[str], upload: Any = None) -> ImportRecord:
    """Return the preview of an import, cached in the session once the weights are there. An upload replaces the first
    of the arguments `words`. Raises: ValueError, OSError."""
    previews: dict[str, ImportRecord] = st.session_state.setdefault("previews", {})
    if found := previews.get(key := cache.digest(upload and upload.file_id, *words)):
        return found
    with scratch_folder() as folder, st.spinner(_("Opening it in a separate process…")):
        if upload is not None:
            words = [str(_copy(upload, folder)), *words[1:]]
        report = preview_import(*words)
    if "matched" in report:
        previews[key] = report
    return report


def _copy(upload: Any, folder: Path) -> Path:
    path = folder / Path(upload.name).name
    storage.write_bytes(path, upload.getbuffer())
    return path


def _import(words: list[str], report: ImportRecord, upload: Any = None, is_ready: bool = True) -> None:
    """Draw the last choices and the button that starts the import."""
    a, b = st.columns(2)
    dataset = judged_on(a)
    name = b.text_input(_("Name of the run"), placeholder=_("made automatically")).strip()
    is_unfit = bool(report.get("missing") or report.get("unlike"))
    if not st.button(_("Import"), type="primary", disabled=is_unfit or not is_ready):
        return
    name = name or queue.free_name(default_run_name(report))
    training.check_new(name)  # before it becomes a path
    if upload is not None:  # a copy, kept while the import runs
        for folder in _uploads().glob("*"):
            if folder.name not in training.process_names("import"):
                shutil.rmtree(folder, ignore_errors=True)
        words = [str(_copy(upload, _uploads() / name)), *words[1:]]
    begin(name, [*words, "--dataset", dataset])


def _uploads() -> Path:
    return data_home() / "uploads"


def judged_on(place: Any) -> str:
    """Let the user choose the data set for an encoder: one with runs here, or any folder; return it."""
    known = [str(run.config.get("dataset")) for run in runs.list_runs() if not run.shipped]
    own = [name for name in dict.fromkeys(known) if name.startswith(("folder:", "csv:"))]
    label, help = _("Evaluation data"), _("Or type the path of a folder of images")
    chosen = place.selectbox(label, [*own, *DATA], accept_new_options=True, help=help)
    return name_of(chosen) if chosen.startswith(("/", "~")) else str(chosen)


def preview(report: ImportRecord) -> None:
    """Show the detected encoder, the matched tensors and the missing ones."""
    st.header(format.plain(f"{report['kind']}, {report['encoder']}"))
    parts = {_("Missing"): report["missing"], _("With a different shape"): report["unlike"]}
    parts[_("Not used")] = report["unused"]
    counts = {_("Tensors matched"): report["matched"], **{name: len(listed) for name, listed in parts.items()}}
    for column, (name, count) in zip(st.columns(4), counts.items(), strict=True):
        column.metric(name, count)
    if report.get("of_library"):
        st.text(_("It has no head: z is h. Loss Lab and Samples show it with SimCLR's loss."))
    else:
        shown_as, head = cache.method_title(str(report["method"])), report["head"].get("head", "none")
        st.text(_("Shown as {shown_as}; head: {head}").format(shown_as=shown_as, head=head))
    for note in report["notes"]:
        st.text(note)
    for name, listed in parts.items():
        if listed:
            with st.expander(f"{name}: {len(listed)}"):
                st.code("\n".join(map(str, listed)), language=None)


# --- imports at work ---


def begin(name: str, arguments: Sequence[str]) -> None:
    """Start an import as a run with this name, and follow it. Raises as `training.start_import` does."""
    training.start_import(name, arguments)
    query_params.keep(importing=name)
    st.rerun()


def follow_imports() -> None:
    """Draw the progress of imports, the failure of one started here, and its run once it exists."""
    mine, job = query_params.kept_value("importing"), None
    with suppress(ValueError):  # no name that a run can have
        job = training.import_of(runs.checked_name(mine)) if mine else None
    query_params.keep(importing=mine if job else None)
    at_work = training.process_names("import")
    for name in at_work:
        if other := training.import_of(name):
            follow_begun(other, message("Importing {name}", name=name), may_stop=True)
    if not mine or not job or mine in at_work:
        return

    def end() -> None:
        query_params.keep(importing=None)
        shutil.rmtree(_uploads() / mine, ignore_errors=True)

    if not (why := job.failure()):
        end()
        st.session_state["run"] = mine
        st.switch_page("pages/explore.py")
    label = message("Importing {name}", name=mine)
    st.warning(format.plain(message("{label}: {why}", label=label, why=why)))
    with st.container(horizontal=True):
        if st.button(_("Try again"), key=f"again-{mine}"):
            job.start(label=label)
            st.rerun()
        st.button(_("Dismiss"), key=f"dismiss-{mine}", on_click=end)
