"""From settings to everything that a training loop needs."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from contrastive_core import losses, methods
from contrastive_core.data import datasets
from contrastive_core.data.datasets import Dataset
from contrastive_core.data.overrides import curated
from contrastive_core.data.recipe import Recipe
from contrastive_core.device import channels_last, for_process
from contrastive_core.distributed import collectives
from contrastive_core.distributed.collectives import World
from contrastive_core.losses import Loss
from contrastive_core.methods import Method
from contrastive_core.models.encoders import create_encoder
from contrastive_core.training.batch_loader import BatchLoader
from contrastive_core.training.config import TrainConfig
from contrastive_core.training.defaults import resolve
from contrastive_core.training.image_size import with_image_size
from contrastive_core.training.layers import learning_rate_scales
from contrastive_core.training.monitor import Sample, fixed_sample
from contrastive_core.training.optim import create_optimizer
from contrastive_core.training.start import start_from
from contrastive_core.training.sync_norms import synchronize_norms
from contrastive_core.training.validate import check_loss_fits, check_names, validate

__all__ = ["TrainSetup", "create_method", "prepare"]


@dataclass(frozen=True, eq=False)
class TrainSetup:
    """Everything that a training loop needs. `config` has no None left that a default fills."""

    config: TrainConfig
    reasons: dict[str, str]
    dataset: Dataset
    loader: BatchLoader
    method: Method
    loss: Loss
    optimizer: torch.optim.Optimizer
    generator: torch.Generator  # of views, noise and orders: the same on every process
    sample: Sample
    device: torch.device
    world: World


def prepare(config: TrainConfig, world: World | None = None) -> TrainSetup:
    """Load the data, fill in defaults, build model and optimizer. Raises ValueError (BadSetting,
    UnknownName, NoDevice, …) with a sentence for whatever cannot be trained."""
    world = world or collectives.world()
    check_names(config)
    device = for_process(config.device, world.local_rank, world.local_size)
    torch.set_flush_denormal(True)  # once learned, tiny gradients made CPU steps 20 times slower
    if config.threads:
        torch.set_num_threads(config.threads)
    config = with_image_size(config)
    every = datasets.of_config(config.to_dict())
    dataset = curated(every, config.exclude, config.relabel)
    config, reasons = resolve(config, dataset, device)
    torch.manual_seed(config.seed)
    method = create_method(config, dataset).to(device)
    if config.channels_last and device.type != "mps":
        channels_last(method)
    validate(config, dataset, world)
    if config.start:
        start_from(method, config)
    synchronize_norms(method)
    method.gather = collectives.all_gather
    method.loss = losses.create(config.loss or "", **config.loss_knobs)
    assert config.batch_size is not None
    loader = BatchLoader.of(
        dataset, method.batch_kind, config.batch_size, config.seed, device, world
    )
    check_loss_fits(config, method, loader)
    if config.compile:
        _compile(method)
    assert config.lr is not None
    assert config.optimizer is not None
    method.total_steps = config.epochs * len(loader.epoch(0))
    scales = learning_rate_scales(method, config.layer_decay) if config.layer_decay < 1 else None
    optimizer = create_optimizer(
        config.optimizer,
        method.parameters(),
        config.lr,
        config.weight_decay or 0,
        config.momentum,
        scales,
    )
    return TrainSetup(
        config,
        reasons,
        dataset,
        loader,
        method,
        method.loss,
        optimizer,
        torch.Generator().manual_seed(config.seed * 1000),
        fixed_sample(dataset.images, dataset.labels, config.sample, device),
        device,
        world,
    )


def create_method(config: TrainConfig, dataset: Dataset, n_train: int | None = None) -> Method:
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


def _compile(method: Method) -> None:
    """Compile the encoder (and a key encoder): views and losses gain nothing by it."""
    for part in ("encoder", "key_encoder"):
        if (module := getattr(method, part, None)) is not None:
            module.compile()
