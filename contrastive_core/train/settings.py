"""The settings of a training: `resolve` fills in every default and gives the reason for each.

A value comes from the settings, else from a published recipe, else from the method's defaults for short runs. Learning
rates scale with the batch size: linearly for SGD and LARS (Goyal et al. 2017, arXiv 1706.02677), with its square root
for AdamW (Malladi et al. 2022, arXiv 2205.10287)."""

import dataclasses
import os
import shutil
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from contrastive_core import losses, methods, runs
from contrastive_core.base.device import wants_bf16
from contrastive_core.base.errors import BadSetting
from contrastive_core.base.messages import N_, message
from contrastive_core.base.registry import Knob, Knobs, Published, fitting, knobs_of
from contrastive_core.data import datasets
from contrastive_core.data.dataset import LARGEST, SMALL, Dataset, DatasetInfo, form_of, usual_side
from contrastive_core.data.image_cache import fits_on_disk, median_side
from contrastive_core.data.recipe import Recipe, view_changes
from contrastive_core.losses import Loss
from contrastive_core.methods._asymmetric import queue_size
from contrastive_core.methods._base import Default, fitting_views
from contrastive_core.models.libraries import LIBRARIES, fixed_pixels, pretrained
from contrastive_core.models.text_tower import with_whole_path
from contrastive_core.runs.train_config import EPOCHS, Resolved, TrainConfig, usual_epochs
from contrastive_core.train.optim import OPTIMIZERS, SCHEDULES

FIELDS = ("training_recipe", "batch_size", "optimizer", "lr", "weight_decay", "schedule", "warmup", "loss")
SET = N_("set for this run")
NO_DEFAULT: Default = ({}, "")
SCORED_EPOCHS = 100  # of a run, at most
LEAST_IN_SPLIT = 8  # images in a part of a split batch norm
LONG = 100  # epochs from which on a published recipe is used: the shortest that was published
LARGE = 96  # pixels of a side from which on it is ImageNet's
ONE_GPU = 256  # images of ImageNet's size in a batch, whatever was published
WARMUP_PART = 0.1  # of the epochs at most
COMPILERS = ("c++", "g++", "clang++")  # any of which torch.compile can use
IMAGENET = 224  # pixels of a side


RATES = {  # learning rate, its batch size, weight decay and source of optimizers that a recipe does not choose itself
    "lars": (0.3, 256, 1e-6, N_("SimCLR's with LARS")),
    "sgd": (0.06, 128, 5e-4, N_("SimCLR's on CIFAR-10 with SGD")),
}


def resolve(
    config: TrainConfig, facts: DatasetInfo, device: torch.device | None = None, processes: int = 1
) -> Resolved:
    """Fill in the defaults of the method for a data set. `device`: of the training; default: the CPU. Raises
    ValueError."""
    cls = methods.get(config.method)
    defaults = defaults_of(config, facts)
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
        "encoder_knobs": _as_made_for(config, facts.image_shape[0]),
        "amp": wants_bf16(device or torch.device("cpu")) if config.amp is None else config.amp,
        "threads": config.threads or torch.get_num_threads(),
        "warmup": filled.get("warmup", config.warmup) or 0.0,
        "monitor_every": (scored := config.monitor_every or -(-config.epochs // SCORED_EPOCHS)),
        "snapshot_every": scored if config.snapshot_every is None else config.snapshot_every,
    }
    if facts.form is not None:  # that of its images, whoever chose it
        filled |= {"image_size": facts.form.size, "resize": facts.form.resize}
    resolved = dataclasses.replace(config, **filled)
    reasons = {name: _reason(getattr(config, name), *default) for name, default in defaults.items()}
    if config.epochs == (usual := usual_epochs(config.method, config.dataset, config.encoder, bool(config.start))):
        reasons |= {"epochs": why_epochs(config.method, config.dataset, usual)} if usual != EPOCHS else {}
    if loss != usual_loss:
        reasons["loss_knobs"] = SET if config.loss_knobs else message("the defaults of {loss}", loss=loss)
    return Resolved(resolved, reasons, notes(resolved, facts), refusal(resolved, facts, processes))


def defaults_of(config: TrainConfig, facts: DatasetInfo) -> dict[str, Default]:
    """Return every default of a run, from the recipe that is named or suggested, each with its reason."""
    card = methods.get(config.method).card
    short = methods.get(config.method).defaults(facts)
    name, why = suggested(config.encoder, min(facts.image_shape[1:]), config.epochs, bool(config.start))
    if config.training_recipe:
        name, why = config.training_recipe, SET
    defaults, optimizer = dict(short), "adamw"
    (lr, source), (weight_decay, why_decay), per = short["lr"], short["weight_decay"], short["batch_size"][0]
    if (p := card.published.get(name)) is not None:
        defaults |= _published_defaults(p, name, config, facts, short)
    elif name != "short":
        text = N_("{why}; no such recipe was published for {method}, so the values for short runs are used")
        why = message(text, why=why, method=config.method)
    if p is not None and config.optimizer in (None, p.optimizer):
        optimizer, lr, per, weight_decay, source = p.optimizer, p.lr, p.per, p.weight_decay, p.source
        why_decay = source
    elif config.optimizer in RATES:
        optimizer = config.optimizer
        lr, per, weight_decay, source = RATES[optimizer]
        why_decay = source
    batch_size = config.batch_size or defaults["batch_size"][0]
    scaled, text = lr * batch_size / per, N_("{source}: {lr} · batch / {batch}")
    if optimizer == "adamw":
        scaled, text = lr * (batch_size / per) ** 0.5, N_("{source}: {lr} · √(batch / {batch})")
    if optimizer != "adamw" or batch_size != per:
        source = message(text, source=source, lr=f"{lr:g}", batch=str(per))
    return defaults | {
        "training_recipe": (name, why),
        "lr": (scaled, source),
        "weight_decay": (weight_decay, why_decay),
    }


def suggested(encoder: str, pixels: int, epochs: int, is_start: bool = False) -> tuple[str, str]:
    """Return the recipe for an encoder on images of `pixels` a side, and the reason."""
    if is_start:
        return "short", N_("it starts from trained weights, and recipes were published for new ones")
    if encoder == "small":
        return "short", N_("the small encoder learns in short runs")
    if "resnet" not in encoder:
        return "short", N_("recipes were published for ResNets; other encoders learn with AdamW")
    if epochs < LONG:
        text = N_("recipes were published for {long} epochs and more; this run has {epochs}")
        return "short", message(text, epochs=epochs, long=LONG)
    why = message("{encoder} at {pixels} pixels for {epochs} epochs", encoder=encoder, pixels=pixels, epochs=epochs)
    return ("imagenet" if pixels >= LARGE else "cifar"), why


def _published_defaults(
    p: Published, name: str, config: TrainConfig, facts: DatasetInfo, short: Mapping[str, Default]
) -> dict[str, Default]:
    """Return the defaults in which a published recipe differs from those for short runs, as far as the data allow."""
    size, why = p.batch_size, p.source
    if name == "imagenet" and size > ONE_GPU:
        text = N_("{size} fits on one GPU ({published} in the publication); the learning rate is scaled accordingly")
        size, why = ONE_GPU, message(text, size=ONE_GPU, published=f"{size:,}")
    batch_size, why = fitting(size, why, facts.n_train, methods.get(config.method).card.least_batch)
    knobs = {**short.get("method_knobs", NO_DEFAULT)[0], **p.method_knobs}
    if "queue" in knobs:
        knobs["queue"] = queue_size(facts.n_train, knobs["queue"])
    if "bn_splits" in knobs:
        most = 1 if config.micro_batch else (config.batch_size or batch_size) // LEAST_IN_SPLIT
        knobs["bn_splits"] = max(1, min(knobs["bn_splits"], most))
    loss_knobs = {**short.get("loss_knobs", NO_DEFAULT)[0], **p.loss_knobs}
    of_loss: dict[str, Default] = {"loss_knobs": (loss_knobs, p.source)} if p.loss_knobs else {}
    return of_loss | {
        "batch_size": (batch_size, why),
        "optimizer": (p.optimizer, p.source),
        "schedule": (p.schedule, p.source),
        "warmup": (min(p.warmup, WARMUP_PART * config.epochs), p.source),
        "recipe": fitting_views(create_recipe(Recipe(), p.views), p.source, facts),
        "method_knobs": (knobs, p.source),
    }


def _as_made_for(config: TrainConfig, channels: int) -> Knobs:
    """Return the encoder's knobs with the image size and normalization that its model or start run requires."""
    knobs, name = config.encoder_knobs, config.encoder
    if name.partition(":")[0] not in LIBRARIES:
        return knobs
    filled: dict[str, object] = {}
    if not knobs.get("pixels") and (pixels := fixed_pixels(name)):
        filled["pixels"] = pixels
    if "colors" not in knobs and config.start:
        before = runs.load(config.start).config.get("encoder_knobs") or {}
        filled["colors"] = before.get("colors", "plain")
    elif "colors" not in knobs:
        own = pretrained(name)[0]
        if len(own.mean) == (3 if knobs.get("gray_as_color") else channels):
            filled["colors"] = own.colors
    return {**knobs, **filled}


def _reason(setting: Any, value: Any, why: str) -> str:
    """Return the reason for a setting: the default's reason `why` only if the default `value` was used."""
    if not isinstance(setting, Mapping):
        return why if setting is None or setting == value else SET
    usual = dataclasses.asdict(value) if isinstance(value, Recipe) else value
    changed = [k for k, v in setting.items() if k not in usual or usual[k] != v]
    if not changed:
        return why
    return SET if set(usual) <= set(changed) else f"{why}; {SET}: {', '.join(changed)}"


def usual_settings(method: str, dataset: Dataset) -> dict[str, Any]:
    """Return a method's default settings for a data set, without the reasons."""
    defaults = methods.get(method).defaults(facts_of(dataset))
    return {name: value for name, (value, _) in defaults.items()}


def facts_of(dataset: Dataset) -> DatasetInfo:
    """Return the facts that defaults and limits depend on; only classes with a training image count."""
    _, c, h, w = dataset.images.shape
    classes = len(np.unique(dataset.labels[dataset.labels >= 0]))
    return DatasetInfo((c, h, w), len(dataset), classes, dataset.captions is not None, dataset.form)


def create_recipe(base: Recipe, changes: Mapping[str, object]) -> Recipe:
    """Return the recipe with checked changes. Raises BadSetting for an unknown setting."""
    knobs = knobs_of(Recipe)
    for name in changes:
        if name not in knobs:
            values = {"name": f"{name!r}", "knobs": ", ".join(knobs)}
            raise BadSetting("a recipe has no setting {name}; it has: {knobs}", **values)
    made = dataclasses.replace(base, **{k: knobs[k].check(k, v) for k, v in changes.items()})
    view_changes(made.views)
    return made


def check_names(config: TrainConfig) -> None:
    """Check all names first, so an unknown one fails before the data are loaded. Raises UnknownName, BadSetting."""
    if config.compile and not any(map(shutil.which, (os.environ.get("CXX", "c++"), *COMPILERS))):
        raise BadSetting(N_("compile needs a C++ compiler such as g++; install one or turn compile off"))
    methods.get(config.method)
    if config.loss is not None:
        losses.create(config.loss, **none_as_no_value(losses.knobs(config.loss), config.loss_knobs))
    for field, names in (("optimizer", OPTIMIZERS), ("schedule", SCHEDULES)):
        value = getattr(config, field)
        if value is not None and value not in names:
            values = {"field": field, "value": f"{value!r}", "names": ", ".join(names)}
            raise BadSetting("unknown {field} {value}; known: {names}", **values)
    create_recipe(Recipe(), config.recipe)


def none_as_no_value(knobs: Mapping[str, Knob], values: Mapping[str, object]) -> dict[str, Any]:
    """Replace the word "none" by None, unless it is one of the knob's choices."""
    return {k: None if v == "none" and k in knobs and not knobs[k].choices else v for k, v in values.items()}


# --- what cannot be trained, and what deserves a note ---------------------------------------------


def refusal(config: TrainConfig, facts: DatasetInfo, processes: int = 1) -> str:
    """Return the reason why a config cannot be trained on such a data set by so many processes; "" if it can."""
    size, n, cls = config.batch_size or 0, facts.n_train, methods.get(config.method)
    together = 4 if config.method_knobs.get("batches") == "lifted" else 2  # images that stay whole
    least = together * processes if processes > 1 else 2
    if n < 2:
        text = N_("{name} has only {n} training image; add more, because contrastive training needs at least two")
        return message(text, name=config.dataset, n=n)
    if not least <= size <= n:
        text = N_("batch_size must lie between {least} and the {n} training images of {name}; got {size}")
        return message(text, least=least, n=n, name=config.dataset, size=size)
    if (cls.card.needs_labels or cls.card.batch != "shuffled") and facts.classes < 2:
        text = N_(
            "{method} needs at least two classes, but {name} has {classes}; add images of another class, or "
            "choose a method without labels, such as simclr"
        )
        return message(text, method=config.method, name=config.dataset, classes=facts.classes)
    why = nothing_to_learn(losses.create(config.loss or "", **config.loss_knobs))
    return why or cls.incompatibility(facts, size, config.method_knobs) or ""


def nothing_to_learn(loss: Loss) -> str:
    """Return the reason why a loss whose terms all have the weight 0 cannot be trained; "" for other losses."""
    terms = {term.knob: getattr(loss, term.knob) == term.absent_at for term in loss.card.terms}
    text = N_("{knobs} are all 0, so there is nothing to learn: set one above 0")
    return message(text, knobs=", ".join(sorted(terms))) if len(terms) > 1 and all(terms.values()) else ""


def notes(config: TrainConfig, facts: DatasetInfo) -> tuple[str, ...]:
    """Return notes for the user about a resolved config."""
    found, loss = [], losses.create(config.loss or "", **config.loss_knobs)
    epochs = usual_epochs(config.method, config.dataset, config.encoder, bool(config.start))
    if config.epochs < epochs != EPOCHS:  # of a method that is known to need more than the usual
        found.append(why_epochs(config.method, config.dataset, epochs))
    if datasets.is_files(config.dataset) and (size := made_for(config) or 0) > LARGEST:
        text = N_(
            "{encoder} expects images of {size} pixels; images of a folder are stored at {largest} pixels, the maximum "
            "here, and scaling them up adds no detail"
        )
        found.append(message(text, encoder=config.encoder, size=size, largest=LARGEST))
    for term in loss.card.terms:
        if getattr(loss, term.knob) == term.absent_at:
            values = {"knob": term.knob, "value": f"{term.absent_at:g}", "missing": term.missing}
            found.append(message("loss.{knob} is {value}: {missing}.", **values))
    usual_dim = methods.knobs(config.method)["dim"].default
    usual_batch = methods.get(config.method).defaults(facts)["batch_size"][0]
    dim, batch = int(config.method_knobs.get("dim", usual_dim)), config.batch_size or 0
    is_matrix = loss.card.matrix in ("correlation", "covariance")
    if is_matrix and dim >= batch > 0 and (dim, batch) != (usual_dim, usual_batch):
        text = N_(
            "z has {d} dimensions and a batch {n} images: their correlation and covariance matrix has rank {rank} at "
            "most, so dimensions cannot all vary independently."
        )
        found.append(message(text, d=dim, n=batch, rank=batch - 1))
    return tuple(found)


def why_epochs(method: str, dataset: str, epochs: int) -> str:
    """Return the reason for a default number of epochs above the usual."""
    return message(
        "On {dataset}, {method} starts slowly: after 20 epochs, the small encoder's kNN accuracy was "
        "below that of an untrained encoder in at least two of three seeds; after {epochs}, it was above "
        "in all three.",
        dataset=dataset,
        method=method,
        epochs=epochs,
    )


# --- the images of a folder ----------------------------------------------------------------------


def with_image_size(config: TrainConfig, listings: datasets.Listings | None = None) -> TrainConfig:
    """Return the settings with the size of a folder's images filled in, if none is set. `listings`: those of the
    folder, if known. Raises ValueError if it does not exist."""
    if config.image_size is not None or not datasets.is_files(config.dataset):
        return config
    files = (listings or datasets.listings_of(config.dataset))["train"].files
    return dataclasses.replace(config, image_size=size_of(config, lambda: median_side(files)))


def with_cache(config: TrainConfig, listings: datasets.Listings | None = None) -> TrainConfig:
    """Return the settings with `cache=auto` resolved, once the size of the images is known."""
    if config.cache != "auto" or not datasets.is_files(config.dataset):
        return config
    form = form_of(config.to_dict())
    listings = listings or datasets.listings_of(config.dataset)
    files = [file for listing in listings.values() for file in listing.files]
    is_cached = datasets.is_made(config.dataset, "train", form, listings) or fits_on_disk(form, files)
    return dataclasses.replace(config, cache="memory-map" if is_cached else "stream")


def size_of(config: TrainConfig, median: Callable[[], int]) -> int:
    """Return the side in pixels to which a folder's images are scaled: that of the encoder's design, else `median` of
    the shorter sides, at most 64. A ResNet accepts smaller images as they are."""
    size = made_for(config)
    if size is None or (config.encoder.startswith("resnet") and median() <= SMALL):
        size = usual_side(median())
    return min(size, LARGEST)


def made_for(config: TrainConfig) -> int | None:
    """Return the side in pixels for which the encoder was designed; None if it accepts any."""
    knobs = config.encoder_knobs
    if knobs.get("pixels"):
        return int(knobs["pixels"])
    if config.encoder.startswith(("timm:", "torchvision:")):
        try:
            return pretrained(config.encoder)[0].pixels
        except ValueError:
            return IMAGENET  # the encoder itself says what is wrong with its name
    is_large = config.encoder != "small" and knobs.get("stem", "imagenet") in ("", "imagenet")
    return IMAGENET if is_large else None
