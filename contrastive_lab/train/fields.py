"""The settings of a training as fields, each with its default and the reason, as resolved by the worker."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from contrastive_core import runs
from contrastive_core.base.errors import BadName
from contrastive_core.data.dataset import LARGEST, RESIZES, SMALL
from contrastive_core.engine import queue
from contrastive_core.runs.train_config import RECIPES, Resolved
from contrastive_lab import locale, query_params
from contrastive_lab.locale import N_, _, ngettext, sentence

OPTIMIZERS = {"sgd": N_("SGD with momentum"), "adamw": "AdamW", "lars": "LARS"}
RECIPE_TITLES = {"short": N_("short runs"), "cifar": "CIFAR", "imagenet": "ImageNet"}
RESIZE_TITLES = {"crop": N_("crop to the middle"), "pad": N_("pad with black")}
VIEWS_TITLES = {"": N_("all alike (default)"), "byol": N_("two strengths, as in BYOL")}


def chosen_before() -> list[str]:
    """Return `key=value` lines of fields that are drawn after their defaults are known but affect other defaults."""
    recipe, optimizer = query_params.current("recipe", RECIPES, ""), query_params.current("optimizer", OPTIMIZERS, "")
    batch = query_params.page_values().get(query_params.key_of("batch"), query_params.requested("batch"))
    lines = [f"recipe={recipe}"] if recipe else []
    lines += [f"optimizer={optimizer}"] if optimizer else []
    return lines + ([f"batch_size={batch}"] if str(batch).isdecimal() else [])


def numbers(found: Resolved | None, temperature: Mapping[str, Any] | None) -> tuple[list[str], int, str]:
    """Draw temperature (a knob; None for a loss without), batch size, learning rate and seed; return `key=value` lines
    of the chosen ones, the seed, and the error."""
    columns = iter(st.columns(2) + st.columns(2))
    lines: list[str] = []

    def field(label: str, name: str, setting: str, usual: Any, why: str, bounds: tuple[float, float, float]) -> Any:
        low, high, step = bounds
        usually = "default" if usual is None else _("{value} (default)").format(value=f"{usual:g}")
        look: dict[str, Any] = {"step": step, "placeholder": usually, "help": why}
        look |= {"format": "%.6g"} if isinstance(low, float) else {}
        value = query_params.number(next(columns).number_input, label, low, high, name=name, default=None, **look)
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


def choose_recipe(found: Resolved | None, published: Mapping[str, Any]) -> list[str]:
    """Draw the recipe, and the settings that were `published` with it; return its `key=value` line if it was chosen."""
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
    if about := published.get(name):
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
    look: dict[str, Any] = {"step": 0.05, "format": "%.2f", "placeholder": _("1 (default)"), "help": help}
    label = _("Layer-wise decay")
    decay = query_params.number(st.number_input, label, 0.01, 1.0, name="layer_decay", default=None, **look)
    help = _(
        "Number of images encoded at a time. Set it when a batch does not fit in memory: the loss still compares the "
        "whole batch, and a step takes about a third longer."
    )
    look = {"step": 32, "placeholder": _("whole batch (default)"), "help": help}
    size = query_params.number(st.number_input, _("Micro-batch"), 2, 65536, name="micro_batch", default=None, **look)
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
