"""Images per second of a training's loader: decoded in training, and read from the cache, beside torchvision's loader.

    python -m benchmarks.streaming [--images 800] [--batch 64] [--repeats 3]

Made JPEG files of 500×375 pixels are brought to 224: shorter side resized, middle cropped. All three give shuffled
batches of uint8 tensors for one epoch, with a process per core. torchvision: ImageFolder in a DataLoader with
`persistent_workers`. Processes are started in an epoch before, which is not timed; the cache is made before, too.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch

from benchmarks._machine import cores
from benchmarks._timing import alternate
from benchmarks.images import Pictures, write
from contrastive_core.data import datasets
from contrastive_core.data.batch_loader import BatchLoader
from contrastive_core.data.dataset import Dataset, ImageForm
from contrastive_core.data.datasets import load_streamed
from contrastive_core.ops.collectives import World

SIDE = 224


def ours(dataset: Dataset, batch: int) -> Callable[[], int]:
    loader = BatchLoader(dataset, "shuffled", batch, 0, torch.device("cpu"), World())
    return lambda: sum(len(one.images) for one in loader.batches(loader.epoch(0)))


def torchvisions(folder: Path, batch: int) -> Callable[[], int]:
    from torch.utils.data import DataLoader
    from torchvision.datasets import ImageFolder
    from torchvision.transforms import v2

    steps = v2.Compose([v2.PILToTensor(), v2.Resize(SIDE, antialias=True), v2.CenterCrop(SIDE)])
    workers = {"num_workers": cores(), "persistent_workers": True}
    loader = DataLoader(ImageFolder(folder / "train", steps), batch, shuffle=True, **workers)
    return lambda: sum(len(images) for images, _ in loader)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--images", type=int, default=800)
    options.add_argument("--batch", type=int, default=64)
    options.add_argument("--repeats", type=int, default=3)
    args = options.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "set"
        write(Pictures(args.images, 500, 375, "jpg", SIDE), folder)
        name, form = f"folder:{folder}", ImageForm(SIDE)
        epochs = {
            "streamed": ours(load_streamed(name, "train", form), args.batch),
            "memory_mapped": ours(datasets.load(name, form=form), args.batch),
            "torchvision": torchvisions(folder, args.batch),
        }
        counts = {title: epoch() for title, epoch in epochs.items()}  # processes start, files are read once
        seconds = alternate(args.repeats, **epochs)
    for title, taken in seconds.items():
        rates = sorted(counts[title] / t for t in taken.rounds)
        print(f"{title:<15}{rates[len(rates) // 2]:>10,.0f} images/s  ({rates[0]:,.0f} to {rates[-1]:,.0f})")


if __name__ == "__main__":
    main()
