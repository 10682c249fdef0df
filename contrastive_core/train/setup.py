"""Build the data, model and optimizer of a training from its settings."""

import copy
import dataclasses
import json
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from contrastive_core import losses, methods, runs
from contrastive_core.base.device import describe, for_process
from contrastive_core.base.errors import BadSetting
from contrastive_core.base.messages import N_, message
from contrastive_core.base.registry import Knobs
from contrastive_core.data import datasets
from contrastive_core.data.batch_loader import BatchLoader
from contrastive_core.data.captions import Vocabulary, build_vocabulary
from contrastive_core.data.dataset import Dataset, DatasetInfo
from contrastive_core.data.overrides import training_set
from contrastive_core.data.recipe import Recipe
from contrastive_core.losses import Loss
from contrastive_core.methods import Method
from contrastive_core.models.encoders import create_encoder
from contrastive_core.models.libraries import LIBRARIES, resized
from contrastive_core.ops import collectives
from contrastive_core.ops.collectives import World
from contrastive_core.runs import checkpoints
from contrastive_core.runs.run import Run
from contrastive_core.runs.train_config import Resolved, TrainConfig, with_settings
from contrastive_core.train import settings
from contrastive_core.train.large_batches import GradientBuckets, synchronize_norms
from contrastive_core.train.monitor import MonitoredSample, fixed_sample
from contrastive_core.train.optim import create_optimizer, learning_rate_scales

CAPTURE = N_(
    "capture needs a CUDA GPU and a single process, and does not work with compile, micro_batch or freeze; turn it off"
)
OF_IMAGES = ("colors", "pixels", "gray_as_color")  # settings of an encoder that are no form of its own
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
    """Load the data, fill in defaults, build model and optimizer. `dataset`: the training set, if it is already loaded.
    Raises ValueError with a sentence for settings that cannot be trained."""
    world = world or collectives.world()
    settings.check_names(config)
    device = for_process(config.device, world.local_rank, world.local_size)
    torch.set_flush_denormal(True)  # once learned, tiny gradients made CPU steps 20 times slower
    torch.backends.cudnn.benchmark = device.type == "cuda"  # shapes stay the same, so the search pays off
    if config.threads:
        torch.set_num_threads(config.threads)
    if dataset is None:
        config = settings.with_cache(settings.with_image_size(config))
        dataset = datasets.of_config(config.to_dict())
    needs_captions = methods.get(config.method).card.needs_captions
    dataset = training_set(dataset, needs_captions, config.exclude, config.relabel)
    resolved = settings.resolve(config, settings.facts_of(dataset), device, world.size)
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
    scales = learning_rate_scales(method.encoder, config.layer_decay) if config.layer_decay < 1 else {}
    scales |= method.learning_rate_scales()
    decay = config.weight_decay or 0
    return TrainSetup(
        config=config,
        reasons=resolved.reasons,
        notes=resolved.notes,
        dataset=dataset,
        loader=loader,
        method=method,
        optimizer=create_optimizer(config.optimizer, method.parameters(), config.lr, decay, config.momentum, scales),
        generator=torch.Generator().manual_seed(config.seed * 1000),
        sample=fixed_sample(dataset.images, dataset.labels, config.sample, device, dataset.captions),
        device=device,
        world=world,
        buckets=GradientBuckets(method.parameters()),
    )


def of_page(config: TrainConfig, facts: DatasetInfo) -> Resolved:
    """Resolve the settings of a form before the data set is loaded. Raises ValueError as `resolve` does."""
    settings.check_names(config)
    knobs = settings.none_as_no_value(methods.knobs(config.method), config.method_knobs)
    methods.checked_settings(config.method, knobs)
    channels, median, _ = facts.image_shape
    if datasets.is_files(config.dataset):
        side = config.image_size or settings.size_of(config, lambda: median)
        config = dataclasses.replace(config, image_size=side)
        facts = dataclasses.replace(facts, image_shape=(channels, side, side))
    found = settings.resolve(config, facts)
    if config.start and (why := misfit(runs.load(config.start), channels, config.encoder_knobs)):
        return dataclasses.replace(found, refusal=why)
    return found


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


def unsplit(method: Method) -> str | None:
    """Return the reason why a method cannot train in micro-batches, with the remedy; None if it can."""
    if method.batch_kind == "lifted":
        return N_(
            "lifted batches choose negatives from the whole batch before encoding; leave micro_batch out, or use "
            "--set method.batches=class_balanced"
        )
    if getattr(method.settings, "bn_splits", 1) > 1:
        return N_("micro_batch already splits the batch norm; use it with --set method.bn_splits=1")
    return None


def check_loss_fits(config: TrainConfig, method: Method, loader: BatchLoader) -> None:
    """Check the loss on the pairs of a few images before training. Raises BadSetting."""
    if config.micro_batch and (reason := unsplit(method)):
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


# --- the run that a training starts from ---------------------------------------------------------


def inherit_encoder(name: str, config: TrainConfig, arguments: Iterable[str]) -> TrainConfig:
    """Return the settings with the encoder of the run `name` and its settings, except those in `arguments`, the
    `key=value` texts of the command line. Raises: NoSuchRun; BadSetting if the arguments name another encoder."""
    run = runs.load(name)
    encoder, knobs = run.config.get("encoder"), dict(run.config.get("encoder_knobs") or {})
    if not encoder:  # a recording: it has no weights, which is said where these are read
        return config
    own = dataclasses.replace(config, encoder=str(encoder), encoder_knobs=knobs)
    wanted = with_settings(own, [s for s in arguments if s.partition("=")[0].strip().startswith("encoder")])
    changes = {"encoder": (encoder, wanted.encoder)}
    changes |= {f"encoder.{k}": (knobs.get(k, v), v) for k, v in wanted.encoder_knobs.items() if k not in OF_IMAGES}
    for setting, (before, now) in changes.items():
        if before != now:
            texts = (v if isinstance(v, str) else json.dumps(v) for v in (before, now))
            values = dict(zip(("before", "now"), texts, strict=True))
            raise BadSetting(
                "{name} has {setting}={before} and this training asks for {now}: leave {setting} out, or start from "
                "another run",
                name=name,
                setting=setting,
                **values,
            )
    return wanted


def misfit(run: Run, channels: int | None, knobs: Knobs) -> str:
    """Describe how images with `channels` (None: unknown) and these encoder settings differ from those that the encoder
    of `run` was trained on; "" if they do not."""
    trained, shape = run.config.get("encoder_knobs") or {}, run.manifest.get("image_shape")
    own, these = (
        3 if number == 1 and of.get("gray_as_color") else number
        for number, of in ((shape[0] if shape else None, trained), (channels, knobs))
    )
    if own and these and own != these:
        text = N_(
            "{name} was trained on images with {own} channels, but these have {these}: choose other images or a new "
            "encoder, or for gray images set encoder.gray_as_color=on"
        )
        return message(text, name=run.name, own=own, these=these)
    before, now = (of.get("colors") or "plain" for of in (trained, knobs))
    if before == now:
        return ""
    as_set = before if isinstance(before, str) else json.dumps(before, separators=(",", ":"))
    text = N_("{name} was trained on images normalized differently: set encoder.colors={text}, not {now}.")
    return message(text, name=run.name, text=as_set, now=now)


STRUCTURES = {
    "encoder": N_(
        "the encoder of {name} has a different structure; choose the encoder and data set that it was trained with"
    ),
    "head": N_(
        "the head of {name} has a different structure; choose the settings of its head, or leave start_head off for a "
        "new one"
    ),
}


def load_initial_weights(method: Method, config: TrainConfig) -> None:
    """Load the weights of the run `config.start` into encoder, key encoder and, if set, head. Raises BadSetting."""
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
    states = {"encoder": encoder}
    if config.start_head:
        states["head"] = checkpoints.strip_prefix(weights, "head.")
    for part, state in states.items():
        for module in (getattr(method, part), getattr(method, f"key_{part}", None)):
            try:
                if module is not None:
                    module.load_state_dict(state)
            except RuntimeError:
                raise BadSetting(STRUCTURES[part], name=name) from None


def capture(encoder: nn.Module, config: TrainConfig, device: torch.device, world: World) -> None:
    """Make the encoder capture its graphs at the first batch. Raises BadSetting for incompatible settings."""
    if device.type != "cuda" or world.size > 1 or config.compile or config.micro_batch or config.freeze:
        raise BadSetting(CAPTURE)
    encoder.forward = CapturedForward(encoder, bool(config.amp))  # type: ignore[assignment]


class CapturedForward:
    """The forward pass of an encoder as a captured CUDA graph, so a step waits less for the host; losses stay the same.
    A graph has one buffer for its activations: the plain pass is used for other batch sizes than the first, in
    evaluation, and before the previous backward pass has ended."""

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
