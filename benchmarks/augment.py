"""Augmented views per second, beside torchvision's transforms applied image by image.

    python -m benchmarks.augment [--threads 1] [--device cpu] [--json]

Same recipe on both sides: random resized crop, flip, colour jitter with hue, greyscale, and blur,
own parameters for every image, on 32×32 colour images that lie in memory.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable

import torch
from torchvision.transforms import v2

from contrastive_core.device import synchronise
from contrastive_core.views import Recipe, augment

SIZE = 32
RECIPE = Recipe(crop_low=0.2, saturation=0.4, hue=0.1, blur=0.5)


def peer() -> v2.Compose:
    """The same recipe of torchvision's transforms, for one image."""
    jitter = v2.ColorJitter(0.4, 0.4, 0.4, 0.1)
    return v2.Compose(
        [
            v2.RandomResizedCrop(SIZE, scale=(0.2, 1.0), antialias=True),
            v2.RandomHorizontalFlip(),
            v2.RandomApply([jitter], 0.8),
            v2.RandomGrayscale(0.2),
            v2.RandomApply([v2.GaussianBlur(3, (0.1, 2.0))], 0.5),
        ]
    )


def per_second(work: Callable[[], int], device: torch.device, repeats: int) -> float:
    """Median images per second over `repeats` runs, after one to warm up."""
    work()
    rates = []
    for _ in range(repeats):
        synchronise(device)
        start = time.perf_counter()
        n = work()
        synchronise(device)
        rates.append(n / (time.perf_counter() - start))
    return statistics.median(rates)


def measure(device: torch.device, batch: int, repeats: int) -> dict[str, float]:
    """Images per second of both, and their ratio."""
    images = torch.randint(0, 256, (batch, 3, SIZE, SIZE), dtype=torch.uint8)
    on_device, generator = images.to(device), torch.Generator().manual_seed(0)
    transform, few = peer(), images[: min(batch, 256)].float() / 255

    def ours() -> int:
        return len(augment(on_device, RECIPE, generator))

    def theirs() -> int:
        return len([transform(image) for image in few])

    mine, other = per_second(ours, device, repeats), per_second(theirs, device, repeats)
    return {"batch": batch, "ours": mine, "torchvision": other, "ratio": mine / other}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--device", default="cpu")
    options.add_argument("--repeats", type=int, default=7)
    options.add_argument("--json", action="store_true")
    args = options.parse_args()
    torch.set_num_threads(args.threads)
    rows = [measure(torch.device(args.device), b, args.repeats) for b in (64, 256, 1024)]
    if args.json:
        print(json.dumps(rows))
        return
    for row in rows:
        print(
            f"batch {row['batch']:>5}: {row['ours']:>9,.0f} views/s, torchvision image by image "
            f"{row['torchvision']:>7,.0f}: {row['ratio']:.1f} times as many"
        )


if __name__ == "__main__":
    main()
