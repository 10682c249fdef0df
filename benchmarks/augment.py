"""Augmented views per second, beside torchvision image by image, lightly's loader and kornia.

    python -m benchmarks.augment [--threads CORES] [--device cpu] [--repeats 7]

Two views of 32×32 color images that lie in memory: random resized crop, flip, color jitter with
hue, grayscale, and blur, with own parameters for every image on all sides. lightly's transform runs
in its usual place, a loader with one worker per thread. That ours gives torchvision's pixels within
2/255 is a test (tests/unit/data/test_augmentations.py).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import torch
from torchvision.transforms import v2

from benchmarks._machine import cores
from benchmarks._timing import Seconds, alternate, figure, summary
from benchmarks._training import synchronize
from contrastive_core.data.augmentations import make_views
from contrastive_core.data.recipe import Recipe

SIZE, VIEWS = 32, 2
RECIPE = Recipe(crop_low=0.2, saturation=0.4, hue=0.1, blur=0.5)
GOALS = {"lightly, loader": 6.0, "kornia": 2.0}


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


def by_torchvision(images: torch.Tensor) -> Callable[[], object]:
    transform, few = peer(), images.float() / 255
    return lambda: [transform(image) for image in few for _ in range(VIEWS)]


def by_kornia(images: torch.Tensor) -> Callable[[], object]:
    from kornia import augmentation as k

    steps = k.AugmentationSequential(
        k.RandomResizedCrop((SIZE, SIZE), scale=(0.2, 1.0)),
        k.RandomHorizontalFlip(),
        k.ColorJitter(0.4, 0.4, 0.4, 0.1, p=0.8),
        k.RandomGrayscale(p=0.2),
        k.RandomGaussianBlur((3, 3), (0.1, 2.0), p=0.5),
        data_keys=["input"],
    )
    return lambda: [steps(images.float() / 255) for _ in range(VIEWS)]


def by_lightly(images: torch.Tensor, workers: int) -> Callable[[], object]:
    """lightly's SimCLR transform in a loader whose workers are up before the first batch."""
    from lightly.transforms import SimCLRTransform
    from torch.utils.data import DataLoader

    transform = SimCLRTransform(SIZE, cj_strength=0.5, cj_hue=0.2, min_scale=0.2, normalize=None, sigmas=(0.1, 2))
    pictures = [v2.functional.to_pil_image(image) for image in images]
    loader = DataLoader(_Transformed(pictures, transform), batch_size=64, num_workers=workers, persistent_workers=True)
    return lambda: list(loader)


class _Transformed(torch.utils.data.Dataset):
    def __init__(self, pictures: list, transform: Callable) -> None:
        self.pictures, self.transform = pictures, transform

    def __len__(self) -> int:
        return len(self.pictures)

    def __getitem__(self, i: int) -> list:
        return self.transform(self.pictures[i])


def measure(device: torch.device, batch: int, threads: int, repeats: int) -> dict[str, Seconds]:
    """Seconds for two views of `batch` images, on every side."""
    images = torch.randint(0, 256, (batch, 3, SIZE, SIZE), dtype=torch.uint8)
    on_device, generator = images.to(device), torch.Generator().manual_seed(0)

    def ours() -> None:
        make_views(on_device, RECIPE, VIEWS, generator)
        synchronize(device)

    return alternate(
        repeats,
        ours=ours,
        torchvision=by_torchvision(images),
        **{"lightly, loader": by_lightly(images, threads), "kornia": by_kornia(on_device)},
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--threads", type=int, default=cores())
    options.add_argument("--device", default="cpu")
    options.add_argument("--repeats", type=int, default=7)
    args = options.parse_args()
    torch.set_num_threads(args.threads)
    lines = []
    for batch in (1024, 256):
        found = measure(torch.device(args.device), batch, args.threads, args.repeats)
        rates = {name: VIEWS * batch / seconds for name, seconds in found.items()}
        print(f"batch {batch:>5}: " + ", ".join(f"{k} {v:,.0f} views/s" for k, v in rates.items()))
        name = f"two views, 32×32, {batch:,} images"
        lines += [figure(name, found["ours"], k, found[k], goal) for k, goal in GOALS.items()]
    summary("augment", lines)


if __name__ == "__main__":
    main()
