"""Images of a folder listed and decoded into the cache, beside torchvision and Pillow alone.

    python -m benchmarks.images [--workers CORES] [--repeats 3] [--share 1.0]

Made pictures of three sizes, as JPEG and PNG in two classes: resized to their shorter side and
cropped to a square. Within the time that is taken both sides list the folder and start their
processes (torchvision's loader as many, batches of 64 of uint8 tensors), and ours begins with an
empty cache (removing the cache before it is nobody's work, and not in the time); Pillow is one loop
in one process. Ours also writes what it decoded to the disk, with its hash, and reads it from there
in the last line: an epoch after the first, where an ImageFolder decodes again.

Listing: a made tree of files of one pixel, a thousand to a folder, beside torchvision's
`find_classes` and `make_dataset`, which take names only. Ours also asks for the size and the time
of each file, by which it knows a folder that has changed. The tree has just been written: what is
listed lies in the system's memory. Ten times fewer files tell whether time grows as their number
does; 1.3 million are told from the larger tree by that, not tried.
"""

from __future__ import annotations

import argparse
import io
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageOps

from benchmarks._machine import cores
from benchmarks._timing import alternate, figure, limit, summary
from contrastive_core.data import datasets, image_decoding, image_listings
from contrastive_core.data.dataset import ImageForm

BATCH = 64
TREE, BRANCH = 200_000, 1000  # files that are only listed, and of these in a folder
MANY, MINUTES = 1_300_000, 2  # ImageNet's files, and in how many minutes they are to be listed


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
    Pictures(12_000, 64, 64, "png", 64),  # of which the start of processes is little
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


def ours(pictures: Pictures, folder: Path, caches: Path) -> Callable[[], object]:
    """Each call with a cache of its own."""
    number = count()

    def decode() -> None:
        os.environ["CONTRASTIVE_LAB_HOME"] = str(caches / str(next(number)))
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

    def decode() -> None:
        images = ImageFolder(str(folder / "train"), steps)
        loader = DataLoader(images, BATCH, num_workers=workers)
        assert sum(len(x) for x, _ in loader) == pictures.n

    return decode


def by_pillow(pictures: Pictures, folder: Path) -> Callable[[], object]:
    paths, side = sorted((folder / "train").rglob(f"*.{pictures.ending}")), pictures.side

    def decode() -> None:
        for path in paths:
            with Image.open(path) as image:
                fitted = ImageOps.fit(image.convert("RGB"), (side, side), Image.BILINEAR)
            np.asarray(fitted, np.uint8)

    return decode


def processor_time(work: Callable[[], object]) -> float:
    """Seconds of this process and those that it starts: other work on the machine counts little."""
    before = os.times()
    work()
    return sum(after - start for after, start in zip(os.times()[:4], before[:4], strict=True))


# --- listing -------------------------------------------------------------------------------------


def write_tree(root: Path, n: int) -> None:
    """`n` files of one pixel, BRANCH to a folder."""
    pixel = io.BytesIO()
    Image.new("RGB", (1, 1)).save(pixel, "png")
    for i in range(n):
        path = root / f"n{i // BRANCH:08d}" / f"n{i // BRANCH:08d}_{i % BRANCH}.png"
        if i % BRANCH == 0:
            path.parent.mkdir(parents=True)
        path.write_bytes(pixel.getvalue())


def listed(root: Path, n: int) -> Callable[[], object]:
    def work() -> None:
        assert sum(len(x.files) for x in image_listings.listings_of_folder(str(root)).values()) == n

    return work


def listed_by_torchvision(root: Path, n: int) -> Callable[[], object]:
    from torchvision.datasets.folder import IMG_EXTENSIONS, find_classes, make_dataset

    def work() -> None:
        _, numbers = find_classes(root)
        assert len(make_dataset(root, numbers, IMG_EXTENSIONS)) == n

    return work


def listing(n: int, repeats: int) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as place:
        large, small = Path(place) / "large", Path(place) / "small"
        write_tree(large, n)
        write_tree(small, n // 10)
        found = alternate(
            repeats, ours=listed(large, n), torchvision=listed_by_torchvision(large, n), small=listed(small, n // 10)
        )
    name, growth = f"listed, {n:,} files", found["ours"] / found["small"]
    many, worst = (seconds * MANY / n for seconds in (found["ours"], max(found["ours"].rounds)))
    print(
        f"{name}: ours {n / found['ours']:,.0f} files/s, torchvision "
        f"{n / found['torchvision']:,.0f} files/s; ours takes {growth:.1f} times as long as for "
        f"{n // 10:,}; {MANY:,} would take {many:.0f} s"
    )
    peer = found["torchvision"]
    return [
        figure(name, found["ours"], "torchvision, make_dataset", peer, 1.0, "s"),
        limit(f"listed, {MANY:,} files, told from {n:,}", many, "s", 60 * MINUTES, worst),
    ]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--workers", type=int, default=cores())
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument("--share", type=float, default=1.0, help="of the pictures")
    args = options.parse_args()
    image_decoding.processes = lambda: args.workers
    lines = []
    for full in SETS:
        pictures = Pictures(int(full.n * args.share), *list(vars(full).values())[1:])
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place) / "pictures"
            write(pictures, folder)
            work = {
                "ours": ours(pictures, folder, Path(place) / "caches"),
                "torchvision": by_torchvision(pictures, folder, args.workers),
                "pillow": by_pillow(pictures, folder),
            }
            found = alternate(args.repeats, **work)
            busy = {name: processor_time(one) for name, one in work.items()}
            again = alternate(args.repeats, read=read(pictures, folder))["read"]
        rates = ", ".join(
            f"{k} {pictures.n / s:,.0f} images/s ({busy[k]:.2f} s of processors)" for k, s in found.items()
        )
        print(f"{pictures.text}, {args.workers} workers: {rates}, from the cache {pictures.n / again:,.0f} images/s")
        lines.append(
            figure(
                f"decoded, {pictures.text}", found["ours"], "torchvision, ImageFolder", found["torchvision"], 1.0, "s"
            )
        )
        lines.append(
            figure(f"decoded, {pictures.text}", found["ours"], "Pillow, one process", found["pillow"], 1.0, "s")
        )
        lines.append(
            figure(
                f"an epoch later, {pictures.text}", again, "torchvision, ImageFolder", found["torchvision"], 10.0, "s"
            )
        )
    lines += listing(int(TREE * args.share), args.repeats)
    summary("images", lines)


if __name__ == "__main__":
    main()
