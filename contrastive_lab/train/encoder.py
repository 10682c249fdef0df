"""Which encoder is trained, from which weights: a new one, another run's, or a library's; looked up as typed."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st

from contrastive_core.engine import importing, queue
from contrastive_core.engine.importing import preview as preview_import
from contrastive_core.engine.run_tools import misfit
from contrastive_core.records import frozen
from contrastive_core.records.frozen import FrozenEncoder
from contrastive_core.records.run import Run
from contrastive_core.records.train_config import LARGEST, TrainConfig, settings_of, with_settings
from contrastive_lab import cache, format, query_params, state
from contrastive_lab.locale import N_, _, sentence
from contrastive_lab.path_input import path_input

LIBRARY = N_("another one, of timm or torchvision…")
NEW = N_("new, with random weights")
LIBRARIES = ("timm:", "torchvision:")
MODELS = "timm:vit_small_patch16_224 or torchvision:resnet50"


@dataclass(frozen=True)
class Encoder:
    """`name` as the command line takes it; `arguments` besides; `weights`: a file to be opened as a run first;
    `start`: the run it starts from, and the `place` beside that field; `wrong`: why it cannot be trained."""

    name: str
    arguments: tuple[str, ...] = ()
    weights: str = ""
    wrong: str = ""
    start: Run | None = None
    place: Any = None
    pixels: int | None = None  # of a side that its library names
    opened: tuple[str, ...] = ()  # what `import` opens, where that is not the library's model with `weights`


def choose_encoder(names: Sequence[str]) -> Encoder:
    """The fields, each with what is wrong with it beside it."""
    runs = [run for run in state.all_runs() if run.config.get("encoder") and not run.is_recording]
    by_name = {run.name: run for run in runs if run.weights.exists()}
    words, help = {NEW: ""}, _("Another run's encoder, with its weights, instead of a new one.")
    named = {_start_of(e): e for e in frozen.read_list() if not e.name.startswith(frozen.RUN)}
    starts = [NEW, *by_name, *named]
    start = query_params.one_of(
        st.selectbox, _("Start from"), starts, name="start", text=lambda n: words.get(n, n), help=help
    )
    if start in named:
        return _of_frozen(named[start])
    if start != NEW:
        return _of_run(by_name[start])
    encoder = query_params.one_of(
        st.selectbox, _("Encoder"), [*names, LIBRARY], name="encoder", text=lambda n: "other" if n == LIBRARY else n
    )
    return _of_library() if encoder == LIBRARY else Encoder(encoder)


def opened_weights(encoder: Encoder, data: str) -> tuple[str, ...]:
    """Import a file of weights as a run; gives the arguments of a training from it. Raises ValueError, OSError."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(encoder.weights).stem[:40]).strip("-._")
    name = queue.free_name(f"{stem or 'file'}-weights")
    words = encoder.opened or (encoder.name, "--weights", encoder.weights)
    importing.begin(name, [*words, "--dataset", data])
    return ("--start", name)


def wrong_start(encoder: Encoder, channels: int | None, further: list[str]) -> str:
    """Why the run to start from does not fit images of so many channels (None: unknown); said at its field."""
    if encoder.start is None:
        return ""
    knobs = [word for word in encoder.arguments if word.startswith("encoder.")]
    try:
        config = with_settings(TrainConfig("simclr"), knobs + further)
    except ValueError:
        return ""  # what is wrong with them is said beside them
    if why := misfit(encoder.start, channels, config.encoder_knobs):
        encoder.place.error(format.plain(why))
    return why


def _of_run(run: Run) -> Encoder:
    name, place = str(run.config["encoder"]), st.container()
    data = format.data_of(run.config.get("dataset"))
    st.caption(format.plain(_("Its encoder is {name}, trained on {data}.").format(name=name, data=data)))
    help = _("The head after the encoder. It fits if the method's head has the same shape.")
    head = query_params.switch(st.checkbox, _("Take its head too"), name="head", help=help)
    knobs = settings_of({"encoder_knobs": run.config.get("encoder_knobs") or {}})  # it has the run's form
    arguments = ("--start", run.name, *knobs, *(("--set", "start_head=on") if head else ()))
    return Encoder(name, arguments, start=run, place=place)


def _start_of(encoder: FrozenEncoder) -> str:
    return frozen.source_title(encoder.source)


def _of_frozen(encoder: FrozenEncoder) -> Encoder:
    """A frozen encoder that the user named: its weights are opened as a run first."""
    words = (encoder.name, *(("--weights", encoder.weights) if encoder.weights else ()))
    try:
        about = _looked_up(encoder.name, encoder.weights)
    except (ValueError, OSError) as error:
        return Encoder(encoder.title, wrong=sentence(error))
    name = str(about.get("encoder", encoder.title))
    st.caption(format.plain(_("Its encoder is {name}. Training goes on from its weights.").format(name=name)))
    return Encoder(name, weights=encoder.title, opened=words, pixels=about.get("pixels") or None)


def _of_library() -> Encoder:
    help = _("Any model of torchvision, or of timm where it is installed.")
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
    return Encoder(name, weights=file, pixels=about.get("pixels") or None)


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
    """What its library says of a model, or what a file holds, kept for the session. Raises ValueError, OSError."""
    words = [name, *(("--weights", file) if file else ())]
    file = file or ("" if name.startswith(LIBRARIES) else name)
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
