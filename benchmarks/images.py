"""Images of a folder decoded into the cache, beside torchvision's ImageFolder and Pillow alone.

    python -m benchmarks.images [--workers 2] [--repeats 3] [--share 1.0]

Made pictures of three sizes, as JPEG and PNG in two classes: resized to their shorter side and
cropped to a square. All processes are started within the time that is taken, ours and those of
torchvision's loader (as many, batches of 64 of uint8 tensors); Pillow is one loop in one process.
Ours also writes what it decoded to the disk, with its hash, and reads it from there in the last
line: an epoch after the first, where an ImageFolder decodes again.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from benchmarks._timing import alternate, figure, summary
from contrastive_core.data import datasets, image_cache
from contrastive_core.data.image_form import ImageForm

BATCH = 64


@dataclass(frozen=True)
class Pictures:
    """`n` files of a kind, and the size they are brought to."""

    n: int
    width: int
    height: int
    ending: str
    side: int

    @property
    def text(self) -> str:
        size = f"{self.width:,}×{self.height:,}".replace(",", " ")
        return f"{self.n:,} {self.ending} of {size} to {self.side}"


SETS = (
    Pictures(800, 500, 375, "jpg", 224),
    Pictures(64, 2400, 1600, "jpg", 224),
    Pictures(3000, 64, 64, "png", 64),
)


def write(pictures: Pictures, folder: Path) -> None:
    """Smooth shapes with some noise, which take about as many bytes as photographs do."""
    rng = np.random.default_rng(0)
    size = (pictures.width, pictures.height)
    for i in range(pictures.n):
        coarse = Image.fromarray(rng.integers(0, 256, (9, 12, 3), np.uint8))
        smooth = np.asarray(coarse.resize(size, Image.Resampling.BICUBIC), np.int16)
        noise = rng.integers(-12, 13, (pictures.height, pictures.width, 1), np.int16)
        path = folder / "train" / "ab"[i % 2] / f"{i}.{pictures.ending}"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.clip(smooth + noise, 0, 255).astype(np.uint8)).save(path)
    shutil.copytree(folder / "train" / "a", folder / "test" / "a", copy_function=_first)


def _first(source: str, target: str) -> None:
    """A test part of one picture: the benchmark decodes the training part."""
    if Path(source).stem == "0":
        shutil.copy(source, target)


def ours(pictures: Pictures, folder: Path, cache: Path) -> Callable[[], object]:
    def decode() -> None:
        shutil.rmtree(cache / "data", ignore_errors=True)
        made = datasets.load(f"folder:{folder}", form=ImageForm(pictures.side))
        assert len(made) == pictures.n

    return decode


def read(pictures: Pictures, folder: Path) -> Callable[[], object]:
    data = datasets.load(f"folder:{folder}", form=ImageForm(pictures.side))
    order = np.random.default_rng(0).permutation(len(data))
    parts = np.array_split(order, max(1, len(data) // BATCH))
    return lambda: [data.images[np.sort(part)] for part in parts]


def by_torchvision(pictures: Pictures, folder: Path, workers: int) -> Callable[[], object]:
    from torch.utils.data import DataLoader
    from torchvision.datasets import ImageFolder
    from torchvision.transforms import CenterCrop, Compose, PILToTensor, Resize

    steps = Compose([Resize(pictures.side), CenterCrop(pictures.side), PILToTensor()])
    images = ImageFolder(str(folder / "train"), steps)
    return lambda: sum(len(x) for x, _ in DataLoader(images, BATCH, num_workers=workers))


def by_pillow(pictures: Pictures, folder: Path) -> Callable[[], object]:
    paths, side = sorted((folder / "train").rglob(f"*.{pictures.ending}")), pictures.side

    def decode() -> None:
        for path in paths:
            with Image.open(path) as image:
                fitted = ImageOps.fit(image.convert("RGB"), (side, side), Image.BILINEAR)
            np.asarray(fitted, np.uint8)

    return decode


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument("--share", type=float, default=1.0, help="of the pictures")
    args = options.parse_args()
    image_cache.processes = lambda: args.workers
    lines = []
    for full in SETS:
        pictures = Pictures(int(full.n * args.share), *list(vars(full).values())[1:])
        with tempfile.TemporaryDirectory() as place:
            os.environ["CONTRASTIVE_LAB_HOME"] = str(Path(place) / "cache")
            folder = Path(place) / "pictures"
            write(pictures, folder)
            found = alternate(
                args.repeats,
                ours=ours(pictures, folder, Path(place) / "cache"),
                torchvision=by_torchvision(pictures, folder, args.workers),
                pillow=by_pillow(pictures, folder),
            )
            again = alternate(args.repeats, read=read(pictures, folder))["read"]
        rates = ", ".join(f"{k} {pictures.n / s:,.0f} images/s" for k, s in found.items())
        print(f"{pictures.text}, {args.workers} workers: {rates}, from the cache "
              f"{pictures.n / again:,.0f} images/s")  # fmt: skip
        lines.append(figure(f"decoded, {pictures.text}", found["ours"], "torchvision, ImageFolder",
                            found["torchvision"], 1.0, "s"))  # fmt: skip
        lines.append(figure(f"decoded, {pictures.text}", found["ours"], "Pillow, one process",
                            found["pillow"], 1.0, "s"))  # fmt: skip
        lines.append(figure(f"an epoch later, {pictures.text}", again, "torchvision, ImageFolder",
                            found["torchvision"], 10.0, "s"))  # fmt: skip
    summary("images", lines)


if __name__ == "__main__":
    main()
