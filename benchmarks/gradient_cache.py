"""Memory and time of a step whose batch is encoded in parts (gradient caching), beside a plain step of one part.

    python -m benchmarks.gradient_cache [--images 4096 16384] [--part 512] [--device cpu]

SimCLR with the small encoder on color images of 32×32: two views, NT-Xent, backward, AdamW. Every batch has a process
of its own. Extra memory is the peak of the step above what the process held before it: resident on the CPU, allocated
on CUDA. The images themselves lie in the process before the step, as a loader's batch does.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch

from benchmarks._training import synchronize
from contrastive_core import losses, methods
from contrastive_core.base.device import memory_bytes
from contrastive_core.data.batch_loader import Batch
from contrastive_core.models.encoders import create_encoder
from contrastive_core.ops.collectives import World
from contrastive_core.train.large_batches import GradientBuckets
from contrastive_core.train.loop import compute_step
from contrastive_core.train.optim import create_optimizer

SIZE = 32


def step_of(images: int, part: int | None, device: torch.device) -> Any:
    """A training step on a batch of random images, `part` of them encoded at a time."""
    torch.manual_seed(0)
    encoder = create_encoder("small", 3, SIZE)
    method = methods.create("simclr", encoder=encoder, image_shape=(3, SIZE, SIZE), n_train=images).to(device).train()
    method.use_loss(losses.create("nt_xent", temperature=0.2))
    setup: Any = SimpleNamespace(
        config=SimpleNamespace(amp=False, clip=0.0, micro_batch=part),
        method=method,
        loss=method.loss,
        optimizer=create_optimizer("adamw", method.parameters(), 1e-3, 1e-4),
        generator=torch.Generator().manual_seed(0),
        device=device,
        world=World(),
        buckets=GradientBuckets(method.parameters()),
    )

    def step(n: int) -> None:
        index = torch.arange(n, device=device)
        compute_step(setup, Batch(pixels[:n], index, index))
        setup.optimizer.step()
        synchronize(device)

    pixels = torch.randint(0, 256, (images, 3, SIZE, SIZE), dtype=torch.uint8, device=device)
    return step


def measured(images: int, part: int | None, device: torch.device) -> dict[str, float]:
    """Seconds and extra MB of one step, after one of a few images."""
    step = step_of(images, part, device)
    step(8)
    before, start = memory_bytes(device), time.perf_counter()
    step(images)
    return {"seconds": time.perf_counter() - start, "extra_mb": (memory_bytes(device) - before) / 2**20}


def apart(images: int, part: int | None, device: str) -> dict[str, float]:
    """`measured` in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.gradient_cache", "--device", device, "--one", str(images)]
    command += ["--part", str(part)] if part else ["--part", "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--images", type=int, nargs="+", default=[4096, 16384])
    options.add_argument("--part", type=int, default=512)
    options.add_argument("--device", default="cpu")
    options.add_argument("--one", type=int, help=argparse.SUPPRESS)
    args = options.parse_args()
    if args.one:
        print(json.dumps(measured(args.one, args.part or None, torch.device(args.device))))
        return
    run = partial(apart, device=args.device)
    rows = {f"{args.part:,}, plain": run(args.part, None)}
    rows |= {f"{n:,}, {args.part:,} at a time": run(n, args.part) for n in args.images}
    for name, row in rows.items():
        print(f"{name:<28}{row['seconds']:>9.2f} s {row['extra_mb']:>9.0f} MB above the start")


if __name__ == "__main__":
    main()
