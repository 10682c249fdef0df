"""The settings of a training as fields, each with its default and the reason, as resolved by the worker. The encoder
and its weights are new, from another run, or from a library, and are checked while typing."""

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st

from contrastive_core import runs
from contrastive_core.base.cards import KnobEntry, MethodEntry
from contrastive_core.base.errors import BadName
from contrastive_core.cli.import_checkpoint import ImportRecord
from contrastive_core.cli.import_checkpoint import import_preview as preview_import
from contrastive_core.data.captions import SENTENCE_TOWER
from contrastive_core.data.dataset import LARGEST, RESIZES, SMALL
from contrastive_core.engine import queue, training
from contrastive_core.runs.train_config import RECIPES, Resolved, settings_of
from contrastive_lab import cache, format, locale, query_params, state
from contrastive_lab.locale import N_, _, ngettext, sentence, text
from contrastive_lab.path_input import path_input

OPTIMIZERS = {"sgd": N_("SGD with momentum"), "adamw": "AdamW", "lars": "LARS"}
RECIPE_TITLES = {"short": N_("short runs"), "cifar": "CIFAR", "imagenet": "ImageNet"}
RESIZE_TITLES = {"crop": N_("crop to the middle"), "pad": N_("pad with black")}
VIEWS_TITLES = {"": N_("all alike (default)"), "byol": N_("two strengths, as in BYOL")}
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


def chosen_before() -> list[str]:
    """Return `key=value` lines of fields that are drawn after their defaults are known but affect other defaults."""
    recipe, optimizer = query_params.current("recipe", RECIPES, ""), query_params.current("optimizer", OPTIMIZERS, "")
    batch = query_params.page_values().get(query_params.key_of("batch"), query_params.requested("batch"))
    lines = [f"recipe={recipe}"] if recipe else []
    lines += [f"optimizer={optimizer}"] if optimizer else []
    return lines + ([f"batch_size={batch}"] if str(batch).isdecimal() else [])


def numbers(found: Resolved | None, temperature: KnobEntry | None) -> tuple[list[str], int, str]:
    """Draw temperature (a knob; None for a loss without), batch size, learning rate and seed; return `key=value` lines
    of the chosen ones, the seed, and the error."""
    columns = iter(st.columns(2) + st.columns(2))
    lines: list[str] = []

    def field(label: str, name: str, setting: str, usual: Any, why: str, bounds: tuple[float, float, float]) -> Any:
        low, high, step = bounds
        usually = "default" if usual is None else _("{value} (default)").format(value=f"{usual:g}")
        box, form = next(columns).number_input, "%.6g" if isinstance(low, float) else None
        value = query_params.number(
            box, label, low, high, name=name, default=None, step=step, placeholder=usually, help=why, format=form
        )
        lines.extend([f"{setting}={value:.10g}"] if value is not None else [])
        return value

    config, reasons = (found.config, found.reasons) if found else (None, {})
    if temperature is not None:
        usual = config.loss_knobs.get("temperature", temperature["default"]) if config else None
        why = reasons.get("loss_knobs") or temperature["help"]
        field(_("Temperature τ"), "temperature", "loss.temperature", usual, why, (0.001, 100.0, 0.05))
    usual, why = config.batch_size if config else None, reasons.get("batch_size", "")
    field(_("Batch size"), "batch", "batch_size", usual, why, (2, 65536, 32))
    usual, why = config.lr if config else None, reasons.get("lr", "")
    lr = field(_("Learning rate"), "lr", "lr", usual, why, (0.0, 100.0, 0.001))
    wrong = "" if lr != 0 else _("At a learning rate of 0 nothing is learned.")
    seed = query_params.number(next(columns).number_input, _("Seed"), 0, 2**31 - 1, name="seed", default=0)
    return lines, seed, wrong


def choose_recipe(found: Resolved | None, method: MethodEntry) -> list[str]:
    """Draw the recipe, and the settings that the method's paper published with it; return its `key=value` line if it
    was chosen."""
    name, why = (found.config.training_recipe or "", found.reasons["training_recipe"]) if found else ("", "")
    titles = {"": _("default"), **{one: _(title) for one, title in RECIPE_TITLES.items()}}
    help = _(
        "Optimizer, learning rate, schedule, batch size, head and augmentations: for short runs as measured here, for "
        "CIFAR and ImageNet as published with the method. Your own settings take precedence. The default is chosen "
        "from encoder, image size and epochs."
    )
    chosen = query_params.one_of(
        st.selectbox, _("Recipe"), titles, name="recipe", format_func=titles.__getitem__, help=help
    )
    if not chosen and name:
        text = _("{recipe}: {why}.")
        st.caption(text.format(recipe=_(RECIPE_TITLES[name]), why=locale.text(why)))
    if about := method["published"].get(name):
        text = ngettext("{source}, {epochs} epoch.", "{source}, {epochs} epochs.", about["epochs"])
        st.caption(text.format(source=locale.text(about["source"]), epochs=f"{about['epochs']:,}"))
    elif name not in ("", "short"):
        st.caption(_("No such recipe was published for this method, so the values for short runs are used."))
    return [f"recipe={chosen}"] if chosen else []


def choose_optimizer(found: Resolved | None) -> list[str]:
    """Draw the optimizer; return its `key=value` line if it was chosen."""
    why = found.reasons.get("optimizer", "") if found else ""
    titles = {"": _("default"), **{name: _(text) for name, text in OPTIMIZERS.items()}}
    help = _("{why} LARS is for batches of thousands.").format(why=locale.text(why)).strip()
    optimizer = query_params.one_of(
        st.selectbox, _("Optimizer"), titles, name="optimizer", format_func=titles.get, help=help
    )
    return [f"optimizer={optimizer}"] if optimizer else []


def decay_and_micro_batch() -> list[str]:
    """Draw weight decay and micro-batch; return `key=value` lines of the chosen ones."""
    help = _(
        "Each layer learns at this fraction of the rate of the layer after it. 1 suits a new encoder; 0.65 to 0.75 "
        "preserves a pretrained one."
    )
    box, label, hint = st.number_input, _("Layer-wise decay"), _("1 (default)")
    decay = query_params.number(
        box, label, 0.01, 1.0, name="layer_decay", default=None, step=0.05, format="%.2f", placeholder=hint, help=help
    )
    help = _(
        "Number of images encoded at a time. Set it when a batch does not fit in memory: the loss still compares the "
        "whole batch, and a step takes about a third longer."
    )
    label, hint = _("Micro-batch"), _("whole batch (default)")
    size = query_params.number(
        box, label, 2, 65536, name="micro_batch", default=None, step=32, placeholder=hint, help=help
    )
    lines = [f"layer_decay={decay:g}"] if decay is not None else []
    return lines + ([f"micro_batch={size}"] if size is not None else [])


def image_form() -> list[str]:
    """Draw `image_size` and `resize` for a folder's images; return them as `key=value` lines."""
    size = query_params.number(
        st.number_input,
        _("Image size in pixels"),
        4,
        LARGEST,
        name="image_size",
        default=None,
        placeholder=_("size the encoder expects"),
        help=_(
            "224 for ImageNet and timm encoders, unless they require another size. Otherwise the median of the "
            "images' shorter sides, at most {small}."
        ).format(small=SMALL),
    )
    resize = query_params.one_of(
        st.selectbox, _("Resize"), RESIZES, name="resize", format_func=RESIZE_TITLES.__getitem__
    )
    return [f"resize={resize}", *([f"image_size={size}"] if size else [])]


def further_settings() -> list[str]:
    """Draw a field for settings without their own; return `key=value` lines, including those of the views."""
    help = _(
        "Two strengths: view 1 is always blurred, view 2 rarely. In some second views, bright pixels are "
        "inverted (solarized)."
    )
    views = query_params.one_of(
        st.selectbox, _("Views"), list(VIEWS_TITLES), name="views", format_func=VIEWS_TITLES.__getitem__, help=help
    )
    extra = query_params.text(
        st.text_area,
        _("Further settings, one per line"),
        name="further",
        placeholder="loss.margin=0.2\nmethod.momentum=0.99\nrecipe.crop_low=0.2",
        help=_("Settings without a field here, by their names in the settings of a run."),
    )
    lines = [line.strip() for line in extra.splitlines() if line.strip()]
    return ([f"recipe.views={views}"] if views else []) + lines


def wrong_name(name: str) -> str:
    """Return the reason why a new run cannot have this name; "" if it can, or for an automatic name."""
    if not name:
        return ""
    try:
        runs.new_name(name)
    except BadName as error:
        return sentence(error)
    taken = name in queue.taken_names()
    return _("there is a run {name} already; choose another name").format(name=f"{name!r}") if taken else ""


# --- the encoder and its weights ---


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


def _known(name: str, about: ImportRecord, file: str) -> str:
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


def _looked_up(name: str, file: str) -> ImportRecord:
    """Return the library's description of a model, or the contents of a file, cached for the session. Raises
    ValueError, OSError."""
    words = [name, *(("--weights", file) if file else ())]
    changed = Path(file).expanduser().stat().st_mtime_ns if file else 0
    known: dict[str, ImportRecord | str] = st.session_state.setdefault("encoders looked up", {})  # or the error
    key = cache.digest(*words, changed)
    if key not in known:
        with st.spinner(_("Looking it up…")):
            try:
                known[key] = preview_import(*words)
            except ValueError as error:
                known[key] = sentence(error)
    if isinstance(found := known[key], str):
        raise ValueError(found)
    return found


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
