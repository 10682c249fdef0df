"""The settings that a run ends up with: given ones, else the method's defaults for the data set."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import torch

from contrastive_core import losses, methods
from contrastive_core.data.datasets import Dataset
from contrastive_core.device import wants_bf16
from contrastive_core.errors import BadSetting
from contrastive_core.messages import N_, message
from contrastive_core.methods import DatasetInfo
from contrastive_core.methods._base import Default, fitting_views
from contrastive_core.methods._moco import queue_size
from contrastive_core.models.libraries import LIBRARIES, fixed_pixels, pretrained
from contrastive_core.models.sentence_tower import with_whole_path
from contrastive_core.records import runs
from contrastive_core.records.cards import Published
from contrastive_core.records.recipe import Recipe, view_changes
from contrastive_core.records.train_config import TrainConfig
from contrastive_core.records.training_recipes import BatchRate, batch_of, rate_of, suggested, warmup_of
from contrastive_core.registry import Knob, knobs_of

FIELDS = ("training_recipe", "batch_size", "optimizer", "lr", "weight_decay", "schedule", "warmup", "loss")
SET = N_("set for this run")
NO_DEFAULT: Default = ({}, "")
SCORED_EPOCHS = 100  # of a run, at most
LEAST_IN_SPLIT = 8  # images in a part of a split batch norm


def resolve(config: TrainConfig, dataset: Dataset, device: torch.device) -> tuple[TrainConfig, dict[str, str]]:
    """The config with the method's defaults for this data set filled in, and why each is so."""
    cls = methods.get(config.method)
    defaults = defaults_of(config, dataset_info(dataset))
    values = {name: value for name, (value, _) in defaults.items()}
    filled: dict[str, Any] = {name: values.get(name) for name in FIELDS if getattr(config, name) is None}
    usual_loss = values.get("loss") or cls.card.default_loss
    loss = config.loss or usual_loss
    loss_knobs = values.get("loss_knobs", cls.card.loss_knobs) if loss == usual_loss else {}
    method_knobs = {**values.get("method_knobs", {}), **config.method_knobs}
    method_knobs = {name: with_whole_path(value) for name, value in method_knobs.items()}
    filled |= {
        "loss": loss,
        "loss_knobs": none_as_no_value(losses.knobs(loss), {**loss_knobs, **config.loss_knobs}),
        "method_knobs": none_as_no_value(methods.knobs(config.method), method_knobs),
        "recipe": dataclasses.asdict(create_recipe(values.get("recipe", Recipe()), config.recipe)),
        "encoder_knobs": _as_made_for(config, dataset),
        "amp": wants_bf16(device) if config.amp is None else config.amp,
        "threads": config.threads or torch.get_num_threads(),
        "warmup": filled.get("warmup", config.warmup) or 0.0,
        "monitor_every": (scored := config.monitor_every or -(-config.epochs // SCORED_EPOCHS)),
        "snapshot_every": scored if config.snapshot_every is None else config.snapshot_every,
    }
    if dataset.form is not None:  # that of its images, whoever chose it
        filled |= {"image_size": dataset.form.size, "resize": dataset.form.resize}
    resolved = dataclasses.replace(config, **filled)
    reasons = {name: _reason(name, default, config) for name, default in defaults.items()}
    if loss != usual_loss:
        reasons["loss_knobs"] = SET if config.loss_knobs else message("the defaults of {loss}", loss=loss)
    return resolved, reasons


def defaults_of(config: TrainConfig, facts: DatasetInfo) -> dict[str, Default]:
    """Every default of a run, of the recipe that it names or that suits it, each with its reason."""
    cls = methods.get(config.method)
    short = cls.defaults(facts)
    name, why = suggested(config.encoder, min(facts.image_shape[1:]), config.epochs, bool(config.start))
    if config.training_recipe:
        name, why = config.training_recipe, SET
    published = cls.card.published.get(name)
    if name != "short" and published is None:
        why = message("{why}; nothing like it was published for {method}: as short runs", why=why, method=config.method)
    defaults = short | (_of_published(published, name, config, facts, short) if published else {})
    batch_size = config.batch_size or defaults["batch_size"][0]
    lr, weight_decay = short["lr"], short["weight_decay"]
    usual = BatchRate("adamw", lr[0], short["batch_size"][0], weight_decay[0], lr[1])
    rate = rate_of(config.optimizer or "", usual, published)
    return defaults | {
        "training_recipe": (name, why),
        "lr": (rate.at(batch_size), rate.why(batch_size)),
        "weight_decay": weight_decay if rate is usual else (rate.weight_decay, rate.source),
    }


def _of_published(
    p: Published, name: str, config: TrainConfig, facts: DatasetInfo, short: Mapping[str, Default]
) -> dict[str, Default]:
    """What a published recipe sets otherwise than short runs have it, as far as the data set allows."""
    least = methods.get(config.method).card.least_batch
    batch_size, why_batch = batch_of(p, name, facts.n_train, least)
    knobs = {**short.get("method_knobs", NO_DEFAULT)[0], **p.method_knobs}
    if "queue" in knobs:
        knobs["queue"] = queue_size(facts.n_train, knobs["queue"])
    if "bn_splits" in knobs:
        most = 1 if config.micro_batch else (config.batch_size or batch_size) // LEAST_IN_SPLIT
        knobs["bn_splits"] = max(1, min(knobs["bn_splits"], most))
    loss_knobs = {**short.get("loss_knobs", NO_DEFAULT)[0], **p.loss_knobs}
    of_loss: dict[str, Default] = {"loss_knobs": (loss_knobs, p.source)} if p.loss_knobs else {}
    return of_loss | {
        "batch_size": (batch_size, why_batch),
        "optimizer": (p.optimizer, p.source),
        "schedule": (p.schedule, p.source),
        "warmup": (warmup_of(p, config.epochs), p.source),
        "recipe": fitting_views(create_recipe(Recipe(), p.views), p.source, facts),
        "method_knobs": (knobs, p.source),
    }


def _as_made_for(config: TrainConfig, dataset: Dataset) -> dict[str, Any]:
    """The encoder's knobs, with the only image size and the scale of the channels that its model, or start run, has."""
    knobs, name = config.encoder_knobs, config.encoder
    if name.partition(":")[0] not in LIBRARIES:
        return knobs
    filled: dict[str, Any] = {}
    if not knobs.get("pixels") and (pixels := fixed_pixels(name)):
        filled["pixels"] = pixels
    if "colors" not in knobs and config.start:
        before = runs.load(config.start).config.get("encoder_knobs") or {}
        filled["colors"] = before.get("colors", "plain")
    elif "colors" not in knobs:
        own, channels = pretrained(name)[0], dataset.images.shape[1]
        if len(own.mean) == (3 if knobs.get("gray_as_color") else channels):
            filled["colors"] = own.colors
    return {**knobs, **filled}


def usual_settings(method: str, dataset: Dataset) -> dict[str, Any]:
    """The settings that a method names for a data set, without the reasons."""
    defaults = methods.get(method).defaults(dataset_info(dataset))
    return {name: value for name, (value, _) in defaults.items()}


def dataset_info(dataset: Dataset, classes: int | None = None) -> DatasetInfo:
    """Return the facts that defaults depend on. `classes`: of the training images, if fewer are left."""
    _, c, h, w = dataset.images.shape
    count = len(dataset.classes) if classes is None else classes
    return DatasetInfo((c, h, w), len(dataset), count, dataset.captions is not None)


def create_recipe(base: Recipe, changes: Mapping[str, Any]) -> Recipe:
    """The recipe with checked changes. Raises BadSetting for a setting that it does not have."""
    knobs = knobs_of(Recipe)
    for name in changes:
        if name not in knobs:
            values = {"name": f"{name!r}", "knobs": ", ".join(knobs)}
            raise BadSetting("a recipe has no setting {name}; it has: {knobs}", **values)
    made = dataclasses.replace(base, **{k: knobs[k].check(k, v) for k, v in changes.items()})
    view_changes(made.views)
    return made


def none_as_no_value(knobs: Mapping[str, Knob], values: Mapping[str, Any]) -> dict[str, Any]:
    """The word "none" means no value, unless it is one of the knob's choices."""
    return {k: None if v == "none" and k in knobs and not knobs[k].choices else v for k, v in values.items()}


def _reason(name: str, default: Default, config: TrainConfig) -> str:
    """Why a setting is as it is: the default's reason only where the default was taken."""
    value, why = default
    setting = getattr(config, name)
    if not isinstance(setting, Mapping):
        return why if setting is None or setting == value else SET
    usual = dataclasses.asdict(value) if isinstance(value, Recipe) else value
    changed = [k for k, v in setting.items() if k not in usual or usual[k] != v]
    if not changed:
        return why
    return SET if set(usual) <= set(changed) else f"{why}; {SET}: {', '.join(changed)}"
