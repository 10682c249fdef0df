"""The encoder to train and its weights: new, from another run, or from a library; checked while typing."""

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st

from contrastive_core.cli.import_checkpoint import import_preview as preview_import
from contrastive_core.data.captions import SENTENCE_TOWER
from contrastive_core.data.dataset import LARGEST
from contrastive_core.engine import queue, training
from contrastive_core.runs.train_config import settings_of
from contrastive_lab import cache, format, query_params, state
from contrastive_lab.locale import N_, _, sentence, text
from contrastive_lab.path_input import path_input

LIBRARY = N_("another one, of timm or torchvision…")
NEW = N_("new, with random weights")
LIBRARIES = ("timm:", "torchvision:")
TOWER_FOLDER = "sentence-transformers"
TOWERS = {
    "": N_("small transformer (default)"),
    "bag_of_words": N_("bag of words"),
    TOWER_FOLDER: N_("folder of sentence-transformers…"),
}
MODELS = "timm:vit_small_patch16_224 or torchvision:resnet50"


@dataclass(frozen=True)
class Encoder:
    """The choice of an encoder. `name` as on the command line; `settings`: further `key=value` lines; `weights`: a file
    to import as a run first; `wrong`: why it cannot be trained."""

    name: str
    settings: tuple[str, ...] = ()
    weights: str = ""
    wrong: str = ""


def choose_encoder(names: Sequence[str]) -> Encoder:
    """Draw the fields, each with its error beside it."""
    runs = [run for run in state.all_runs() if run.config.get("encoder") and not run.is_recording]
    by_name = {run.name: run for run in runs if run.weights.exists()}
    words, help = {NEW: ""}, _("Another run's encoder, with its weights, instead of a new one.")
    start = query_params.one_of(
        st.selectbox, _("Start from"), [NEW, *by_name], name="start", text=lambda n: words.get(n, n), help=help
    )
    if start != NEW:
        run = by_name[start]
        name, data = str(run.config["encoder"]), format.data_of(run.config.get("dataset"))
        st.caption(format.plain(_("Its encoder is {name}, trained on {data}.").format(name=name, data=data)))
        help = _("The head after the encoder. It fits if the method's head has the same shape.")
        head = query_params.switch(st.checkbox, _("Take its head too"), name="head", help=help)
        knobs = settings_of({"encoder_knobs": run.config.get("encoder_knobs") or {}})[1::2]  # it has the run's form
        return Encoder(name, (f"start={run.name}", *knobs, *(["start_head=on"] if head else [])))
    encoder = query_params.one_of(
        st.selectbox, _("Encoder"), [*names, LIBRARY], name="encoder", text=lambda n: "other" if n == LIBRARY else n
    )
    return _of_library() if encoder == LIBRARY else Encoder(encoder)


def opened_weights(encoder: Encoder, data: str) -> tuple[str, ...]:
    """Import a file of weights as a run; return the arguments of a training from it. Raises ValueError, OSError."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(encoder.weights).stem[:40]).strip("-._")
    name = queue.free_name(f"{stem or 'file'}-weights")
    training.start_import(name, [encoder.name, "--weights", encoder.weights, "--dataset", data])
    return ("--start", name)


def _of_library() -> Encoder:
    help = _("Any model of torchvision, or of timm if it is installed.")
    model = query_params.text(st.text_input, _("Model"), name="model", placeholder=MODELS, help=help).strip()
    label = _("A file of its weights; without one they are random")
    file = path_input(label, "weights", placeholder="/path/to/weights.safetensors")
    if not model:
        return Encoder("", wrong=_("Enter the model's name above, for example timm:resnet18."))
    name = model if model.startswith(LIBRARIES) else f"timm:{model}"
    try:
        about = _looked_up(name, file)
    except (ValueError, OSError) as error:
        return Encoder(name, wrong=sentence(error))
    if bad := [*about.get("missing", ()), *about.get("unlike", ())] if file else []:
        wrong = _("The file does not match: {count} tensors are missing or have another shape, for example {example}.")
        return Encoder(name, wrong=wrong.format(count=len(bad), example=bad[0]))
    st.caption(format.plain(_known(name, about, file)))
    return Encoder(name, weights=file)


def _known(name: str, about: dict[str, Any], file: str) -> str:
    size = ""
    if pixels := about.get("pixels"):
        template = _(" It expects images of {pixels} pixels. Images of a folder are resized to that.")
        if pixels > LARGEST:
            template = _(
                " It expects images of {pixels} pixels. Images of a folder are stored at {largest} pixels, the "
                "maximum here, and scaling them up adds no detail."
            )
        size = template.format(pixels=pixels, largest=LARGEST)
    if not file:
        return _("{name} is available. It starts from random weights.{size}").format(name=name, size=size)
    matched = about["matched"]
    return _("{name}: {matched} tensors of the file fit.{size}").format(name=name, matched=matched, size=size)


def _looked_up(name: str, file: str) -> dict[str, Any]:
    """Return the library's description of a model, or the contents of a file, cached for the session. Raises
    ValueError, OSError."""
    words = [name, *(("--weights", file) if file else ())]
    changed = Path(file).expanduser().stat().st_mtime_ns if file else 0
    known = st.session_state.setdefault("encoders looked up", {})
    key = cache.digest(*words, changed)
    if key not in known:
        with st.spinner(_("Looking it up…")):
            try:
                known[key] = preview_import(*words)
            except ValueError as error:
                known[key] = {"wrong": sentence(error)}
    if why := known[key].get("wrong"):
        raise ValueError(why)
    return dict(known[key])


# --- the tower of captions --------------------------------------------------------------------------


def choose_text_tower(needs_captions: bool) -> tuple[list[str], str]:
    """Draw the field of the text tower, if the method needs captions; return its settings and its error."""
    if not needs_captions:
        return [], ""
    help = _("Encoder of the captions. A pretrained one knows words that no caption has.")
    kind = query_params.one_of(
        st.selectbox, _("Text tower"), list(TOWERS), name="text_tower", format_func=lambda k: text(TOWERS[k]), help=help
    )
    if kind != TOWER_FOLDER:
        return ([f"method.text_encoder={kind}"] if kind else []), ""
    folder = path_input(
        _("Folder of the text tower"),
        "text_tower_folder",
        placeholder="/path/to/all-MiniLM-L6-v2",
        help=_("A model of sentence-transformers on this machine, with model.safetensors. Nothing is downloaded."),
    )
    help = _("Train it too, at 1 % of the learning rate. Off: it stays as it is, and only its head is trained.")
    trains = query_params.switch(st.checkbox, _("Train the text tower"), name="train_text_tower", help=help)
    settings = [f"method.text_tower={SENTENCE_TOWER}{folder}", f"method.train_text_tower={'on' if trains else 'off'}"]
    return settings, wrong_tower(folder)


def wrong_tower(folder: str) -> str:
    """Return the reason why a folder contains no text tower, judging by file names; "" if it may."""
    if not folder:
        return _("Enter the folder of the text tower.")
    with contextlib.suppress(OSError, ValueError, RuntimeError):
        path = Path(folder).expanduser()
        if (path / "modules.json").is_file():
            return ""
        if path.is_dir():
            template = _("{folder} is not a model of sentence-transformers: it has no modules.json.")
            return template.format(folder=folder)
    return _("There is no folder {folder}.").format(folder=folder)
