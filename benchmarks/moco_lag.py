"""Why MoCo v2 is behind SimCLR in short runs: ours beside lightly's, and from SimCLR to MoCo one step at a time.

    nice -n 5 python -m benchmarks.moco_lag [--seeds 0 1] [--epochs 16] [--only NAME ...]

Small encoder at half width on `shapes`, one thread. Both sides start with the same weights and the same queue and take
the same batches, views, optimizer, schedule, m, τ and K. They differ in the method's code alone. Prints kNN of h of the
test images (k = 20, τ 0.07) at the epochs of AT.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor

from benchmarks._lightly import PeerMoCo
from benchmarks._training import rows_of
from contrastive_core import metrics, pairs
from contrastive_core.base.errors import CannotScore
from contrastive_core.data import datasets
from contrastive_core.data.batch_loader import Batch
from contrastive_core.data.dataset import Dataset
from contrastive_core.models.encoders import create_encoder
from contrastive_core.pairs.types import Pairs
from contrastive_core.runs.train_config import TrainConfig
from contrastive_core.train.loop import compute_step
from contrastive_core.train.optim import create_optimizer, learning_rate, set_learning_rate
from contrastive_core.train.setup import TrainSetup, prepare

AT = (1, 2, 4, 8, 12, 16)
WIDTH: dict[str, Any] = {"width": 0.5}
RUNS: dict[str, tuple[str, str, dict[str, Any]]] = {  # method, side, settings
    "SimCLR": ("simclr", "ours", {}),
    "SimCLR, one direction": ("simclr", "one direction", {}),
    "keys without gradient": ("simclr", "no gradient", {}),
    "and in a pass of their own": ("simclr", "two passes", {}),
    "MoCo v2": ("moco_v2", "ours", {}),
    "MoCo v2, lightly": ("moco_v2", "lightly", {}),
    "m 0.9": ("moco_v2", "ours", {"method_knobs": {"momentum": 0.9}}),
    "no queue": ("moco_v2", "one direction", {}),
    "no queue, m 0": ("moco_v2", "one direction", {"method_knobs": {"momentum": 0.0}}),
    "no blur": ("moco_v2", "ours", {"recipe": {"blur": 0.0}}),
}
Step = Callable[[Batch], float]


def setup_of(method: str, dataset: str, seed: int, epochs: int, settings: dict[str, Any]) -> TrainSetup:
    """Everything that a training needs, on the CPU."""
    config = TrainConfig(method, dataset, seed=seed, epochs=epochs, device="cpu", threads=1, amp=False)
    config = dataclasses.replace(config, encoder_knobs=WIDTH)
    return prepare(dataclasses.replace(config, **settings))


def ours(setup: TrainSetup) -> tuple[torch.nn.Module, torch.optim.Optimizer, Step]:
    """Our encoder, its optimizer and a step that returns the loss."""

    def step(batch: Batch) -> float:
        made = compute_step(setup, batch)
        setup.optimizer.step()
        setup.method.after_step(made.pairs)
        return float(made.loss)

    setup.method.train()
    return setup.method.encoder, setup.optimizer, step


def one_direction(setup: TrainSetup, detach: bool = False) -> tuple[torch.nn.Module, torch.optim.Optimizer, Step]:
    """Ours with first views as anchors and the batch's second views as keys: for MoCo, no queue. `detach`: keys have no
    gradient."""

    def relate(rows: tuple[Tensor, ...], *_: object) -> Pairs:
        anchors, keys = views_of(rows)
        return pairs.from_towers(anchors, keys.detach() if detach else keys, direction="a_to_b")

    setattr(setup.method, "relate", relate)  # noqa: B010
    return ours(setup)


def two_passes(setup: TrainSetup) -> tuple[torch.nn.Module, torch.optim.Optimizer, Step]:
    """Keys without gradient, and batch statistics of first and of second views apart."""
    method = setup.method
    setattr(method, "encode_views", lambda x: torch.stack([method(view) for view in x.unbind(1)], 1))  # noqa: B010
    return one_direction(setup, detach=True)


def views_of(rows: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Embeddings of the first and of the second views, (b, e) each: MoCo's as they are, SimCLR's (b, 2, e) apart."""
    return rows if len(rows) == 2 else rows[0].unbind(1)


def peer_of(setup: TrainSetup) -> PeerMoCo:
    """lightly's MoCo with the weights, queue, m and τ of ours."""
    method, config = setup.method, setup.config
    shape = setup.dataset.images.shape[1:]
    peer = PeerMoCo(create_encoder("small", shape[0], shape[1], **WIDTH), method.settings).train()
    peer.backbone.load_state_dict(method.encoder.state_dict())
    peer.projection_head.layers.load_state_dict(
        dict(zip(peer.projection_head.layers.state_dict(), method.head.state_dict().values(), strict=True))
    )
    peer.make_copy()
    peer.m = method.settings.momentum
    peer.criterion.temperature = config.loss_knobs["temperature"]
    peer.criterion.memory_bank.bank.copy_(method.queue.rows)
    return peer


def theirs(setup: TrainSetup) -> tuple[torch.nn.Module, torch.optim.Optimizer, Step]:
    """The same of lightly's, on our views."""
    peer, config = peer_of(setup), setup.config
    trained = [p for p in peer.parameters() if p.requires_grad]
    optimizer = create_optimizer(config.optimizer or "", trained, config.lr or 0, config.weight_decay or 0)

    def step(batch: Batch) -> float:
        loss = peer.loss(*setup.method.views(batch, 2, setup.generator).unbind(1), 0.0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return peer.backbone, optimizer, step


def score(encoder: torch.nn.Module, splits: list[Dataset]) -> float:
    """kNN in per cent; not a number where h is zero, as of an encoder whose units died."""
    try:
        return 100 * float(metrics.create("knn")(*(rows_of(encoder, s) for s in splits)).value)
    except CannotScore:
        return math.nan


SIDES = {
    "ours": ours,
    "one direction": one_direction,
    "no gradient": partial(one_direction, detach=True),
    "two passes": two_passes,
    "lightly": theirs,
}


def curve(side: str, setup: TrainSetup, epochs: int) -> Iterator[tuple[int, float, float]]:
    """Epoch, mean loss and kNN in per cent."""
    encoder, optimizer, step = SIDES[side](setup)
    config = setup.config
    splits = [datasets.load(config.dataset, split) for split in ("train", "test")]
    total, done = epochs * len(setup.loader.epoch(0)), 0
    for epoch in range(epochs):
        losses = []
        for batch in setup.loader.batches(setup.loader.epoch(epoch)):
            set_learning_rate(optimizer, learning_rate(done, total, config.lr or 0, config.schedule or ""))
            losses.append(step(batch))
            done += 1
        if epoch + 1 in AT:
            knn = score(encoder, splits)
            encoder.train()
            yield epoch + 1, sum(losses) / len(losses), knn


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--dataset", default="shapes")
    options.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    options.add_argument("--epochs", type=int, default=16)
    options.add_argument("--only", nargs="+", default=list(RUNS), choices=list(RUNS))
    args = options.parse_args()
    print(f"| kNN after epoch | {' | '.join(str(e) for e in AT if e <= args.epochs)} |", flush=True)
    for seed in args.seeds:
        for name in args.only:
            method, side, settings = RUNS[name]
            began = time.process_time()
            found = list(curve(side, setup_of(method, args.dataset, seed, args.epochs, settings), args.epochs))
            cells = " | ".join(f"{knn:.1f}" for _, _, knn in found)
            print(
                f"| {name}, seed {seed} | {cells} | loss {found[-1][1]:.3f}, {time.process_time() - began:.0f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
