"""From settings to everything a training loop needs; what cannot work is said here, beforehand."""

from __future__ import annotations

import copy
import dataclasses
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from contrastive_core import losses, methods, runs
from contrastive_core.data import datasets
from contrastive_core.data.augmentations import Recipe
from contrastive_core.data.batch import Batch
from contrastive_core.data.batch_sampler import plan
from contrastive_core.data.datasets import Dataset
from contrastive_core.data.overrides import curated
from contrastive_core.device import channels_last, choose, wants_bf16
from contrastive_core.distributed import collectives
from contrastive_core.distributed.collectives import World
from contrastive_core.errors import BadSetting
from contrastive_core.losses import Loss
from contrastive_core.methods import DatasetInfo, Method
from contrastive_core.models.encoders import create_encoder
from contrastive_core.registry import Knob, knobs_of
from contrastive_core.runs import checkpoints
from contrastive_core.training import global_batch, sync_norms
from contrastive_core.training.config import TrainConfig
from contrastive_core.training.monitor import Sample, fixed_sample
from contrastive_core.training.optim import OPTIMIZERS, SCHEDULES, create_optimizer

__all__ = ["Prepared", "model", "prepare", "resolve"]

COMPILERS = ("c++", "g++", "clang++")  # any of which torch.compile can use
ON_DEVICE = 4 << 30  # bytes of images that are moved to a GPU once, instead of batch by batch


@dataclass(frozen=True, eq=False)
class Prepared:
    """Everything that a training loop needs. `config` has no None left that a default fills."""

    config: TrainConfig
    reasons: dict[str, str]
    dataset: Dataset
    method: Method
    loss: Loss
    optimizer: torch.optim.Optimizer
    generator: torch.Generator
    sample: Sample
    device: torch.device
    world: World
    images: Tensor | None  # all images (n, c, h, w) uint8 on the device, where they fit

    def plan(self, epoch: int) -> list[np.ndarray]:
        """Index arrays of an epoch's batches, alike on every process."""
        assert self.config.batch_size is not None
        return plan(
            self.method.batch_kind,
            self.dataset.labels,
            self.config.batch_size,
            self.config.seed,
            epoch,
        )

    def batch(self, index: np.ndarray) -> Batch:
        """This process's share of the batch at `index`, on the device."""
        mine = collectives.local_share(torch.from_numpy(index), self.world)
        rows = mine.to(self.device)
        if self.images is not None:
            images = self.images[rows]
        else:
            images = torch.from_numpy(self.dataset.images[mine.numpy()]).to(self.device)
        labels = torch.from_numpy(self.dataset.labels[mine.numpy()]).to(self.device)
        return Batch(images, labels, rows)


def prepare(config: TrainConfig, world: World | None = None) -> Prepared:
    """Load the data, fill in defaults, build model and optimizer. Raises ValueError (BadSetting,
    UnknownName, NoDevice, …) with a sentence for whatever cannot be trained."""
    world = world or World()
    check_names(config)
    device = choose(f"cuda:{world.local_rank}" if _wants_cuda(config, world) else config.device)
    torch.set_flush_denormal(True)  # once learned, tiny gradients made CPU steps 20 times slower
    if config.threads:
        torch.set_num_threads(config.threads)
    dataset = curated(
        datasets.load(config.dataset, "train", config.root), config.exclude, config.relabel
    )
    config, reasons = resolve(config, dataset, device)
    torch.manual_seed(config.seed)
    method = model(config, dataset).to(device)
    if config.channels_last and device.type != "mps":
        channels_last(method)
    validate(config, dataset)
    if config.start:
        _start_from(method, config.start)
    sync_norms.synchronize_norms(method)
    method.gather = collectives.all_gather
    method.loss = losses.create(config.loss or "", **config.loss_knobs)
    _refuse_pairing(config, method, dataset, device)
    if config.compile:
        _compile(method)
    assert config.lr is not None
    assert config.optimizer is not None
    optimizer = create_optimizer(
        config.optimizer, method.parameters(), config.lr, config.weight_decay or 0, config.momentum
    )
    generator = torch.Generator().manual_seed(config.seed * 1000 + world.rank)
    return Prepared(
        config,
        reasons,
        dataset,
        method,
        method.loss,
        optimizer,
        generator,
        fixed_sample(dataset.images, dataset.labels, config.sample, device),
        device,
        world,
        _on_device(dataset, device),
    )


def resolve(
    config: TrainConfig, dataset: Dataset, device: torch.device
) -> tuple[TrainConfig, dict[str, str]]:
    """The config with the method's defaults for this data set filled in, and their reasons."""
    cls = methods.get(config.method)
    found = cls.defaults(_facts(dataset, len(dataset.classes)))
    values = {k: v[0] for k, v in found.items()}
    reasons = {k: v[1] for k, v in found.items()}
    filled: dict[str, Any] = {}
    for field in ("batch_size", "optimizer", "lr", "weight_decay", "schedule", "warmup", "loss"):
        if getattr(config, field) is None:
            filled[field] = values.get(field)
    usual = values.get("loss") or cls.default_loss
    loss = config.loss or usual
    own = values.get("loss_knobs", cls.loss_knobs) if loss == usual else {}
    recipe = values.get("recipe", Recipe())
    filled |= {
        "loss": loss,
        "loss_knobs": _without_words(losses.knobs(loss), {**own, **config.loss_knobs}),
        "method_knobs": _without_words(
            methods.knobs(config.method), {**values.get("method_knobs", {}), **config.method_knobs}
        ),
        "recipe": dataclasses.asdict(_recipe(recipe, config.recipe)),
        "amp": wants_bf16(device) if config.amp is None else config.amp,
        "threads": config.threads or torch.get_num_threads(),
        "warmup": filled.get("warmup", config.warmup) or 0.0,
    }
    return dataclasses.replace(config, **filled), reasons


def model(config: TrainConfig, dataset: Dataset, n_train: int | None = None) -> Method:
    """The untrained method of a resolved config, on the CPU. `n_train`: of another split."""
    n, c, h, w = dataset.images.shape
    encoder = create_encoder(config.encoder, c, h, **config.encoder_knobs)
    method = methods.create(
        config.method,
        encoder=encoder,
        image_shape=(c, h, w),
        n_train=n_train or n,
        recipe=Recipe(**config.recipe),
        **config.method_knobs,
    )
    if config.freeze:
        method.encoder.requires_grad_(False)
    return method


# --- parts -------------------------------------------------------------------------------------


def _start_from(method: Method, name: str) -> None:
    """Give the encoder (and a key encoder) the weights of another run's encoder."""
    weights = checkpoints.load_weights(runs.load(name))
    own = {k.removeprefix("encoder."): v for k, v in weights.items() if k.startswith("encoder.")}
    for part in ("encoder", "key_encoder"):
        if (module := getattr(method, part, None)) is not None:
            try:
                module.load_state_dict(own)
            except RuntimeError:
                raise BadSetting(
                    f"the encoder of {name} has another form than this one; choose the encoder "
                    f"and data set that {name} was trained with"
                ) from None


def _compile(method: Method) -> None:
    """Compile the encoder (and a key encoder): views and losses gain nothing by it."""
    for part in ("encoder", "key_encoder"):
        if (module := getattr(method, part, None)) is not None:
            module.compile()


def check_names(config: TrainConfig) -> None:
    """Names first: an unknown one should not have to wait for the data."""
    if config.compile and not any(map(shutil.which, (os.environ.get("CXX", "c++"), *COMPILERS))):
        raise BadSetting("compile needs a C++ compiler, such as g++; install one or leave it off")
    methods.get(config.method)
    if config.loss is not None:
        losses.create(config.loss, **_without_words(losses.knobs(config.loss), config.loss_knobs))
    for field, known in (("optimizer", OPTIMIZERS), ("schedule", SCHEDULES)):
        value = getattr(config, field)
        if value is not None and value not in known:
            raise BadSetting(f"unknown {field} {value!r}; known: {', '.join(known)}")
    _recipe(Recipe(), config.recipe)


def _without_words(knobs: Mapping[str, Knob], values: Mapping[str, Any]) -> dict[str, Any]:
    """The word "none" means no value, unless it is one of the knob's choices."""
    return {
        k: None if v == "none" and k in knobs and not knobs[k].choices else v
        for k, v in values.items()
    }


def _recipe(base: Recipe, changes: Mapping[str, Any]) -> Recipe:
    knobs = knobs_of(Recipe)
    for name in changes:
        if name not in knobs:
            raise BadSetting(f"a recipe has no setting {name!r}; it has: {', '.join(knobs)}")
    return dataclasses.replace(base, **{k: knobs[k].check(k, v) for k, v in changes.items()})


def _facts(dataset: Dataset, classes: int) -> DatasetInfo:
    _, c, h, w = dataset.images.shape
    return DatasetInfo((c, h, w), len(dataset), classes)


def validate(config: TrainConfig, dataset: Dataset) -> None:
    n = len(dataset.labels)
    assert config.batch_size is not None
    if n < 2:
        raise BadSetting(f"{dataset.name} has {n} training image; add more: contrast needs two")
    if config.batch_size < 2:
        raise BadSetting("batch_size must be at least 2: one image has nothing to compare with")
    if config.batch_size > n:
        raise BadSetting(
            f"batch_size {config.batch_size} is larger than the {n} training images of "
            f"{dataset.name}; use --set batch_size={max(2, n // 4)} or a number up to {n}"
        )
    if config.batch_size < 2 * (count := collectives.world().size) and count > 1:
        raise BadSetting(
            f"batch_size {config.batch_size} is too small for {count} processes; use "
            f"--set batch_size={2 * count} or more, or fewer processes"
        )
    cls = methods.get(config.method)
    needs = getattr(cls, "needs_labels", False) or cls.batch != "shuffled"
    classes = np.unique(dataset.labels[dataset.labels >= 0])
    if needs and not len(classes):
        raise BadSetting(
            f"{config.method} learns from labels and {dataset.name} has none; choose a method "
            "without labels, such as simclr"
        )
    if needs and len(classes) < 2:
        raise BadSetting(
            f"{config.method} needs two classes and {dataset.name} has one; put the images of "
            "another class beside them, or choose a method without labels, such as simclr"
        )
    said = cls.problem(_facts(dataset, len(classes)), config.batch_size, config.method_knobs)
    if said:
        raise BadSetting(said)


def _refuse_pairing(
    config: TrainConfig, method: Method, dataset: Dataset, device: torch.device
) -> None:
    """Let the loss say now, of a few images' pairs, what it would say at the first step."""
    rows = np.arange(min(4, len(dataset)))
    found = (np.asarray(dataset.images[rows]), dataset.labels[rows], rows)
    probe = copy.deepcopy(method).eval()
    with torch.no_grad():
        batch = Batch(*(torch.from_numpy(x).to(device) for x in found))
        pairs = probe.pairs(batch, torch.Generator())
    if method.loss is not None and (said := method.loss.check(pairs)):
        raise BadSetting(f"{config.loss} cannot use the pairs of {config.method}: {said}")


def _wants_cuda(config: TrainConfig, world: World) -> bool:
    return world.size > 1 and config.device in ("auto", "cuda") and torch.cuda.is_available()


def _on_device(dataset: Dataset, device: torch.device) -> Tensor | None:
    """All images on the GPU if they are few; on the CPU the memory map is as good."""
    if device.type == "cpu" or dataset.images.size > ON_DEVICE:
        return None
    return torch.from_numpy(np.array(dataset.images)).to(device)
