"""Build the data, model and optimizer of a training from its settings."""

import threading
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from contrastive_core import losses, methods, runs
from contrastive_core.base.device import describe, for_process
from contrastive_core.base.errors import BadSetting
from contrastive_core.base.messages import N_, message
from contrastive_core.data import datasets
from contrastive_core.data.batch_loader import BatchLoader
from contrastive_core.data.captions import Vocabulary, build_vocabulary
from contrastive_core.data.datasets import Dataset
from contrastive_core.data.overrides import training_set
from contrastive_core.data.recipe import Recipe
from contrastive_core.losses import Loss
from contrastive_core.methods import Method
from contrastive_core.models.encoders import create_encoder
from contrastive_core.models.libraries import LIBRARIES, resized
from contrastive_core.ops import collectives
from contrastive_core.ops.collectives import World
from contrastive_core.runs import checkpoints
from contrastive_core.runs.train_config import Resolved, TrainConfig
from contrastive_core.train.checks import check_loss_fits, misfit
from contrastive_core.train.large_batches import GradientBuckets, synchronize_norms
from contrastive_core.train.monitor import MonitoredSample, fixed_sample
from contrastive_core.train.optim import create_optimizer, learning_rate_scales
from contrastive_core.train.settings import check_names, facts_of, resolve, with_cache, with_image_size

CAPTURE = N_(
    "capture needs a CUDA GPU and a single process, and does not work with compile, micro_batch or freeze; turn it off"
)
weights_lock = threading.RLock()  # initial weights come from one global generator: one thread at a time


@dataclass(frozen=True, eq=False)
class TrainSetup:
    """The data, model, optimizer and settings for the training loop. `config` has all defaults filled in."""

    config: TrainConfig
    reasons: dict[str, str]
    notes: tuple[str, ...]
    dataset: Dataset
    loader: BatchLoader
    method: Method
    optimizer: torch.optim.Optimizer
    generator: torch.Generator  # of views, noise and orders: the same on every process
    sample: MonitoredSample
    device: torch.device
    world: World
    buckets: GradientBuckets

    @property
    def loss(self) -> Loss:
        """The loss with the current values of its knobs."""
        assert self.method.loss is not None
        return self.method.loss


def prepare(config: TrainConfig, world: World | None = None, dataset: Dataset | None = None) -> TrainSetup:
    """Load the data, fill in defaults, build model and optimizer. `dataset`: the training set of these settings, if it
    is already loaded. Raises ValueError (BadSetting, UnknownName, NoDevice, …) with a sentence for settings that cannot
    be trained."""
    world = world or collectives.world()
    check_names(config)
    device = for_process(config.device, world.local_rank, world.local_size)
    torch.set_flush_denormal(True)  # once learned, tiny gradients made CPU steps 20 times slower
    torch.backends.cudnn.benchmark = device.type == "cuda"  # shapes stay the same, so the search pays off
    if config.threads:
        torch.set_num_threads(config.threads)
    if dataset is None:
        config = with_cache(with_image_size(config))
        dataset = datasets.of_config(config.to_dict())
    needs_captions = methods.get(config.method).card.needs_captions
    dataset = training_set(dataset, needs_captions, config.exclude, config.relabel)
    resolved = resolve(config, facts_of(dataset), device, world.size)
    config = resolved.config
    method = _build_method(resolved, dataset, device, world)
    assert config.batch_size is not None
    loader = BatchLoader(dataset, method.batch_kind, config.batch_size, config.seed, device, world)
    check_loss_fits(config, method, loader)
    for part in ("encoder", "key_encoder") if config.compile else ():  # views and losses gain nothing by it
        if (module := getattr(method, part, None)) is not None:
            module.compile()
    if config.capture:
        capture(method.encoder, config, device, world)
    method.total_steps = config.epochs * len(loader.epoch(0))
    assert config.optimizer is not None
    assert config.lr is not None
    scales = learning_rate_scales(method, config.layer_decay) if config.layer_decay < 1 else {}
    scales |= method.learning_rate_scales()
    decay, momentum = config.weight_decay or 0, config.momentum
    optimizer = create_optimizer(config.optimizer, method.parameters(), config.lr, decay, momentum, scales)
    generator = torch.Generator().manual_seed(config.seed * 1000)
    sample = fixed_sample(dataset.images, dataset.labels, config.sample, device, dataset.captions)
    buckets = GradientBuckets(method.parameters())
    return TrainSetup(
        config=config,
        reasons=resolved.reasons,
        notes=resolved.notes,
        dataset=dataset,
        loader=loader,
        method=method,
        optimizer=optimizer,
        generator=generator,
        sample=sample,
        device=device,
        world=world,
        buckets=buckets,
    )


def manifest_of(setup: TrainSetup, command: str) -> dict[str, Any]:
    """Return the manifest's further entries: device, processes, and the reasons for the defaults."""
    captions = setup.dataset.captions
    return {
        **({"captions": len(captions.texts)} if captions else {}),
        "device": describe(setup.device),
        "processes": setup.world.size,
        "reasons": setup.reasons,
        "n_train": len(setup.dataset.labels),
        "classes": list(setup.dataset.classes),
        "left_out": setup.dataset.left_out,
        "image_shape": list(setup.dataset.images.shape[1:]),
        "command": command,
    }


def _build_method(resolved: Resolved, dataset: Dataset, device: torch.device, world: World) -> Method:
    """Build the method with its loss and initial weights, on its device. Raises BadSetting."""
    config = resolved.config
    with weights_lock:
        torch.manual_seed(config.seed)
        method = create_method(config, dataset).to(device)
    if config.channels_last and device.type != "mps":
        method.to(memory_format=torch.channels_last)
    if resolved.refusal:  # after what the method says of its own settings
        raise BadSetting(resolved.refusal)
    if config.start:
        load_initial_weights(method, config)
    if world.size > 1:
        synchronize_norms(method)
        method.gather = collectives.all_gather
    method.use_loss(losses.create(config.loss or "", **config.loss_knobs))
    return method


def create_method(config: TrainConfig, dataset: Dataset) -> Method:
    """Return the untrained method of a resolved config, on the CPU."""
    n, c, h, w = dataset.images.shape
    recipe = Recipe(**config.recipe)
    vocabulary = build_vocabulary(dataset.captions.texts) if dataset.captions else Vocabulary(())
    with weights_lock:
        encoder = create_encoder(config.encoder, c, h, **config.encoder_knobs)
        method = methods.create(
            config.method,
            encoder=encoder,
            image_shape=(c, h, w),
            n_train=n,
            recipe=recipe,
            vocabulary=vocabulary,
            **config.method_knobs,
        )
    if config.freeze:
        method.encoder.requires_grad_(False)
    return method


def load_initial_weights(method: Method, config: TrainConfig) -> None:
    """Load the weights of the run `config.start` into encoder and head (and the key encoder). The position embedding of
    a vision transformer for another image size is resized. Raises BadSetting if shapes differ, or if the weights were
    trained on images of another kind."""
    name = str(config.start)
    run = runs.load(name)
    if why := misfit(run, method.image_shape[0], config.encoder_knobs):
        raise BadSetting(why)
    weights = checkpoints.load_weights(run)
    encoder = checkpoints.strip_prefix(weights, "encoder.")
    if config.encoder.partition(":")[0] in LIBRARIES:
        body = method.encoder.get_submodule("body")
        state = resized(config.encoder, body, checkpoints.strip_prefix(encoder, "body."))
        encoder = {f"body.{k}": v for k, v in state.items()}
    advice: str = message("choose the encoder and data set that {name} was trained with", name=name)
    for part in ("encoder", "key_encoder"):
        _load(getattr(method, part, None), encoder, message("the encoder of {name}", name=name), advice)
    if config.start_head:
        head = checkpoints.strip_prefix(weights, "head.")
        advice = N_("choose the settings of its head, or leave start_head off for a new one")
        for part in ("head", "key_head"):
            _load(getattr(method, part, None), head, message("the head of {name}", name=name), advice)


def _load(module: nn.Module | None, state: dict[str, Tensor], what: str, advice: str) -> None:
    if module is None:
        return
    try:
        module.load_state_dict(state)
    except RuntimeError:
        raise BadSetting("{what} has a different structure; {advice}", what=what, advice=advice) from None


def capture(encoder: nn.Module, config: TrainConfig, device: torch.device, world: World) -> None:
    """Make the encoder capture its graphs at the first batch. Raises BadSetting for incompatible settings."""
    if device.type != "cuda" or world.size > 1 or config.compile or config.micro_batch or config.freeze:
        raise BadSetting(CAPTURE)
    encoder.forward = CapturedForward(encoder, bool(config.amp))  # type: ignore[assignment]


class CapturedForward:
    """The forward pass of an encoder as a captured CUDA graph, with another one for its backward pass, so a step waits
    less for the host. The kernels, and therefore the losses, stay the same. A graph has only one buffer for its
    activations. The plain forward pass is used for other batch sizes than the first, in evaluation, and before the
    previous backward pass has ended."""

    def __init__(self, encoder: nn.Module, amp: bool) -> None:
        self.encoder, self.amp, self.plain = encoder, amp, encoder.forward
        self.graphs, self.shape = self.plain, torch.Size()  # none yet
        self.awaits_gradient = False

    def __call__(self, images: Tensor) -> Tensor:
        if self.awaits_gradient or not (self.encoder.training and torch.is_grad_enabled()):
            return self.plain(images)
        if not self.shape:
            buffers = [(buffer, buffer.clone()) for buffer in self.encoder.buffers()]
            self.encoder.forward = self.plain  # type: ignore[assignment]
            with torch.autocast(images.device.type, torch.bfloat16, enabled=self.amp, cache_enabled=False):
                torch.cuda.make_graphed_callables(self.encoder, (images.detach().clone(),))
            self.graphs, self.shape = self.encoder.forward, images.shape
            self.encoder.forward = self  # type: ignore[assignment]
            for buffer, before in buffers:  # batch norms have counted the passes that warm up
                buffer.copy_(before)
        if images.shape != self.shape:
            return self.plain(images)
        h: Tensor = self.graphs(images)
        self.awaits_gradient = True
        h.register_hook(self._on_gradient)  # type: ignore[no-untyped-call]
        return h.clone()  # the next replay writes over h

    def _on_gradient(self, gradient: Tensor) -> None:
        self.awaits_gradient = False
