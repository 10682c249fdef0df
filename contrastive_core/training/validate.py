"""What cannot be trained is refused beforehand, with a sentence that names the remedy."""

import copy
import dataclasses
import os
import shutil

import numpy as np
import torch

from contrastive_core import losses, methods
from contrastive_core.data.batch_loader import BatchLoader
from contrastive_core.data.datasets import Dataset
from contrastive_core.distributed.collectives import World
from contrastive_core.errors import BadSetting
from contrastive_core.messages import N_
from contrastive_core.methods import Method
from contrastive_core.records.recipe import Recipe
from contrastive_core.records.setting_notes import ONE_IMAGE, Weighed
from contrastive_core.records.train_config import TrainConfig
from contrastive_core.training import gradient_cache
from contrastive_core.training.defaults import create_recipe, dataset_info, none_as_no_value, usual_settings
from contrastive_core.training.optim import OPTIMIZERS, SCHEDULES

COMPILERS = ("c++", "g++", "clang++")  # any of which torch.compile can use


def check_names(config: TrainConfig) -> None:
    """Names first: an unknown one should not have to wait for the data."""
    if config.compile and not any(map(shutil.which, (os.environ.get("CXX", "c++"), *COMPILERS))):
        raise BadSetting(N_("compile needs a C++ compiler such as g++; install one or turn compile off"))
    methods.get(config.method)
    if config.loss is not None:
        knobs = none_as_no_value(losses.knobs(config.loss), config.loss_knobs)
        losses.create(config.loss, **knobs)
    for field, names in (("optimizer", OPTIMIZERS), ("schedule", SCHEDULES)):
        value = getattr(config, field)
        if value is not None and value not in names:
            values = {"field": field, "value": f"{value!r}", "names": ", ".join(names)}
            raise BadSetting("unknown {field} {value}; known: {names}", **values)
    create_recipe(Recipe(), config.recipe)


def validate(config: TrainConfig, dataset: Dataset, world: World) -> None:
    """Refuse a resolved config that this data set, or so many processes, cannot be trained with."""
    _check_batch_size(config, dataset, world)
    cls = methods.get(config.method)
    needs_labels = cls.card.needs_labels or cls.card.batch != "shuffled"
    classes = np.unique(dataset.labels[dataset.labels >= 0])
    names = {"method": config.method, "name": dataset.name}
    if refusal := weighed(config).refusal():
        raise BadSetting(refusal)
    if needs_labels and not len(classes):
        raise BadSetting(
            "{method} needs labels and {name} has none; choose a method without labels, such as simclr", **names
        )
    if needs_labels and len(classes) < 2:
        raise BadSetting(
            "{method} needs two classes and {name} has one; add images of another class, or choose a method without "
            "labels, such as simclr",
            **names,
        )
    assert config.batch_size is not None
    info = dataset_info(dataset, len(classes))
    if reason := cls.incompatibility(info, config.batch_size, config.method_knobs):
        raise BadSetting(reason)


def weighed(config: TrainConfig) -> Weighed:
    """The terms of a resolved config's loss."""
    loss = losses.create(config.loss or "", **config.loss_knobs)
    dim = methods.knobs(config.method)["dim"].default
    wide = int(config.method_knobs.get("dim", dim))
    return Weighed(loss.card.terms, dataclasses.asdict(loss), loss.card.matrix, wide, config.batch_size or 0)


def setting_notes(config: TrainConfig, dataset: Dataset) -> list[str]:
    """What to know of a resolved config that can be trained."""
    usual = usual_settings(config.method, dataset)
    return weighed(config).notes((methods.knobs(config.method)["dim"].default, usual["batch_size"]))


def _check_batch_size(config: TrainConfig, dataset: Dataset, world: World) -> None:
    n, size = len(dataset.labels), config.batch_size
    assert size is not None
    if n < 2:
        raise BadSetting("{name} has {n} training image; add more: contrast needs two", name=dataset.name, n=n)
    if size < 2:
        raise BadSetting(ONE_IMAGE)
    if size > n:
        values = {"size": size, "n": n, "name": dataset.name, "fits": max(2, n // 4)}
        raise BadSetting(
            "batch_size {size} is larger than the {n} training images of {name}; use --set batch_size={fits} or a "
            "number up to {n}",
            **values,
        )
    together = 4 if config.method_knobs.get("batches") == "lifted" else 2  # images that stay whole
    if world.size > 1 and size < together * world.size:
        facts = {"size": size, "world": world.size, "least": together * world.size}
        raise BadSetting(
            "batch_size {size} is too small for {world} processes; use --set batch_size={least} or more, or fewer "
            "processes",
            **facts,
        )


def check_loss_fits(config: TrainConfig, method: Method, loader: BatchLoader) -> None:
    """Let the loss say now, of a few images' pairs, what it would say at the first step."""
    if config.micro_batch and (reason := gradient_cache.misfit(method)):
        raise BadSetting(reason)
    few = np.arange(min(4 * loader.world.size, len(loader.dataset)))
    probe = copy.deepcopy(method).eval()
    pairs = probe.pairs(loader.batch(few), torch.Generator())
    if method.loss is None:
        return
    values = {"loss": config.loss, "method": config.method}
    if reason := method.loss.check(pairs):
        raise BadSetting("{loss} cannot use the pairs of {method}: {reason}", **values, reason=reason)
    if not method.loss(pairs).value.requires_grad:
        raise BadSetting(
            "no gradient reaches the encoder: {loss} stops it at the candidates, and {method} has none at its anchors; "
            "use --set loss.detach=off or another loss",
            **values,
        )
