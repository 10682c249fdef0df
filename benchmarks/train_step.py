"""Training steps per second, beside the same step built from peers' parts.

    python -m benchmarks.train_step [--threads 1] [--device cpu] [--json]

One SimCLR step on 256 colour images of 32×32 with the small encoder: two views, forward, NT-Xent,
backward, AdamW. The peer has the same encoder, head and optimiser, torchvision's transforms image
by image, and lightly's NT-Xent. Ours is also taken with each switch turned over, which is how the
defaults for channels-last and bf16 were chosen, and apart, to see where the time goes.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable

import torch
from lightly.loss import NTXentLoss
from torch import Tensor

from benchmarks.augment import peer
from contrastive_core import losses, methods
from contrastive_core.device import autocast, channels_last, synchronise
from contrastive_core.encoders import create_encoder
from contrastive_core.optim import create_optimizer
from contrastive_core.types import Batch
from contrastive_core.views import Recipe

PARTS = ("step", "forward", "views", "channels first", "bf16", "peer")  # in milliseconds
BATCH, SIZE, TAU = 256, 32, 0.2
RECIPE = Recipe(crop_low=0.2, hue=0.1, blur=0.5)  # the peer's, see benchmarks/augment.py


def seconds(work: Callable[[], object], device: torch.device, repeats: int) -> float:
    """Median seconds of one call, after one to warm up."""
    work()
    taken = []
    for _ in range(repeats):
        synchronise(device)
        start = time.perf_counter()
        work()
        synchronise(device)
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def model(device: torch.device, last: bool = True) -> methods.Method:
    torch.manual_seed(0)
    encoder = create_encoder("small", 3, SIZE)
    made = methods.create(
        "simclr", encoder=encoder, image_shape=(3, SIZE, SIZE), n_train=5000, recipe=RECIPE
    ).to(device)
    return channels_last(made) if last else made  # type: ignore[return-value]


def ours(images: Tensor, last: bool = True, bf16: bool = False) -> dict[str, Callable[[], object]]:
    """The whole step, and its parts one after the other."""
    device, n = images.device, torch.arange(len(images), device=images.device)
    batch, method = Batch(images, n, n), model(images.device, last)
    loss = losses.create("nt_xent", temperature=TAU)
    optimizer = create_optimizer("adamw", method.parameters(), 1e-3, 1e-4)
    generator = torch.Generator().manual_seed(0)

    def forward() -> Tensor:
        with autocast(device, bf16):
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


def measure(device: torch.device, repeats: int) -> dict[str, float]:
    """Milliseconds of a step: ours, its parts and variants, and the peer's; and ratios."""
    images = torch.randint(0, 256, (BATCH, 3, SIZE, SIZE), dtype=torch.uint8, device=device)
    parts = ours(images)
    found = {name: 1e3 * seconds(work, device, repeats) for name, work in parts.items()}
    found["channels first"] = 1e3 * seconds(ours(images, last=False)["step"], device, repeats)
    found["bf16"] = 1e3 * seconds(ours(images, bf16=True)["step"], device, repeats)
    found["peer"] = 1e3 * seconds(theirs(images), device, max(3, repeats // 2))
    return {
        **found,
        "images per second": 1e3 * BATCH / found["step"],
        "ratio to peer": found["peer"] / found["step"],
        "gain of channels last": found["channels first"] / found["step"],
        "gain of bf16": found["step"] / found["bf16"],
        "share of views": found["views"] / found["step"],
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--device", default="cpu")
    options.add_argument("--repeats", type=int, default=7)
    options.add_argument("--json", action="store_true")
    args = options.parse_args()
    torch.set_num_threads(args.threads)
    found = measure(torch.device(args.device), args.repeats)
    if args.json:
        print(json.dumps(found))
        return
    print(f"a step of {BATCH} images, {args.threads} threads, {args.device}:")
    for name, value in found.items():
        unit = " ms" if name in PARTS else ""
        print(f"  {name:<22}{value:>10.2f}{unit}")


if __name__ == "__main__":
    main()
