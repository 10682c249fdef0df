"""The settings of a training as fields, each with its default and the reason, as resolved by the worker. The encoder is
new, from another run, or from a library, and is checked while typing."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from contrastive_core.base.cards import Catalog, KnobEntry, MethodEntry
from contrastive_core.cli.import_checkpoint import ImportRecord
from contrastive_core.cli.import_checkpoint import import_preview as preview_import
from contrastive_core.data.dataset import LARGEST, RESIZES, SMALL
from contrastive_core.engine import training
from contrastive_core.runs.train_config import RECIPES, Resolved, settings_of
from contrastive_lab import format, locale, query_params, state
from contrastive_lab.locale import N_, _, ngettext, sentence

DEFAULT_LOSS = N_("the method's default")
OPTIMIZERS = {"sgd": N_("SGD with momentum"), "adamw": "AdamW", "lars": "LARS"}
RECIPE_TITLES = {"short": N_("short runs"), "cifar": "CIFAR", "imagenet": "ImageNet"}
RESIZE_TITLES = {"crop": N_("crop to the middle"), "pad": N_("pad with black")}
LIBRARY = N_("another one, of timm or torchvision…")
NEW = N_("new, with random weights")
LIBRARIES = ("timm:", "torchvision:")
MODELS = "timm:vit_small_patch16_224 or torchvision:resnet50"


@dataclass(frozen=True)
class Advanced:
    """The choices in the advanced fields: `lines` and `further` are `key=value`; `loss` is "" for the method's own;
    `wrong` is why the encoder cannot be trained."""

    loss: str
    lines: list[str]
    wrong: str
    processes: int
    beside: bool
    further: list[str]
    in_recipe: DeltaGenerator
    in_optimizer: DeltaGenerator


def advanced(catalog: Catalog, has_files: bool) -> Advanced:
    """Draw the advanced fields, with placeholders for those whose defaults depend on them."""
    with st.expander(_("Advanced")):
        in_recipe = st.container()
        titles = {name: about["title"] for name, about in catalog["losses"].items()}
        loss = query_params.one_of(st.selectbox, _("Loss"), {DEFAULT_LOSS: DEFAULT_LOSS, **titles}, name="loss")
        loss = "" if loss == DEFAULT_LOSS else loss
        in_optimizer = st.container()
        lines = [f"loss={loss}"] if loss else []
        encoder, wrong = choose_encoder(catalog["encoders"])
        processes, help = 1, _("The batch is split across the GPUs; loss and weights stay the same.")
        if (count := training.gpus()) > 1:
            processes = query_params.number(st.number_input, _("GPUs"), 1, count, name="gpus", default=1, help=help)
        beside = query_params.switch(st.checkbox, _("Start now, parallel to the current run"), name="beside")
        further = further_settings(has_files)
    return Advanced(
        loss=loss,
        lines=[*lines, *encoder],
        wrong=wrong,
        processes=processes,
        beside=beside,
        further=further,
        in_recipe=in_recipe,
        in_optimizer=in_optimizer,
    )


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


def recipe_and_optimizer(found: Resolved | None, method: MethodEntry, fields: Advanced) -> list[str]:
    """Draw the recipe with the settings that the method's paper published with it, and the optimizer, at their places;
    return the `key=value` lines of those that were chosen."""
    name, reasons = (found.config.training_recipe or "", found.reasons) if found else ("", {})
    titles = {"": _("default"), **{one: _(title) for one, title in RECIPE_TITLES.items()}}
    help = _(
        "Optimizer, learning rate, schedule, batch size, head and augmentations: for short runs as measured here, for "
        "CIFAR and ImageNet as published with the method. Your own settings take precedence. The default is chosen "
        "from encoder, image size and epochs."
    )
    with fields.in_recipe:
        recipe = query_params.one_of(st.selectbox, _("Recipe"), titles, name="recipe", help=help)
        if not recipe and name:
            why = locale.text(reasons["training_recipe"])
            st.caption(_("{recipe}: {why}.").format(recipe=_(RECIPE_TITLES[name]), why=why))
        if about := method["published"].get(name):
            text = ngettext("{source}, {epochs} epoch.", "{source}, {epochs} epochs.", about["epochs"])
            st.caption(text.format(source=locale.text(about["source"]), epochs=f"{about['epochs']:,}"))
        elif name not in ("", "short"):
            st.caption(_("No such recipe was published for this method, so the values for short runs are used."))
    titles = {"": _("default"), **{one: _(title) for one, title in OPTIMIZERS.items()}}
    reason = _("{why} LARS is for batches of thousands.").format(why=locale.text(reasons.get("optimizer", "")))
    with fields.in_optimizer:
        optimizer = query_params.one_of(st.selectbox, _("Optimizer"), titles, name="optimizer", help=reason.strip())
    return [f"{key}={value}" for key, value in (("recipe", recipe), ("optimizer", optimizer)) if value]


def further_settings(has_files: bool) -> list[str]:
    """Draw the form of images from files, the micro-batch, and a field for settings without their own; return
    `key=value` lines."""
    lines = []
    if has_files:
        text = _(
            "224 for ImageNet and timm encoders, unless they require another size. Otherwise the median of the "
            "images' shorter sides, at most {small}."
        )
        label, hint, help = _("Image size in pixels"), _("size the encoder expects"), text.format(small=SMALL)
        size = query_params.number(
            st.number_input, label, 4, LARGEST, name="image_size", default=None, placeholder=hint, help=help
        )
        resize = query_params.one_of(st.selectbox, _("Resize"), RESIZE_TITLES, name="resize")
        lines += [f"image_size={size}"] if size else []
        lines += [f"resize={resize}"] if resize != RESIZES[0] else []
    help = _(
        "Number of images encoded at a time. Set it when a batch does not fit in memory: the loss still compares the "
        "whole batch, and a step takes about a third longer."
    )
    label, hint = _("Micro-batch"), _("whole batch (default)")
    micro = query_params.number(
        st.number_input, label, 2, 65536, name="micro_batch", default=None, step=32, placeholder=hint, help=help
    )
    lines += [f"micro_batch={micro}"] if micro is not None else []
    extra = query_params.text(
        st.text_area,
        _("Further settings, one per line"),
        name="further",
        placeholder="layer_decay=0.65\nmethod.momentum=0.99\nrecipe.views=byol",
        help=_("Settings without a field here, by their names in the settings of a run."),
    )
    return lines + [line.strip() for line in extra.splitlines() if line.strip()]


# --- the encoder ---


def choose_encoder(names: Sequence[str]) -> tuple[list[str], str]:
    """Draw the fields of the encoder; return its `key=value` lines, and why it cannot be trained."""
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
        return [f"encoder={name}", f"start={run.name}", *knobs, *(["start_head=on"] if head else [])], ""
    encoder = query_params.one_of(
        st.selectbox, _("Encoder"), [*names, LIBRARY], name="encoder", text=lambda n: "other" if n == LIBRARY else n
    )
    if encoder != LIBRARY:
        return [f"encoder={encoder}"], ""
    help = _("Any model of torchvision, or of timm if it is installed. Import a file of its weights on Runs.")
    model = query_params.text(st.text_input, _("Model"), name="model", placeholder=MODELS, help=help).strip()
    if not model:
        return [], _("Enter the model's name above, for example timm:resnet18.")
    name = model if model.startswith(LIBRARIES) else f"timm:{model}"
    known: dict[str, ImportRecord | str] = st.session_state.setdefault("encoders looked up", {})  # or the error
    if name not in known:
        with st.spinner(_("Looking it up…")):
            try:
                known[name] = preview_import(name)
            except ValueError as error:
                known[name] = sentence(error)
            except OSError as error:  # of a disk or a folder, which the user can mend
                return [], sentence(error)
    if isinstance(about := known[name], str):
        return [], about
    text = _("{name} is available. It starts from random weights.")
    if pixels := about.get("pixels"):
        text = _("{name} is available. It starts from random weights and expects images of {pixels} pixels.")
    st.caption(format.plain(text.format(name=name, pixels=pixels)))
    return [f"encoder={name}"], ""
