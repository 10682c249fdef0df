"""Training steps per second, beside the same step built from peers' parts.

    python -m benchmarks.train_step [--threads CORES] [--device cpu] [--repeats 7]

One SimCLR step on 256 color images of 32×32 with the small encoder: two views, forward, NT-Xent,
backward, AdamW. The peer has the same encoder, head and optimizer, torchvision's transforms image
by image, and lightly's NT-Xent. Ours is also taken with each switch turned over, which is how the
defaults for channels-last and bf16 were chosen, and apart, to see where the time goes.

A save copies the state, and a thread writes it while training continues: what both take, and what steps lose beside
the write.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from unittest import mock

import torch
from lightly.loss import NTXentLoss
from torch import Tensor

from benchmarks._machine import cores
from benchmarks._timing import Seconds, alternate, figure, limit, summary
from benchmarks._training import synchronize
from benchmarks.augment import peer
from contrastive_core import losses, methods, runs
from contrastive_core.base.device import wants_bf16
from contrastive_core.data.batch_loader import Batch
from contrastive_core.data.recipe import Recipe
from contrastive_core.models.encoders import create_encoder
from contrastive_core.runs.train_config import TrainConfig
from contrastive_core.train.loop import compute_step, train
from contrastive_core.train.monitor import Looks
from contrastive_core.train.optim import create_optimizer
from contrastive_core.train.setup import prepare
from contrastive_core.train.state import StateWriter, TrainPosition, new_totals, save

BATCH, SIZE, TAU = 256, 32, 0.2
RECIPE = Recipe(crop_low=0.2, hue=0.1, blur=0.5)  # the peer's, see benchmarks/augment.py


def model(device: torch.device, last: bool = True) -> methods.Method:
    torch.manual_seed(0)
    encoder = create_encoder("small", 3, SIZE)
    made = methods.create("simclr", encoder=encoder, image_shape=(3, SIZE, SIZE), n_train=5000, recipe=RECIPE).to(
        device
    )
    return made.to(memory_format=torch.channels_last) if last else made


def ours(
    images: Tensor, last: bool = True, bf16: bool = False, compiled: bool = False
) -> dict[str, Callable[[], object]]:
    """The whole step, and its parts one after the other."""
    device, n = images.device, torch.arange(len(images), device=images.device)
    batch, method = Batch(images, n, n), model(images.device, last)
    if compiled:
        method.encoder.compile()
    loss = losses.create("nt_xent", temperature=TAU)
    optimizer = create_optimizer("adamw", method.parameters(), 1e-3, 1e-4)
    generator = torch.Generator().manual_seed(0)

    def forward() -> Tensor:
        with torch.autocast(device.type, torch.bfloat16, enabled=bf16):
            pairs = method.pairs(batch, generator)
        return loss(pairs).value

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        forward().backward()
        optimizer.step()

    def views() -> Tensor:
        return method.views(batch, 2, generator)  # type: ignore[operator, no-any-return]

    return {"step": step, "forward": forward, "views": views}


def theirs(images: Tensor) -> Callable[[], object]:
    """The same step from torchvision's transforms and lightly's loss."""
    method, transform, loss = model(images.device), peer(), NTXentLoss(temperature=TAU)
    optimizer = torch.optim.AdamW(method.parameters(), lr=1e-3, weight_decay=1e-4)
    on_cpu = images.cpu().float() / 255

    def view() -> Tensor:
        return torch.stack([transform(image) for image in on_cpu]).to(images.device)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        z = method(torch.cat([view(), view()]))
        loss(*z.chunk(2)).backward()
        optimizer.step()

    return step


def measure(device: torch.device, repeats: int) -> dict[str, Seconds]:
    """Seconds of a step: ours, its parts and variants, and the peers'."""
    images = torch.randint(0, 256, (BATCH, 3, SIZE, SIZE), dtype=torch.uint8, device=device)
    bf16 = wants_bf16(device)
    work = {
        **ours(images, bf16=bf16),
        "compiled": ours(images, bf16=bf16, compiled=True)["step"],
        "the other precision": ours(images, bf16=not bf16)["step"],
        "eager": ours(images, last=False)["step"],
        "peers": theirs(images),
    }

    def waited(one: Callable[[], object]) -> Callable[[], None]:
        def run() -> None:
            one()
            synchronize(device)

        return run

    return alternate(repeats, **{name: waited(one) for name, one in work.items()})


def share_of_loop(threads: int) -> tuple[float, float]:
    """How much of a training's time its bare steps are: forward, backward, optimizer, memory; and how much the map that
    moves between two epochs is."""
    config = TrainConfig("simclr", "shapes", epochs=3, device="cpu", threads=threads)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CONTRASTIVE_LAB_RUNS"] = folder
        p = prepare(config)
        run = runs.create("loop", p.config.to_dict())
        start, looks, after = time.perf_counter(), list[float](), Looks.after

        def timed(self: Looks, step: int) -> None:
            begin = time.perf_counter()
            after(self, step)
            looks.append(time.perf_counter() - begin)

        with mock.patch.object(Looks, "after", timed):
            train(p, run)
        whole = time.perf_counter() - start
    p = prepare(config)
    batch, taken = p.loader.batch(p.loader.epoch(0)[0]), []
    p.method.train()
    for _ in range(11):
        start = time.perf_counter()
        with torch.autocast(p.device.type, torch.bfloat16, enabled=bool(p.config.amp)):
            pairs = p.method.pairs(batch, p.generator)
        p.optimizer.zero_grad(set_to_none=True)
        p.loss(pairs).value.backward()
        p.optimizer.step()
        p.method.after_step(pairs)
        taken.append(time.perf_counter() - start)
    return len(p.loader.epoch(0)) * config.epochs * statistics.median(taken) / whole, sum(looks) / whole


def seconds_of_save(encoder: str, optimizer: str, threads: int, repeats: int = 3) -> dict[str, float]:
    """Medians of one saved state: seconds until training continues, until it is on the disk, and by which the steps in
    between take longer; its megabytes."""
    batch_size = {"small": 256}.get(encoder, 16)
    config = TrainConfig("simclr", "digits", device="cpu", threads=threads, encoder=encoder, optimizer=optimizer)
    p = prepare(dataclasses.replace(config, batch_size=batch_size, sample=2))
    p.method.train()
    batch = p.loader.batch(p.loader.epoch(0)[0])

    def step() -> None:
        compute_step(p, batch)
        p.optimizer.step()

    taken: dict[str, list[float]] = {"wait": [], "write": [], "lost": []}
    with tempfile.TemporaryDirectory() as folder, StateWriter() as writer:
        os.environ["CONTRASTIVE_LAB_RUNS"] = folder
        run, totals = runs.create("saved", p.config.to_dict()), new_totals(p.device)
        for _ in range(repeats + 1):
            step()
            start, steps = time.perf_counter(), 0
            save(p, run, TrainPosition(), totals, writer)
            waited = time.perf_counter() - start
            while not writer.is_idle:
                step()
                steps += 1
            beside, start = time.perf_counter() - start - waited, time.perf_counter()
            for _ in range(steps):
                step()
            alone, start = time.perf_counter() - start, time.perf_counter()
            save(p, run, TrainPosition(), totals, writer)
            writer.wait()
            for name, seconds in (("wait", waited), ("write", time.perf_counter() - start), ("lost", beside - alone)):
                taken[name].append(seconds)
        size = max(path.stat().st_size for path in (run.path / "state").iterdir())
    return {name: statistics.median(rounds[1:]) for name, rounds in taken.items()} | {"mb": size / 1e6}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--threads", type=int, default=cores())
    options.add_argument("--device", default="cpu")
    options.add_argument("--repeats", type=int, default=7)
    args = options.parse_args()
    torch.set_num_threads(args.threads)
    found = measure(torch.device(args.device), args.repeats)
    print(f"a step of {BATCH} images, two views, {args.threads} threads, {args.device}:")
    for name, seconds in found.items():
        rate = 2 * BATCH / seconds
        print(f"  {name:<16}{1e3 * seconds:>9.1f} ms {rate:>9,.0f} views/s")
    share, looks = share_of_loop(args.threads)
    print(f"  bare steps are {100 * share:.0f} % of a training of three epochs, its moving map {100 * looks:.1f} %")
    for encoder, optimizer in itertools.product(("small", "resnet50"), ("sgd", "adamw")):
        save_ = seconds_of_save(encoder, optimizer, args.threads)
        print(
            f"  a save of {encoder} with {optimizer}, {save_['mb']:.1f} MB: training waits {save_['wait']:.3f} s "
            f"and loses {save_['lost']:.3f} s beside the write; waiting for the disk takes {save_['write']:.3f} s"
        )
    step, eager = found["step"], found["eager"]
    name, plain = "training step, small encoder", "eager, float32, channels first"
    lines = [
        figure(name, step, plain, eager, 1.7),
        figure(f"{name}, compiled", found["compiled"], plain, eager, 2.5),
        figure(name, step, "torchvision + lightly", found["peers"], 1.7),
        limit("training without its bare steps", 100 * (1 - share), "%", 10.0),
        limit("a map that moves during the epoch", 100 * looks, "%", 3.0),
    ]
    summary("train_step", lines)


if __name__ == "__main__":
    main()
