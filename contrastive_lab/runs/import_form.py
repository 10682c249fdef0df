"""Imports of checkpoints or library models, with a preview first and no download without consent. The URL parameter
`importing` names an import started here; the page shows its run at the end."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
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
from contrastive_lab import cache, format, query_params
from contrastive_lab.locale import N_, _, message
from contrastive_lab.path_input import path_input
from contrastive_lab.progress import follow_begun

ENDINGS = ["pt", "pth", "tar", "ckpt", "safetensors"]
SOURCES = {"file": N_("A checkpoint file"), "model": N_("A model of torchvision or timm")}
DATA = ["shapes", "digits", "cifar10", "cifar100", "stl10"]
PIXELS = "import-pixels"  # the key of their field


def elsewhere() -> None:
    """Draw the forms that import a file or a library's model, below the current imports."""
    follow_imports()
    source = query_params.one_of(
        st.segmented_control, _("What to import"), SOURCES, name="source", format_func=lambda s: SOURCES[s]
    )
    {"file": _of_file, "model": of_library}[source]()


def _of_file() -> None:
    """Draw the choice of a file, its preview, and the import."""
    label = _("MoCo, SupContrast, SimCLR, lightly, solo-learn, torchvision, timm or safetensors")
    upload = st.file_uploader(
        label, ENDINGS, help=_("Opened in a separate process, without running any code in the file.")
    )
    typed = path_input(_("or its path on this computer"), "file", placeholder="/path/to/checkpoint.pth.tar")
    a, b, c = st.columns(3)
    dataset = judged_on(a)
    name = b.text_input(_("Name of the run"), placeholder=_("made from the file's name")).strip()
    encoder = c.text_input(_("Encoder, if not detected"), placeholder="timm:NAME").strip()
    if upload is None and not typed:
        return
    arguments = ["--dataset", dataset]
    arguments += ["--encoder", encoder] if encoder else []
    key = cache.digest(upload.file_id if upload else typed, encoder)
    previews: dict[str, ImportRecord] = st.session_state.setdefault("previews", {})
    try:
        with _file(upload, typed) as path:
            if key not in previews:
                with st.spinner(_("Opening it in a separate process…")):
                    previews[key] = preview_import(path, *arguments)
            report = previews[key]
            preview(report)
            if st.button(_("Import"), type="primary", disabled=bool(report["missing"] or report["unlike"])):
                name = name or queue.free_name(default_run_name(report))
                begin(name, [kept_upload(name, upload) if upload else path, *arguments])
    except (ValueError, OSError) as error:
        refused = _("Not imported.")
        st.error(f"{refused}  \n{format.plain(error)}")


@contextmanager
def _file(upload: Any, typed: str) -> Iterator[str]:
    """Yield the path of an upload or of a typed path while it is needed."""
    if upload is None:
        yield typed
        return
    with scratch_folder() as folder:
        path = folder / Path(upload.name).name
        path.write_bytes(upload.getbuffer())
        yield str(path)


# --- a library's model ---------------------------------------------------------------------------


def of_library() -> None:
    """Draw the choice of a model, the source of its weights, and the import."""
    help = _(
        "Any model of torchvision, or of timm if it is installed. A tag after a dot selects one of several weights."
    )
    model = st.text_input(_("Model"), placeholder="torchvision:resnet50, timm:…", help=help).strip()
    if not model:
        st.caption(_("It is opened without training, at its own image size and color normalization."))
        return
    if not model.startswith(("torchvision:", "timm:")):
        model = f"timm:{model}"
    try:
        chosen = [model, *_weights()]
        report = _report(chosen)
        if "matched" in report:
            preview(report)
            _import(chosen, report, bool(report["missing"] or report["unlike"]))
        else:
            _offer(report, chosen)
    except (ValueError, OSError) as error:
        refused = _("Not opened.")
        st.error(f"{refused}  \n{format.plain(error)}")


def _weights() -> list[str]:
    """Let the user choose the source of the weights and the image size; return them as arguments."""
    label = _("Path of its weights, if they are not in the library's own cache")
    file = path_input(label, "weights", placeholder="/path/to/weights.safetensors")
    a, b = st.columns(2, vertical_alignment="bottom")
    help = _("The position embedding of a vision transformer is resized to it.")
    pixels = query_params.number(
        a.number_input, _("Image size in pixels (0: its own)"), 0, 2048, name="", default=0, key=PIXELS, help=help
    )
    random = b.checkbox(_("Random weights"), disabled=bool(file), help=_("An encoder that has learned nothing."))
    arguments = ["--pixels", str(int(pixels))] if pixels else []
    return arguments + (["--weights", file] if file else ["--random"] if random else [])


def _report(chosen: list[str]) -> ImportRecord:
    previews: dict[str, ImportRecord] = st.session_state.setdefault("previews", {})
    if (found := previews.get(key := cache.digest("model", *chosen))) is None:
        with st.spinner(_("Inspecting it in a separate process…")):
            found = preview_import(*chosen)
        if "matched" in found:  # else its weights may be here the next time
            previews[key] = found
    return found


def _offer(about: ImportRecord, chosen: list[str]) -> None:
    """Draw a note about missing weights, and a checkbox and button to download them."""
    text = _("The weights of {encoder} are not on this computer. Choose a weights file or random weights.")
    st.info(format.plain(text.format(encoder=about["encoder"])))
    if not about["host"]:
        return
    template = _("{size} MB") if about["size_is_exact"] else _("about {size} MB")
    size = template.format(size=f"{about['size'] / 1e6:,.0f}")
    license = about["license"] or _("not stated by the library")
    offer = _("Or fetch {size} from {host} (license: {license}).").format(
        size=size, host=about["host"], license=license
    )
    st.info(format.plain(offer))
    fetch = st.checkbox(_("Fetch them: {size}").format(size=size))
    _import([*chosen, "--fetch"], about, not fetch)


def _import(chosen: list[str], report: ImportRecord, disabled: bool) -> None:
    a, b = st.columns(2)
    dataset = judged_on(a)
    name = b.text_input(_("Name of the run"), placeholder=_("made from the model's name")).strip()
    if st.button(_("Import"), type="primary", disabled=disabled):
        begin(name or queue.free_name(default_run_name(report)), [*chosen, "--dataset", dataset])


# --- what an import would make ------------------------------------------------


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
    mine = mine if job else None
    query_params.keep(importing=mine)
    at_work = training.importing()
    for name in at_work:
        if other := training.import_of(name):
            follow_begun(other, _label(name), may_stop=True)
    if mine and job and mine not in at_work:
        if not (why := job.failure()):
            _over(mine)
            st.session_state["run"] = mine
            st.switch_page("pages/explore.py")
        st.warning(format.plain(message("{label}: {why}", label=_label(mine), why=why)))
        with st.container(horizontal=True):
            if st.button(_("Try again"), key=f"again-{mine}"):
                job.start(label=_label(mine))
                st.rerun()
            st.button(_("Dismiss"), key=f"dismiss-{mine}", on_click=_over, args=(mine,))


def _label(name: str) -> str:
    return message("Importing {name}", name=name)


def _over(name: str) -> None:
    query_params.keep(importing=None)
    shutil.rmtree(data_home() / "uploads" / name, ignore_errors=True)


def kept_upload(name: str, upload: Any) -> str:
    """Return the path of a copy of an upload, kept while its import runs; remove other copies. Raises OSError."""
    at_work, uploads = training.importing(), data_home() / "uploads"
    for folder in uploads.glob("*"):
        if folder.name not in at_work:
            shutil.rmtree(folder, ignore_errors=True)
    path = uploads / name / Path(upload.name).name
    storage.write_bytes(path, upload.getbuffer())
    return str(path)
